"""Hermes stores with every layout of full-text index and every kind of damage (facts/hermes.md sections 3 and 11)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from hermes_tui.stores.hermes.tokenizer import register_tokenizers

BASE = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT NOT NULL, session_key TEXT, model TEXT, model_config TEXT,
  parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER, title TEXT,
  cwd TEXT, archived INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0);
CREATE TABLE messages(id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,
  tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, active INTEGER DEFAULT 1,
  compacted INTEGER DEFAULT 0, reasoning TEXT, display_kind TEXT);
CREATE INDEX messages_session ON messages(session_id, timestamp);
CREATE TABLE state_meta(key TEXT PRIMARY KEY, value TEXT);
"""
ALL = "COALESCE({0}.content,'')||' '||COALESCE({0}.tool_name,'')||' '||COALESCE({0}.tool_calls,'')"


def _inline(table: str, tokenize: str) -> str:
    return f"""
CREATE VIRTUAL TABLE {table} USING fts5(content{tokenize});
CREATE TRIGGER {table}_insert AFTER INSERT ON messages BEGIN
  INSERT INTO {table}(rowid, content) VALUES (new.id, {ALL.format("new")}); END;
CREATE TRIGGER {table}_delete AFTER DELETE ON messages BEGIN DELETE FROM {table} WHERE rowid = old.id; END;
"""


def _external(table: str, columns: str, tokenize: str, view: str, condition: str, gate: str) -> str:
    names = [name.strip() for name in columns.split(",")]
    cut = "CASE WHEN {0}role='tool' THEN substr(COALESCE({0}content,''),1,8192) ELSE {0}content END"
    value = {name: f"new.{name}" for name in names}
    shown = {name: name for name in names}
    if table == "messages_fts":
        value["content"], shown["content"] = cut.format("new."), cut.format("") + " AS content"
    mark = "COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta WHERE key='{0}_rebuild_{1}'),-1)"
    gated = f"(new.id > {mark.format(gate, 'high_water')} OR new.id <= {mark.format(gate, 'progress')})"
    inside, shown_rows = condition.replace("messages.", "new."), condition.replace("messages.", "")
    return f"""
CREATE VIEW {view} AS SELECT id, role, {", ".join(shown.values())} FROM messages WHERE {shown_rows};
CREATE VIRTUAL TABLE {table} USING fts5({columns}, content='{view}', content_rowid='id'{tokenize});
CREATE TRIGGER {table}_insert AFTER INSERT ON messages WHEN {gated} BEGIN
  INSERT INTO {table}(rowid, {columns}) SELECT new.id, {", ".join(value.values())} WHERE {inside}; END;
"""


