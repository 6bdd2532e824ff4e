"""What the first and the last 65,536 bytes of a transcript tell, without parsing the rest (facts section 2).

A head is parsed until the first prompt is known; of the tail only header lines and the last few message lines. What
lies between is seen when the session is opened or stands on the page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple

import orjson

from hermes_tui.records import dataclass
from hermes_tui.storage.log_bytes import read_at
from hermes_tui.stores.claude.header import PROMPT_CUT, Header
from hermes_tui.stores.claude.inline import ANY_VERSION_BELOW, marked
from hermes_tui.stores.claude.lines import BRIDGED_TYPE, MESSAGE_TYPES, Entry, Fields, message_of, text_of, time_of
from hermes_tui.stores.claude.parts import parts_of
from hermes_tui.stores.claude.texts import user_text

LITE: Final = 65_536
"""Bytes of head and tail (facts/claude-code.md section 2)."""
FIRST: Final = 8_192
"""Bytes read first: they tell enough of most files, for Claude Code writes its titles again near the end."""
LONGEST_END: Final = 32 << 20
"""Bytes of an end that are read at most where a line there is longer than :data:`LITE`."""
LAST_LINES: Final = 2
"""Message lines at the end that are looked at for time and branch."""
_MESSAGE_START: Final = b'{"parentUuid"'
_ROOT: Final = re.compile(rb'Uuid": ?null')
"""Begins with the rarest of its letters, which is what the search looks for first."""
_SKIPPED_STARTS: Final = (b'{"type":"file-history-snapshot"', b'{"type":"queue-operation"', b'{"type":"attribution-')


@dataclass(slots=True)
class Peek:
    """What the two ends of a file say."""

    delegated: bool = False
    """It is known to be a sub-agent's."""
    header: Header = field(default_factory=Header)
    first_prompt: str | None = None
    command: str | None = None
    roots: list[str] = field(default_factory=list)
    """Lines of the head without a parent: copies of a session share them."""
    begins_late: str | None = None
    """The first message line where it is no beginning: a compaction boundary, which a fork made after one begins with,
    or a line whose parent is lost. Those of sub-agents inside a session's file do not count."""
    begun: bool = False
    """Whether a line was met that is none of theirs."""
    bridged: dict[str, str | None] = field(default_factory=dict)
    """What takes the place of a parent that is no message, as older builds wrote them before the first prompt."""
    last_uuids: list[str] = field(default_factory=list)
    """The last message lines: what an old title in another file names (facts section 3, summary)."""
    messages: int = 0
    sidechain: bool | None = None
    """Whether every message line that was met is a sub-agent's."""
    side_prompt: str | None = None
    """The first prompt of a sub-agent inside a session's file."""
    version: str | None = None
    problems: int = 0
    agents: bool | None = None
    """Whether sub-agents' lines stand in it; ``None`` where it was not read whole."""
    damaged: bool = False
    """A line of an end cannot be parsed, or no message line was met: only the whole file tells more."""


class Ends(NamedTuple):
    """What of a peek tells how sessions hang together; an index keeps it, so that a start reads no file."""

    roots: Sequence[str]
    begins_late: str | None
    last_uuids: Sequence[str]
    version: str | None
    summaries: Mapping[str, str]
    """Old titles by the line they are about."""
    forked_from: str | None
    agents: bool | None = None
    """Whether lines of sub-agents stand in the file; ``None`` where nobody looked."""


def ends_of(found: Peek) -> Ends:
    """The part of a peek that is kept."""
    header, agents = found.header, found.agents
    return Ends(
        found.roots, found.begins_late, found.last_uuids, found.version, header.summaries, header.forked_from, agents
    )


def whole_ends(found: Ends, entries: Sequence[Entry]) -> Ends:
    """The same of a damaged file, with what all its lines tell of its beginning."""
    bridged = {entry.uuid: entry.parent for entry in entries if entry.type == BRIDGED_TYPE}
    known = [entry for entry in entries if entry.type in MESSAGE_TYPES and not entry.detached]
    roots = [entry.uuid for entry in known if bridged.get(entry.parent or "", entry.parent) is None]
    first = next((entry for entry in known if not entry.sidechain), next(iter(known), None))
    late = first is not None and (first.boundary or first.uuid not in roots)
    return found._replace(roots=roots, begins_late=first.uuid if first is not None and late else None)


