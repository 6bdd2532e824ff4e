"""Candidates of a search in a Hermes store, window after window of row ids, newest or oldest first.

Each window is one short look into the store (design.md, rule 3): the asks of the plan and the scan of what no index
covers are answered for the same range of ids, so that the order is exact and a page costs what it shows.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Final

from hermes_tui.records import dataclass
from hermes_tui.storage.aside import Aside
from hermes_tui.storage.errors import StoreDamaged
from hermes_tui.storage.reading import ReadConnection, Way
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.asks import SCAN, Ask, Plan, prepare_asking
from hermes_tui.stores.hermes.schema import Schema

FIRST_PAGE: Final = 60
"""Candidates of the first window: a page of hits and some that are none."""
MOST_PAGE: Final = 5_000
FIRST_WINDOW: Final = 20_000
"""Rows of the first scanned window: some 20 ms."""
MOST_WINDOW: Final = 500_000
WINDOW_S: Final = 0.25
"""A window should take no longer: hits stream, and the store is let go of."""
TWO_HALVES: Final = 40_000
"""Rows of a scanned range from which a second connection pays."""
BESIDE: Final[frozenset[Way]] = frozenset({"plain", "immutable"})
"""Ways of reading in two halves. A private copy would be made twice; and of two connections without locks none could
take some when an agent comes, for it would wait for the other, and that for its half."""
SMALL_STORE: Final = 20_000
"""Rows; an index over so few is checked row by row, which costs some 20 ms."""
CHECKED_ROWS: Final = 60
"""Newest rows that are checked in a larger store."""
LIGHT_ROWS: Final = 200_000
"""Newest rows in which oddities are looked for row by row."""
SCORED_BY_READING: Final = 400
"""Candidates; of fewer, every text is read and scored alike in every store."""
FEW: Final = 100
"""Rows that a loose question may find; from so many on the strict one is asked."""
MANY_ODD: Final = 500
"""Such candidates from which on those are left out that hold the words as they are, only not together."""
LOST_ROW_BY_ROW: Final = 1_000
"""Rows on damaged pages that are tried one by one before more are left out at once."""
MOST_ODD: Final = 5_000
"""Candidates beyond the main question that are read; each costs some 20 microseconds."""


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL on ``m`` with its values."""

    sql: str = "1"
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """The candidates of one range of ids, in order."""

    ids: tuple[int, ...]
    unexpected: frozenset[int]
    """Rows a check proposed and no index did; when one of them is a hit, an index is not to be believed."""


