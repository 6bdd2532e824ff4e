"""What a plan says in sums says of which store it speaks, where several do."""

from __future__ import annotations

from hermes_tui.library.cleanup import ChangePlan
from hermes_tui.model import StoreRef
from hermes_tui.stores.changing import StorePlan


def part(name: str, *notes: str) -> StorePlan:
    store = StoreRef("hermes", f"hermes/{name}", f"/home/ana/{name}/state.db", name)
    return StorePlan("prune", store, (), notes=notes)


def test_one_store_needs_no_name() -> None:
    assert ChangePlan("prune", (part("default", "0 of 3 can go."), part("sales"))).notes == ("0 of 3 can go.",)


def test_several_stores_are_told_apart() -> None:
    plan = ChangePlan("prune", (part("default", "0 of 3 can go."), part("sales", "0 of 3 can go.", "1 never ended.")))
    assert plan.notes == (
        "hermes/default: 0 of 3 can go.",
        "hermes/sales: 0 of 3 can go.",
        "hermes/sales: 1 never ended.",
    )
