"""The messages of one Hermes session or of a chain, read piece by piece.

Order is by row id, never by time (facts/hermes.md section 2). Row ids come from an index first; rows follow in batches
by id, each batch through a connection of its own, so that nothing stays open between two looks.
"""

from __future__ import annotations

import codecs
import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from hermes_tui.model import Compaction, LineageKind, Message, MessageHead, Problem, SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StoreDamaged
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.cells import text_or_none
from hermes_tui.stores.hermes.content import (
    MOST_PARSED,
    STRUCTURED,
    Content,
    Stored,
    entries_of,
    message_number,
    read_content,
    reasoning_text,
    stored_of,
    stored_query,
    tool_calls,
)
from hermes_tui.stores.hermes.generations import Generations, Placed, same_message
from hermes_tui.stores.hermes.salvage import salvaged
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.protocol import TEXT_PIECE
from hermes_tui.text import RawText

FIRST_BATCH: Final = 256
"""Rows of the first batch: a screen or two."""
LATER_BATCH: Final = 2000
LOAD_BATCH: Final = 200
CHECKPOINT: Final = 1 << 18
"""Bytes between two remembered places of a long text."""


@dataclass(frozen=True, slots=True)
class Part:
    """One session of a transcript and how it came to be."""

    id: str
    kind: LineageKind
    parent: str | None
    continues: bool
    """It goes on where the part before it was compacted."""


