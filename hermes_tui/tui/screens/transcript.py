"""Enter: read a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input
from textual.worker import get_current_worker

from hermes_tui.library.transcript import is_shown
from hermes_tui.model import MessageHead
from hermes_tui.records import dataclass
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.formats import count, counted
from hermes_tui.tui.inks import Run
from hermes_tui.tui.messages import ShowPlace, ShowTranscript
from hermes_tui.tui.screens.transcript_reading import ReadingScreen, identity
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.blocks import Finder, Places
from hermes_tui.tui.views.finding import batches, count_matches, literal_finder
from hermes_tui.tui.widgets.filter_line import FilterLine
from hermes_tui.tui.widgets.transcript_view import TranscriptView

if TYPE_CHECKING:
    from hermes_tui.library.transcript import Transcript

MOST_COPIED: Final = 200_000
"""Characters a terminal's clipboard is trusted with; longer texts go to a file."""


class TranscriptScreen(ReadingScreen):
    """Read it."""

    PLACE = "transcript"
    CSS_PATH = sheet("transcript.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("transcript")]

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
        super().__init__(desk, asked, tab)
        self._places = Places("")
        self._match = (-1, 0)
        """The match we are at: message and which of its matches."""
        self._asked_query = asked.query

    def all_read(self) -> None:
        if self._find is not None and self._asked_query:
            self._start_find(self._asked_query, self._find)

    def texts_ready(self, items: Iterable[int]) -> None:
        if self._landing_line and self.view.cursor in items:
            self._landing_line = False
            self._match = (self.view.cursor, max(0, self._match[1]) if self._match[0] == self.view.cursor else 0)
            self._go_to_mark(*self._match)

    # Status.

    @on(TranscriptView.Moved)
    def _moved(self) -> None:
        self.show_status()

    def show_status(self) -> None:
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
        hidden = view.hidden
        if hidden and not view.all_states:
            right += [(f"{hidden:,} rewound or dead branch hidden  ", "muted"), ("s", "key"), (" shows", "muted")]
        problems = len(self._transcript.problems) if self._transcript is not None else 0
        if problems:
            right += [(f"  ! {counted(problems, 'line')} could not be read", "warn")]
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
        return [(f"  match {at:,} of {places.total:,}{more} in {counted(len(places.items), 'message')}", "accent")]

    # Find.

    def action_find(self) -> None:
        line = self.query_one("#find", FilterLine)
        line.display = True
        line.focus()
        # What was looked for before is there to be changed, or gone with the first letter typed.
        line.select_all()

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
        self.show_status()

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
        self.show_status()

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
        self.show_status()

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
        self.show_status()

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
        self.read_end()
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
        self.show_status()

    def action_states(self) -> None:
        self.view.show_states(not self.view.all_states)
        self.show_status()

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
        if selected := self.get_selected_text():
            self.app.copy_to_clipboard(selected)
            self.toast(f"Copied what is selected, {len(selected):,} characters.")
            self.clear_selection()
            return
        if self.view.heads and self._transcript is not None:
            head = self.view.heads[self.view.cursor]
            number = f" #{self.view.cursor + 1:,}" if self.view.numbered else ""
            self._read_copy(self._transcript, head, f"{head.kind}{number}")

    @work(thread=True, exclusive=True, group="copy", exit_on_error=False, description="Copying")
    def _read_copy(self, transcript: Transcript, head: MessageHead, name: str) -> None:
        message = transcript.load([head])[0]
        self.post_message(self.TextCopied(message.text or "", name))

    @on(TextCopied)
    def _text_copied(self, event: TextCopied) -> None:
        if len(event.text) > MOST_COPIED:
            self.toast(f"{event.name} is too long for a terminal's clipboard: E writes it to a file.", bad=True)
            return
        self.app.copy_to_clipboard(event.text)
        self.toast(f"Copied {event.name}, {len(event.text):,} characters.")

    def step_back(self) -> bool:
        """Drop a selection, close the find line, then end the find."""
        line = self.query_one("#find")
        if self.view.text_selection is not None:
            self.clear_selection()
        elif line.display:
            line.display = False
            self.view.focus()
        elif self._places.query and not self._asked_query:
            self._end_find()
        else:
            return False
        return True
