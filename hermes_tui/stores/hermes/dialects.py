"""Write through a store's full-text indexes with the tokens they hold, or not at all.

Two traps (facts/hermes.md section 3). A store may have an index whose tokenizer is an extension of the agent's: a row
may be deleted from it only with exactly the tokens it was indexed with. And the trigram tokenizer of older SQLite stops
at a NUL, with which structured content begins, while ours reads on: such a row must be deleted with the tokenizer that
indexed it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

import apsw

from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StorageError
from hermes_tui.storage.reading import ReadConnection, read_only
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.tokenizer import CJK_TOKENIZER, TRIGRAM_TOKENIZER, register_tokenizers

NulDialect = Literal["stops", "reads-on", "unclear"]
"""What the tokenizer that indexed a row did at its first NUL; ``unclear``: the index does not tell."""
CjkWay = Literal["none", "proven", "extension", "drop", "blocked"]
"""How rows may be written although there is a CJK index: there is none that matters; our tokens were found equal on a
copy; the agent's own extension is loaded; the index is given up (asked for by name); not at all."""

TEXT_COLUMNS: Final = ("content", "tool_name", "tool_calls")
TRIGRAM_TABLE: Final = "messages_fts_trigram"
CJK_TABLE: Final = "messages_fts_cjk"
LARGEST_PROOF: Final = 256 << 20
"""Bytes of a store that is still copied to prove our tokens: a Python tokenizer reads some 5 MB a second."""
MOST_WINDOWS: Final = 2000
"""Trigrams behind a NUL that are looked at for one that tells."""
EXTENSION_VARIABLE: Final = "HERMES_FTS5_CJK_SO"
EXTENSION_FILE: Final = "lib/libfts5_cjk.so"


@dataclass(slots=True)
class Dialect:
    """What the trigram tokenizer of one writing connection does at a NUL; switched between statements."""

    stops: bool = False

    def register(self, raw: apsw.Connection) -> None:
        """Take the place of the built-in tokenizer on this connection."""
        plain = raw.fts5_tokenizer(TRIGRAM_TOKENIZER, [])

        def factory(_connection: apsw.Connection, _arguments: list[str]) -> Any:
            def tokenize(text: bytes, flags: int, locale: str | None) -> Iterable[Any]:
                body = text.partition(b"\0")[0] if self.stops else text
                return cast(Iterable[Any], plain(body, flags, locale, include_colocated=False))

            return tokenize

        raw.register_fts5_tokenizer(TRIGRAM_TOKENIZER, factory)


def holds_nul(values: Mapping[str, Any]) -> bool:
    """Whether an indexed text of a message has a NUL in it."""
    return any(_has_nul(values.get(name)) for name in TEXT_COLUMNS)


def nul_dialect(connection: ReadConnection, schema: Schema, values: Mapping[str, Any]) -> NulDialect:
    """Which way a row with a NUL was indexed, asked by its rowid with trigrams that only one way gives.

    The connection must have SQLite's own trigram tokenizer.
    """
    sql = schema.objects.get(TRIGRAM_TABLE)
    if sql is None:
        return "reads-on"
    texts = _indexed_texts(values, inline="content=" not in sql.replace(" ", ""))
    for column, text in texts.items():
        windows = _windows_behind(text)
        if not windows:
            # Both ways give the same tokens.
            continue
        known = text.partition("\0")[0].casefold()
        window = next((one for one in windows if one.isprintable() and one.casefold() not in known), None)
        if window is None:
            return "unclear"
        phrase = '{%s} : "%s"' % (column, window.replace('"', '""'))  # noqa: UP031 - braces of FTS5
        found = connection.one(
            f"SELECT 1 FROM {TRIGRAM_TABLE} WHERE {TRIGRAM_TABLE} MATCH ? AND rowid = ?", (phrase, values["id"])
        )
        return "reads-on" if found else "stops"
    return "reads-on"


def _has_nul(value: object) -> bool:
    return "\0" in value if isinstance(value, str) else isinstance(value, bytes) and b"\0" in value


