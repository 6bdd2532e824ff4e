"""Rows that are added: sessions, messages, usage. Each function runs inside a transaction of the retrying writer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import apsw

from hermes_tui.model import NO_USAGE, Usage
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StorageError
from hermes_tui.text import REPLACEMENT

Content = str | Sequence[Mapping[str, Any]] | None
STRUCTURED: Final = "\0json:"
"""What structured content begins with (facts/hermes.md section 2, messages)."""
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


class NoSuchSession(StorageError):
    """A message or usage was to be added to a session that is not there."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__("Nothing was added", f"there is no session {session_id}")


@dataclass(frozen=True, slots=True)
class NewSession:
    """What is known of a session when it begins. Fields are the columns of facts/hermes.md section 2."""

    id: str
    source: str
    started_at: float
    model: str | None = None
    model_config: Mapping[str, Any] | None = None
    system_prompt: str | None = None
    parent_session_id: str | None = None
    title: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    git_repo_root: str | None = None
    user_id: str | None = None
    session_key: str | None = None
    chat_id: str | None = None
    chat_type: str | None = None
    thread_id: str | None = None
    display_name: str | None = None
    profile_name: str | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One message to append."""

    role: str
    content: Content = None
    timestamp: float = 0.0
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    api_content: str | None = None
    """Exactly what was sent; kept only where it differs from ``content``."""
    token_count: int | None = None
    platform_message_id: str | None = None
    observed: bool = False
    active: bool = True
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class NewUsage:
    """Model calls to add to a session's ledger."""

    model: str
    usage: Usage = NO_USAGE
    calls: int = 1
    provider: str = ""
    base_url: str = ""
    mode: str = ""
    task: str = ""
    """'' is the main loop, which the session's own row counts too; others are auxiliary and it does not."""
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_status: str | None = None
    cost_source: str | None = None
    at: float = 0.0


