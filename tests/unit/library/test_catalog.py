"""One list over several stores: what one of them cannot say does not hide the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hermes_tui.library.catalog import listing, readable_rows, rows
from hermes_tui.model import ListQuery, SessionId, SessionRow, UsageReport
from hermes_tui.storage.errors import StoreDamaged
from tests.unit.library.fake_store import session, store_named
from tests.unit.library.test_ids import library_of


def damaged(*_: object, **__: object) -> UsageReport:
    raise StoreDamaged("/x/state.db", "it is damaged")


def test_rows_of_a_store_that_fails_are_told_and_the_others_read(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = store_named("claude"), store_named("codex")
    for store in (good, bad):
        session(store, f"in-{store.ref.name}")
    library = library_of(good, bad)
    entries = listing(library, ListQuery()).entries
    assert len(entries) == 2

    def no_rows(ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]:
        raise StoreDamaged("/x/state.db", "it is damaged")

    monkeypatch.setattr(bad, "rows", no_rows)
    shown, failures = readable_rows(entries)
    assert [row.id for row in shown] == ["in-claude"]
    assert [failure.ref.name for failure in failures] == ["codex"]
    with pytest.raises(StoreDamaged):
        rows(entries)


def test_a_store_whose_usage_fails_is_still_listed_by_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_named("claude")
    session(store, "one")
    monkeypatch.setattr(store, "usage", damaged)
    found = listing(library_of(store), ListQuery(order="cost"))
    assert [entry.id for entry in found.entries] == ["one"]
    assert [failure.ref.name for failure in found.failures] == ["claude"]
