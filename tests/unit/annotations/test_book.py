"""Pins, tags and notes: their log is the truth, what passed its gate is there, and the mirror never knows more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.annotations.book import AnnotationBook, added_up
from hermes_tui.annotations.facts import Annotation, Fact, SessionKey
from hermes_tui.library.annotations import _from_mirror, project_annotations
from hermes_tui.mirror.annotation_rows import read_annotations
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.text import RawText

KEY = SessionKey("codex", "/home/ana/.codex", "01a2")
OTHER = SessionKey("hermes", "/home/ana/.hermes/state.db", "20260225_061321_a5cd68")


def fact(verb: str, value: str = "", key: SessionKey = KEY) -> Fact:
    return Fact(key, verb, 1_780_000_000.0, RawText(value))  # type: ignore[arg-type]


class TestFacts:
    def test_facts_add_up_in_their_order(self) -> None:
        said = [
            fact("pin"),
            fact("tag", "slow"),
            fact("tag", "cache"),
            fact("tag", "slow"),
            fact("note", "look at part 3"),
            fact("pin", key=OTHER),
            fact("unpin", key=OTHER),
        ]
        assert added_up(said) == {KEY: Annotation(True, (RawText("cache"), RawText("slow")), RawText("look at part 3"))}

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["verb", "at", "agent", "store", "session", "value"]), inner)
            ),
        )
    )
    def test_any_json_is_a_fact_or_none(self, value: object) -> None:
        found = Fact.from_json(value)
        assert found is None or Fact.from_json(found.to_json()) == found


class TestBook:
    def test_what_was_added_is_there_for_another_browser(self, tmp_path: Path) -> None:
        one, two = AnnotationBook(tmp_path / "a.jsonl"), AnnotationBook(tmp_path / "a.jsonl")
        assert two.pages().annotations == {}
        one.add([fact("pin"), fact("tag", "x")])
        assert two.of(KEY) == Annotation(True, (RawText("x"),))
        two.add([fact("untag", "x")])
        assert one.of(KEY) == Annotation(True)

    def test_half_a_line_is_kept_and_counted_and_harms_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        book = AnnotationBook(path)
        book.add([fact("pin")])
        with path.open("ab") as file:
            file.write(b'{"at": 17800000')
        assert AnnotationBook(path).pages().damaged == 1
        book.add([fact("note", "after the crash")])
        pages = AnnotationBook(path).pages()
        assert pages.annotations[KEY] == Annotation(True, (), RawText("after the crash"))
        assert pages.damaged == 1
        assert path.read_bytes().count(b"\n") == 3

    def test_two_browsers_writing_at_once_lose_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        program = textwrap.dedent(
            f"""
            import sys
            from pathlib import Path
            from hermes_tui.annotations.book import AnnotationBook
            from hermes_tui.annotations.facts import Fact, SessionKey
            book = AnnotationBook(Path({str(path)!r}))
            for number in range(60):
                book.add([Fact(SessionKey("codex", "p", sys.argv[1]), "tag", 1.0, f"t{{number}}")])
            """
        )
        both = [subprocess.Popen([sys.executable, "-c", program, name]) for name in ("a", "b")]
        assert [one.wait(60) for one in both] == [0, 0]
        pages = AnnotationBook(path).pages()
        assert pages.damaged == 0
        assert {key.session_id: len(one.tags) for key, one in pages.annotations.items()} == {"a": 60, "b": 60}


POINTS = ("before the gate", "half written", "in the gate", "after the gate", "in the mirror's write", "after all")


class TestGate:
    @pytest.mark.parametrize("point", POINTS)
    def test_killed_at_any_point_the_mirror_never_knows_more_than_the_log(self, tmp_path: Path, point: str) -> None:
        path, mirror_path = tmp_path / "a.jsonl", tmp_path / "cache" / "mirror.sqlite"
        AnnotationBook(path).add([fact("pin", key=OTHER)])
        died = subprocess.run([sys.executable, "-c", _PROGRAM, str(path), str(mirror_path), point], timeout=60)
        assert died.returncode == -signal.SIGKILL
        pages = AnnotationBook(path).pages()
        passed = point not in ("before the gate", "half written")
        assert (KEY in pages.annotations) == passed
        assert OTHER in pages.annotations
        mirror = MirrorDatabase(mirror_path)
        known = read_annotations(mirror)
        told = {SessionKey(*row[:3]) for row in known[0]} if known else set()
        assert told <= set(pages.annotations)
        assert (KEY in told) == (point == "after all")
        assert project_annotations(mirror, AnnotationBook(path))
        after = _from_mirror(mirror)
        assert after is not None
        assert after.annotations == pages.annotations

    def test_a_lost_mirror_loses_no_pin(self, tmp_path: Path) -> None:
        book = AnnotationBook(tmp_path / "a.jsonl")
        book.add([fact("pin"), fact("note", "이름")])
        mirror = MirrorDatabase(tmp_path / "cache" / "mirror.sqlite")
        mirror.writer().close()
        assert project_annotations(mirror, book)
        mirror.drop()
        assert AnnotationBook(tmp_path / "a.jsonl").of(KEY) == Annotation(True, (), RawText("이름"))

    def test_a_projection_of_another_log_is_not_believed(self, tmp_path: Path) -> None:
        book = AnnotationBook(tmp_path / "a.jsonl")
        book.add([fact("pin")])
        mirror = MirrorDatabase(tmp_path / "cache" / "mirror.sqlite")
        mirror.writer().close()
        project_annotations(mirror, book)
        (tmp_path / "a.jsonl").write_text(json.dumps(fact("note", "new log").to_json()) + "\n")
        known = _from_mirror(mirror)
        assert known is not None
        fresh = AnnotationBook(tmp_path / "a.jsonl")
        fresh.remember(known)
        assert fresh.of(KEY) == Annotation(False, (), RawText("new log"))


_PROGRAM = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from hermes_tui.annotations.book import AnnotationBook
    from hermes_tui.annotations.facts import Fact, SessionKey
    from hermes_tui.library import annotations
    from hermes_tui.mirror.database import MirrorDatabase

    path, mirror_path, point = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

    def die(*unused):
        os.kill(os.getpid(), signal.SIGKILL)

    real_write, real_sync = os.write, os.fsync
    fact = Fact(SessionKey("codex", "/home/ana/.codex", "01a2"), "pin", 1.0)
    mirror = MirrorDatabase(mirror_path)
    mirror.writer().close()
    if point == "before the gate":
        os.write = die
    elif point == "half written":
        os.write = lambda handle, data: (real_write(handle, bytes(data)[: len(data) // 2]), die())[0]
    elif point == "in the gate":
        os.fsync = die
    book = AnnotationBook(path)
    book.add([fact])
    os.write, os.fsync = real_write, real_sync
    if point == "after the gate":
        die()
    if point == "in the mirror's write":
        real = annotations.write_annotations
        annotations.write_annotations = lambda *args: (real(*args), die())
    annotations.project_annotations(mirror, book)
    die()
    """
)


def test_our_log_is_for_our_eyes_only(tmp_path: Path) -> None:
    book = AnnotationBook(tmp_path / "own" / "a.jsonl")
    book.add([fact("pin")])
    assert os.stat(book.path).st_mode & 0o777 == 0o600
    assert os.stat(book.path.parent).st_mode & 0o777 == 0o700
