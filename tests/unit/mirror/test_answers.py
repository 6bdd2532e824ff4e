"""The folder of kept answers: damage changes nothing, and it does not grow without end."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest

from hermes_tui.mirror import answers
from hermes_tui.mirror.answers import KeptAnswers
from hermes_tui.stores.kept_answers import code_of

ANSWER = [["a", "b"], {"archived": 2}, None, 1.5, "한국어"]


def test_an_answer_is_found_for_its_question_and_evidence_alone(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path / "answers")
    assert kept.find("list", "1") is None
    kept.keep("list", "1", ANSWER)
    assert KeptAnswers(tmp_path / "answers").find("list", "1") == ANSWER
    assert kept.find("list", "2") is None
    assert kept.find("lists", "1") is None
    kept.keep("list", "2", [])
    assert kept.find("list", "1") is None
    assert not kept.troubles


def test_two_questions_with_the_same_place_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlib.crc32", lambda data: len(data) % 1)
    kept = KeptAnswers(tmp_path)
    kept.keep("one", "1", ["one"])
    assert kept.find("other", "1") is None
    assert kept.find("one", "1") == ["one"]


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    KeptAnswers(tmp_path / "answers").keep("list", "1", ANSWER)
    (file,) = (tmp_path / "answers").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_whatever_is_damaged_is_as_good_as_none(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path)
    kept.keep("list", "1", ANSWER)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    dice = random.Random(3)
    damaged = [whole[:length] for length in range(len(whole))]
    for place in range(len(whole)):
        other = bytearray(whole)
        other[place] ^= dice.randrange(1, 256)
        damaged.append(bytes(other))
    for data in (*damaged, b"\0" * len(whole), b"[]\n[]", b"[1]\n", whole + b"x"):
        file.write_bytes(data)
        assert kept.find("list", "1") in (None, ANSWER)
        if kept.find("list", "1") is not None:
            assert data.partition(b"\n")[2] == whole.partition(b"\n")[2], "what was answered is whole"
    assert kept.troubles["damaged"]
    kept.keep("list", "1", ANSWER)
    assert kept.find("list", "1") == ANSWER


def test_a_folder_that_cannot_be_used_is_counted_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    kept = KeptAnswers(tmp_path / "file" / "answers")
    kept.keep("list", "1", ANSWER)
    assert kept.find("list", "1") is None
    assert kept.troubles == {"not-kept": 1, "unreadable": 1}


def test_what_json_has_no_word_for_is_not_kept(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path / "answers")
    kept.keep("list", "1", ["half a character: \ud800"])
    kept.keep("half \udc00", "1", [])
    assert kept.find("list", "1") is None
    assert kept.find("half \udc00", "1") is None
    assert kept.troubles == {"no-json": 2}


def test_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_FILES", 4)
    kept = KeptAnswers(tmp_path)
    for number in range(10):
        kept.keep(f"question {number}", "1", [number])
        for file in tmp_path.iterdir():
            os.utime(file, (file.stat().st_mtime - 10, file.stat().st_mtime - 10))
    found = [number for number in range(10) if kept.find(f"question {number}", "1") == [number]]
    assert found == [6, 7, 8, 9]
    assert len(list(tmp_path.iterdir())) == 4


def test_there_is_an_end_to_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 3_000)
    kept = KeptAnswers(tmp_path)
    kept.keep("much", "1", ["x" * 2_000])
    assert kept.find("much", "1") is None
    for number in range(10):
        kept.keep(f"question {number}", "1", ["x" * 900])
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 3_000
    assert kept.find("question 9", "1") is not None


def test_what_is_used_stays(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path)
    kept.keep("list", "1", ANSWER)
    (file,) = tmp_path.iterdir()
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert kept.find("list", "1") == ANSWER
    assert file.stat().st_mtime > 1_700_000_000


def test_all_can_be_forgotten(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path / "answers")
    assert not kept.drop()
    kept.keep("list", "1", ANSWER)
    (tmp_path / "answers" / "0.json.77.1").write_bytes(b"half written")
    assert kept.drop()
    assert list((tmp_path / "answers").iterdir()) == []
    assert kept.find("list", "1") is None


def test_an_answer_is_of_the_code_that_made_it_with_the_vocabulary() -> None:
    for name in ("model.py", "text.py", "reading.py", "kept_values.py", "listing.py"):
        assert f"\n{name} " in code_of("hermes"), name
