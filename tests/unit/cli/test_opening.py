"""What the screen is started with means the same, plainly read or by the parser of all commands."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.cli.opening import Opening, opening, parsed_opening, plain_opening
from hermes_tui.library.failures import WrongUse
from hermes_tui.library.sources import SourceOptions

WORDS = st.sampled_from(
    [
        "--store",
        "--agent",
        "--profile",
        "--ascii",
        "--json",
        "--here",
        "--store=a",
        "codex",
        "hermes",
        "open",
        "-",
        "--",
    ]
) | st.text(max_size=3)


def understood(words: list[str]) -> Opening | None:
    try:
        return parsed_opening(words)
    except (WrongUse, SystemExit):
        return None


@given(st.lists(WORDS, max_size=6))
def test_plain_words_mean_what_the_parser_takes_them_for(words: list[str]) -> None:
    plain = plain_opening(words)
    assert plain is None or plain == understood(words)


def test_options_with_their_values() -> None:
    words = ["--store", "a b", "--agent", "codex", "--ascii", "--agent", "hermes", "--profile", "work", "--store", "c"]
    assert plain_opening(words) == Opening(
        SourceOptions(("a b", "c"), ("codex", "hermes"), ("work",)), None, ascii=True
    )
    assert plain_opening([]) == Opening(SourceOptions())


@pytest.mark.parametrize(
    "words", [["--agent", "hermess"], ["--store"], ["--store", "--ascii"], ["open"], ["--nothing"]]
)
def test_what_is_wrong_is_told_by_the_parser(words: list[str]) -> None:
    assert plain_opening(words) is None
    with pytest.raises(WrongUse):
        opening(words)


def test_a_conversation_is_begun_in() -> None:
    assert opening(["--store=a", "open", "some-id"]) == Opening(SourceOptions(("a",)), "some-id")


def test_plain_words_load_no_parser() -> None:
    probe = "import sys; from hermes_tui.cli.opening import opening; opening(['--store', 'a']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert not {"argparse", "hermes_tui.cli.parser"} & set(done.stdout.split())
