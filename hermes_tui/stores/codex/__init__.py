"""Codex: JSONL rollouts with an SQLite mirror."""
