"""The Codex home of the demo: conversations of our own in both dialects (contract.md, demo)."""

from __future__ import annotations

import os
import random
from dataclasses import field
from pathlib import Path
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.stores.codex.demo_writer import Clock, Rollout, index_lines, uuid7

SEED: Final = 20261129
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
SHOP: Final = "/home/mina/src/bookshop"
WEATHER: Final = "/home/mina/src/weather"
NOTES: Final = "/home/mina/문서/강의 노트"
PATCH: Final = """*** Begin Patch
*** Update File: bookshop/dates.py
@@
-    return datetime.strptime(text, "%d/%m/%y")
+    return datetime.strptime(text, "%d/%m/%Y")
*** End Patch"""


@dataclass(slots=True)
class _Home:
    """The home while it is written."""

    folder: Path
    now: float
    source: random.Random = field(default_factory=lambda: random.Random(SEED))
    names: list[tuple[str, str, float]] = field(default_factory=list)

    def clock(self, days: float) -> Clock:
        """So many days ago."""
        return Clock(self.now - days * DAY)


def write_demo(folder: Path, now: float) -> None:
    """Write a home: a fork, a revert, a sub-agent, compactions, a model switch, an idle gap, an archived thread."""
    home = _Home(folder, now)
    folder.mkdir(parents=True, exist_ok=True)
    _dates(home)
    _invoices(home)
    _forecast(home)
    _helper(home)
    _korean(home)
    _old_question(home)
    _nightly(home)
    (folder / "session_index.jsonl").write_text(index_lines(home.names), encoding="utf-8", newline="\n")


def _save(rollout: Rollout) -> None:
    path = rollout.save()
    os.utime(path, (rollout.clock.at, rollout.clock.at))


def _dates(home: _Home) -> None:
    """A bug, its fork, and a question that was taken back."""
    talk = Rollout(home.folder, home.clock(2.2), home.source, SHOP, branch="fix/dates")
    talk.turn("The receipts of 2026 print the year as 1926. Find out why.")
    talk.think("Two-digit years are ambiguous; look for strptime.")
    talk.run(
        "rg -n strptime bookshop", 'bookshop/dates.py:14:    return datetime.strptime(text, "%d/%m/%y")\n', cached=0.0
    )
    talk.patch(PATCH, "bookshop/dates.py")
    talk.run("pytest -q tests/test_dates.py", "1 failed, 7 passed\nE   ValueError: time data '03/04/26'\n", code=1)
    talk.answer("The reader expects two digits. I changed it to four; one old fixture still has two digits.")
    early = talk.cut()
    talk.turn("Fix the fixture as well.")
    talk.run("sed -i s#03/04/26#03/04/2026# tests/receipt.txt && pytest -q", "8 passed\n")
    talk.answer("All eight tests pass now.")
    _save(talk)
    home.names.append((talk.thread_id, "Receipt years", talk.clock.at))
    fork = Rollout(
        home.folder, Clock(talk.clock.at + HOUR), home.source, SHOP, branch="fix/dates", base=early,
        forked_from=talk.thread_id, ordinal=_ordinal(early), context=talk.context - 900, totals=dict(talk.totals),
    )  # fmt: skip
    fork.turn("Instead of changing the fixture, accept both forms.")
    fork.answer("Both are accepted: four digits first, two digits as a fallback with a warning.", cached=0.0)
    _save(fork)


def _ordinal(base: dict[str, object]) -> int:
    value = base["end_ordinal_exclusive"]
    return value if isinstance(value, int) else 0


def _invoices(home: _Home) -> None:
    """A thread that was reverted: its third question is only in the first segment."""
    talk = Rollout(home.folder, home.clock(1.4), home.source, SHOP)
    talk.turn("Which table holds the invoices?")
    talk.run("rg -n 'CREATE TABLE' schema.sql", "3:CREATE TABLE invoice(id, customer, total_cents)\n", cached=0.0)
    talk.answer("`invoice`; amounts are whole cents.")
    before = talk.cut()
    talk.turn("Drop the table, I have a backup.")
    talk.answer("I would rather not: invoice lines refer to it. Say so again if you are sure.")
    _save(talk)
    segment = Rollout(
        home.folder, Clock(talk.clock.at + 60), home.source, SHOP, base=before, thread_id=talk.thread_id,
        segment=uuid7(talk.clock.at + 60, home.source), ordinal=_ordinal(before), context=talk.context,
        totals=dict(talk.totals), named_at=talk.named_at,
    )  # fmt: skip
    segment.turn("Add a column for the currency instead.")
    segment.patch(
        "*** Begin Patch\n*** Update File: schema.sql\n@@\n-total_cents)\n+total_cents, currency)\n*** End Patch",
        "schema.sql",
    )
    segment.answer("Done: `currency` is there, EUR by default.")
    _save(segment)


