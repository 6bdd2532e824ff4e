"""The marks of a search in a transcript: the search's own matcher, so that what matched there is marked here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_tui.library.search import SearchRequest, search
from hermes_tui.tui.cells import Range
from hermes_tui.tui.views.blocks import Finder

if TYPE_CHECKING:
    from hermes_tui.library.sources import Library


def search_finder(library: Library, query: str, regex: bool) -> Finder:
    """Where a text answers a query."""
    matcher = search(library, SearchRequest(query, regex=regex)).matcher

    def find(text: str) -> Sequence[Range]:
        return [(start, start + length) for start, length in matcher.find(text) or ()]

    return find
