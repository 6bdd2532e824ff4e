"""Terminals without UTF-8: what cannot be written keeps its cells."""

from __future__ import annotations

import codecs
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.tui.cells import fit, width_of
from hermes_tui.tui.encoding import REPLACED, lend_stderr, replace_by_cells

codecs.register_error(REPLACED, replace_by_cells)


@given(st.text(alphabet="ab 가東🔎─╭█…é", max_size=30), st.integers(4, 24))
def test_a_column_is_as_wide_as_before(text: str, width: int) -> None:
    written = fit(text, width).encode("ascii", REPLACED).decode()
    assert len(written) == width_of(fit(text, width)) == width


def test_frames_stay_frames_and_letters_become_question_marks() -> None:
    assert "╭─╮ │한│".encode("ascii", REPLACED) == b"+-+ |??|"


def test_latin_terminals_keep_what_they_have() -> None:
    assert "é한".encode("latin-1", REPLACED) == b"\xe9??"


def test_bad_bytes_are_not_its_business() -> None:
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("utf-8", REPLACED)


def test_a_captured_stderr_gets_the_number_of_the_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Capture:
        def fileno(self) -> int:
            return -1

    monkeypatch.setattr(sys, "stderr", Capture())
    lend_stderr()
    assert sys.__stderr__ is not None
    assert sys.stderr.fileno() == sys.__stderr__.fileno() >= 0