def _forecast(home: _Home) -> None:
    """A legacy thread: two compactions, another model, a pause in which the cache went cold."""
    talk = Rollout(home.folder, home.clock(0.9), home.source, WEATHER, legacy=True, model="gpt-5.5")
    talk.turn("Write a parser for the hourly forecast files.")
    for step in ("header", "units", "hourly table"):
        talk.think(f"Next is the {step}.")
        table = f"{step}: ok\n" + "12.5 13.0 13.4 12.9 12.1 11.8\n" * 900
        talk.run(f"python -m weather.parse --only '{step}' sample.txt", table, cached=0.0 if step == "header" else 1.0)
    talk.compact("The parser reads header, units and the hourly table; sunrise and sunset are left to do.")
    talk.run("pytest -q", "14 passed\n", cached=0.1)
    talk.answer("Header, units and table are read. Sunrise and sunset are missing.")
    talk.turn("Go on with sunrise and sunset.", pause=3.1 * HOUR)
    talk.run("rg -n sunrise sample.txt", "88: sunrise 07:41\n", cached=0.0)
    talk.answer("Both are read as local times.")
    talk.model = "gpt-5.1-codex"
    talk.turn("Review it with fresh eyes.", pause=300)
    talk.run("git diff main", "+def sunrise(line):\n+    return local_time(line.split()[1])\n" * 30, cached=0.0)
    talk.compact("Parser complete; one open point: times around midnight when the clocks change.")
    talk.answer("One weak spot: the night the clocks change. I would test that.", cached=0.1)
    _save(talk)
    home.names.append((talk.thread_id, "Forecast parser", talk.clock.at))


def _helper(home: _Home) -> None:
    """A thread that asks a sub-agent."""
    talk = Rollout(home.folder, home.clock(0.5), home.source, WEATHER, origin="vscode")
    talk.turn("Find every place that still calls the old API; use a helper.")
    child = Rollout(
        home.folder, Clock(talk.clock.at + 5), home.source, WEATHER, parent=talk.thread_id, nickname="Ada",
        origin={"subagent": {"thread_spawn": {"parent_thread_id": talk.thread_id, "depth": 1}}},
    )  # fmt: skip
    child.turn("List calls of weather.v1 with file and line.", pause=1)
    child.run("rg -n 'weather\\.v1' src", "src/app.py:12\nsrc/cli.py:40\nsrc/cli.py:77\n", cached=0.0)
    child.answer("Three calls in two files: app.py:12, cli.py:40, cli.py:77.")
    _save(child)
    talk.spawn("List calls of weather.v1 with file and line.", child.thread_id, "Ada")
    talk.clock.at = max(talk.clock.at, child.clock.at + 1)
    talk.answer("Ada found three calls in two files; cli.py has two of them.")
    _save(talk)


def _korean(home: _Home) -> None:
    talk = Rollout(home.folder, home.clock(0.2), home.source, NOTES, branch=None)
    talk.turn("3주차 강의 노트에서 '기록과 거울' 부분을 한 단락으로 요약해 줘.")
    talk.run("cat '3주차.md'", "# 기록과 거울\n원본은 로그이고, 거울은 언제든 다시 만들 수 있다.\n", cached=0.0)
    talk.answer(
        "로그가 진실이고 거울은 사본이다. 거울은 늦을 수는 있어도 앞설 수는 없고, 잃어버려도 다시 만들 수 있다."
    )
    talk.turn("예시도 하나 넣어 줘.")
    talk.answer("예: 전원이 나간 뒤 거울이 비어 있어도, 로그를 끝에서부터 읽으면 같은 대화가 되살아난다.")
    _save(talk)


def _old_question(home: _Home) -> None:
    talk = Rollout(home.folder, home.clock(40), home.source, SHOP, archived=True, branch="main")
    talk.turn("How do I undo the last commit but keep the changes?")
    talk.answer("`git reset --soft HEAD~1` takes the commit back and leaves the changes staged.", cached=0.0)
    _save(talk)


def _nightly(home: _Home) -> None:
    """A run without anybody watching: one turn fails, the next is interrupted."""
    talk = Rollout(home.folder, home.clock(0.1), home.source, SHOP, origin="exec")
    talk.turn("Update the dependencies and run the tests.")
    talk.fail("stream disconnected before completion")
    talk.turn("Update the dependencies and run the tests.", pause=30)
    talk.run("uv lock --upgrade", "Resolved 41 packages\n", cached=0.0)
    talk.abort()
    _save(talk)
