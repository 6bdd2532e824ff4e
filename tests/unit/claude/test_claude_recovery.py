"""Our recovery against what the real program was seen to send (tests/beside/test_claude_resume.py)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_tui.model import PowerCut, SessionId, StoreRef
from hermes_tui.stores.claude.store import ClaudeStore
from tests.unit.claude.building import Made
from tests.unit.claude.cases import resumable, talk
from tests.unit.claude.resuming import recorded, recovery_of, said_by_us

CASES = resumable()
SENT = recorded()


@pytest.mark.parametrize("made", CASES, ids=[made.name for made in CASES])
def test_recovery_is_what_the_real_program_sent(made: Made, tmp_path: Path) -> None:
    assert said_by_us(made.write(tmp_path)) == SENT[made.name]


def test_every_recorded_case_is_still_tried() -> None:
    assert {made.name for made in CASES} == set(SENT)


def test_a_power_cut_between_boundary_and_summary_brings_the_old_history_back(tmp_path: Path) -> None:
    path = talk("cut", 3).boundary("b", "6").summary("s", "b").user("7", "s").reply("8", "7").write(tmp_path)
    whole, at_boundary, at_summary = (recovery_of(path, PowerCut(line)) for line in (10, 7, 8))
    assert (whole.base_kind, whole.base_line) == ("compaction", 7)
    assert [message.text for message in at_boundary.messages] == ["P 1", "R 2", "P 3", "R 4", "P 5", "R 6"]
    assert at_boundary.base_kind == "start"
    assert at_summary.base_kind == "compaction"
    assert [message.text for message in at_summary.messages] == ["SUMMARY s", "No response requested."]


def test_a_power_cut_inside_a_line_loses_that_line_only(tmp_path: Path) -> None:
    path = talk("torn", 2).write(tmp_path)
    before = path.read_bytes()
    cut = recovery_of(path, PowerCut(4, 30))
    assert [message.text for message in cut.messages] == ["P 1", "R 2", "P 3", "No response requested."]
    assert [(item.line, item.reason) for item in cut.ignored] == [(4, "torn tail")]
    assert cut.row.message_count == 3
    assert path.read_bytes() == before


def test_a_cut_behind_the_end_is_no_cut(tmp_path: Path) -> None:
    path = talk("far", 2).write(tmp_path)
    assert said_by_us(path, PowerCut(999)) == said_by_us(path)
    assert said_by_us(path, PowerCut(4, 10**9)) == said_by_us(path)


def test_a_cut_behind_a_boundary_that_kept_lines_sends_those_alone(tmp_path: Path) -> None:
    made = talk("kept", 3).boundary("b", "6", kept=["6"], segment=("6", "6")).summary("s", "b")
    cut = recovery_of(made.write(tmp_path), PowerCut(7))
    assert (cut.base_kind, cut.base_line) == ("compaction", 7)
    assert [message.text for message in cut.messages] == ["R 6"]
    assert cut.messages[0].usage is not None


def test_the_row_after_a_cut_is_the_row_of_the_cut_log(sample: Callable[[str], Path]) -> None:
    """Of an original, and of a copy, whose copied messages and requests stay the original's."""
    folder = sample("claude/dot-claude")
    ref = StoreRef("claude", "claude", str(folder))
    for name in ("a23b72c3-30d9-46bc-b113-cf9f354ff587", "66bb7bfa-b61f-4eb6-b0c9-b209b178bd74"):
        path = next(folder.rglob(f"{name}.jsonl"))
        whole, times = path.read_bytes(), path.stat()
        lines = whole.splitlines(keepends=True)
        told = ClaudeStore(ref)
        cuts = range(8, len(lines), 3)
        rows = [told.recovery(SessionId(name), PowerCut(number)).row for number in cuts]
        for number, row in zip(cuts, rows, strict=True):
            path.write_bytes(b"".join(lines[:number]))
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            true = ClaudeStore(ref).rows([SessionId(name)])[0]
            assert replace(row, parent_id=true.parent_id, lineage_kind=true.lineage_kind) == true, (name, number)
        path.write_bytes(whole)
