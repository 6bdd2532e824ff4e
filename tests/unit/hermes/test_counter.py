"""A counter read by SQL is the counter Python reads from the same cell."""

from __future__ import annotations

import apsw
import pytest

from hermes_tui.stores.hermes.cells import MOST, count, counter

CELLS = [
    None, 0, -1, 1, 5, 0.5, 1.7, -0.2, MOST - 1, MOST, MOST * 2.5, 2**63 - 1, -(2**63), float("inf"), "12", "x", "",
    b"\x01", b"", "1e3",
]  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", ["INTEGER", "REAL", ""])
def test_both_count_the_same(cell: object, kind: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(f"CREATE TABLE t (cell {kind})")
    connection.execute("INSERT INTO t VALUES (?)", (cell,))
    ((stored, counted),) = connection.execute(f"SELECT cell, {counter('cell')} FROM t").fetchall()
    assert counted == count(stored)
