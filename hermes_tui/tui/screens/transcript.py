"""Enter: read a conversation."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import get_current_worker

from hermes_tui.library.catalog import row_of
from hermes_tui.library.transcript import is_shown, open_transcript
from hermes_tui.model import MessageHead, SessionRow
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.formats import count
from hermes_tui.tui.inks import Line, Run
from hermes_tui.tui.messages import ShowPlace, ShowTranscript
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.blocks import PIECE, Block, Finder, Places, make_block
from hermes_tui.tui.views.finding import batches, count_matches, literal_finder
from hermes_tui.tui.views.transcript_head import head_line
from hermes_tui.tui.widgets.filter_line import FilterLine
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.transcript_view import TranscriptView

if TYPE_CHECKING:
    from hermes_tui.library.transcript import Transcript

LOOK_EVERY: Final = 1.0
"""Seconds between looks at the store's stamp."""
POST_EVERY: Final = 0.05
"""Seconds of reading between two batches handed to the screen."""
TAIL: Final = 400
"""Messages shown at once when the end is asked for while the beginning is still being read."""
MOST_COPIED: Final = 200_000
"""Characters a terminal's clipboard is trusted with; longer texts go to a file."""
Identity = tuple[str, int]
"""What stays the same of a message when it is read again: id and part."""


def identity(head: MessageHead) -> Identity:
    """Id and part."""
    return head.id, head.part


