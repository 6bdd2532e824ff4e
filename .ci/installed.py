"""Looks at an installed hermes-tui from outside: its files, its demo, its list, its prices, its first screen."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("hermes-tui")


def answer(*words: str) -> dict:
    """What a command prints with --json."""
    return json.loads(subprocess.run([PROGRAM, *words, "--json"], check=True, capture_output=True, timeout=120).stdout)


def first_screen(store: str, wanted: bytes) -> None:
    """Starts the browser on a terminal of its own and leaves it once it shows what is wanted."""
    import fcntl
    import pty
    import select
    import struct
    import termios

    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
        os.execv(PROGRAM, [PROGRAM, "--store", store])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    got, until = b"", time.monotonic() + 60
    while wanted not in got and time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                got += os.read(terminal, 65_536)
            except OSError:
                break
    found = wanted in got
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert found, got[-3_000:].decode(errors="replace")


def main(folder: str) -> None:
    """Fails at the first thing that is not as it should be."""
    package = files("hermes_tui")
    assert "site-packages" in str(package), package
    assert (package / "py.typed").is_file(), "a package with types says so"
    assert {path.name for path in (package / "styles").iterdir()} >= {"app.tcss", "sessions.tcss"}
    said = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout.split()
    assert said == ["hermes-tui", version("hermes-tui")], said
    demo = f"{folder}/demo"
    subprocess.run([PROGRAM, "demo", demo], check=True, capture_output=True, timeout=120)
    total = answer("list", "--store", demo)["total"]
    assert total > 0
    priced = answer("cost", "--store", demo)["totals"]
    assert "genai-prices" in (priced["priced_by"] or ""), priced
    first_screen(demo, f"{total} conversations".encode())
    print(f"Python {sys.version.split()[0]}: {total} conversations listed, priced and on the screen from the wheel")


main(sys.argv[1])
