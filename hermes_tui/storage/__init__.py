"""SQLite and files, knowing no agent."""
