"""The browser over a store whose every text is an attack; run by a test on a terminal of its own."""

# ruff: noqa: E501
from __future__ import annotations

import dataclasses
import os
from datetime import UTC

from hermes_tui.library.sources import Library, SourceOptions
from hermes_tui.model import CacheEvent, Finding, Recovery, StoreRef, StoreStatus, Usage
from hermes_tui.text import RawText
from hermes_tui.tui.app import HermesTui
from hermes_tui.tui.desk import Desk
from tests.pilot.memory_store import NOW, MemoryStore, Said, demo_library

HOSTILE = "A\x1b]0;STOLEN\x07B\x1b]52;c;U1RPTEVO\x07C\x9b31mD\x90qE\x1b[31mF\x0e\x00\x7fG\u202eH\u2066I\u200fJ\x85K\r\nL\tM[red]N[/red]\x1bcO"
"""Title, clipboard, colour, device control, shift out, NUL, DEL, bidi, NEL, CR, tab, markup, full reset."""
FORBIDDEN = (b"\x1b]0;STOLEN", b"\x1b]52;c;U1RP", b"\xc2\x9b", b"\xc2\x90", b"\xc2\x85", b"\x1bc", b"\x0e", b"\x00", b"\x7f",
             b"\xe2\x80\xae", b"\xe2\x81\xa6", b"\xe2\x80\x8f", b"\x07")  # fmt: skip
KEYS = (
    "j", "p", "p", "f", "\x1b", "\x1b", "E", "\x1b", "R", "\x1b", "r", "\x1b", "D", "y", "\x1b", "a", "\x1b", "P", "\x1b", "U", "\x1b",
    "/", "A", "\r", "\x1b", "l", "y", "\x1b", "\r", "Z", "J", "J", "z", "x", "s", "/", "F", "\r", "n", "v", "v", "i", "\x1b", "\x1b",
    "\x1b", "\x1b", "3", "F", "\r", "\r", "\x1b", "\x1b", "4", "s", "f", "h", "p", "5", "e", "a", "\r", "\x1b", "6", "y", "?", "\x1b", "1",
)  # fmt: skip
"""A walk through every screen and dialog."""


class HostileStore(MemoryStore):
    """Hostile in what it finds and recovers as well."""

    def status(self) -> StoreStatus:
        finding = Finding("hostile", "error", HOSTILE, advice=HOSTILE, paths=(HOSTILE,))
        return StoreStatus(self.ref, "degraded", "store", 1, findings=(finding,), fallbacks=((HOSTILE, 2),))

    def recovery(self, session_id, cut=None) -> Recovery:  # type: ignore[no-untyped-def]
        from hermes_tui.model import IgnoredRecord

        found = super().recovery(session_id, cut)
        return dataclasses.replace(found, ignored=(IgnoredRecord(HOSTILE, 3, HOSTILE),))

    def requests(self, ids, since=None):  # type: ignore[no-untyped-def]
        for request in super().requests(ids, since):
            yield dataclasses.replace(request, model=RawText(HOSTILE), events=(CacheEvent("rewind", RawText(HOSTILE)),))


def hostile_library() -> Library:
    """One store, one conversation."""
    library, hermes, _ = demo_library()
    ref = StoreRef("hermes", "hermes/" + HOSTILE, "/home/ana/" + HOSTILE, HOSTILE)
    raw = RawText(HOSTILE)
    row = dataclasses.replace(
        hermes.sessions[0], store=ref, title=raw, preview=raw, source=raw, model=raw, models=(raw, RawText("b")), provider=raw,
        cwd=RawText("/srv/" + HOSTILE), git_branch=raw, end_reason=raw, session_key=raw, running=False,
        spend=(dataclasses.replace(hermes.sessions[0].spend[0], model=raw, provider=raw, task=HOSTILE),),
    )  # fmt: skip
    untitled = dataclasses.replace(row, id="second", tip_id="second", root_id="second", title=None)  # type: ignore[arg-type]
    store = HostileStore(ref, [row, untitled], left_out={HOSTILE: 2})
    store.said = {
        id_: [
            Said("prompt", HOSTILE, sent=HOSTILE + HOSTILE),
            Said("reasoning", HOSTILE),
            Said("tool-call", HOSTILE, tool=HOSTILE, call="c"),
            Said("tool-result", HOSTILE, tool=HOSTILE, call="c"),
            Said("reply", f"# {HOSTILE}\n```python\n{HOSTILE}\n```\n`{HOSTILE}`", usage=Usage(1, 2, 3)),
            Said("summary", HOSTILE), Said("context", HOSTILE), Said("notice", HOSTILE), Said("unknown", HOSTILE),
            Said("reply", HOSTILE, state="rewound"),
        ]
        for id_ in (row.id, untitled.id)
    }  # fmt: skip
    return dataclasses.replace(library, stores=(store,))


def main() -> None:
    desk = Desk(library=hostile_library(), clock=lambda: NOW, zone=UTC)
    HermesTui(SourceOptions(), desk=desk, environ={"NO_COLOR": os.environ.get("NO_COLOR", "")}).run()


if __name__ == "__main__":
    main()
