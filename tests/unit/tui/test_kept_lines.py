"""A list that scrolls draws what comes into view, and what changed; never an older picture of a line."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static

from hermes_tui.tui.heights import EvenHeights
from hermes_tui.tui.inks import Line
from hermes_tui.tui.widgets.virtual_list import VirtualList

ROWS = 200


class Numbers(VirtualList):
    """Rows that say their number, the cursor and how often the owner changed them."""

    DEFAULT_CSS = "Numbers { height: 10; width: 40; scrollbar-size-vertical: 0; }"

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[int] = []
        self.said = "first"

    def draw(self, item: int, part: int, width: int) -> Line:
        self.drawn.append(item)
        return ((f"{'>' if item == self.cursor else ' '}{item} {self.said}".ljust(width), ""),)

    def lasting(self, item: int) -> bool:
        return True

    @property
    def shown(self) -> list[str]:
        return [self.render_line(y).text.rstrip() for y in range(self.size.height)]


class One(App[None]):
    def compose(self) -> ComposeResult:
        yield Numbers()
        yield Static("below")

    def on_mount(self) -> None:
        numbers = self.query_one(Numbers)
        numbers.set_items(EvenHeights(ROWS))
        numbers.focus()


async def test_a_step_down_draws_two_rows_and_not_the_screen() -> None:
    app = One()
    async with app.run_test(size=(40, 12)) as pilot:
        numbers = app.query_one(Numbers)
        await pilot.pause(0.1)
        numbers.move_to(9)
        await pilot.pause(0.1)
        numbers.drawn.clear()
        numbers.move_to(10)
        await pilot.pause(0.1)
        assert set(numbers.drawn) <= {9, 10}
        assert numbers.shown[-2:] == [" 9 first", ">10 first"]
        assert numbers.shown[0] == " 1 first"


async def test_other_contents_are_drawn_anew() -> None:
    app = One()
    async with app.run_test(size=(40, 12)) as pilot:
        numbers = app.query_one(Numbers)
        await pilot.pause(0.1)
        numbers.said = "second"
        numbers.refresh_item(3)
        assert numbers.shown[2:5] == [" 2 first", " 3 second", " 4 first"]
        numbers.refresh()
        assert numbers.shown[2:5] == [" 2 second", " 3 second", " 4 second"]
        numbers.said = "third"
        numbers.set_items(EvenHeights(3))
        assert [line for line in numbers.shown if line] == [">0 third", " 1 third", " 2 third"]


async def test_the_cursor_is_where_it_is_after_another_width_and_back() -> None:
    app = One()
    async with app.run_test(size=(40, 12)) as pilot:
        numbers = app.query_one(Numbers)
        await pilot.pause(0.1)
        numbers.styles.width = 30
        await pilot.pause(0.1)
        numbers.move_to(5)
        await pilot.pause(0.1)
        numbers.styles.width = 40
        await pilot.pause(0.1)
        assert [line for line in numbers.shown if line.startswith(">")] == [">5 first"]