class HermesTranscript:
    """Implements :class:`hermes_tui.stores.protocol.Transcript`."""

    def __init__(self, asking: Asking, parts: Sequence[Part], *, every_row: bool = False) -> None:
        """``every_row``: copies too, as the model is sent them."""
        self._asking = asking
        self._every_row = every_row
        self._parts = tuple(parts)
        self._lock = threading.Lock()
        self._problems: dict[tuple[int, str], Problem] = {}
        self._compactions: dict[int, Compaction] = {}
        self._places: dict[tuple[str, str], list[tuple[int, int]]] = {}

    @property
    def problems(self) -> Sequence[Problem]:
        """Cells that could not be read as their agent meant them."""
        with self._lock:
            return tuple(self._problems.values())

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        """Every entry by row id, part after part."""
        batch: list[MessageHead] = []
        most = FIRST_BATCH
        generations = Generations()
        for number, part in enumerate(self._parts):
            yield from self._part_heads(number, part, generations, batch, most)
            most = LATER_BATCH
        if batch:
            yield batch

    def _part_heads(
        self, number: int, part: Part, generations: Generations, batch: list[MessageHead], most: int
    ) -> Iterator[Sequence[MessageHead]]:
        ids, compacted = self._asking.ask(_row_ids, part.id)
        aligned = (compacted or len(self._parts) > 1) and not self._every_row
        inherited = self._inherited(part) if part.kind == "branch" and not number else frozenset()
        rows = self._rows(ids, prints=aligned)
        placed: Iterable[Placed] = (
            generations.session(rows, continues=number > 0 and part.continues) if aligned else map(Placed, rows)
        )
        for place in placed:
            self._note(place)
            if place.copy:
                continue
            batch += heads_of(place, inherited=place.row.id in inherited)
            if len(batch) >= most:
                yield tuple(batch)
                batch.clear()
                most = LATER_BATCH

    def compactions(self) -> dict[str, tuple[Compaction, ...]]:
        """The compactions by the session that holds their summary; reads every head."""
        sessions: dict[int, str] = {}
        for batch in self.heads():
            sessions.update((int(head.id), head.session_id) for head in batch if head.kind == "summary")
        found: dict[str, list[Compaction]] = {}
        with self._lock:
            for number, session in sorted(sessions.items()):
                found.setdefault(session, []).append(self._compactions[number])
        return {session: tuple(some) for session, some in found.items()}

    def tail(self, count: int) -> Sequence[MessageHead]:
        """The last entries; reads from the end unless copies have to be told apart first."""
        part = self._parts[-1] if self._parts else None
        if part is None or count <= 0:
            return ()
        ids, compacted = self._asking.ask(_row_ids, part.id)
        if (compacted and not self._every_row) or part.kind == "branch" or len(self._parts) > 1 or len(ids) < count:
            return [head for batch in self.heads() for head in batch][-count:]
        found: list[MessageHead] = []
        for row in self._rows(ids[-count:], prints=False):
            place = Placed(row)
            self._note(place)
            found += heads_of(place)
        return found[-count:]

    def load(self, heads: Sequence[MessageHead], *, sent: bool = False) -> list[Message]:
        """The texts of these entries, cut at ``TEXT_PIECE`` bytes."""
        found: list[Message] = []
        for start in range(0, len(heads), LOAD_BATCH):
            some = heads[start : start + LOAD_BATCH]
            found += self._asking.ask(self._load, some, sent)
        return found

    def _load(
        self, connection: ReadConnection, schema: Schema, heads: Sequence[MessageHead], sent: bool
    ) -> list[Message]:
        ids = list(dict.fromkeys(head.id for head in heads))
        cells, lost = salvaged(partial(read_cells, connection, schema, sent=sent), ids)
        for identity in lost:
            self._add_problem(message_number(identity) or 0, "text", "its text lies on a damaged page")
        return [self._message(connection, head, cells.get(head.id)) for head in heads]

    def _message(self, connection: ReadConnection, head: MessageHead, cells: Cells | None) -> Message:
        number = message_number(head.id)
        mark = self._compactions.get(number) if head.kind == "summary" and number is not None else None
        if cells is None:
            return Message(head, None, compaction=mark)
        if head.kind == "reasoning":
            return self._cut(head, cells.reasoning)
        if head.kind == "tool-call":
            call = call_of(cells, head)
            return self._cut(head, RawText(call))
        if cells.content is None and head.size > MOST_WHOLE:
            return Message(head, _first_piece(connection, number or 0), compaction=mark, cut=True)
        content = self._content(cells)
        message = self._cut(head, None if content is None else content.text)
        different = cells.sent is not None and (content is None or cells.sent != content.text)
        return Message(
            head,
            message.text,
            sent_text=cells.sent if different else None,
            compaction=mark,
            cut=message.cut,
            attachments=() if content is None else content.attachments,
        )

    def _content(self, cells: Cells) -> Content | None:
        if cells.content is None:
            return None
        content = read_content(cells.content)
        if content.problem is not None:
            self._add_problem(cells.id, "content", content.problem)
        return content

    @staticmethod
    def _cut(head: MessageHead, text: RawText | None) -> Message:
        """The text, or its first ``TEXT_PIECE`` bytes."""
        if text is None or len(text) <= TEXT_PIECE // 4:
            return Message(head, text)
        raw = text.encode("utf-8", "surrogatepass")
        if len(raw) <= TEXT_PIECE:
            return Message(head, text)
        return Message(head, RawText(raw[:TEXT_PIECE].decode("utf-8", "ignore")), cut=True)

    def piece(self, head: MessageHead, start: int, length: int) -> RawText:
        """Characters of one long text."""
        return self._asking.ask(self._piece, head, start, length)

    def _piece(self, connection: ReadConnection, schema: Schema, head: MessageHead, start: int, length: int) -> RawText:
        cells = read_cells(connection, schema, [head.id], sent=False).get(head.id)
        if cells is None:
            return RawText("")
        if head.kind == "reasoning":
            return RawText(cells.reasoning[start : start + length])
        if head.kind == "tool-call":
            return RawText(call_of(cells, head)[start : start + length])
        if cells.content is not None:
            return RawText(read_content(cells.content).text[start : start + length])
        return self._piece_of_blob(connection, head, start, length)

    def _piece_of_blob(self, connection: ReadConnection, head: MessageHead, start: int, length: int) -> RawText:
        """Read on from the last remembered place before ``start``: a character has no fixed number of bytes."""
        with self._lock:
            places = list(self._places.get((head.id, head.kind), ())) or [(0, 0)]
        at_character, at_byte = max(place for place in places if place[0] <= start)
        texts: list[str] = []
        with connection.raw.blob_open("main", "messages", "content", message_number(head.id) or 0, False) as blob:
            blob.seek(at_byte)
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            while at_character < start + length and (block := blob.read(CHECKPOINT)):
                text = decoder.decode(block, final=blob.tell() >= blob.length())
                texts.append(text[max(start - at_character, 0) : max(start + length - at_character, 0)])
                at_character += len(text)
                waiting = len(decoder.getstate()[0])
                places.append((at_character, blob.tell() - waiting))
        with self._lock:
            self._places[head.id, head.kind] = sorted(set(places))
        return RawText("".join(texts))

    def _rows(self, ids: array[int], *, prints: bool) -> Iterator[Stored]:
        """Rows by id, a batch a connection."""
        start, size = 0, FIRST_BATCH
        while start < len(ids):
            found, lost = self._asking.ask(_salvaged_rows, ids[start : start + size].tolist(), prints)
            for number in sorted(lost):
                self._add_problem(number, "row", "it lies on a damaged page")
            yield from found
            start, size = start + size, LATER_BATCH

    def _inherited(self, part: Part) -> frozenset[int]:
        """Rows at the beginning of a branch that were copied from its parent."""
        if part.parent is None:
            return frozenset()
        theirs, _ = self._asking.ask(_row_ids, part.parent)
        ours, _ = self._asking.ask(_row_ids, part.id)
        return inherited_rows(self._rows(ours, prints=True), self._rows(theirs, prints=True))

    def _note(self, place: Placed) -> None:
        """Keep what the heads showed: compactions, and cells that are not what they should be."""
        row = place.row
        if row.summary and not place.copy:
            with self._lock:
                self._compactions[row.id] = Compaction(
                    row.at if place.at is None else place.at, None, kept=place.kept, dropped=place.dropped
                )
        if row.blob:
            self._add_problem(row.id, "content", "its content is stored as a BLOB")
        if row.bad_time:
            self._add_problem(row.id, "timestamp", "its time is missing or absurd")

    def _add_problem(self, number: int, what: str, reason: str) -> None:
        with self._lock:
            self._problems[number, what] = Problem(None, None, None, f"message {number}: {reason}")


