from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hermes_tui.library.catalog import listing, rows
from hermes_tui.library.drop_marks import marked, marked_lineage
from hermes_tui.library.lineage import lineage_of
from hermes_tui.library.sources import SourceOptions, open_library
from hermes_tui.model import ListQuery
from tests.unit.library.fake_store import session, store_named
from tests.unit.library.test_cache_drops import request
from tests.unit.library.test_ids import library_of


def test_rows_carry_their_worst_bad_drop() -> None:
    store = store_named("claude")
    store.all_requests = [request(1, 0, 5_000), request(2, 0, 6_000), request(3, 0, 6_000)]
    rows = [session(store, "s"), session(store, "quiet")]
    found = marked(library_of(store), rows)
    assert [row.worst_drop_lost for row in found] == [6_000, 0]


def test_a_store_that_fails_keeps_its_rows() -> None:
    store = store_named("claude", broken=True)
    row = session(store, "s")
    assert marked(library_of(store), [row]) == [row]


def test_a_conversation_has_the_worst_of_its_chain(sample: Callable[[str], Path]) -> None:
    library = open_library(SourceOptions((str(sample("hermes/home/state.db")),)))
    found = marked(library, rows(listing(library, ListQuery()).entries))
    bad = {row.id: row.worst_drop_lost for row in found if row.worst_drop_lost}
    assert bad == {"20260227_110126_3031d0": 82_000, "20260305_061339_cb19b4": 35_221}
    tree = marked_lineage(library, library.stores[0], lineage_of(library.find("20260227_110126_3031d0")))
    assert {node.id: node.row.worst_drop_lost for node in tree.nodes if node.row.worst_drop_lost} == {
        "20260227_012525_25165e": 82_000
    }
