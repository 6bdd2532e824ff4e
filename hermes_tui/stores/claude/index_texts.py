"""What a full-text index takes from a Claude Code log, told by the first bytes of a line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hermes_tui.storage.jsonl import Record
from hermes_tui.stores.claude.lines import HEADER_TYPES, fields_of, time_of
from hermes_tui.stores.claude.parts import Part, parts_of
from hermes_tui.stores.log_texts import LogText, TextPhase
from hermes_tui.stores.matching import compared_texts

LOOKED_AT: Final = 1_000
"""Bytes of a line in which its type stands, and whether it is about a tool."""
_TYPE: Final = re.compile(rb'"type"\s*:\s*"([^"\\]{1,60})"')
TOOL: Final = b'type":"tool_'
THOUGHT: Final = b'"type":"thinking"'
_SPACED, _OTHER_CALL, _RESULT = b'type": "tool_', b'_tool_use",', b'toolUseResult"'
"""What a call or a result begins with. That a reply stopped for a tool, or that its usage counts ``server_tool_use``,
makes it none; bytes are found quicker than patterns."""
_NOTHING: Final = frozenset(kind.encode() for kind in HEADER_TYPES) | {b"progress"}


class ClaudeTexts:
    """Reads lines as the transcript does; which of them live is the transcript's business."""

    def phase(self, line: bytes) -> TextPhase | None:
        """See :class:`LogTexts`."""
        found = _TYPE.search(line, 0, LOOKED_AT)
        if found is not None and found[1] in _NOTHING:
            return None
        return "tools" if found is None or _waits(line) else "talk"

    def is_talk(self, line: bytes) -> bool:
        """Whether the phase of a line is ``talk``, asked the other way round: calls and results are most lines."""
        if _waits(line):
            return False
        found = _TYPE.search(line, 0, LOOKED_AT)
        return found is not None and found[1] not in _NOTHING

    def texts(self, record: Record) -> list[LogText]:
        """See :class:`LogTexts`; a line of which only pieces could be read gives those."""
        found: list[LogText] = []
        for value in (record.value, *record.rescued):
            fields = fields_of(value)
            if fields is None:
                continue
            text = text_of_parts(parts_of(fields))
            if text is not None:
                found.append(LogText(record, text, time_of(fields.get("timestamp"))))
        return found

    def rest(self) -> list[LogText]:
        """Nothing is held back."""
        return []


def _waits(line: bytes) -> bool:
    """Whether a line begins with a call, a result or a thought, which are indexed after what was said."""
    # Not with ``in``: Python asks first whether what is looked for is a number, and makes an error of it each time.
    find = line.find
    return (
        find(TOOL, 0, LOOKED_AT) >= 0
        or find(_RESULT, 0, LOOKED_AT) >= 0
        or find(THOUGHT, 0, LOOKED_AT) >= 0
        or find(_OTHER_CALL, 0, LOOKED_AT) >= 0
        or find(_SPACED, 0, LOOKED_AT) >= 0
    )


def text_of_parts(parts: Iterable[Part]) -> str | None:
    """What of the parts of a line is looked into by a search; ``None`` where nothing is."""
    texts = [text for part in parts for text in compared_texts(part.kind, part.tool_name, part.text)]
    return "\n".join(texts) if texts else None
