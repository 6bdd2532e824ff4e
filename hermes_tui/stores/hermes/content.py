"""What one row of ``messages`` holds: the entries it gives, their kinds, and the text of each.

One row may hold reasoning, a text and tool calls (facts/hermes.md section 9). Entries are numbered in that order;
the numbers depend on the row alone, so that they stay the same in every view.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, Literal, NamedTuple

from hermes_tui.model import MessageKind, MessageState
from hermes_tui.records import dataclass
from hermes_tui.stores.hermes.cells import (
    filled_text,
    flag,
    json_or_none,
    json_text,
    read_json,
    text_or_none,
    time_or_none,
)
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.text import RawText

STRUCTURED: Final = b"\x00json:"
"""How structured content begins; SQLite's text functions stop at its first byte (facts/hermes.md section 6)."""
HEAD_BYTES: Final = 128
"""Bytes of content read to tell a summary."""
HASHED_BYTES: Final = 1 << 20
"""Longer contents are compared by size and beginning."""
MOST_PARSED: Final = 32 << 20
"""Bytes of structured content that are still parsed; beyond that it is shown as it is stored."""
SUMMARY_HEADS: Final = (b"[CONTEXT COMPACTION", b"[CONTEXT SUMMARY]:")
MERGED_HEAD: Final = b"[PRIOR CONTEXT"
"""A summary that was written into a message the compaction kept."""
TYPED: Final = frozenset({"", "steer"})
"""Values of ``display_kind`` that mean a person typed it; NULL too."""

Field = Literal["reasoning", "content", "tool_calls"]


class Stored(NamedTuple):
    """One row without its long texts. A tuple, because a transcript has 100,000 of them."""

    id: int
    session_id: str
    role: str | None
    size: int
    """Bytes of content."""
    head: bytes
    """The beginning of content of rows that may be a summary."""
    tool_call_id: str | None
    tool_calls: str | None
    tool_name: str | None
    at: float | None
    bad_time: bool
    reasoning_size: int
    state: MessageState
    display_kind: str | None
    flagged_summary: bool
    blob: bool
    """Content is a BLOB, which no agent writes."""
    print: int
    """Equal for rows that store the same message; 0 where it was not asked for."""

    @property
    def summary(self) -> bool:
        """Whether it is the summary a compaction wrote."""
        if self.flagged_summary:
            return True
        return self.role in ("user", "assistant") and (self.merged or opens_summary(self.head))

    @property
    def merged(self) -> bool:
        """Whether it is a kept message with the summary written into it."""
        return self.role in ("user", "assistant") and _opening(self.head).startswith(MERGED_HEAD)


def opens_summary(head: bytes) -> bool:
    """Whether a content begins as a compaction summary does."""
    return _opening(head).startswith(SUMMARY_HEADS)


def _opening(head: bytes) -> bytes:
    """The first words of a content, structured or not."""
    if not head.startswith(STRUCTURED):
        return head
    _, found, rest = head.partition(b'"text": "')
    return rest if found else head.partition(b'"text":"')[2]


_REASONING: Final = ("reasoning", "reasoning_content")
_SMALL: Final = ("tool_call_id", "tool_calls", "tool_name", "timestamp", "active", "compacted")


def stored_query(schema: Schema, where: str, *, prints: bool) -> str:
    """SQL for :func:`stored_of`; contents stay in the file unless they are compared."""
    column = partial(schema.column, "messages", alias="m")
    content = column("content")
    # octet_length reads the header of the row only; CASE keeps long tool outputs out of memory.
    head = (
        f"CASE WHEN {column('role')} IN ('user', 'assistant') AND octet_length({content}) <= {HASHED_BYTES}"
        f" THEN substr(CAST({content} AS BLOB), 1, {HEAD_BYTES}) END"
    )
    whole = (
        f"CASE WHEN octet_length({content}) <= {HASHED_BYTES} THEN CAST({content} AS BLOB) END" if prints else "NULL"
    )
    reasoning = " ".join(
        f"WHEN octet_length({column(name)}) > 0 THEN octet_length({column(name)})" for name in _REASONING
    )
    return (
        f"SELECT m.id, m.session_id, {column('role')}, octet_length({content}), {head},"
        f" {', '.join(column(name) for name in _SMALL)},"
        f" CASE {reasoning} END, {column('reasoning_details')}, {column('codex_reasoning_items')},"
        f" {column('display_kind')}, {column('_compressed_summary')}, typeof({content}) = 'blob', {whole}"
        f" FROM messages m {where}"
    )


def stored_of(row: tuple[Any, ...]) -> Stored:
    """One row of :func:`stored_query`."""
    (number, session, role, size, head, call, calls, tool, at, active, compacted) = row[:11]
    (reasoning, details, codex_items, display, flagged, blob, whole) = row[11:]
    role = text_or_none(role)
    call, calls = text_or_none(call), filled_text(calls)
    if not reasoning and (details or codex_items):
        reasoning = len(reasoning_in_json(details, codex_items).encode("utf-8", "replace"))
    content = whole if isinstance(whole, bytes) else (size, head)
    return Stored(
        number,
        text_or_none(session) or "",
        role,
        size or 0,
        head if isinstance(head, bytes) else b"",
        call,
        calls,
        text_or_none(tool),
        time_or_none(at),
        time_or_none(at) is None,
        reasoning or 0,
        state_of(active, compacted),
        text_or_none(display),
        flag(flagged),
        bool(blob),
        hash((role, content or b"", calls, call)),
    )


