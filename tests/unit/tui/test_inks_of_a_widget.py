"""Inks are worked out when something is drawn with them, and again when the theme changes."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from hermes_tui.tui.inks import INKS, Inked
from hermes_tui.tui.stylesheets import sheet


class Ground(App[None]):
    CSS_PATH = sheet("app.tcss")

    def compose(self) -> ComposeResult:
        yield Inked()


async def test_no_ink_is_worked_out_before_it_is_used() -> None:
    app = Ground()
    async with app.run_test() as pilot:
        await pilot.pause()
        widget = app.query_one(Inked)
        assert not widget._component_styles
        assert widget.ink("bad").bold
        assert list(widget._component_styles) == ["ink--bad"]


async def test_another_theme_reaches_every_ink() -> None:
    app = Ground()
    async with app.run_test() as pilot:
        widget = app.query_one(Inked)
        dark = {name: widget.ink(name) for name in INKS}
        app.theme = "textual-light"
        await pilot.pause()
        light = {name: widget.ink(name) for name in INKS}
        assert dark["muted"].color != light["muted"].color
        app.theme = "textual-dark"
        await pilot.pause()
        assert {name: widget.ink(name) for name in INKS} == dark


async def test_a_name_that_is_no_ink_is_refused() -> None:
    app = Ground()
    async with app.run_test():
        with pytest.raises(KeyError):
            app.query_one(Inked).ink("no-such-ink")
