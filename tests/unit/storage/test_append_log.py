"""What passed the gate is there, whatever happens; what did not is counted, never cut away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hermes_tui.storage.append_log import AppendLog
from hermes_tui.storage.errors import WriteFailed


def facts(log: AppendLog) -> list[object]:
    return [record.value for record in log.read() if record.problem is None]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])}


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    log = AppendLog(tmp_path / "own" / "log.jsonl")
    assert list(log.read()) == []
    assert not log.repair()
    first = log.append({"n": 1})
    second = log.append_all([{"n": 2}, {"n": "한국어\n"}])
    assert (first, second) == (0, 8)
    assert facts(log) == [{"n": 1}, {"n": 2}, {"n": "한국어\n"}]
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert log.path.parent.stat().st_mode & 0o777 == 0o700


def test_text_that_utf8_cannot_hold_is_kept(tmp_path: Path) -> None:
    log = AppendLog(tmp_path / "log.jsonl")
    log.append({"note": "a byte of a file name: \udcff"})
    assert [record.value for record in log.read()] == [{"note": "a byte of a file name: \udcff"}]


def test_a_cut_at_every_byte_costs_at_most_the_last_line(tmp_path: Path) -> None:
    log = AppendLog(tmp_path / "log.jsonl")
    log.append_all([{"n": 1}, {"n": 2}])
    whole = log.path.read_bytes()
    for cut in range(len(whole) + 1):
        log.path.write_bytes(whole[:cut])
        log.append({"n": 3})
        expected = [{"n": n} for n, end in ((1, 7), (2, 15)) if cut >= end]
        assert facts(log) == [*expected, {"n": 3}]
        damaged = [record for record in log.read() if record.problem is not None]
        assert len(damaged) == (0 if cut in (0, 7, 8, 15, 16) else 1)
        assert log.path.read_bytes().startswith(whole[:cut])
        assert not log.repair()


def test_repair_closes_a_broken_line_once(tmp_path: Path) -> None:
    log = AppendLog(tmp_path / "log.jsonl")
    log.path.write_bytes(b'{"n": 1}\n{"n":')
    assert log.repair()
    assert not log.repair()
    assert log.path.read_bytes() == b'{"n": 1}\n{"n":\n'


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    script = """
        import sys
        from hermes_tui.storage.append_log import AppendLog
        log = AppendLog(sys.argv[1])
        for n in range(200):
            log.append({"who": sys.argv[2], "n": n, "text": "x" * (n * 50)})
    """
    path = tmp_path / "log.jsonl"
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    children = [subprocess.Popen([*command, who], env=environment()) for who in ("a", "b")]
    assert [child.wait() for child in children] == [0, 0]
    records = list(AppendLog(path).read())
    assert [r.problem for r in records] == [None] * 400
    for who in ("a", "b"):
        numbers = [r.value["n"] for r in records if isinstance(r.value, dict) and r.value["who"] == who]
        assert numbers == list(range(200))


def test_what_was_promised_survives_a_kill(tmp_path: Path) -> None:
    script = """
        import sys
        from hermes_tui.storage.append_log import AppendLog
        log = AppendLog(sys.argv[1])
        for n in range(100000):
            log.append({"n": n})
            print(n, flush=True)
    """
    path = tmp_path / "log.jsonl"
    promised = 0
    for _ in range(5):
        path.unlink(missing_ok=True)
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), str(path)], stdout=subprocess.PIPE, env=environment()
        )
        assert child.stdout is not None
        for _ in range(20):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        said = child.stdout.read().splitlines()
        child.wait()
        promised = int(said[-1]) if said else 19
        assert facts(AppendLog(path))[: promised + 1] == [{"n": n} for n in range(promised + 1)]


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    with pytest.raises(WriteFailed, match="space"):
        AppendLog(tmp_path / "log.jsonl").append({"n": 1})