def _indexed_texts(values: Mapping[str, Any], *, inline: bool) -> dict[str, str]:
    """The texts of a row as its index got them, those with a NUL."""
    texts = {name: _as_text(values.get(name)) for name in TEXT_COLUMNS}
    if inline:
        texts = {"content": " ".join(texts.values())}
    return {name: text for name, text in texts.items() if "\0" in text}


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else "" if value is None else str(value)


def _windows_behind(text: str) -> list[str]:
    """The trigrams that only a tokenizer that reads on finds; it leaves NULs out."""
    before = text.partition("\0")[0]
    whole = text.replace("\0", "")
    last = min(len(whole) - 2, len(before) + MOST_WINDOWS)
    return [whole[start : start + 3] for start in range(max(0, len(before) - 2), last)]


def has_cjk_triggers(connection: ReadConnection) -> bool:
    """Whether writing a message goes through the CJK index."""
    found = connection.one(
        "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'messages' AND name LIKE ?",
        (f"{CJK_TABLE}%",),
    )
    return found is not None


def cjk_way(path: str, environ: Mapping[str, str], *, drop: bool = False) -> CjkWay:
    """How messages of this store may be written.

    Raises:
        StorageError: the store cannot be read.
    """
    with read_only(path) as connection:
        if not has_cjk_triggers(connection):
            return "none"
    if drop:
        return "drop"
    if Path(path).stat().st_size <= LARGEST_PROOF and _proven(path):
        return "proven"
    return "extension" if extension_file(path, environ) else "blocked"


def _proven(path: str) -> bool:
    """Ask the index itself, on a private copy, whether our tokens are what it holds."""
    with tempfile.TemporaryDirectory(prefix="hermes-tui-") as folder:
        copy = apsw.Connection(f"{folder}/copy.db")
        try:
            with read_only(path) as source, copy.backup("main", source.raw, "main") as backup:
                backup.step()
            register_tokenizers(copy)
            copy.execute(f"INSERT INTO {CJK_TABLE}({CJK_TABLE}, rank) VALUES ('integrity-check', 1)")
        except apsw.Error:
            return False
        finally:
            copy.close()
    return True


def extension_file(path: str, environ: Mapping[str, str]) -> str | None:
    """The agent's own tokenizer, when it is a file only its owner could have put there."""
    named = environ.get(EXTENSION_VARIABLE, "").strip()
    candidates = [Path(named)] if named else []
    candidates.append(Path(path).resolve().parent / EXTENSION_FILE)
    for candidate in candidates:
        try:
            found = candidate.stat()
        except OSError:
            continue
        mine = not hasattr(os, "geteuid") or found.st_uid in (0, os.geteuid())
        if candidate.is_file() and mine and not found.st_mode & 0o022:
            return str(candidate)
    return None


def register_cjk(raw: apsw.Connection, way: CjkWay, path: str, environ: Mapping[str, str]) -> None:
    """Give a writing connection the tokenizer that was agreed on.

    Raises:
        StorageError: the agent's extension is gone or does not load.
    """
    if way == "proven":
        register_tokenizers(raw)
    elif way == "extension":
        extension = extension_file(path, environ)
        if extension is None:
            raise StorageError("Nothing was changed", f"the agent's tokenizer {CJK_TOKENIZER} is gone")
        raw.enable_load_extension(True)
        try:
            raw.load_extension(extension)
        except apsw.Error as error:
            raise StorageError("Nothing was changed", f"{extension} does not load: {error}") from error
        finally:
            raw.enable_load_extension(False)


def drop_cjk(raw: apsw.Connection) -> None:
    """Give up the CJK index as the agent does where it cannot load its extension (facts/hermes.md section 3, way c)."""
    raw.execute(
        "INSERT INTO state_meta(key, value) VALUES ('fts_cjk_stale', '1')"
        " ON CONFLICT(key) DO UPDATE SET value = excluded.value"
    )
    for action in ("insert", "delete", "update"):
        raw.execute(f"DROP TRIGGER IF EXISTS {CJK_TABLE}_{action}")
