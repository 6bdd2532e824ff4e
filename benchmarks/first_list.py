"""Time from the start of the process to the first row of the list, against a Textual app that shows one Static.

    python benchmarks/first_list.py STORE        (a store that is not written to meanwhile)

Both run on a terminal of their own (a pty of 120x36), by turns in one run. A run ends when the terminal was sent the
text that is waited for: the title of the newest conversation, or that of the Static. CPU time is that of all threads,
of those too that have ended by then. The first run of ours only fills the folder of kept answers; own files lie in a
temporary folder.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

RUNS = 9
MOST_S = 60.0
MARKED = 14
"""Characters of the title that are waited for: the list cuts long ones."""
STATIC = """
from textual.app import App
from textual.widgets import Static

class OneStatic(App):
    def compose(self):
        yield Static("the-only-static")

OneStatic().run()
"""


class Took(NamedTuple):
    """Milliseconds until the text was there."""

    wall: float
    cpu: float


def shown(command: Sequence[str], text: bytes, environ: Mapping[str, str]) -> Took:
    """Run a program on a terminal until it shows a text, and end it."""
    begun = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], list(command), dict(environ))
    got = b""
    while text not in got:
        ready, _, _ = select.select([terminal], [], [], MOST_S)
        if not ready:
            os.kill(pid, signal.SIGKILL)
            raise SystemExit(f"{text!r} was not shown within {MOST_S:.0f} s")
        got += os.read(terminal, 1 << 16)
    wall = time.perf_counter() - begun
    os.kill(pid, signal.SIGKILL)
    used = os.wait4(pid, 0)[2]
    os.close(terminal)
    return Took(wall * 1000, (used.ru_utime + used.ru_stime) * 1000)


def newest_title(store: str, environ: Mapping[str, str]) -> bytes:
    """The beginning of what the first row shows."""
    command = [sys.executable, "-m", "hermes_tui", "list", "--limit", "1", "--json", "--store", store]
    done = subprocess.run(command, capture_output=True, check=True, env=dict(environ))
    (row,) = json.loads(done.stdout)["sessions"]
    title = row["title"] or row["preview"]
    return str(title)[:MARKED].encode()


def main() -> None:
    store = sys.argv[1]
    with tempfile.TemporaryDirectory() as own:
        sizes = {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "36", "HERMES_TUI_HOME": own}
        environ = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "HERMES_TUI_ASCII")}
        environ |= sizes
        ours = [sys.executable, "-m", "hermes_tui", "--store", store]
        static = [sys.executable, "-c", STATIC]
        title = newest_title(store, environ)
        shown(ours, title, environ)
        took: dict[str, list[Took]] = {"one Static": [], "first list": []}
        for _ in range(RUNS):
            took["one Static"].append(shown(static, b"the-only-static", environ))
            took["first list"].append(shown(ours, title, environ))
    for name, runs in took.items():
        walls, cpus = [run.wall for run in runs], [run.cpu for run in runs]
        print(
            f"{name:12} wall {min(walls):7.0f} ms, median {statistics.median(walls):7.0f}"
            f"   cpu {min(cpus):7.0f} ms, median {statistics.median(cpus):7.0f}"
        )
    one, other = took.values()
    wall = min(run.wall for run in other) - min(run.wall for run in one)
    cpu = min(run.cpu for run in other) - min(run.cpu for run in one)
    print(f"{'more':12} wall {wall:7.0f} ms                    cpu {cpu:7.0f} ms")


if __name__ == "__main__":
    main()
