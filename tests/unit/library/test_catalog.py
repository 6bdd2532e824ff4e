"""One list over several stores: what one of them cannot say does not hide the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hermes_tui.library.catalog import CatalogEntry, StoreEntries, behind, keys_of, listing, readable_rows, rows
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


@pytest.mark.parametrize("names", [("claude",), ("claude", "codex")])
def test_entries_of_one_store_are_a_sequence_as_those_of_several_are(names: tuple[str, ...]) -> None:
    stores = [store_named(name) for name in names]
    for number in range(4):
        for store in stores:
            session(store, f"{number}-in-{store.ref.name}")
    library = library_of(*stores)
    entries = listing(library, ListQuery()).entries
    assert isinstance(entries, StoreEntries) is (len(names) == 1)
    each = [entries[at] for at in range(len(entries))]
    assert len(each) == 4 * len(names)
    assert list(entries) == list(entries[:2]) + list(entries[2:]) == each
    assert entries[-1] == each[-1]
    assert list(keys_of(entries)) == [(entry.store.ref.name, entry.id) for entry in each]
    assert list(listing(library, ListQuery(), 3).entries) == each[:3]
    newest = (each[2], CatalogEntry(stores[0], SessionId("new"), library.prices))
    assert list(behind(newest, entries)) == [*newest, each[0], each[1], *each[3:]]
    assert list(behind(entries[2:], entries)) == [*each[2:], *each[:2]]