MOST_WHOLE: Final = TEXT_PIECE
"""Bytes; longer plain contents are read through a BLOB handle, structured ones parsed up to ``MOST_PARSED``."""


@dataclass(frozen=True, slots=True)
class Cells:
    """The long cells of one row."""

    id: int
    size: int
    """Bytes of content."""
    content: bytes | None
    """``None``: NULL, or too long to be held as one string."""
    reasoning: RawText
    calls: str | None
    sent: RawText | None


def read_cells(connection: ReadConnection, schema: Schema, ids: Sequence[str], *, sent: bool) -> dict[str, Cells]:
    """The long cells of these rows by id."""
    numbers = sorted({number for identity in ids if (number := message_number(identity)) is not None})
    column = partial(schema.column, "messages", alias="m")
    content = column("content")
    sql = (
        f"SELECT m.id, CASE WHEN octet_length({content}) <= {MOST_WHOLE} THEN CAST({content} AS BLOB) END,"
        f" octet_length({content}), {column('reasoning')}, {column('reasoning_content')},"
        f" {column('reasoning_details')}, {column('codex_reasoning_items')}, {column('tool_calls')},"
        f" {column('api_content') if sent else 'NULL'}"
        f" FROM messages m WHERE m.id IN ({','.join('?' * len(numbers))})"
    )
    found: dict[str, Cells] = {}
    for row in connection.rows(sql, numbers):
        number, whole, size, reasoning, reasoning_content, details, items, calls, api = row
        if whole is None and size is not None:
            whole = _long_structured(connection, number, size)
        found[str(number)] = Cells(
            number,
            size or 0,
            whole,
            reasoning_text(reasoning, reasoning_content, details, items),
            text_or_none(calls),
            text_or_none(api),
        )
    return found


