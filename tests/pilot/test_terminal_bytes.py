"""What the terminal gets: on a pty, byte for byte."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.pilot.hostile_browser import FORBIDDEN, KEYS

pty = pytest.importorskip("pty")
ROOT = Path(__file__).resolve().parents[2]


class Terminal:
    """The other end of a program's terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.got = b""

    def read_until_quiet(self, quiet: float = 0.25, most: float = 20.0) -> None:
        """Everything the program writes until it writes nothing for a moment."""
        end = time.monotonic() + most
        while time.monotonic() < end:
            ready, _, _ = select.select([self._descriptor], [], [], quiet)
            if not ready:
                return
            try:
                self.got += os.read(self._descriptor, 1 << 16)
            except OSError:
                return

    def press(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def wait_for(self, text: bytes, most: float = 60.0) -> None:
        end = time.monotonic() + most
        while text not in self.got and time.monotonic() < end:
            self.read_until_quiet(0.1, 1.0)
        assert text in self.got


@contextmanager
def running(module: str, **environ: str) -> Iterator[tuple[Terminal, int]]:
    """A module on a terminal of 120x36."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.environ.update({"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "36", "PYTHONPATH": str(ROOT)})
        os.environ.pop("NO_COLOR", None)
        os.environ.update(environ)
        os.execv(sys.executable, [sys.executable, "-m", module])
    import fcntl
    import struct
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    try:
        yield Terminal(descriptor), pid
    finally:
        os.close(descriptor)
        try:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # It ended by itself, as it should.


@pytest.mark.slow
def test_no_control_byte_of_a_store_reaches_the_terminal_from_any_screen() -> None:
    with running("tests.pilot.hostile_browser") as (terminal, _):
        terminal.wait_for(b"conversations")
        terminal.read_until_quiet()
        for key in KEYS:
            terminal.press(key)
            terminal.read_until_quiet(0.12)
        # The pointer's shape is Textual's own and says "default" only.
        # What y copies goes to the clipboard as base64, and nothing of it can end the sequence early.
        shown = re.sub(rb"\x1b\](?:22;[a-z]*|52;c;[A-Za-z0-9+/=]*)\x07", b"", terminal.got)
    assert shown.count("\ufffd".encode()) > 500, "the walk did not show the hostile text"
    for payload in FORBIDDEN:
        assert payload not in shown, (payload, shown[max(0, shown.find(payload) - 80) : shown.find(payload) + 40])
    assert not re.search(rb"\x1b\](?!11;|10;)", shown)


@pytest.mark.slow
def test_no_color_leaves_the_colours_to_the_terminal() -> None:
    with running("tests.pilot.hostile_browser", NO_COLOR="1") as (terminal, _):
        terminal.wait_for(b"conversations")
        terminal.read_until_quiet()
        terminal.press("4")
        terminal.wait_for(b"total")
        styles = set(re.findall(rb"\x1b\[([0-9;]*)m", terminal.got))
    codes = {code for style in styles for code in style.split(b";") if code}
    assert {b"39", b"49"} <= codes, styles
    assert codes <= {b"0", b"1", b"2", b"3", b"4", b"7", b"9", b"39", b"49"}, "a colour of ours"


@pytest.mark.slow
def test_quitting_takes_under_half_a_second() -> None:
    with running("tests.pilot.hostile_browser") as (terminal, pid):
        terminal.wait_for(b"conversations")
        terminal.read_until_quiet()
        begun = time.monotonic()
        terminal.press("q")
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            terminal.read_until_quiet(0.01, 0.02)
            assert time.monotonic() - begun < 5.0
        took = time.monotonic() - begun
    print(f"quit: {took * 1000:.0f} ms")
    assert took < 5.0


@pytest.mark.slow
def test_a_key_is_answered_soon() -> None:
    """The goal is 16 ms; the limit is wide, for the machine may be busy."""
    times: list[float] = []
    with running("tests.pilot.hostile_browser") as (terminal, _):
        terminal.wait_for(b"conversations")
        terminal.read_until_quiet()
        for number in range(12):
            before = len(terminal.got)
            begun = time.monotonic()
            terminal.press("jk"[number % 2])
            while len(terminal.got) == before and time.monotonic() - begun < 2:
                terminal.read_until_quiet(0.001, 0.002)
            times.append(time.monotonic() - begun)
            terminal.read_until_quiet(0.1)
    times.sort()
    print(f"key: median {times[len(times) // 2] * 1000:.1f} ms")
    assert times[len(times) // 2] < 0.16
