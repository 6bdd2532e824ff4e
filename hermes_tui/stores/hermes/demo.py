"""Write the Hermes home of the demo: two profiles with every kind of conversation the screens can show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import apsw

from hermes_tui.locations import FILE_MODE, private_folder
from hermes_tui.model import Usage
from hermes_tui.records import dataclass
from hermes_tui.stores.hermes.appending import (
    NewMessage,
    NewSession,
    NewUsage,
    add_usage,
    insert_message,
    insert_session,
)
from hermes_tui.stores.hermes.creation import create_store
from hermes_tui.stores.hermes.demo_more_talks import INPLACE, SALES, SMALL, SPECIAL
from hermes_tui.stores.hermes.demo_talks import BRANCHES, CHAIN, DELEGATES, MINI, OTHER_SCRIPTS, SOL, Talk, Turn
from hermes_tui.stores.hermes.session_db import SessionDB

DAY: Final = 86_400.0
_PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_SYSTEM: Final = "You are Hermes, a careful engineer. Work in small steps, run the tests, say what you saw.\n" * 40
_PRICES: Final = {
    "claude-sonnet-4-5": (3.0, 0.3, 3.75, 15.0, "anthropic"),
    "gpt-5.1": (1.25, 0.125, 1.25, 10.0, "openai"),
    "gpt-5-mini": (0.25, 0.025, 0.25, 2.0, "openai"),
    "gpt-5-codex": (0.0, 0.0, 0.0, 0.0, "openai-codex"),
    "deepseek-chat": (0.28, 0.028, 0.28, 0.42, "deepseek"),
    "hermes-4-14b": (0.0, 0.0, 0.0, 0.0, "custom"),
}
"""USD a million tokens (input, cache read, cache write, output) and provider: the demo's ledger is priced with it."""
_SUMMARY_HEAD: Final = "[CONTEXT COMPACTION — REFERENCE ONLY] What came before, in short: "
_SUMMARY_FOOT: Final = "\n\n--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"


@dataclass(frozen=True, slots=True)
class _Call:
    """One model call of the demo."""

    model: str
    usage: Usage
    at: float


def write_demo(folder: Path, now: float) -> None:
    """Write a Hermes home.

    Args:
        folder: the home to make; must not hold a store.
        now: Unix seconds; every date is relative to it.

    Raises:
        WriteFailed: there is a store already, or the folder may not be written.
    """
    private_folder(folder)
    default = (*CHAIN, *BRANCHES, *DELEGATES, *OTHER_SCRIPTS, *SPECIAL, INPLACE, *SMALL)
    _write_store(folder / "state.db", default, now)
    _write_store(private_folder(folder / "profiles" / "sales") / "state.db", SALES, now)
    private_folder(folder / "profiles" / "spare")
    _write_text(folder / "active_profile", "default\n")
    _write_text(folder / "config.yaml", "sessions:\n  auto_prune: false\n  retention_days: 90\n")


def _write_text(path: Path, text: str) -> None:
    path.touch(mode=FILE_MODE)
    path.write_text(text, encoding="utf-8")


def _write_store(path: Path, talks: Sequence[Talk], now: float) -> None:
    ids = {talk.key: session_id(talk, now) for talk in talks}
    create_store(path)
    with SessionDB(path) as db:
        for talk in sorted(talks, key=lambda talk: -talk.days):
            db.write(lambda raw, talk=talk: _write_talk(raw, talk, ids, now))  # type: ignore[misc]


def session_id(talk: Talk, now: float) -> str:
    """The id the product would have given it: local time and six hex digits (eight from the gateway)."""
    stamp = datetime.fromtimestamp(now - talk.days * DAY).strftime("%Y%m%d_%H%M%S")
    digits = hashlib.sha256(talk.key.encode()).hexdigest()
    if talk.source == "cron":
        return f"cron_{talk.key.rpartition('-')[0]}_{stamp}"
    return f"{stamp}_{digits[: 8 if talk.channel else 6]}"


