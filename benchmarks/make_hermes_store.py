"""Make a large Hermes store with the tables, indexes and text indexes of schema 22 (facts/hermes.md sections 2 and 3).

Seeded: the same arguments make the same rows. Two sizes are used by the other benchmarks:

    python benchmarks/make_hermes_store.py FOLDER/small --sessions 12000 --messages 164000
    python benchmarks/make_hermes_store.py FOLDER/large --sessions 73000 --messages 1000000

The large one takes some minutes and about 3 GB: most of both is the trigram index.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import apsw

NOW = 1_790_000_000.0
"""When the newest session is active, Unix seconds."""
SPAN_S = 400 * 86_400.0
"""From the oldest session to the newest."""
MODELS = (
    ("nimbus-4-large", "openrouter"),
    ("sol-9", "anthropic"),
    ("nimbus-4-mini", "openrouter"),
    ("local-7b", "custom"),
)
FOLDERS = ("/srv/shop", "/srv/app", "/home/ana/code/gateway", "/home/ana/notes", None)
COMMON_WORDS = (
    " the of to and in is it for that on with as this be at by not are from or an but so if we can have do"
    " will was gateway docker deploy build error test index query session message cache token model table"
    " column lock retry checkpoint journal writer reader file folder path config value number list tree"
    " branch commit merge release quarterly forecast margin invoice customer region price rule draft"
    " answer question plan step result output"
)
COMMON = COMMON_WORDS.split()
CJK = (
    "게이트웨이내부 기록을 봐줘",
    "오늘 비용은 얼마입니까",
    "会话记录在数据库文件里",
    "索引可以重建",
    "履歴はデータベースにあります",
    "検索は三文字以上",
)

TABLES = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (22);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT,
  thread_id TEXT, display_name TEXT, origin_json TEXT, expiry_finalized INTEGER DEFAULT 0, model TEXT,
  model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL,
  end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0,
  output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0,
  reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT, git_repo_root TEXT, billing_provider TEXT,
  billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL, cost_status TEXT,
  cost_source TEXT, pricing_version TEXT, title TEXT, api_call_count INTEGER DEFAULT 0, handoff_state TEXT,
  handoff_platform TEXT, handoff_error TEXT, compression_failure_cooldown_until REAL, compression_failure_error TEXT,
  compression_fallback_streak INTEGER NOT NULL DEFAULT 0, profile_name TEXT, rewind_count INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0, FOREIGN KEY (parent_session_id) REFERENCES sessions(id));
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
  content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT, timestamp REAL NOT NULL,
  token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT,
  codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0,
  active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT);
CREATE TABLE session_model_usage (
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, model TEXT NOT NULL,
  billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT NOT NULL DEFAULT '',
  billing_mode TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '', api_call_count INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_tokens INTEGER NOT NULL DEFAULT 0, estimated_cost_usd REAL NOT NULL DEFAULT 0,
  actual_cost_usd REAL NOT NULL DEFAULT 0, cost_status TEXT, cost_source TEXT, first_seen REAL, last_seen REAL,
  PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task));
CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE gateway_routing (
  scope TEXT NOT NULL DEFAULT '', session_key TEXT NOT NULL, entry_json TEXT NOT NULL, updated_at REAL NOT NULL,
  PRIMARY KEY (scope, session_key));
CREATE TABLE compression_locks (
  session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL, expires_at REAL NOT NULL);
"""
INDEXES = """
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
CREATE INDEX idx_messages_platform_msg_id
  ON messages(session_id, platform_message_id) WHERE platform_message_id IS NOT NULL;
CREATE INDEX idx_session_model_usage_session ON session_model_usage(session_id);
CREATE INDEX idx_session_model_usage_model ON session_model_usage(model);
CREATE INDEX idx_compression_locks_expires ON compression_locks(expires_at);
"""
CALLED = '"function": {{"name": "terminal", "arguments": "{{\\"command\\": \\"ls\\"}}"}}}}]'
TOOL_CALLS = '[{{"id": "{call}", "type": "function", ' + CALLED
INDEXED = "coalesce({row}content, '') || ' ' || coalesce({row}tool_name, '') || ' ' || coalesce({row}tool_calls, '')"


@dataclass
class Words:
    """Text as fast as it can be cut: pieces of one long seeded text."""

    random: random.Random
    text: str = ""

    def __post_init__(self) -> None:
        rare = [
            "".join(self.random.choices("abcdefghijklmnopqrstuvwxyz", k=self.random.randint(4, 10)))
            for _ in range(20_000)
        ]
        words: list[str] = []
        for _ in range(400_000):
            draw = self.random.random()
            words.append(
                self.random.choice(COMMON)
                if draw < 0.75
                else self.random.choice(rare)
                if draw < 0.97
                else self.random.choice(CJK)
            )
        self.text = " ".join(words)

    def piece(self, size: int) -> str:
        start = self.random.randrange(len(self.text) - size - 40)
        start = self.text.index(" ", start) + 1
        return self.text[start : start + size]


