"""What a full-text index takes from a DSH log, told by the first bytes of a line."""

from __future__ import annotations

import re
from typing import Final

from hermes_tui.storage.jsonl import Record, read_records
from hermes_tui.stores.dsh.entries import HIDDEN, QUEUED, Reading
from hermes_tui.stores.dsh.events import BadRow, event_of_record
from hermes_tui.stores.dsh.format import parse_header
from hermes_tui.stores.log_texts import LogText, TextPhase
from hermes_tui.stores.logs import LogFile
from hermes_tui.stores.matching import compared_texts

_TYPE: Final = re.compile(rb'^\s*\{\s*"type"\s*:\s*"([^"\\]{1,80})"')


class _Anything:
    """Holds whatever it is asked for."""

    def __contains__(self, _item: object) -> bool:
        return True


class DshTexts:
    """Reads events as the transcript does, without what only the end of the log tells.

    Any prompt may stay in the inbox: each is proposed, and those that were sent are no hits when they are looked at.
    """

    def __init__(self, log: LogFile) -> None:
        self._log = log
        self._reading: Reading | None = None

    def phase(self, line: bytes) -> TextPhase | None:
        """See :class:`LogTexts`; a line whose type is not at its beginning is looked at with the tools."""
        found = _TYPE.match(line)
        kind = found[1].decode("utf-8", "replace") if found else "tool/"
        if kind in HIDDEN or kind == "session":
            return None
        return "tools" if kind.startswith("tool/") else "talk"

    def texts(self, record: Record) -> list[LogText]:
        """See :class:`LogTexts`."""
        event = event_of_record(record)
        if isinstance(event, BadRow) or event.giant:
            return []  # giant lines are read when they are searched
        texts = [
            text
            for entry in self._read().entries(event)
            for text in compared_texts(entry.kind, entry.tool_name, entry.text.removeprefix(QUEUED))
        ]
        return [LogText(record, "\n".join(texts), event.at)] if texts else []

    def rest(self) -> list[LogText]:
        """Nothing is held back."""
        return []

    def _read(self) -> Reading:
        if self._reading is None:
            first = next(iter(read_records(self._log.path)), None)
            header = None if first is None else parse_header(first.value)
            version = 0 if header is None else header.version
            delegated = header is not None and header.delegated
            self._reading = Reading(version, delegated=delegated, queued=_Anything())
        return self._reading