class TranscriptScreen(Place):
    """Read it."""

    PLACE = "transcript"
    CSS_PATH = sheet("transcript.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("transcript")]

    @dataclass
    class HeadsRead(Message):
        """More messages are known."""

        number: int
        heads: Sequence[MessageHead]
        done: bool

    @dataclass
    class TailRead(Message):
        """The last messages are known before the rest is."""

        number: int
        heads: Sequence[MessageHead]

    @dataclass
    class GrowthRead(Message):
        """The end of a transcript that changed on disk; ``None``: read all of it again."""

        heads: Sequence[MessageHead] | None
        stamp: object

    @dataclass
    class RowRead(Message):
        """What the list knows of the conversation."""

        row: SessionRow | None
        chain: int

    @dataclass
    class TextsRead(Message):
        """Texts are ready to draw."""

        number: int
        blocks: dict[int, Block]

    @dataclass
    class MatchesRead(Message):
        """A find got further."""

        query: str
        counts: dict[int, int]
        done: bool

    @dataclass
    class TextCopied(Message):
        """The whole text of a message that was to be copied."""

        text: str
        name: str

    def __init__(self, desk: Desk, asked: ShowTranscript, tab: str) -> None:
        super().__init__(desk, tab)
        self.found = asked.found
        self._conversation = asked.conversation
        self._landing = asked.message_id
        self._landing_part = asked.part
        self._landing_line = False
        self._transcript: Transcript | None = None
        self._number = 0
        """Counts readings, so that what a former one found is not mixed in."""
        self._reading = True
        self._waiting: list[MessageHead] | None = None
        """Messages read while only the end is shown; ``None``: everything read is shown."""
        self._row: SessionRow | None = None
        self._chain = 1
        self._sent = False
        self._stamp: object = None
        self._looking = False
        self._find: Finder | None = asked.find
        self._places = Places("")
        self._match = (-1, 0)
        """The match we are at: message and which of its matches."""
        self._asked_query = asked.query

    # Building.

    def body(self) -> Iterable[Widget]:
        yield StillLines(id="head")
        yield TranscriptView(self.desk)
        yield FilterLine("find in this transcript, Enter, then n and N", id="find")

    @property
    def view(self) -> TranscriptView:
        """The messages."""
        return self.query_one(TranscriptView)

    def on_mount(self) -> None:
        self.query_one("#find").display = False
        self.query_one("#head", StillLines).show(self._head)
        self.view.focus()
        self.view.say("Reading.")
        super().on_mount()
        self.set_interval(LOOK_EVERY, self._look)

    def library_ready(self) -> None:
        self._name_stores()
        self.read_again()

    def _head(self, width: int) -> list[Line]:
        parts = f"{self._chain} parts" if self._chain > 1 and self._conversation else ""
        if not self._conversation and self._chain > 1:
            parts = f"one of {self._chain} parts"
        return [head_line(self._row, parts, "record", width, self.desk.glyphs)]

    # Reading.

    def read_again(self) -> None:
        """Read it from the beginning."""
        self._number += 1
        self._reading = True
        self._waiting = None
        self._read_heads(self._number)
        self._read_row()

    @work(thread=True, exclusive=True, group="heads", exit_on_error=False, description="Reading the conversation")
    def _read_heads(self, number: int) -> None:
        worker = get_current_worker()
        self._stamp = self.found.store.stamp()
        transcript = open_transcript(self.found, conversation=self._conversation)
        self._transcript = transcript
        gathered: list[MessageHead] = []
        posted = 0.0
        for batch in transcript.heads():
            if worker.is_cancelled:
                return
            gathered += batch
            if time.monotonic() - posted >= POST_EVERY:
                self.post_message(self.HeadsRead(number, gathered, done=False))
                gathered, posted = [], time.monotonic()
        self.post_message(self.HeadsRead(number, gathered, done=True))

    @work(thread=True, exclusive=True, group="row", exit_on_error=False, description="Reading what the list knows")
    def _read_row(self) -> None:
        row = row_of(self.found, conversation=self._conversation)
        self.post_message(self.RowRead(row, len(self.found.store.chain(self.found.session_id))))

    @on(RowRead)
    def _row_read(self, event: RowRead) -> None:
        self._row, self._chain = event.row, event.chain
        self.query_one("#head", StillLines).show(self._head)

    @on(HeadsRead)
    def _heads_read(self, event: HeadsRead) -> None:
        if event.number != self._number:
            return
        if self._waiting is not None:
            self._waiting += event.heads
        else:
            self.view.add(event.heads)
            self._land()
        if event.done:
            self._reading = False
            if self._waiting is not None:
                self._show_all(self._waiting)
                self._waiting = None
            if not self.view.heads:
                self.view.say("This conversation has no messages.")
            self._landing = None
            if self._find is not None and self._asked_query:
                self._start_find(self._asked_query, self._find)
        self._show_status()

    def _land(self) -> None:
        """Go to the message that was asked for, once it is read."""
        if self._landing is None:
            return
        for item, head in enumerate(self.view.heads):
            if head.id != self._landing or (self._landing_part is not None and head.part != self._landing_part):
                continue
            if not is_shown(head, self.view.all_states):
                self.view.show_states(all_states=True)
            self._landing = None
            self._landing_line = True
            self.view.unfold(item)
            self.view.go_to(item)
            return

    def _show_all(self, heads: Sequence[MessageHead]) -> None:
        """Show a newer reading; the current message stays where it is on the screen."""
        view = self.view
        kept = identity(view.heads[view.cursor]) if view.heads else None
        row = view.heights.top(view.cursor) - view.scroll_offset.y if view.heads else 0
        view.clear()
        view.numbered = True
        view.add(heads)
        if kept is not None:
            at = next((item for item, head in enumerate(view.heads) if identity(head) == kept), None)
            if at is not None:
                view.go_to(at, row=row)

    # Texts.

    @on(TranscriptView.Wanted)
    def _wanted(self, event: TranscriptView.Wanted) -> None:
        if self._transcript is not None:
            heads = [self.view.heads[item] for item in event.items]
            pieces = {item: self.view.pieces[item] for item in event.items if self.view.pieces.get(item)}
            self._read_texts(self._transcript, self._number, event.items, heads, pieces, self.view.text_width)

    @work(thread=True, group="texts", exit_on_error=False, description="Reading texts")
    def _read_texts(
        self,
        transcript: Transcript,
        number: int,
        items: Sequence[int],
        heads: Sequence[MessageHead],
        pieces: dict[int, int],
        width: int,
    ) -> None:
        known = {identity(message.head): message for message in transcript.load(heads, sent=True)}
        blocks: dict[int, Block] = {}
        since = time.monotonic()
        for item, head in zip(items, heads, strict=True):
            message = known.get(identity(head))
            if message is None:
                continue
            piece = pieces.get(item, 0)
            text = transcript.piece(head, piece * PIECE, PIECE) if message.cut or piece else None
            blocks[item] = make_block(message, width, sent=self._sent, find=self._find, piece=piece, piece_text=text)
            if time.monotonic() - since > POST_EVERY:
                # Long texts do not hold up short ones.
                self.post_message(self.TextsRead(number, blocks))
                blocks, since = {}, time.monotonic()
        self.post_message(self.TextsRead(number, blocks))

    @on(TextsRead)
    def _texts_read(self, event: TextsRead) -> None:
        if event.number != self._number:
            return
        view = self.view
        view.put(event.blocks)
        if self._landing_line and view.cursor in event.blocks:
            self._landing_line = False
            self._match = (view.cursor, 0)
            self._go_to_mark(view.cursor, 0)

    # Live.

    def _look(self) -> None:
        if self._transcript is None or self._reading or self._looking or self.app.screen is not self:
            return
        self._looking = True
        self._read_growth(self.view.heads[-TAIL:])

    @work(thread=True, exclusive=True, group="growth", exit_on_error=False, description="Looking for new messages")
    def _read_growth(self, known: Sequence[MessageHead]) -> None:
        try:
            stamp = self.found.store.stamp()
            if stamp == self._stamp:
                return
            transcript = open_transcript(self.found, conversation=self._conversation)
            tail = list(transcript.tail(TAIL))
            self._transcript = transcript
            self.post_message(self.GrowthRead(_grown(known, tail), stamp))
        finally:
            self._looking = False

    @on(GrowthRead)
    def _growth_read(self, event: GrowthRead) -> None:
        self._stamp = event.stamp
        if event.heads is None:
            self._reread()
        elif event.heads:
            self.view.add(event.heads)
            self.view.stay_at_end()
        self._read_row()
        self._show_status()

    def _reread(self) -> None:
        """Something before the end is not what it was: read all, show it when all is here."""
        self._number += 1
        self._reading = True
        self._waiting = []
        self._read_heads(self._number)

    # Status.

    @on(TranscriptView.Moved)
    def _moved(self) -> None:
        self._show_status()

    def _show_status(self) -> None:
        view = self.view
        total = len(view.heads)
        left: list[Run] = []
        if total and view.numbered:
            left += [("message ", "muted"), (count(view.cursor + 1), ""), (f" of {total:,}", "muted")]
        if self._reading:
            so_far = total if self._waiting is None else len(self._waiting)
            left.append((f"  reading, {so_far:,} so far", "notice"))
        if self._places.query:
            left += self._find_words()
        right: list[Run] = []
        hidden = sum(not is_shown(head, False) for head in view.heads) if total < 20_000 else 0
        if hidden and not view.all_states:
            right += [(f"{hidden:,} rewound or dead branch hidden  ", "muted"), ("s", "key"), (" shows", "muted")]
        problems = len(self._transcript.problems) if self._transcript is not None else 0
        if problems:
            right += [(f"  ! {problems:,} lines could not be read", "warn")]
        if self._sent:
            left.append(("  sent bytes", "notice"))
        self.say_status(tuple(left), tuple(right))

    def _find_words(self) -> list[Run]:
        places = self._places
        if not places.total:
            return [
                (f"  no match for {places.query}" if places.done else "  looking", "warn" if places.done else "muted")
            ]
        before = sum(number for item, number in places.counts.items() if item < self._match[0])
        at = before + self._match[1] + 1 if self._match[0] >= 0 else 0
        more = "" if places.done else "+"
        return [(f"  match {at:,} of {places.total:,}{more} in {len(places.items):,} messages", "accent")]

    # Find.

    def action_find(self) -> None:
        line = self.query_one("#find", FilterLine)
        line.display = True
        line.focus()

    @on(Input.Submitted)
    def _find_submitted(self, event: Input.Submitted) -> None:
        self.query_one("#find").display = False
        self.view.focus()
        query = event.value.strip()
        self._asked_query = ""
        if query:
            self._find = literal_finder(query)
            self.view.forget_blocks()
            self._match = (-1, 0)
            self._start_find(query, self._find)
        else:
            self._end_find()

    def _end_find(self) -> None:
        self._find = None
        self._places = Places("")
        self._match = (-1, 0)
        self.workers.cancel_group(self, "find")
        self.view.forget_blocks()
        self._show_status()

    def _start_find(self, query: str, find: Finder) -> None:
        self._places = Places(query)
        view = self.view
        start = view.cursor
        order = [
            item
            for item in (*range(start, len(view.heads)), *range(start))
            if is_shown(view.heads[item], view.all_states)
        ]
        if self._transcript is not None:
            self._read_matches(self._transcript, query, find, list(view.heads), order)
        self._show_status()

    @work(thread=True, exclusive=True, group="find", exit_on_error=False, description="Finding")
    def _read_matches(
        self, transcript: Transcript, query: str, find: Finder, heads: Sequence[MessageHead], order: Sequence[int]
    ) -> None:
        worker = get_current_worker()
        for batch in batches(heads, order):
            known = {identity(message.head): message for message in transcript.load([heads[item] for item in batch])}
            counts: dict[int, int] = {}
            for item in batch:
                if worker.is_cancelled:
                    return
                message = known.get(identity(heads[item]))
                number = count_matches(transcript, message, find) if message is not None else 0
                if number:
                    counts[item] = number
            if counts:
                self.post_message(self.MatchesRead(query, counts, done=False))
        self.post_message(self.MatchesRead(query, {}, done=True))

    @on(MatchesRead)
    def _matches_read(self, event: MatchesRead) -> None:
        places = self._places
        if event.query != places.query:
            return
        places.counts.update(event.counts)
        places.items = sorted(places.counts)
        places.done = event.done
        if self._match[0] < 0 and event.counts:
            first = min(event.counts, key=lambda item: (item < self.view.cursor, item))
            self._go_to_match(first, 0)
        self._show_status()

    def action_next_match(self) -> None:
        self._step_match(1)

    def action_previous_match(self) -> None:
        self._step_match(-1)

    def _step_match(self, step: int) -> None:
        places = self._places
        if not places.items:
            self.toast("Nothing to go to: / finds." if not places.query else f"No match for {places.query}.")
            return
        item, number = self._match
        if item in places.counts and 0 <= number + step < places.counts[item]:
            self._go_to_match(item, number + step)
            return
        others = places.items if step > 0 else places.items[::-1]
        following = next((other for other in others if (other - item) * step > 0), others[0])
        self._go_to_match(following, 0 if step > 0 else places.counts[following] - 1)

    def _go_to_match(self, item: int, number: int) -> None:
        self._match = (item, number)
        self.view.unfold(item)
        if item in self.view.blocks:
            self._go_to_mark(item, number)
        else:
            self.view.go_to(item)
            self._landing_line = True
        self._show_status()

    def _go_to_mark(self, item: int, number: int) -> None:
        block = self.view.blocks[item]
        if not block.marks:
            self.view.go_to(item)
            return
        at = block.marks[min(number, len(block.marks) - 1)][0]
        line = next((n for n, (_, end) in enumerate(block.ranges) if at <= end), 0)
        self.view.go_to(item, line)

    # Actions.

    def action_line_down(self) -> None:
        self.view.scroll_lines(1)

    def action_line_up(self) -> None:
        self.view.scroll_lines(-1)

    def action_page_down(self) -> None:
        self.view.scroll_lines(self.view.page - 2)

    def action_page_up(self) -> None:
        self.view.scroll_lines(2 - self.view.page)

    def action_first(self) -> None:
        if self.view.heads:
            self.view.go_to(0)
            self.view.scroll_lines(0)

    def action_last(self) -> None:
        if self._reading and self._waiting is None and self._transcript is not None:
            self._read_tail(self._transcript, self._number)
        self.view.go_to_end()

    @work(thread=True, exclusive=True, group="tail", exit_on_error=False, description="Reading the end")
    def _read_tail(self, transcript: Transcript, number: int) -> None:
        self.post_message(self.TailRead(number, list(transcript.tail(TAIL))))

    @on(TailRead)
    def _tail_read(self, event: TailRead) -> None:
        if event.number != self._number or not self._reading or self._waiting is not None:
            return
        self._waiting = list(self.view.heads)
        self.view.clear()
        self.view.numbered = False
        self.view.add(event.heads)
        self.view.go_to_end()

    def _step(self, step: int, test: str) -> None:
        view = self.view
        tests = {
            "any": lambda _: True,
            "prompt": lambda item: view.heads[item].kind == "prompt",
            "compaction": view.is_compaction,
        }
        item = view.find_from(view.cursor, step, tests[test]) if view.heads else None
        if item is None:
            what = {"any": "message", "prompt": "prompt", "compaction": "compaction"}[test]
            self.toast(f"No {what} {'after' if step > 0 else 'before'} this one.")
        else:
            view.go_to(item)

    def action_next_message(self) -> None:
        self._step(1, "any")

    def action_previous_message(self) -> None:
        self._step(-1, "any")

    def action_next_prompt(self) -> None:
        self._step(1, "prompt")

    def action_previous_prompt(self) -> None:
        self._step(-1, "prompt")

    def action_next_compaction(self) -> None:
        self._step(1, "compaction")

    def action_previous_compaction(self) -> None:
        self._step(-1, "compaction")

    def action_fold(self) -> None:
        if self.view.heads:
            self.view.flip(self.view.cursor)

    def action_fold_all(self) -> None:
        self.view.flip_all()

    def action_sent(self) -> None:
        self._sent = not self._sent
        self.view.forget_blocks()
        self._show_status()

    def action_states(self) -> None:
        self.view.show_states(not self.view.all_states)
        self._show_status()

    def action_whole(self) -> None:
        if self._chain < 2:
            self.toast("This conversation has one session only.")
            return
        self._conversation = not self._conversation
        self.view.clear()
        self.read_again()

    def _step_piece(self, step: int) -> None:
        view = self.view
        block = view.blocks.get(view.cursor)
        if block is None or block.pieces < 2:
            self.toast("This message is here as a whole.")
            return
        piece = min(max(0, block.piece + step), block.pieces - 1)
        view.pieces[view.cursor] = piece
        view.drop(view.cursor)

    def action_next_piece(self) -> None:
        self._step_piece(1)

    def action_previous_piece(self) -> None:
        self._step_piece(-1)

    def action_lineage(self) -> None:
        self.post_message(ShowPlace("lineage", self.found))

    def action_cache(self) -> None:
        self.post_message(ShowPlace("cache", self.found))

    def action_recovery(self) -> None:
        from hermes_tui.tui.screens.recovery import RecoveryScreen

        self.app.push_screen(RecoveryScreen(self.desk, self.found, self._tab))

    def action_resume(self) -> None:
        from hermes_tui.tui.dialogs.resume import ResumeDialog

        self.app.push_screen(ResumeDialog(self.found))

    def action_export(self) -> None:
        from hermes_tui.tui.dialogs.export import ExportDialog

        self.app.push_screen(ExportDialog([self.found]))

    def action_copy(self) -> None:
        if self.view.heads and self._transcript is not None:
            self._read_copy(self._transcript, self.view.heads[self.view.cursor])

    @work(thread=True, exclusive=True, group="copy", exit_on_error=False, description="Copying")
    def _read_copy(self, transcript: Transcript, head: MessageHead) -> None:
        message = transcript.load([head])[0]
        self.post_message(self.TextCopied(message.text or "", f"{head.kind} #{head.id}"))

    @on(TextCopied)
    def _text_copied(self, event: TextCopied) -> None:
        if len(event.text) > MOST_COPIED:
            self.toast(f"{event.name} is too long for a terminal's clipboard: E writes it to a file.", bad=True)
            return
        self.app.copy_to_clipboard(event.text)
        self.toast(f"Copied {event.name}, {len(event.text):,} characters.")

    def step_back(self) -> bool:
        """Close the find line, then end the find."""
        line = self.query_one("#find")
        if line.display:
            line.display = False
            self.view.focus()
        elif self._places.query and not self._asked_query:
            self._end_find()
        else:
            return False
        return True


def _grown(known: Sequence[MessageHead], tail: Sequence[MessageHead]) -> Sequence[MessageHead] | None:
    """What is new at the end; ``None`` where something before the end changed or cannot be told."""
    if not known:
        return None
    states = {identity(head): (head.state, head.size) for head in known}
    last = identity(known[-1])
    at = next((place for place, head in enumerate(tail) if identity(head) == last), None)
    if at is None:
        return None
    same = all(
        states.get(identity(head), (head.state, head.size)) == (head.state, head.size) for head in tail[: at + 1]
    )
    return tail[at + 1 :] if same else None