def state_of(active: Any, compacted: Any) -> MessageState:
    """The state from its two columns; NULL in ``active`` is 1 (facts/hermes.md section 2)."""
    if active is None or flag(active):
        return "live"
    return "compacted" if flag(compacted) else "rewound"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry a row gives, without its text."""

    part: int
    field: Field
    kind: MessageKind
    size: int
    tool_name: str | None = None
    tool_call_id: str | None = None
    call: int = 0
    """Which of the row's tool calls."""


def entries_of(row: Stored) -> list[Entry]:
    """The entries of a row, in order. A row that holds nothing gives one entry without text."""
    found: list[Entry] = []
    if row.reasoning_size:
        found.append(Entry(0, "reasoning", "reasoning", row.reasoning_size))
    calls = tool_calls(row.tool_calls)
    if row.size or not (found or calls):
        found.append(Entry(len(found), "content", kind_of(row), row.size, row.tool_name, row.tool_call_id))
    for number, call in enumerate(calls):
        size = len(call.arguments.encode("utf-8", "replace"))
        found.append(Entry(len(found), "tool_calls", "tool-call", size, call.name, call.id, number))
    return found


def kind_of(row: Stored) -> MessageKind:
    """What the text of a row is."""
    if row.summary:
        return "summary"
    if row.role == "tool":
        return "tool-result"
    if row.display_kind == "hidden" or row.role == "system":
        return "context"
    if (row.display_kind or "") not in TYPED:
        return "notice"
    if row.role == "user":
        return "prompt"
    return "reply" if row.role == "assistant" else "unknown"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call out of ``tool_calls``."""

    id: str | None
    name: str | None
    arguments: str


def tool_calls(cell: str | None) -> list[ToolCall]:
    """The calls of an assistant row; what is no list of calls is given as one call without a name."""
    if not cell:
        return []
    value = json_or_none(cell)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return [ToolCall(None, None, cell)] if value is None and cell != "null" else []
    return [_tool_call(item) for item in value]


def _tool_call(item: object) -> ToolCall:
    if not isinstance(item, dict):
        return ToolCall(None, None, json_text(item))
    function = item.get("function")
    named = function if isinstance(function, dict) else item
    arguments = named.get("arguments", "")
    return ToolCall(
        text_or_none(item.get("id") or item.get("call_id")),
        text_or_none(named.get("name")),
        arguments if isinstance(arguments, str) else json_text(arguments),
    )


def reasoning_text(reasoning: Any, content: Any, details: Any, codex_items: Any) -> RawText:
    """The reasoning of a row from whichever column has it; '' when it is encrypted or none."""
    plain = filled_text(reasoning) or filled_text(content)
    return plain if plain else RawText(reasoning_in_json(details, codex_items))


def reasoning_in_json(details: Any, codex_items: Any) -> str:
    """Readable reasoning inside the two JSON columns."""
    texts: list[str] = []
    for cell in (details, codex_items):
        value = json_or_none(cell)
        for item in value if isinstance(value, list) else [value]:
            texts += _reasoning_texts(item)
        if texts:
            break
    return "\n".join(texts)


def _reasoning_texts(item: object) -> list[str]:
    """Texts of one item: its ``text``, its ``summary``, or the texts listed below ``summary`` or ``content``."""
    if not isinstance(item, dict):
        return []
    if isinstance(item.get("text"), str):
        return [item["text"]]
    found: list[str] = []
    for name in ("summary", "content"):
        below = item.get(name)
        if isinstance(below, str):
            found.append(below)
        elif isinstance(below, list):
            found += [
                piece["text"] for piece in below if isinstance(piece, dict) and isinstance(piece.get("text"), str)
            ]
    return found


@dataclass(frozen=True, slots=True)
class Content:
    """A content as people read it."""

    text: RawText
    attachments: tuple[RawText, ...] = ()
    problem: str | None = None
    """Why it is not shown as its agent meant it."""


def read_content(raw: bytes) -> Content:
    """Decode a content: plain text, or structured parts to their texts with the images named."""
    if raw.startswith(STRUCTURED) and len(raw) <= MOST_PARSED:
        try:
            value = read_json(raw[len(STRUCTURED) :])
        except ValueError as error:
            shown = RawText(raw.decode("utf-8", "replace"))
            return Content(shown, (), f"its structured content cannot be read: {error}")
        return _joined(value if isinstance(value, list) else [value])
    try:
        return Content(RawText(raw.decode("utf-8")))
    except UnicodeDecodeError as error:
        return Content(RawText(raw.decode("utf-8", "replace")), (), f"its text is not UTF-8: {error.reason}")


def _joined(parts: list[object]) -> Content:
    texts: list[str] = []
    attachments: list[RawText] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            attachments.append(RawText(attachment_name(part)))
    # A message that is only a picture would otherwise look empty.
    text = "\n".join(texts) if any(texts) else "\n".join(f"[{name}]" for name in attachments)
    return Content(RawText(text), tuple(attachments))


def attachment_name(part: object) -> str:
    """An image or file by its name or type, never its content."""
    if not isinstance(part, dict):
        return "attachment"
    kind = str(part.get("type") or "attachment")
    for key in ("image_url", "file", "input_audio", "source"):
        below = part.get(key)
        if isinstance(below, str):
            return _address(below)
        if isinstance(below, dict):
            for name in ("filename", "name", "url", "media_type", "format", "file_id"):
                if isinstance(below.get(name), str) and below[name]:
                    return _address(below[name])
    return kind


def _address(address: str) -> str:
    """A data URL by its type; any other by itself."""
    if not address.startswith("data:"):
        return address[:500]
    return address[5:].partition(",")[0].partition(";")[0] or "data"


def message_number(identity: str) -> int | None:
    """The row id in the text of a message id."""
    return int(identity) if identity.isascii() and identity.removeprefix("-").isdigit() else None