def live_columns(raw: apsw.Connection, table: str) -> frozenset[str]:
    """Columns a table has now, which its version need not tell (facts/hermes.md section 2)."""
    return frozenset(name for (name,) in raw.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def stored_text(text: str | None) -> str | None:
    """Lone surrogates become U+FFFD, as the product writes them (facts/hermes.md section 9)."""
    return None if text is None else _SURROGATES.sub(REPLACEMENT, text)


def stored_content(content: Content) -> str | None:
    """Content as its column holds it: text, or the mark and ASCII-escaped JSON."""
    if content is None or isinstance(content, str):
        return stored_text(content)
    return STRUCTURED + json.dumps(list(content))


def insert_session(raw: apsw.Connection, session: NewSession) -> bool:
    """Add a session; False when its id is there already, which is left as it is."""
    values = {name: getattr(session, name) for name in NewSession.__dataclass_fields__}
    config = values["model_config"]
    values["model_config"] = None if config is None else json.dumps(config)
    _insert(raw, "sessions", {k: stored_text(v) if isinstance(v, str) else v for k, v in values.items()}, "OR IGNORE")
    return raw.changes() > 0


def insert_message(raw: apsw.Connection, session_id: str, message: NewMessage) -> int:
    """Append a message and count it in its session.

    Returns:
        The message's id.

    Raises:
        NoSuchSession: the session is not there (deleted meanwhile).
    """
    content = stored_content(message.content)
    api_content = stored_text(message.api_content)
    calls = list(message.tool_calls or ())
    if not raw.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchall():
        raise NoSuchSession(session_id)
    _insert(
        raw,
        "messages",
        {
            "session_id": session_id,
            "role": message.role,
            "content": content,
            "tool_call_id": message.tool_call_id,
            "tool_calls": json.dumps(calls) if calls else None,
            "tool_name": message.tool_name,
            "timestamp": message.timestamp,
            "token_count": message.token_count,
            "finish_reason": message.finish_reason,
            "reasoning": stored_text(message.reasoning),
            "platform_message_id": message.platform_message_id,
            "observed": int(message.observed),
            "active": int(message.active),
            "compacted": int(message.compacted),
            "api_content": api_content if api_content != content else None,
        },
    )
    message_id = raw.last_insert_rowid()
    if message.active:
        raw.execute(
            "UPDATE sessions SET message_count = COALESCE(message_count, 0) + 1,"
            " tool_call_count = COALESCE(tool_call_count, 0) + ? WHERE id = ?",
            (len(calls), session_id),
        )
    return message_id


def add_usage(raw: apsw.Connection, session_id: str, spent: NewUsage) -> None:
    """Add calls to the ledger of a session (facts/hermes.md section 8).

    Raises:
        NoSuchSession: the session is not there.
    """
    if not raw.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchall():
        raise NoSuchSession(session_id)
    if live_columns(raw, "session_model_usage"):
        raw.execute(_ADD_USAGE, _usage_values(session_id, spent))
    if not spent.task:
        raw.execute(_ADD_TO_SESSION, _usage_values(session_id, spent))


_ADD_USAGE: Final = """
INSERT INTO session_model_usage(
    session_id, model, billing_provider, billing_base_url, billing_mode, task, api_call_count, input_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated_cost_usd, actual_cost_usd,
    cost_status, cost_source, first_seen, last_seen)
VALUES (:session_id, :model, :provider, :base_url, :mode, :task, :calls, :input, :output, :cache_read, :cache_write,
    :reasoning, COALESCE(:estimated, 0), COALESCE(:actual, 0), :status, :source, :at, :at)
ON CONFLICT DO UPDATE SET
    api_call_count = api_call_count + excluded.api_call_count,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
    estimated_cost_usd = estimated_cost_usd + excluded.estimated_cost_usd,
    actual_cost_usd = actual_cost_usd + excluded.actual_cost_usd,
    cost_status = COALESCE(excluded.cost_status, cost_status),
    cost_source = COALESCE(excluded.cost_source, cost_source),
    last_seen = excluded.last_seen
"""

_ADD_TO_SESSION: Final = """
UPDATE sessions SET
    model = COALESCE(model, :model), billing_provider = COALESCE(billing_provider, :provider),
    billing_base_url = COALESCE(billing_base_url, :base_url), billing_mode = COALESCE(billing_mode, :mode),
    api_call_count = COALESCE(api_call_count, 0) + :calls,
    input_tokens = COALESCE(input_tokens, 0) + :input,
    output_tokens = COALESCE(output_tokens, 0) + :output,
    cache_read_tokens = COALESCE(cache_read_tokens, 0) + :cache_read,
    cache_write_tokens = COALESCE(cache_write_tokens, 0) + :cache_write,
    reasoning_tokens = COALESCE(reasoning_tokens, 0) + :reasoning,
    estimated_cost_usd = CASE WHEN :estimated IS NULL THEN estimated_cost_usd
        ELSE COALESCE(estimated_cost_usd, 0) + :estimated END,
    actual_cost_usd = CASE WHEN :actual IS NULL THEN actual_cost_usd ELSE COALESCE(actual_cost_usd, 0) + :actual END,
    cost_status = COALESCE(:status, cost_status), cost_source = COALESCE(:source, cost_source)
WHERE id = :session_id
"""


def _usage_values(session_id: str, spent: NewUsage) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "model": spent.model,
        "provider": spent.provider,
        "base_url": spent.base_url,
        "mode": spent.mode,
        "task": spent.task,
        "calls": spent.calls,
        "input": spent.usage.input,
        "output": spent.usage.output,
        "cache_read": spent.usage.cache_read,
        "cache_write": spent.usage.cache_write,
        "reasoning": spent.usage.reasoning,
        "estimated": spent.estimated_cost_usd,
        "actual": spent.actual_cost_usd,
        "status": spent.cost_status,
        "source": spent.cost_source,
        "at": spent.at,
    }


def _insert(raw: apsw.Connection, table: str, values: dict[str, Any], conflict: str = "") -> None:
    """Insert what the table has columns for: older stores lack some, and nothing is migrated for a guest."""
    columns = live_columns(raw, table)
    kept = {name: value for name, value in values.items() if name in columns}
    marks = ", ".join(f":{name}" for name in kept)
    raw.execute(f"INSERT {conflict} INTO {table}({', '.join(kept)}) VALUES ({marks})", kept)