class Candidates:
    """Walks over the ids of a store in one direction."""

    def __init__(
        self,
        asking: Asking,
        plan: Plan,
        low: int,
        high: int,
        *,
        newest: bool,
        start: int | None = None,
        small: bool = True,
    ) -> None:
        """Ids from ``low`` to ``high``; ``start``: the row an earlier walk came to; ``small``: there are few rows."""
        self.plan = plan
        self._asking = asking
        self.notes: list[str] = []
        """What may be missed."""
        self._newest = newest
        self._light_from = low if small else high - LIGHT_ROWS
        self._checked_from = low if small else high - CHECKED_ROWS
        self._low, self._high = low, high
        if start is not None:
            self._low, self._high = (low, min(high, start)) if newest else (max(low, start), high)
        self._page = FIRST_PAGE
        self._rows = FIRST_WINDOW
        self._odd_left = MOST_ODD
        self._lost_in_line = 0

    @property
    def done(self) -> bool:
        """Nothing is left."""
        return self._low > self._high

    def distrust(self) -> None:
        """From here on scan."""
        self.plan = SCAN

    def window(self, connection: ReadConnection, raw: Condition, filters: Condition) -> Window:
        """The next range: its candidates; the walk is then behind it only once :meth:`advance` is called."""
        started = time.monotonic()
        low, high, found = self._range(connection)
        for ask in self.plan.asks:
            if not ask.main:
                found.update(self._odd(connection, ask, low, high, found))
        found.update(self._gap(connection, low, high, raw, filters))
        checked = self._check(connection, low, high, raw, filters) - found
        self._edge = low if self._newest else high
        self._adapt(time.monotonic() - started)
        ids = tuple(sorted(found | checked, reverse=self._newest))
        return Window(ids, frozenset(checked))

    def scored(self, connection: ReadConnection, filters: Condition, limit: int) -> list[tuple[float, int]] | None:
        """The newest candidates with the word index's own bm25, larger is better.

        ``None``: there are few, or they are not from one index.

        Candidates the index has no score for come with the lowest.
        """
        if self.plan.scored is None or self.plan.gap is not None or self._checked_from == self._low:
            return None
        table = next(ask.index.table for ask in self.plan.asks if ask.main)
        sql = (
            f"SELECT -bm25({table}), f.rowid FROM {table} f CROSS JOIN messages m ON m.id = f.rowid"
            f" WHERE {table} MATCH ? AND {filters.sql} ORDER BY f.rowid DESC LIMIT ?"
        )
        found = [(score, number) for score, number in connection.rows(sql, (self.plan.scored, *filters.values, limit))]
        if len(found) < SCORED_BY_READING:
            return None
        low = found[-1][1] if len(found) == limit else self._low
        known = {number for _, number in found}
        odd: set[int] = set()
        for ask in self.plan.asks:
            if ask.main:
                ask = replace(ask, match=f"({ask.match}) AND ({self.plan.variants})")
            odd.update(self._odd(connection, ask, low, self._high, known | odd))
        rest = [(0.0, number) for number in odd]
        return sorted([*found, *rest], key=lambda pair: -pair[1]) if rest else found

    def advance(self) -> None:
        """Go on behind the last window."""
        self._lost_in_line = 0
        if self._newest:
            self._high = self._edge - 1
        else:
            self._low = self._edge + 1

    def give_way(self) -> int:
        """After a damaged page: halve the scanned window, or leave out its one row; how many rows that leaves out.

        Behind many such rows in a line stands a whole branch of the table that is gone: it is passed in growing steps.
        """
        if self._rows > 1 and self._low < self._high:
            self._rows = min(self._rows, self._high - self._low + 1) // 2
            return 0
        step = 1 if self._lost_in_line < LOST_ROW_BY_ROW else self._lost_in_line
        step = min(step, self._high - self._low + 1)
        self._lost_in_line += step
        if self._newest:
            self._high -= step
        else:
            self._low += step
        return step

    def _range(self, connection: ReadConnection) -> tuple[int, int, set[int]]:
        """How far this window reaches, and what the main questions find in it."""
        if self.plan.gap is not None:
            self._pass_over(connection)
        low, high = self._low, self._high
        found: set[int] = set()
        for ask in self.plan.asks:
            if ask.main:
                ids = self._ask(connection, ask, low, high, self._page)
                found.update(ids)
                if len(ids) == self._page:
                    low, high = (ids[-1], high) if self._newest else (low, ids[-1])
        if self.plan.gap is not None and not (self.plan.light and high < self._light_from):
            if self._newest:
                low = max(low, high - self._rows + 1)
            else:
                high = min(high, low + self._rows - 1)
        return low, high, {number for number in found if low <= number <= high}

    def _pass_over(self, connection: ReadConnection) -> None:
        """Go on with the next row there is: an id far from all others, as salvage leaves, ends no search."""
        most = "max(id) FROM messages WHERE id <= ?" if self._newest else "min(id) FROM messages WHERE id >= ?"
        try:
            row = connection.one(f"SELECT {most}", (self._high if self._newest else self._low,))
        except StoreDamaged:
            # What lies here is passed the way damage is.
            return
        if row is not None and isinstance(row[0], int):
            self._low, self._high = (self._low, row[0]) if self._newest else (row[0], self._high)

    def _ask(self, connection: ReadConnection, ask: Ask, low: int, high: int, limit: int) -> list[int]:
        table = ask.index.table
        direction = "DESC" if self._newest else "ASC"
        sql = (
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid >= ? AND rowid <= ?"
            f" ORDER BY rowid {direction} LIMIT ?"
        )
        return [row[0] for row in connection.rows(sql, (ask.match, low, high, limit))]

    def _every(self, connection: ReadConnection, ask: Ask, low: int, high: int) -> list[int]:
        """All rows of a range that a question finds, or the loose form of it, which mostly finds few more."""
        if ask.loose is not None:
            found = self._ask(connection, replace(ask, match=ask.loose), low, high, FEW)
            if len(found) < FEW:
                return found
        return self._ask(connection, ask, low, high, -1)

    def _odd(self, connection: ReadConnection, ask: Ask, low: int, high: int, known: set[int]) -> list[int]:
        """Rows only this question finds, as long as there are not too many of them."""
        ids = [number for number in self._every(connection, ask, low, high) if number not in known]
        words = next((one.index for one in self.plan.asks if one.main), None)
        if len(ids) > MANY_ODD and ask.but is not None and words is not None:
            judged = set(self._ask(connection, Ask(words, ask.but), low, high, -1))
            ids = [number for number in ids if number not in judged]
        if len(ids) > self._odd_left:
            self._note(
                "words glued to other letters or escapes were not looked for in all of the many rows that may hold some"
            )
        kept = ids[: self._odd_left]
        self._odd_left -= len(kept)
        return kept

    def _gap(self, connection: ReadConnection, low: int, high: int, raw: Condition, filters: Condition) -> list[int]:
        """Rows that no index covers."""
        if self.plan.gap is None:
            return []
        if self.plan.light and low < self._light_from:
            self._note(f"rows that no index covers were looked at only among the newest {LIGHT_ROWS:,}")
            low = self._light_from
        return self._scan(connection, low, high, self.plan.gap, raw, filters)

    def _check(self, connection: ReadConnection, low: int, high: int, raw: Condition, filters: Condition) -> set[int]:
        """Rows of the checked range that may match, whatever the indexes say."""
        if self.plan is SCAN:
            return set()
        return set(self._scan(connection, max(low, self._checked_from), high, "1", raw, filters))

    def _scan(
        self, connection: ReadConnection, low: int, high: int, where: str, raw: Condition, filters: Condition
    ) -> list[int]:
        """The rows of a range that may match; of a long one half is read beside the other, in a thread of its own."""
        if low > high:
            return []
        # The text comes first: what the filters test lies behind it in the row, beyond its overflow pages.
        sql = f"SELECT m.id FROM messages m WHERE m.id >= ? AND m.id <= ? AND {raw.sql} AND {filters.sql} AND ({where})"
        values = (*raw.values, *filters.values)
        if high - low < TWO_HALVES or connection.way not in BESIDE:
            return _ids(connection, sql, (low, high, *values))
        middle = (low + high) // 2
        aside = Aside(lambda: self._asking.ask(_prepared_ids, sql, (middle + 1, high, *values)))
        try:
            found = _ids(connection, sql, (low, middle, *values))
        finally:
            # Nothing goes on reading after the question is over.
            aside.join()
        return found + aside.answer()

    def _adapt(self, took: float) -> None:
        """Larger windows while they are quick."""
        if took < WINDOW_S / 2:
            self._page = min(self._page * 4, MOST_PAGE)
            self._rows = min(self._rows * 3, MOST_WINDOW)
        elif took > WINDOW_S * 2:
            self._rows = max(self._rows // 2, 1_000)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def is_small(connection: ReadConnection, low: int, high: int) -> bool:
    """Whether the messages are few, however far apart their ids lie; an index is counted, no further than it takes."""
    if high - low < SMALL_STORE:
        return True
    try:
        row = connection.one("SELECT count(*) FROM (SELECT 1 FROM messages LIMIT ?)", (SMALL_STORE,))
    except StoreDamaged:
        return False
    return row is not None and row[0] < SMALL_STORE


def _ids(connection: ReadConnection, sql: str, values: tuple[Any, ...]) -> list[int]:
    return [row[0] for row in connection.rows(sql, values)]


def _prepared_ids(connection: ReadConnection, _: Schema, sql: str, values: tuple[Any, ...]) -> list[int]:
    """The same over a connection of its own."""
    connection.prepare(prepare_asking)
    return _ids(connection, sql, values)