def peek(path: str, size: int, *, inside: bool = False) -> Peek:
    """Read the two ends of a transcript: a little of each, and all 65,536 bytes where that does not tell enough.

    Args:
        path: the file.
        size: its bytes.
        inside: a small file is read whole, at once, to see whether sub-agents' lines stand in it.

    Raises:
        OSError: it cannot be read.
    """
    result = Peek(delegated=not inside)
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        if inside and size < ANY_VERSION_BELOW:
            text = read_at(file, size, 0)
            result.agents = marked(text)
            _read(result, lambda length, start: text[start : start + length], size)
            _take_roots(result, text)
        else:
            _read(result, lambda length, start: read_at(file, length, start), size)
    finally:
        os.close(file)
    return result


Piece = Callable[[int, int], bytes]
"""So many bytes from there on."""


def _read(result: Peek, piece: Piece, size: int) -> None:
    _read_head(result, piece, size)
    _read_tail(result, piece, size)


def _read_head(result: Peek, piece: Piece, size: int) -> None:
    if _take_head(result, piece(FIRST, 0), whole=size <= FIRST) or size <= FIRST:
        return
    length = LITE
    while True:
        # What was read is not enough: begin again, so that no line is taken twice.
        result.header, result.messages, result.problems = Header(), 0, 0
        result.first_prompt = result.command = result.begins_late = result.side_prompt = result.sidechain = None
        result.begun = False
        result.roots.clear()
        result.bridged.clear()
        _take_head(result, piece(length, 0), whole=size <= length)
        if result.messages or size <= length or length >= LONGEST_END:
            return
        length *= 8  # not one message line ends in it: a long prompt was pasted


def _read_tail(result: Peek, piece: Piece, size: int) -> None:
    length = FIRST
    while True:
        start = max(0, size - length)
        later, seen = _take_tail(result, piece(length, start), whole=start == 0)
        enough = seen and (length >= LITE or later.last_prompt)
        if start == 0 or enough or length >= LONGEST_END:
            break
        length *= 8  # FIRST, LITE, and on where not one message line begins in it: a tool printed much
    _merge(result, later, seen)


def _take_head(result: Peek, head: bytes, *, whole: bool) -> bool:
    """Parse lines until prompt, folder and a root are known; whether they are."""
    header = result.header
    begin, size = 0, len(head)
    while begin < size:
        end = head.find(b"\n", begin)
        if end < 0:
            if not whole:
                return False
            end = size
        line = head[begin:end]
        begin = end + 1
        if not line or line.startswith(_SKIPPED_STARTS):
            continue
        fields = _parsed(line)
        if fields is None:
            result.problems += whole
            result.damaged = True
        elif text_of(fields.get("type")) not in MESSAGE_TYPES:
            header.take(fields, result.messages)
            if fields.get("type") == BRIDGED_TYPE and (uuid := text_of(fields.get("uuid"))) is not None:
                result.bridged[uuid] = _parent(result, fields)
        else:
            _take_message(result, fields)
            if result.first_prompt and header.cwd and result.roots:
                return True
    return False


def _take_message(result: Peek, fields: Fields) -> None:
    result.header.look(fields, time_of(fields.get("timestamp")))
    uuid, parent = text_of(fields.get("uuid")), _parent(result, fields)
    if result.messages == 0:
        result.version = text_of(fields.get("version"))
    inside = fields.get("isSidechain") is True and not result.delegated
    if result.messages == 0 or not (inside or result.begun):
        late = fields.get("subtype") == "compact_boundary" or parent is not None
        result.begins_late = uuid if late else None
    result.begun = result.begun or not inside
    _take_side(result, fields)
    result.messages += 1
    if uuid is not None and parent is None:
        result.roots.append(uuid)
    if result.first_prompt is None and fields.get("type") == "user":
        for kind, text, stored in _texts(fields):
            if kind == "prompt" and inside:
                result.side_prompt = result.side_prompt or text[:PROMPT_CUT]
                return
            if kind == "prompt":
                result.first_prompt = text[:PROMPT_CUT]
                return
            if result.command is None and stored != text and text[:1] in "/!" and " " in text:
                result.command = text[:PROMPT_CUT]