def _write_talk(raw: apsw.Connection, talk: Talk, ids: dict[str, str], now: float) -> None:
    begun = now - talk.days * DAY
    identity = ids[talk.key]
    config: dict[str, object] = {"max_iterations": 90}
    config |= {name: ids[value] for name, value in (talk.config or {}).items()}
    insert_session(
        raw,
        NewSession(
            identity,
            talk.source,
            begun,
            model=talk.model,
            model_config=config,
            system_prompt=_SYSTEM,
            parent_session_id=ids[talk.parent] if talk.parent else None,
            title=talk.title if talk.parent is None or talk.config or "#" in (talk.title or "") else None,
            cwd=talk.cwd,
            git_branch=talk.branch,
            git_repo_root=talk.cwd if talk.branch else None,
            session_key=talk.channel,
            chat_id=talk.channel.rpartition(":")[2] if talk.channel else None,
            chat_type="dm" if talk.channel and ":dm:" in talk.channel else "group" if talk.channel else None,
            display_name=talk.name,
        ),
    )
    at = begun
    if talk.config and "_branched_from" in talk.config:
        for row in _stored(raw, ids[talk.config["_branched_from"]]):
            _copy(raw, identity, row[1:])
    elif talk.parent and not talk.config:
        at = _carry_over(raw, identity, ids[talk.parent], begun)
    calls: list[_Call] = []
    for number, message in enumerate(_messages(talk.turns, at + 5, talk.spread)):
        insert_message(raw, identity, message)
        at = message.timestamp
        if message.role == "assistant":
            calls.append(_call(talk, number, len(calls), at))
    if talk.key == INPLACE.key:
        at = _compact_in_place(raw, identity, at + 60)
    _write_ledger(raw, identity, talk, calls)
    if talk.ended is not None:
        raw.execute("UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ?", (at + 30, talk.ended, identity))
    if talk.archived:
        raw.execute("UPDATE sessions SET archived = 1 WHERE id = ?", (identity,))


def _messages(turns: Sequence[Turn], at: float, spread: float) -> list[NewMessage]:
    """The rows these turns give; a tool call is two: the call and its result."""
    rows: list[NewMessage] = []
    reasoning: str | None = None
    for number, turn in enumerate(turns):
        at += spread if turn[0] in ("u", "image") else spread / 8
        if turn[0] == "r":
            reasoning = turn[1]
        elif turn[0] == "u":
            sent = f"<memory-context>Mina likes short answers.</memory-context>\n{turn[1]}" if not rows else None
            rows.append(NewMessage("user", turn[1], at, api_content=sent))
        elif turn[0] == "image":
            url = f"data:{turn[2]};base64,{_PIXEL}"
            parts = [{"type": "text", "text": turn[1]}, {"type": "image_url", "image_url": {"url": url}}]
            rows.append(NewMessage("user", parts, at))
        elif turn[0] == "t":
            call_id = f"call_{number:02d}"
            function = {"name": turn[1], "arguments": json.dumps(turn[2], ensure_ascii=False)}
            call = {"id": call_id, "type": "function", "function": function}
            rows.append(
                NewMessage("assistant", None, at, tool_calls=[call], reasoning=reasoning, finish_reason="tool_calls")
            )
            output = turn[3] if turn[3].startswith("{") else json.dumps({"output": turn[3], "exit_code": 0})
            rows.append(NewMessage("tool", output, at + 2, tool_name=turn[1], tool_call_id=call_id))
            reasoning = None
        else:
            rows.append(NewMessage("assistant", turn[1], at, reasoning=reasoning, finish_reason="stop"))
            reasoning = None
    return rows


def _carry_over(raw: apsw.Connection, child: str, parent: str, at: float) -> float:
    """Begin a compaction's child as the product does: first message, summary, kept tail, all stored again."""
    rows = [row[1:] for row in _stored(raw, parent)]
    talk = [str(row[1]) for row in rows if row[0] == "assistant" and row[1] and not row[1].startswith("[CONTEXT")]
    summary = _SUMMARY_HEAD + " ".join(talk)[:400] + _SUMMARY_FOOT
    tail = next((n for n in range(len(rows) - 1, -1, -1) if rows[n][0] == "user"), 0)
    for row in rows[:1]:
        _copy(raw, child, row)
    insert_message(raw, child, NewMessage("user", summary, at))
    for row in rows[max(tail, 1) :]:
        _copy(raw, child, row)
    return at


