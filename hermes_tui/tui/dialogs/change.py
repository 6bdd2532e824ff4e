"""Changes: what would happen is shown first, with the reason for everything that stays; then it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input
from textual.worker import get_current_worker

from hermes_tui.library import cleanup
from hermes_tui.library.cleanup import ChangePlan, ChangeResult
from hermes_tui.records import dataclass
from hermes_tui.stores.protocol import ChangeVerb
from hermes_tui.text import clean, clean_line
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.dialogs.base import Dialog, paragraph
from hermes_tui.tui.inks import Line, Run
from hermes_tui.tui.messages import StoresChanged
from hermes_tui.tui.views.change_lines import VERBS, plan_lines, result_lines, result_words
from hermes_tui.tui.widgets.filter_line import FilterLine
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.lines import StillLines

if TYPE_CHECKING:
    from hermes_tui.library.sources import Found, Library

BOX: int = 92
"""Cells of the box."""
SMALL_BOX: int = 76
"""Cells of the box that asks for a title."""


def id_of(found: Found) -> str:
    """As ``Library.find`` takes it, sure to mean this session."""
    return f"{found.store.ref.name}:{found.session_id}"


class ChangeDialog(Dialog[ChangeResult]):
    """Plans a change, shows it, does it on Enter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go", "Do it", show=False),
        Binding("w", "whole", "Whole conversations", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("j,down", "scroll_down", "Down", show=False),
        Binding("k,up", "scroll_up", "Up", show=False),
    ]

    @dataclass
    class Planned(Message):
        """What would happen."""

        number: int
        plan: ChangePlan

    @dataclass
    class Moved(Message):
        """How far it is."""

        done: int
        all: int

    @dataclass
    class Done(Message):
        """What happened."""

        result: ChangeResult

    def __init__(self, desk: Desk, verb: ChangeVerb, founds: Sequence[Found]) -> None:
        super().__init__()
        self.desk = desk
        self.verb = verb
        self.founds = list(founds)
        self.plan: ChangePlan | None = None
        self.whole = True
        self._number = 0
        self._progress = ""
        self._trouble: tuple[str, str] | None = None
        self._result: ChangeResult | None = None
        self._lines: list[Line] = []
        self._cut = False
        """There are more lines than the box shows."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="box wide asking"):
            yield StillLines(id="title")
            yield LineList()
            yield StillLines(id="hint")

    def on_mount(self) -> None:
        # Keys are the dialog's own: a list in focus would take Enter for itself.
        self.query_one(LineList).can_focus = False
        self.begin()

    def begin(self) -> None:
        """The box is there."""
        self.refresh_heading()
        self.query_one("#hint", StillLines).show(self._hint)
        self.make_plan()

    def refresh_heading(self) -> None:
        """Write the heading again."""
        self.query_one("#title", StillLines).show(lambda _: [((self.heading(), "title"),), ()])

    def heading(self) -> str:
        """What it is about, and in which store: one title may be in several."""
        number = len(self.founds)
        stores = list(dict.fromkeys(found.store.ref.name for found in self.founds))
        what = f" {number:,} conversations" if number > 1 else " this conversation"
        where = clean_line(stores[0]) if len(stores) == 1 else f"{len(stores):,} stores"
        return f"{VERBS[self.verb][0]}{what} in {where}"

    # Planning.

    def planner(self, library: Library) -> Callable[[], ChangePlan]:
        """Works out the plan; runs in a thread."""
        ids, verb, now = [id_of(found) for found in self.founds], self.verb, self.desk.clock()
        whole = self.whole and verb in {"delete", "clear"}
        return lambda: cleanup.plan(library, verb, ids, now=now, whole=whole)

    def make_plan(self) -> None:
        """Work it out anew."""
        library = self.desk.library
        if library is None:
            return
        self.plan, self._trouble = None, None
        self._number += 1
        self._progress = "Working out what would happen."
        self._show()
        self._plan(self._number, self.planner(library))

    @work(thread=True, exclusive=True, group="change", exit_on_error=False, description="Planning")
    def _plan(self, number: int, work_out: Callable[[], ChangePlan]) -> None:
        plan = work_out()
        if not get_current_worker().is_cancelled:
            self.post_message(self.Planned(number, plan))

    @on(Planned)
    def _planned(self, event: Planned) -> None:
        if event.number == self._number:
            self.plan, self._progress = event.plan, ""
            self._show()
            self.planned()

    def planned(self) -> None:
        """A plan is there."""

    # Doing.

    @property
    def ready(self) -> bool:
        """Whether Enter would do something."""
        plan = self.plan
        return plan is not None and self._result is None and not self._progress and bool(plan.going or plan.ending)

    def action_go(self) -> None:
        if self._result is not None:
            self.dismiss(self._result)
        elif self.ready and self.desk.library is not None and self.plan is not None:
            self._progress = "Doing it."
            self._show()
            self._apply(self.desk.library, self.plan, self.desk.clock())

    @work(thread=True, exclusive=True, group="change", exit_on_error=False, description="Changing")
    def _apply(self, library: Library, plan: ChangePlan, now: float) -> None:
        result = cleanup.apply(library, plan, now=now, progress=self._tell)
        self.post_message(self.Done(result))

    def _tell(self, done: int, of: int) -> None:
        self.post_message(self.Moved(done, of))

    @on(Moved)
    def _moved(self, event: Moved) -> None:
        self._progress = f"{event.done:,} of {event.all:,}"
        self._show()

    @on(Done)
    def _done(self, event: Done) -> None:
        self._result, self._progress = event.result, ""
        self.app.post_message(StoresChanged())
        result = event.result
        if result.done and not result.kept and not result.failures:
            self.toast(result_words(result, self.verb))
            self.dismiss(result)
        else:
            self._show()

    def failed(self, title: str, text: str) -> None:
        self._progress = ""
        self._trouble = (title, text)
        self.trouble_told()
        self._show()

    def trouble_told(self) -> None:
        """It cannot be done; the box says why."""

    # Showing.

    def _show(self) -> None:
        rows = self.query_one(LineList)
        width = max(24, min(BOX, int(self.size.width * 0.94)) - 8)
        self._lines = self.lines(width)
        height = max(1, min(len(self._lines), int(self.size.height * 0.9) - 9))
        self._cut = len(self._lines) > height
        rows.styles.height = height
        rows.show(len(self._lines), lambda item, _width, _cursor: self._lines[item], may_stand=lambda _: False)
        self.query_one("#hint", StillLines).show(self._hint)

    def on_resize(self) -> None:
        self._show()

    def lines(self, width: int) -> list[Line]:
        """What stands in the box."""
        if self._trouble is not None:
            title, text = self._trouble
            return [*paragraph(clean(title), width, "bad"), (), *paragraph(clean(text), width, "")]
        if self._result is not None:
            return result_lines(self._result, self.verb, width, self.desk.glyphs)
        if self.plan is None or self._progress:
            return [((self._progress, "muted"),)]
        return plan_lines(self.plan, width, self.desk.moment, self.desk.glyphs)

    def keys(self) -> list[tuple[str, str]]:
        """Keys that work now, and what they do."""
        if self._result is not None:
            return [("Enter", "close")]
        keys: list[tuple[str, str]] = []
        if self.ready:
            keys.append(("Enter", VERBS[self.verb][0].lower()))
        if self.verb in {"delete", "clear"} and not self._trouble:
            keys.append(("w", "that session only" if self.whole else "the whole conversation"))
        if self._trouble:
            keys.append(("y", "copy"))
        return keys

    def _hint(self, _width: int) -> list[Line]:
        runs: list[Run] = []
        for key, name in [*self.keys(), ("Esc", "leave it" if self.ready else "close")]:
            runs += [(key, "key"), (f" {name}  ", "muted")]
        more: Line = (("j k", "key"), (" read on", "muted")) if self._cut else ()
        return [more, tuple(runs)]

    def action_whole(self) -> None:
        if self.verb in {"delete", "clear"} and self._result is None:
            self.whole = not self.whole
            self.make_plan()

    def action_copy(self) -> None:
        if self._trouble is not None:
            text = self._trouble[1]
            self.app.copy_to_clipboard(text.removeprefix("The agent's own command: "))
            self.toast("Copied.")

    def action_scroll_down(self) -> None:
        self.query_one(LineList).scroll_relative(y=1, animate=False)

    def action_scroll_up(self) -> None:
        self.query_one(LineList).scroll_relative(y=-1, animate=False)

    def action_close(self) -> None:
        self.dismiss(self._result)


class RenameDialog(ChangeDialog):
    """Asks for a title; Enter plans and renames in one go."""

    def __init__(self, desk: Desk, found: Found, title: str) -> None:
        super().__init__(desk, "rename", [found])
        self._title = title
        self._asked: str | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="box asking"):
            yield StillLines(id="title")
            yield FilterLine("title", id="line")
            yield LineList()
            yield StillLines(id="hint")

    def begin(self) -> None:
        self.query_one("#title", StillLines).show(lambda _: [((self.heading(), "title"),)])
        line = self.query_one("#line", FilterLine)
        line.value = self._title
        line.focus()
        self._show()

    def planner(self, library: Library) -> Callable[[], ChangePlan]:
        ids, now, title = [id_of(found) for found in self.founds], self.desk.clock(), self._asked
        return lambda: cleanup.plan(library, "rename", ids, now=now, title=title)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self._asked = event.value.strip()
        self.make_plan()

    def trouble_told(self) -> None:
        # Otherwise y would be typed into the title.
        self.set_focus(None)

    def planned(self) -> None:
        """Nothing is lost by a new title: the plan needs no second question."""
        if self.ready:
            self.action_go()

    def lines(self, width: int) -> list[Line]:
        # This box is the smaller one.
        width = min(width, SMALL_BOX - 8)
        if self._asked is None:
            return paragraph(self._before_asking(), width, "muted")
        return super().lines(width)

    def _before_asking(self) -> str:
        agent = self.founds[0].store.ref.agent
        if agent == "hermes":
            return "The agent sees the new title as well."
        return f"Only {agent} itself can rename it: Enter shows its command."

    def keys(self) -> list[tuple[str, str]]:
        if self._result is not None:
            return [("Enter", "close")]
        return [("y", "copy")] if self._trouble else [("Enter", "rename")]
