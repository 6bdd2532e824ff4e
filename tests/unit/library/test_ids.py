from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.library.failures import AmbiguousId, StoreFailed, UnknownId
from hermes_tui.library.prices import PriceTable
from hermes_tui.library.sources import Library
from hermes_tui.locations import Locations
from hermes_tui.settings import NO_SETTINGS
from tests.unit.library.fake_store import MemoryStore, session, store_named


def library_of(*stores: MemoryStore, missing: tuple[str, ...] = ()) -> Library:
    locations = Locations(Path("/none"), Path("/none"), Path("/none"))
    return Library(stores, (), locations, NO_SETTINGS, PriceTable(), missing)  # type: ignore[arg-type]


@pytest.fixture
def two() -> Library:
    one, other = store_named("hermes/default"), store_named("codex")
    for name in ("20260101_a", "20260101_b", "same"):
        session(one, name)
    for name in ("01a-x", "same", "20260101_c"):
        session(other, name)
    return library_of(one, other)


def test_a_whole_id_wins_over_longer_ids_that_begin_with_it() -> None:
    store = store_named("hermes/default")
    session(store, "abc")
    session(store, "abcd")
    assert library_of(store).find("abc").session_id == "abc"


def test_a_prefix_only_one_session_has(two: Library) -> None:
    found = two.find("01a")
    assert (found.store.ref.name, found.session_id) == ("codex", "01a-x")


def test_a_prefix_of_several_names_them_all(two: Library) -> None:
    with pytest.raises(AmbiguousId) as failure:
        two.find("20260101")
    assert failure.value.candidates == ("20260101_a", "20260101_b", "20260101_c")
    assert failure.value.exit_code == 1


def test_a_whole_id_in_two_stores_is_ambiguous_and_named_with_its_store(two: Library) -> None:
    with pytest.raises(AmbiguousId) as failure:
        two.find("same")
    assert failure.value.candidates == ("hermes/default:same", "codex:same")


def test_the_store_and_a_colon_settle_it(two: Library) -> None:
    assert two.find("codex:same").store.ref.name == "codex"
    assert two.find("codex:01").session_id == "01a-x"


def test_a_colon_may_be_part_of_an_id() -> None:
    store = store_named("hermes/default")
    session(store, "api:42")
    assert library_of(store).find("api:42").session_id == "api:42"


def test_an_id_may_begin_like_the_name_of_an_open_store(two: Library) -> None:
    session(two.stores[0], "codex:42")  # type: ignore[arg-type]
    assert two.find("codex:42").store.ref.name == "hermes/default"
    session(two.stores[1], "42")  # type: ignore[arg-type]
    assert two.find("codex:42").store.ref.name == "codex", "the store's name comes first"
    assert two.find("hermes/default:codex:42").store.ref.name == "hermes/default"


@pytest.mark.parametrize("text", ["zzz", "", "codex:zzz", "codex:"])
def test_an_unknown_id(two: Library, text: str) -> None:
    with pytest.raises(UnknownId) as failure:
        two.find(text)
    assert failure.value.candidates == ()


def test_an_id_is_found_beside_a_store_that_cannot_be_read() -> None:
    whole, broken = store_named("codex"), store_named("hermes/default", broken=True)
    session(whole, "abc")
    library = library_of(broken, whole)
    assert library.find("a").session_id == "abc"
    with pytest.raises(UnknownId):
        library.find("zzz")


def test_where_no_store_can_be_read_the_store_is_the_trouble() -> None:
    with pytest.raises(StoreFailed) as failure:
        library_of(store_named("hermes/default", broken=True)).find("abc")
    assert failure.value.exit_code == 3
    assert "not a database" in failure.value.message


def test_where_a_store_names_no_more_candidates_it_says_that_there_may_be_more() -> None:
    store = store_named("hermes/default")
    for number in range(20):
        session(store, f"2026_{number:02}")
    with pytest.raises(AmbiguousId, match="may mean 20 or more sessions"):
        library_of(store).find("2026")
    with pytest.raises(AmbiguousId, match="may mean 10 sessions"):
        library_of(store).find("2026_0")