def _stored(raw: apsw.Connection, session: str) -> list[tuple[Any, ...]]:
    return raw.execute(
        "SELECT id, role, content, tool_calls, tool_call_id, tool_name, timestamp, finish_reason FROM messages"
        " WHERE session_id = ? ORDER BY id",
        (session,),
    ).fetchall()


def _copy(raw: apsw.Connection, session: str, row: tuple[Any, ...]) -> None:
    raw.execute(
        "INSERT INTO messages(session_id, role, content, tool_calls, tool_call_id, tool_name, timestamp, finish_reason)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (session, *row),
    )
    raw.execute("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", (session,))


def _compact_in_place(raw: apsw.Connection, identity: str, at: float) -> float:
    """Compact under the same id, take one turn back, and go on (facts/hermes.md section 7)."""
    rows = _stored(raw, identity)
    raw.execute("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ?", (identity,))
    raw.execute("UPDATE sessions SET message_count = 0, tool_call_count = 0 WHERE id = ?", (identity,))
    _copy(raw, identity, rows[0][1:])
    talk = " ".join(str(row[2]) for row in rows if row[1] == "assistant" and row[2])
    insert_message(raw, identity, NewMessage("user", _SUMMARY_HEAD + talk[:300] + _SUMMARY_FOOT, at))
    for row in rows[-2:]:
        _copy(raw, identity, row[1:])
    taken_back = [
        NewMessage("user", "Drop the old column right away.", at + 100, active=False),
        NewMessage("assistant", "That could not be undone.", at + 130, active=False, finish_reason="stop"),
    ]
    kept = [
        NewMessage("user", "When can the old column go?", at + 200),
        NewMessage("assistant", "After one full billing run on the new one: the 3rd.", at + 220, finish_reason="stop"),
    ]
    for message in (*taken_back, *kept):
        insert_message(raw, identity, message)
    raw.execute("UPDATE sessions SET rewind_count = 1 WHERE id = ?", (identity,))
    return at + 220


def _call(talk: Talk, number: int, calls: int, at: float) -> _Call:
    """Usage that grows with the conversation; the first call of a talk writes the cache, later ones read it."""
    prompt = talk.context + 900 * number
    share = talk.hit if calls else (talk.hit if talk.parent and not talk.config else 0.0)
    read = int(prompt * share)
    model = SOL if talk.key == "models" and number > 3 else talk.model
    if model != talk.model:
        # Another model has another cache.
        read = 0
    writes = prompt - read - 120 if model.startswith("claude") else 0
    reasoning = 180 if number % 3 == 1 else 0
    return _Call(model, Usage(prompt - read - writes, 260 + 90 * (number % 4), read, writes, reasoning), at)


def _write_ledger(raw: apsw.Connection, identity: str, talk: Talk, calls: Sequence[_Call]) -> None:
    for call in calls:
        add_usage(raw, identity, _spent(talk, call))
    if talk.title and calls and not talk.parent:
        titling = _Call(MINI, Usage(420, 12, 0, 0, 0), calls[0].at + 3)
        spent = replace(_spent(talk, titling), task="title_generation", cost_status="estimated", actual_cost_usd=None)
        add_usage(raw, identity, spent)


def _spent(talk: Talk, call: _Call) -> NewUsage:
    price_in, price_read, price_write, price_out, provider = _PRICES[call.model]
    usage = call.usage
    usd = (
        usage.input * price_in
        + usage.cache_read * price_read
        + usage.cache_write * price_write
        + usage.output * price_out
    ) / 1_000_000
    known = talk.status in ("estimated", "actual")
    return NewUsage(
        call.model,
        usage,
        provider=provider,
        mode="subscription_included" if talk.status == "included" else "",
        estimated_cost_usd=round(usd, 6) if known else 0.0,
        actual_cost_usd=round(usd * 1.02, 6) if talk.status == "actual" else None,
        cost_status=talk.status,
        cost_source={"actual": "provider_cost_api", "unknown": "none"}.get(talk.status, "official_docs_snapshot"),
        at=call.at,
    )
