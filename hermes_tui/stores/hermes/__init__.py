"""Hermes Agent: one SQLite file a profile."""