def _long_structured(connection: ReadConnection, number: int, size: int) -> bytes | None:
    """A structured content over ``MOST_WHOLE`` bytes, mostly pictures; ``None`` for plain text."""
    with connection.raw.blob_open("main", "messages", "content", number, False) as blob:
        beginning = blob.read(len(STRUCTURED))
        rest = blob.read() if beginning == STRUCTURED and size <= MOST_PARSED else b""
    return beginning + rest if rest else None


def _first_piece(connection: ReadConnection, number: int) -> RawText:
    with connection.raw.blob_open("main", "messages", "content", number, False) as blob:
        raw = blob.read(TEXT_PIECE)
    # The last character may be cut in two.
    return RawText(codecs.getincrementaldecoder("utf-8")("replace").decode(raw))


def call_of(cells: Cells, head: MessageHead) -> str:
    """The arguments of the tool call an entry stands for."""
    calls = tool_calls(cells.calls)
    before = head.part - bool(cells.reasoning) - bool(cells.size)
    return calls[before].arguments if 0 <= before < len(calls) else ""


def heads_of(place: Placed, *, inherited: bool = False) -> list[MessageHead]:
    """The entries of a row as heads."""
    row = place.row
    state = "inherited" if inherited and row.state == "live" else row.state
    # The reasoning of a kept message with a summary inside is that of the message shown before.
    hidden = row.merged and place.kept is not None
    return [
        MessageHead(
            id=str(row.id),
            part=entry.part,
            session_id=SessionId(row.session_id),
            role=text_or_none(row.role),
            kind=entry.kind,
            state=state,
            at=row.at,
            size=entry.size,
            tool_name=text_or_none(entry.tool_name),
            tool_call_id=text_or_none(entry.tool_call_id),
        )
        for entry in entries_of(row)
        if not (hidden and entry.kind == "reasoning")
    ]


def _row_ids(connection: ReadConnection, schema: Schema, session_id: str) -> tuple[array[int], bool]:
    """The row ids of a session in order, and whether some were compacted away in place."""
    if not schema.has("messages", "id", "session_id"):
        return array("q"), False
    # No ORDER BY: with it SQLite may walk the whole table by rowid instead of the session's index.
    ids = array(
        "q", sorted(row[0] for row in connection.rows("SELECT id FROM messages WHERE session_id = ?", (session_id,)))
    )
    if not schema.has("messages", "active", "compacted"):
        return ids, False
    try:
        compacted = connection.one(
            "SELECT 1 FROM messages WHERE session_id = ? AND active = 0 AND compacted = 1 LIMIT 1", (session_id,)
        )
    except StoreDamaged:
        # Then copies are looked for: it costs time, not truth.
        return ids, True
    return ids, compacted is not None


def stored_rows(connection: ReadConnection, schema: Schema, ids: Sequence[int], *, prints: bool) -> list[Stored]:
    """These rows in the order of their ids."""
    where = f"WHERE m.id IN ({','.join('?' * len(ids))}) ORDER BY m.id"
    return [stored_of(row) for row in connection.rows(stored_query(schema, where, prints=prints), ids)]


def _salvaged_rows(
    connection: ReadConnection, schema: Schema, ids: Sequence[int], prints: bool
) -> tuple[list[Stored], frozenset[int]]:
    """These rows in the order of their ids, and the ids of those that cannot be read."""

    def read(some: Sequence[int]) -> dict[int, Stored]:
        return {row.id: row for row in stored_rows(connection, schema, some, prints=prints)}

    found, lost = salvaged(read, ids)
    return list(found.values()), lost


def inherited_rows(ours: Iterable[Stored], theirs: Iterable[Stored]) -> frozenset[int]:
    """Rows a branch copied: its first ones, as long as they follow each other in the parent."""
    found: set[int] = set()
    parent = iter(theirs)
    for row in ours:
        if not any(same_message(row, other) for other in parent):
            break
        found.add(row.id)
    return frozenset(found)