@dataclass
class Maker:
    """Writes the rows of one store."""

    random: random.Random
    sessions: int
    messages: int
    bytes: int
    prompt_bytes: int
    words: Words = field(init=False)
    next_message: int = 1

    def __post_init__(self) -> None:
        self.words = Words(self.random)
        self.prompt = self.words.piece(max(self.prompt_bytes, 1))

    def fill(self, connection: apsw.Connection) -> None:
        made = 0
        while made < self.sessions:
            started = NOW - SPAN_S + SPAN_S * made / self.sessions
            made += self._talk(connection, made, started)

    def _talk(self, connection: apsw.Connection, number: int, started: float) -> int:
        """One conversation with what hangs on it; the number of its sessions."""
        draw = self.random.random()
        parts = self.random.choice((2, 3, 4)) if draw < 0.04 else 1
        source = self.random.choices(("cli", "tui", "telegram", "discord", "cron", "tool"), (55, 15, 12, 5, 12, 1))[0]
        parent: str | None = None
        count = 0
        for part in range(parts):
            last = part == parts - 1
            end = None if last and self.random.random() < 0.55 else "cli_close" if last else "compression"
            parent, started = self._session(
                connection, number + count, started, source, parent, end, {}, compacted=part > 0
            )
            count += 1
        if self.random.random() < 0.06:
            for _ in range(self.random.randint(1, 4)):
                marks = {"_delegate_from": parent}
                self._session(connection, number + count, started - 60, "subagent", parent, "agent_close", marks)
                count += 1
        if self.random.random() < 0.02:
            self._session(connection, number + count, started + 60, source, parent, None, {"_branched_from": parent})
            count += 1
        return count

    def _session(
        self,
        connection: apsw.Connection,
        number: int,
        started: float,
        source: str,
        parent: str | None,
        end: str | None,
        marks: dict[str, str | None],
        *,
        compacted: bool = False,
    ) -> tuple[str, float]:
        identity = time.strftime("%Y%m%d_%H%M%S_", time.gmtime(started)) + f"{number:06x}"
        model, provider = self.random.choice(MODELS)
        rows, at = self._messages(identity, started, compacted)
        calls = max(sum(row[2] == "assistant" for row in rows), 1)
        tokens = (
            calls * self.random.randint(200, 9000),
            calls * 300,
            calls * self.random.randint(0, 20000),
            0,
            calls * 20,
        )
        cost = None if provider == "custom" else calls * 0.004
        channel = f"agent:main:{source}:dm:{number % 40}" if source in ("telegram", "discord") else None
        config = '{"max_iterations": 90' + "".join(f', "{name}": "{value}"' for name, value in marks.items()) + "}"
        title = f"{self.words.piece(24)} {number}" if self.random.random() < 0.6 else None
        prompt = self.prompt + identity if self.prompt_bytes else None
        connection.execute(
            "INSERT INTO sessions (id, source, session_key, model, model_config, system_prompt, parent_session_id,"
            " started_at, ended_at, end_reason, message_count, tool_call_count, input_tokens, output_tokens,"
            " cache_read_tokens, cache_write_tokens, reasoning_tokens, cwd, billing_provider, estimated_cost_usd,"
            " cost_status, title, api_call_count, archived) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (identity, source, channel, model, config, prompt, parent, started, at if end else None, end, len(rows),
             sum(row[5] is not None for row in rows), *tokens, self.random.choice(FOLDERS), provider, cost,
             "estimated" if cost else "unknown", title, calls, int(self.random.random() < 0.03)),
        )  # fmt: skip
        connection.executemany(
            "INSERT INTO messages (id, session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp,"
            " finish_reason, active, compacted) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            rows,
        )
        connection.execute(
            "INSERT INTO session_model_usage VALUES (?,?,?,'','','',?,?,?,?,?,?,?,0,?,NULL,?,?)",
            (identity, model, provider, calls, *tokens, cost or 0.0, "estimated" if cost else "unknown", started, at),
        )
        if self.random.random() < 0.3:
            connection.execute(
                "INSERT INTO session_model_usage VALUES"
                " (?,'nimbus-4-mini','auto','','','title_generation',1,400,12,0,0,0,0.0001,0,NULL,NULL,?,?)",
                (identity, at, at),
            )
        return identity, at + 1.0

    def _messages(self, identity: str, started: float, compacted: bool) -> tuple[list[tuple[object, ...]], float]:
        """The rows of one session: mostly short talks, a few very long ones."""
        mean = self.messages / self.sessions
        wanted = max(2, int(self.random.expovariate(1 / mean)))
        rows: list[tuple[object, ...]] = []
        at = started
        if compacted:
            rows.append(
                self._row(identity, "user", "[CONTEXT COMPACTION — REFERENCE ONLY] " + self.words.piece(self.bytes), at)
            )
        while len(rows) < wanted:
            at += self.random.uniform(1, 60)
            rows.append(self._row(identity, "user", self.words.piece(self.random.randint(20, self.bytes)), at))
            if self.random.random() < 0.3:
                call = f"call_{self.next_message:x}"
                calls = TOOL_CALLS.format(call=call)
                rows.append(self._row(identity, "assistant", "", at + 1, calls=calls, finish="tool_calls"))
                text = self.words.piece(self.random.randint(self.bytes, 2 * self.bytes))
                output = f'{{"output": "{text}", "exit_code": 0}}'
                rows.append(self._row(identity, "tool", output, at + 2, call=call, tool="terminal"))
            at += self.random.uniform(1, 30)
            rows.append(
                self._row(
                    identity,
                    "assistant",
                    self.words.piece(self.random.randint(self.bytes // 2, 2 * self.bytes)),
                    at,
                    finish="stop",
                )
            )
        return rows, at

    def _row(
        self,
        session: str,
        role: str,
        content: str,
        at: float,
        *,
        call: str | None = None,
        calls: str | None = None,
        tool: str | None = None,
        finish: str | None = None,
    ) -> tuple[object, ...]:
        number = self.next_message
        self.next_message += 1
        return (number, session, role, content, call, calls, tool, at, finish, 1, 0)


def text_indexes(connection: apsw.Connection) -> Iterator[str]:
    """Both inline indexes of schema 11 to 22, filled, then their triggers."""
    for table, options in (("messages_fts", ""), ("messages_fts_trigram", ", tokenize='trigram'")):
        connection.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(content{options})")
        # Fewer, larger segments while filling.
        connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('automerge', 8)")
        last = 0
        while True:
            newest = connection.execute(
                "SELECT max(id) FROM (SELECT id FROM messages WHERE id > ? ORDER BY id LIMIT 50000)", (last,)
            ).get
            if newest is None:
                break
            with connection:
                connection.execute(
                    f"INSERT INTO {table}(rowid, content) SELECT id, {INDEXED.format(row='')} FROM messages"
                    " WHERE id > ? AND id <= ?",
                    (last, newest),
                )
            last = newest
            yield f"{table}: {last:,} rows"
        connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('automerge', 4)")
        insert = f"INSERT INTO {table}(rowid, content) VALUES (new.id, {INDEXED.format(row='new.')});"
        delete = f"DELETE FROM {table} WHERE rowid = old.id;"
        connection.execute(f"CREATE TRIGGER {table}_insert AFTER INSERT ON messages BEGIN {insert} END")
        connection.execute(f"CREATE TRIGGER {table}_delete AFTER DELETE ON messages BEGIN {delete} END")
        connection.execute(f"CREATE TRIGGER {table}_update AFTER UPDATE ON messages BEGIN {delete} {insert} END")


def make(folder: Path, sessions: int, messages: int, size: int, prompt_bytes: int, seed: int, *, indexed: bool) -> Path:
    """Write FOLDER/state.db; the file appears under its name when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    target, unfinished = folder / "state.db", folder / "state.db.making"
    unfinished.unlink(missing_ok=True)
    connection = apsw.Connection(str(unfinished))
    connection.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-800000")
    connection.execute(TABLES)
    began = time.monotonic()
    with connection:
        Maker(random.Random(seed), sessions, messages, size, prompt_bytes).fill(connection)
    print(f"rows: {time.monotonic() - began:.0f} s", flush=True)
    connection.execute(INDEXES)
    print(f"indexes: {time.monotonic() - began:.0f} s", flush=True)
    for step in text_indexes(connection) if indexed else ():
        print(f"{step}: {time.monotonic() - began:.0f} s", flush=True)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    for suffix in ("-wal", "-shm"):
        Path(f"{unfinished}{suffix}").unlink(missing_ok=True)
    unfinished.rename(target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=12_000)
    parser.add_argument("--messages", type=int, default=164_000)
    parser.add_argument("--bytes", type=int, default=300, help="about the size of a message")
    parser.add_argument("--prompt-bytes", type=int, default=4_000, help="size of each system prompt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-text-index", action="store_true", help="leave the text indexes out: fast")
    given = parser.parse_args()
    target = make(
        given.folder, given.sessions, given.messages, given.bytes, given.prompt_bytes, given.seed,
        indexed=not given.no_text_index,
    )  # fmt: skip
    print(f"{target}: {target.stat().st_size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
