"""Time from a key to its picture, and how long the event loop is held up, on a terminal of its own.

    python benchmarks/key_press.py STORE [--idle SECONDS]

The browser runs as it does for people, on a pty that somebody reads, with a heartbeat on its event loop. A key is timed
from the moment it is in the app's queue until what it changed has been written. Beside wall time stands CPU time of
this process in the same span: where a machine is busy, wall time says more of the machine, CPU time of the program. The
heartbeat finds what holds the loop up: a long piece of work on it, or a thread that keeps the interpreter's lock.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pty
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from textual import events

from hermes_tui.collector import collect_rarely
from hermes_tui.library.sources import SourceOptions
from hermes_tui.tui.app import HermesTui
from hermes_tui.tui.screens.search import SearchScreen
from hermes_tui.tui.screens.transcript import TranscriptScreen
from hermes_tui.tui.widgets.session_list import SessionList

BEAT = 0.001
GOAL = 16.0
"""Milliseconds a key may take (issue 2)."""
PATIENCE = 0.5
"""Seconds after which a key has changed nothing."""
WORD = "gateway"


class Heart:
    """Beats on the event loop; a late beat is a gap."""

    def __init__(self) -> None:
        self.gaps: list[tuple[float, float]] = []
        """Wall and CPU milliseconds over the beat itself."""

    async def beat(self) -> None:
        """Beat until cancelled."""
        while True:
            wall, cpu = time.perf_counter(), time.process_time()
            await asyncio.sleep(BEAT)
            late = (time.perf_counter() - wall - BEAT) * 1000
            self.gaps.append((late, min(late, (time.process_time() - cpu) * 1000)))

    def largest(self) -> tuple[float, float]:
        """The largest gap by wall and by CPU time, and forget them."""
        gaps, self.gaps = self.gaps, []
        return max((wall for wall, _ in gaps), default=0.0), max((cpu for _, cpu in gaps), default=0.0)


class Measured(HermesTui):
    """The browser with a script at the keyboard."""

    def __init__(self, store: str, report: Path, idle: float) -> None:
        super().__init__(SourceOptions(paths=(store,)), follow=True)
        self._report_to = report
        self._idle_for = idle
        self._heart = Heart()
        self._written = asyncio.Event()
        self._said: list[str] = []

    def on_list_shown(self) -> None:
        super().on_list_shown()
        if not self._said:
            self._said.append(f"memory, list on screen: {memory()}")
            self._script = asyncio.create_task(self._measure())

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        self._written.set()

    async def _key(self, key: str, pause: float = 0.05) -> tuple[float, float]:
        """One key: wall and CPU milliseconds until something was written."""
        await asyncio.sleep(pause)
        self._written.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        self.post_message(events.Key(key, key if len(key) == 1 else None))
        try:
            await asyncio.wait_for(self._written.wait(), PATIENCE)
        except TimeoutError:
            return float("nan"), float("nan")
        return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000

    async def _keys(self, name: str, keys: Iterable[str], pause: float = 0.05) -> None:
        took = [one for one in [await self._key(key, pause) for key in keys] if one[0] == one[0]]
        gap_wall, gap_cpu = self._heart.largest()
        self._said.append(
            f"{name:34} wall {spread([one[0] for one in took])}   cpu {spread([one[1] for one in took])}"
            f"   largest gap {gap_wall:6.1f}, cpu {gap_cpu:6.1f}"
        )

    async def _measure(self) -> None:
        beating = asyncio.create_task(self._heart.beat())
        try:
            # What begins with the list (all ids, file events, prices) is not what a key costs.
            await asyncio.sleep(8)
            self._heart.largest()
            await self._keys("list, down", ["j"] * 60)
            await self._keys("list, held down", ["j"] * 60, 0.03)
            await self._keys("list, a page", ["pagedown"] * 30, 0.1)
            await self._keys("list, last and first", ["end", "home"] * 6, 0.2)
            self._said.append(f"memory, list scrolled to its end: {memory()}")
            # One that fills several screens: where all of it is on one, most keys change nothing.
            rows = self.screen.query_one(SessionList)
            read = [(row.message_count or 0, at) for at in range(50) if (row := rows.row(at)) is not None]
            rows.move_to(max(read)[1])
            await self._key("enter")
            await asyncio.sleep(3)
            if isinstance(self.screen, TranscriptScreen):
                self._heart.largest()
                await self._keys("transcript, down", ["j"] * 60)
                await self._keys("transcript, next prompt", ["d", "u"] * 20, 0.1)
                await self._keys("transcript, last and first", ["end", "home"] * 6, 0.2)
            self._said.append(f"memory, a transcript read: {memory()}")
            await self._key("escape")
            await self._key("3")
            await asyncio.sleep(1)
            assert isinstance(self.screen, SearchScreen)
            self._heart.largest()
            for pause, name in ((0.08, "quickly"), (0.2, "slowly")):
                await self._keys(f"search, {WORD} typed {name}", [*WORD, *["backspace"] * len(WORD)] * 2, pause)
            await self._keys("search, the answer comes", [*WORD])
            await asyncio.sleep(4)
            self._say_gap("while that search runs on")
            self._said.append(f"memory, searched: {memory()}")
            await self._key("1", 0.2)
            await self._key("escape", 0.2)
            await self._key("1", 0.2)
            await self._key("slash", 0.2)
            self._heart.largest()
            await self._keys(f"filter, {WORD} typed", [*WORD, *["backspace"] * len(WORD)] * 2, 0.2)
            await self._key("escape")
            await asyncio.sleep(2)
            await self._key("end")
            await asyncio.sleep(2)
            self._said.append(f"memory, at the end: {memory()}")
            beating.cancel()
            if self._idle_for:
                await self._stay_idle()
        except BaseException as error:
            self._said.append(f"ended early: {error!r}")
            raise
        finally:
            beating.cancel()
            self._report_to.write_text("\n".join(self._said) + "\n", encoding="utf-8")
            self.exit()

    def _say_gap(self, name: str) -> None:
        wall, cpu = self._heart.largest()
        self._said.append(f"{name:34} largest gap {wall:6.1f} ms, cpu {cpu:6.1f}")

    async def _stay_idle(self) -> None:
        await asyncio.sleep(5)
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.sleep(self._idle_for)
        used = (time.process_time() - cpu) / (time.perf_counter() - wall) * 100
        self._said.append(f"idle over {self._idle_for:.0f} s: {used:.2f} % of a core")


def spread(values: list[float]) -> str:
    """Best, median, 95 of 100, and the worst."""
    if not values:
        return "nothing was written"
    ordered = sorted(values)
    late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"{ordered[0]:5.1f} / {statistics.median(ordered):5.1f} / {late:5.1f} / {ordered[-1]:6.1f}"


def memory() -> str:
    """Megabytes in memory now and at most, and how many of them are pages of files."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    known = {line.split(":")[0]: int(line.split()[1]) / 1e3 for line in lines if line.endswith("kB")}
    return f"{known['VmRSS']:.0f} MB, at most {known['VmHWM']:.0f}, of files {known['RssFile']:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("--idle", type=float, default=0.0, metavar="SECONDS")
    asked = parser.parse_args()
    with NamedTemporaryFile(suffix=".txt") as report:
        process, terminal = pty.fork()
        if process == 0:
            os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="36")
            collect_rarely()
            Measured(asked.store, Path(report.name), asked.idle).run()
            os._exit(0)
        while True:
            try:
                if not os.read(terminal, 65_536):
                    break
            except OSError:
                break
        os.waitpid(process, 0)
        print("milliseconds: best / median / 95 % / worst; the goal is", GOAL)
        print(Path(report.name).read_text(encoding="utf-8"), end="")
        print("load of the machine:", *(f"{one:.1f}" for one in os.getloadavg()))


if __name__ == "__main__":
    main()
