"""The store we make: schema 23, tables as Hermes 0.19 has them, full text in the external-content layout.

Source: facts/hermes.md section 2 (tables) and section 3 (indexes, the layout of schema 23 to 25, gated triggers).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import apsw

from hermes_tui.storage.errors import WriteFailed
from hermes_tui.storage.writing import JournalMode, RetryingWriter

SCHEMA_VERSION: Final = 23

TABLES: Final = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT,
    thread_id TEXT, display_name TEXT, origin_json TEXT, expiry_finalized INTEGER DEFAULT 0, model TEXT,
    model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL,
    end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT,
    git_repo_root TEXT, billing_provider TEXT, billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL,
    actual_cost_usd REAL, cost_status TEXT, cost_source TEXT, pricing_version TEXT, title TEXT,
    api_call_count INTEGER DEFAULT 0, handoff_state TEXT, handoff_platform TEXT, handoff_error TEXT,
    compression_failure_cooldown_until REAL, compression_failure_error TEXT,
    compression_fallback_streak INTEGER NOT NULL DEFAULT 0, profile_name TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT,
    timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
    reasoning_details TEXT, codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT,
    observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0,
    api_content TEXT
);
CREATE TABLE session_model_usage (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, model TEXT NOT NULL,
    billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT NOT NULL DEFAULT '',
    billing_mode TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '', api_call_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0, estimated_cost_usd REAL NOT NULL DEFAULT 0,
    actual_cost_usd REAL NOT NULL DEFAULT 0, cost_status TEXT, cost_source TEXT, first_seen REAL, last_seen REAL,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
);
CREATE TABLE gateway_routing (
    scope TEXT NOT NULL DEFAULT '', session_key TEXT NOT NULL, entry_json TEXT NOT NULL, updated_at REAL NOT NULL,
    PRIMARY KEY (scope, session_key)
);
CREATE TABLE compression_locks (
    session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL, expires_at REAL NOT NULL
);
CREATE TABLE async_delegations (
    delegation_id TEXT PRIMARY KEY, origin_session TEXT NOT NULL, origin_ui_session_id TEXT NOT NULL DEFAULT '',
    parent_session_id TEXT, state TEXT NOT NULL, dispatched_at REAL NOT NULL, completed_at REAL,
    updated_at REAL NOT NULL, event_json TEXT, result_json TEXT, delivery_state TEXT NOT NULL DEFAULT 'pending',
    delivery_attempts INTEGER NOT NULL DEFAULT 0, delivered_at REAL, owner_pid INTEGER, owner_started_at INTEGER,
    task_json TEXT, delivery_claim TEXT, delivery_claimed_at REAL
);
CREATE INDEX idx_sessions_source ON sessions(source);
CREATE INDEX idx_sessions_source_id ON sessions(source, id);
CREATE INDEX idx_sessions_parent ON sessions(parent_session_id);
CREATE INDEX idx_sessions_started ON sessions(started_at DESC);
CREATE INDEX idx_sessions_session_key ON sessions(session_key, started_at DESC);
CREATE INDEX idx_sessions_gateway_peer
    ON sessions(source, user_id, chat_id, chat_type, thread_id, started_at DESC);
CREATE INDEX idx_sessions_handoff_state ON sessions(handoff_state, started_at);
CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL;
CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
CREATE INDEX idx_messages_session_active ON messages(session_id, active, timestamp);
CREATE INDEX idx_messages_active_null ON messages(active) WHERE active IS NULL;
CREATE INDEX idx_messages_platform_msg_id ON messages(session_id, platform_message_id)
    WHERE platform_message_id IS NOT NULL;
CREATE INDEX idx_session_model_usage_session ON session_model_usage(session_id);
CREATE INDEX idx_session_model_usage_model ON session_model_usage(model);
CREATE INDEX idx_compression_locks_expires ON compression_locks(expires_at);
CREATE INDEX idx_async_delegations_delivery ON async_delegations(delivery_state, completed_at);
"""

INDEXES: Final = """
CREATE VIRTUAL TABLE messages_fts USING fts5(content, tool_name, tool_calls, content='messages', content_rowid='id');
CREATE VIEW messages_fts_trigram_src AS
    SELECT id, content, tool_name, tool_calls FROM messages WHERE role <> 'tool';
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(
    content, tool_name, tool_calls, content='messages_fts_trigram_src', content_rowid='id', tokenize='trigram'
);
"""


def _gate(row: str) -> str:
    """The condition under which a trigger acts: while an index is rebuilt, only for rows it holds already."""

    def mark(key: str) -> str:
        return f"COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = '{key}'), -1)"

    return f"({row}.id > {mark('fts_rebuild_high_water')} OR {row}.id <= {mark('fts_rebuild_progress')})"


def _triggers(table: str, condition: str) -> str:
    """Keep an external-content index exact; its 'delete' command needs the old values."""
    columns = "content, tool_name, tool_calls"
    old = ", ".join(f"old.{name}" for name in columns.split(", "))
    new = ", ".join(f"new.{name}" for name in columns.split(", "))
    remove = (
        f"INSERT INTO {table}({table}, rowid, {columns}) SELECT 'delete', old.id, {old}"
        f" WHERE {condition.format(row='old')};"
    )
    add = f"INSERT INTO {table}(rowid, {columns}) SELECT new.id, {new} WHERE {condition.format(row='new')};"
    return f"""
CREATE TRIGGER {table}_insert AFTER INSERT ON messages WHEN {_gate("new")} BEGIN {add} END;
CREATE TRIGGER {table}_delete AFTER DELETE ON messages WHEN {_gate("old")} BEGIN {remove} END;
CREATE TRIGGER {table}_update AFTER UPDATE OF content, tool_name, tool_calls, role ON messages WHEN {_gate("old")}
BEGIN {remove} {add} END;
"""


TRIGGERS: Final = _triggers("messages_fts", "1") + _triggers("messages_fts_trigram", "{row}.role <> 'tool'")


def create_store(path: str | os.PathLike[str], *, journal: JournalMode = "wal") -> None:
    """Make an empty schema-23 store.

    Args:
        path: the file; its folder must exist.
        journal: WAL as Hermes makes it, or DELETE for file systems without shared memory.

    Raises:
        WriteFailed: there is a store already, or the file cannot be made.
    """
    if Path(path).exists():
        raise WriteFailed(os.fspath(path), "there is a file of this name already", "Choose another folder.")
    with RetryingWriter(path, create=True, journal=journal) as writer:
        writer.write(_fill)


def _fill(raw: apsw.Connection) -> None:
    raw.execute(TABLES + INDEXES + TRIGGERS)
    raw.execute("INSERT INTO schema_version VALUES (?)", (SCHEMA_VERSION,))


def add_missing_columns(raw: apsw.Connection) -> list[str]:
    """Compare the live columns with the definition and add what is missing; runs inside a transaction.

    Returns:
        ``table.column`` of each one added.
    """
    ours = apsw.Connection(":memory:")
    ours.execute(TABLES)
    added: list[str] = []
    for table in ("sessions", "messages", "session_model_usage"):
        live = {row[0] for row in raw.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        if not live:
            continue
        wanted = ours.execute('SELECT name, type, "notnull", dflt_value FROM pragma_table_info(?)', (table,))
        for name, kind, required, default in wanted:
            if name not in live:
                more = f"{' NOT NULL' if required else ''}{f' DEFAULT {default}' if default is not None else ''}"
                raw.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}{more}")
                added.append(f"{table}.{name}")
    ours.close()
    return added
