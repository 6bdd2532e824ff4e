"""The six places and how each is built."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from hermes_tui.tui.desk import Desk


def places(desk: Desk) -> dict[str, Callable[[], Screen[None]]]:
    """Each place loads its module when it is first gone to: the list must be on screen soon."""

    def sessions() -> Screen[None]:
        from hermes_tui.tui.screens.sessions import SessionsScreen

        return SessionsScreen(desk)

    def lineage() -> Screen[None]:
        from hermes_tui.tui.screens.lineage import LineageScreen

        return LineageScreen(desk)

    def search() -> Screen[None]:
        from hermes_tui.tui.screens.search import SearchScreen

        return SearchScreen(desk)

    def costs() -> Screen[None]:
        from hermes_tui.tui.screens.costs import CostsScreen

        return CostsScreen(desk)

    def cache() -> Screen[None]:
        from hermes_tui.tui.screens.cache import CacheScreen

        return CacheScreen(desk)

    def health() -> Screen[None]:
        from hermes_tui.tui.screens.health import HealthScreen

        return HealthScreen(desk)

    return {
        "sessions": sessions,
        "lineage": lineage,
        "search": search,
        "costs": costs,
        "cache": cache,
        "health": health,
    }