def _take_side(result: Peek, fields: Fields) -> None:
    result.sidechain = fields.get("isSidechain") is True and result.sidechain is not False


def _take_roots(result: Peek, text: bytes) -> None:
    """The other lines without a parent of a file read whole: what it copied may stand behind a beginning of its own."""
    known = set(result.roots)
    for found in _ROOT.finditer(text):
        end = text.find(b"\n", found.end())
        fields = _parsed(text[text.rfind(b"\n", 0, found.start()) + 1 : end if end >= 0 else len(text)])
        if fields is None or text_of(fields.get("type")) not in MESSAGE_TYPES:
            continue
        uuid = text_of(fields.get("uuid"))
        if uuid is not None and uuid not in known and text_of(fields.get("parentUuid")) is None:
            known.add(uuid)
            result.roots.append(uuid)


def _parent(result: Peek, fields: Fields) -> str | None:
    """The message before this line."""
    parent = text_of(fields.get("parentUuid"))
    return parent if parent is None else result.bridged.get(parent, parent)


def _texts(fields: Fields) -> Iterator[tuple[str, str, str]]:
    """Kind, shown and stored text of the parts of a user line; most prompts are one string."""
    content = message_of(fields).get("content")
    if type(content) is str and content:
        meta = fields.get("isMeta") is True or fields.get("isVisibleInTranscriptOnly") is True
        shown = user_text(content, meta=meta, summary=fields.get("isCompactSummary") is True)
        yield shown.kind, shown.text, content
        return
    for part in parts_of(fields):
        yield part.kind, part.text, part.text if part.sent is None else part.sent


def _take_tail(result: Peek, tail: bytes, *, whole: bool) -> tuple[Header, int]:
    """Titles and folder from header lines, time and branch from the last message lines, of which it gives the count."""
    later = Header()
    seen = 0
    result.last_uuids.clear()
    taken: list[Fields] = []
    end = len(tail)
    while end >= 0:
        before = tail.rfind(b"\n", 0, end)
        if before < 0 and not whole:
            break  # this line began before the tail
        begin, stop, end = before + 1, end, before
        if begin == stop or (seen >= LAST_LINES and tail.startswith(_MESSAGE_START, begin)):
            continue
        if tail.startswith(_SKIPPED_STARTS, begin):
            continue
        fields = _parsed(tail[begin:stop])
        if fields is None:
            result.damaged = True
            continue
        if text_of(fields.get("type")) in MESSAGE_TYPES:
            seen += 1
            if seen > LAST_LINES:
                continue
        taken.append(fields)
    for fields in reversed(taken):
        if text_of(fields.get("type")) in MESSAGE_TYPES:
            _take_side(result, fields)
            result.last_uuids += [uuid for uuid in (text_of(fields.get("uuid")),) if uuid]
            later.look(fields, time_of(fields.get("timestamp")))
        else:
            later.take(fields, 0)
    return later, min(seen, LAST_LINES)


def _merge(result: Peek, later: Header, seen: int) -> None:
    header = result.header
    header.custom_title = later.custom_title or header.custom_title
    header.ai_title = later.ai_title or header.ai_title
    header.last_prompt = later.last_prompt or header.last_prompt
    header.relocated = later.relocated or header.relocated
    header.git_branch = later.git_branch or header.git_branch
    header.cwd = header.cwd or later.cwd
    header.entrypoint = header.entrypoint or later.entrypoint
    header.session_id = header.session_id or later.session_id
    header.forked_from = header.forked_from or later.forked_from
    header.summaries.update(later.summaries)
    times = [at for at in (header.first_at, header.last_at, later.first_at, later.last_at) if at is not None]
    header.first_at = header.first_at if header.first_at is not None else min(times, default=None)
    header.last_at = max(times, default=None)
    result.messages = max(result.messages, seen)
    result.first_prompt = result.first_prompt or result.side_prompt
    result.damaged = result.damaged or not result.messages


def _parsed(line: bytes) -> Fields | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
