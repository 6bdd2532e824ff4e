"""The rows of one statement, also where a text is not UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw

Row = tuple[Any, ...]
Parameters = Sequence[Any] | dict[str, Any]
BATCH: Final = 256
"""Rows of one batch."""


class Statement:
    """One statement being read; bad UTF-8 makes it go over to a form of the statement that can be decoded."""

    def __init__(self, raw: apsw.Connection, sql: str, params: Parameters) -> None:
        self._raw = raw
        self._sql = sql
        self._params = params
        self._cursor: apsw.Cursor | None = None
        self._encoding: str | None = None
        """Set when texts come as bytes."""
        self._given = 0
        self._width = 0

    def everything(self) -> list[Row]:
        """All rows."""
        try:
            self._start()
            assert self._cursor is not None
            found = self._cursor.fetchall()
        except UnicodeDecodeError:
            self._go_over()
            return self.everything()
        finally:
            self.close()
        return found if self._encoding is None else [_decoded(row, self._encoding) for row in found]

    def batch(self) -> list[Row]:
        """The next rows; after an error the statement is run again and passes over what was given."""
        try:
            if self._cursor is None:
                self._start()
                for _ in zip(range(self._given), self._cursor or (), strict=False):
                    pass
            found = [row for _, row in zip(range(BATCH), self._cursor or (), strict=False)]
        except UnicodeDecodeError:
            self._go_over()
            return self.batch()
        except apsw.Error:
            self.close()
            raise
        self._given += len(found)
        return found if self._encoding is None else [_decoded(row, self._encoding) for row in found]

    def close(self) -> None:
        """Let go of the cursor."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close(True)

    def _start(self) -> None:
        sql = self._sql if self._encoding is None else _as_bytes(self._sql, self._width)
        self._cursor = self._raw.execute(sql, self._params)

    def _go_over(self) -> None:
        assert self._cursor is not None
        if self._encoding is not None:
            raise AssertionError("bytes do not fail to decode")
        self._width = len(self._cursor.get_description())
        self.close()
        encoding = str(self._raw.execute("PRAGMA encoding").fetchall()[0][0])
        self._encoding = {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}.get(encoding, "utf-8")


def _as_bytes(sql: str, width: int) -> str:
    """The same statement with every text as (type, bytes)."""
    names = [f"c{i}" for i in range(width)]
    cells = ", ".join(f"typeof({n}), CASE typeof({n}) WHEN 'text' THEN CAST({n} AS BLOB) ELSE {n} END" for n in names)
    return f"WITH q({', '.join(names)}) AS ({sql.rstrip().rstrip(';')}) SELECT {cells} FROM q"


def _decoded(row: Row, encoding: str) -> Row:
    pairs = zip(row[::2], row[1::2], strict=True)
    return tuple(cell.decode(encoding, "replace") if kind == "text" else cell for kind, cell in pairs)