TOOLS_OUT = "messages.role <> 'tool'"
TRIGRAM_ROWS = (
    "messages.role <> 'tool' AND messages.session_id IN"
    " (SELECT id FROM sessions WHERE source NOT IN ('cron','subagent'))"
)
WORDS = _external("messages_fts", "content, tool_name, tool_calls", "", "messages_fts_src", "1", "fts")
TRIGRAM = _external(
    "messages_fts_trigram",
    "content, tool_name",
    ", tokenize='trigram'",
    "messages_fts_trigram_src",
    TRIGRAM_ROWS,
    "fts",
)
PAIRS = _external(
    "messages_fts_cjk", "content, tool_name, tool_calls", ", tokenize='cjk_unicode61'", "messages_fts_cjk_src",
    TOOLS_OUT, "fts_cjk",
)  # fmt: skip
VERY_OLD = """
CREATE VIRTUAL TABLE messages_fts USING fts5(content, content='messages', content_rowid='id');
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
  INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content); END;
"""
LAYOUTS: dict[str, str] = {
    "inline": _inline("messages_fts", "") + _inline("messages_fts_trigram", ", tokenize='trigram'"),
    "inline-words-only": _inline("messages_fts", ""),
    "new": WORDS + TRIGRAM + PAIRS,
    "new-without-pairs": WORDS + TRIGRAM,
    "very-old": VERY_OLD,
    "none": "",
}
DAMAGES = (
    "sound",
    "zeroed-words",
    "zeroed-trigrams",
    "structure",
    "stale",
    "half-built",
    "rows-missing",
    "no-triggers",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One message to store."""

    content: str | list[Any] | None
    role: str = "user"
    session: str = "s1"
    tool_name: str | None = None
    calls: tuple[tuple[str, Any], ...] = ()
    """Name and arguments."""
    active: int = 1
    compacted: int = 0
    call_id: str | None = None
    at: float | None = None
    display_kind: str | None = None
    reasoning: str | None = None
    ascii_only: bool = field(default=True)


@dataclass(frozen=True, slots=True)
class Session:
    """One session to store."""

    id: str
    source: str = "cli"
    parent: str | None = None
    end_reason: str | None = None
    title: str | None = None
    config: str | None = None
    model: str | None = "nimbus"
    archived: int = 0
    started: float = 1_780_000_000.0
    key: str | None = None
    cwd: str | None = None


def cells(row: Row) -> tuple[str | None, str | None]:
    """Content and tool calls as the product stores them."""
    content = row.content
    if isinstance(content, list):
        content = "\0json:" + json.dumps(content, ensure_ascii=row.ascii_only)
    calls = None
    if row.calls:
        made = [
            {
                "id": f"c{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given, ensure_ascii=row.ascii_only)},
            }
            for number, (name, given) in enumerate(row.calls)
        ]
        calls = json.dumps(made, ensure_ascii=row.ascii_only)
    return content, calls


def make_store(
    path: Path,
    layout: str,
    rows: Sequence[Row],
    sessions: Iterable[Session] = (Session("s1"), Session("s2", source="cron")),
    damage: str = "sound",
    *,
    old_trigrams: bool = False,
) -> Path:
    """Write a state.db; ``old_trigrams``: indexed by an SQLite whose trigrams stop at NUL."""
    connection = apsw.Connection(str(path))
    register_tokenizers(connection)
    if old_trigrams:
        _stop_at_nul(connection)
    connection.execute(BASE + LAYOUTS[layout])
    if damage == "half-built" and layout.startswith("new"):
        middle = len(rows) * 2 // 3
        for gate in ("fts", "fts_cjk"):
            connection.execute("INSERT INTO state_meta VALUES(?, ?)", (f"{gate}_rebuild_high_water", str(middle)))
            connection.execute("INSERT INTO state_meta VALUES(?, ?)", (f"{gate}_rebuild_progress", str(len(rows) // 3)))
    for one in sessions:
        connection.execute(
            "INSERT INTO sessions(id, source, parent_session_id, end_reason, title, model_config, model, archived,"
            " started_at, session_key, cwd) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (one.id, one.source, one.parent, one.end_reason, one.title, one.config, one.model, one.archived,
             one.started, one.key, one.cwd),
        )  # fmt: skip
    for number, row in enumerate(rows):
        content, calls = cells(row)
        connection.execute(
            "INSERT INTO messages(session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, active,"
            " compacted, reasoning, display_kind) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (row.session, row.role, content, row.call_id, calls, row.tool_name,
             1_780_000_000.0 + number if row.at is None else row.at, row.active, row.compacted, row.reasoning,
             row.display_kind),
        )  # fmt: skip
    _break(connection, layout, damage, len(rows))
    connection.close()
    return path


def _stop_at_nul(connection: apsw.Connection) -> None:
    plain = connection.fts5_tokenizer("trigram", [])

    def factory(_connection: apsw.Connection, _arguments: list[str]) -> Any:
        return lambda text, flags, locale: plain(text.split(b"\0")[0], flags, locale, include_colocated=False)

    connection.register_fts5_tokenizer("trigram", factory)


def _break(connection: apsw.Connection, layout: str, damage: str, count: int) -> None:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'")]
    if damage == "zeroed-words" and "messages_fts" in tables:
        connection.execute("UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10")
    elif damage == "zeroed-trigrams" and "messages_fts_trigram" in tables:
        connection.execute("UPDATE messages_fts_trigram_data SET block = zeroblob(length(block)) WHERE id > 10")
    elif damage == "structure" and "messages_fts" in tables:
        connection.execute("UPDATE messages_fts_data SET block = x'00ff00ff' WHERE id = 10")
    elif damage == "stale":
        connection.execute("INSERT INTO state_meta VALUES('fts_stale', '1'), ('fts_cjk_stale', '1')")
        for table in tables:
            connection.execute(f"DROP TRIGGER {table}_insert")
            if layout.startswith("inline"):
                connection.execute(f"DELETE FROM {table} WHERE rowid > ?", (count // 2,))
    elif damage == "rows-missing" and layout.startswith("inline"):
        for table in tables:
            connection.execute(f"DELETE FROM {table} WHERE rowid % 3 = 1")
    elif damage == "no-triggers":
        for table in tables:
            connection.execute(f"DROP TRIGGER {table}_insert")
