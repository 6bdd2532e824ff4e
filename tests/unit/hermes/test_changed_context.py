"""A chain whose cache fell because other bytes were sent names the first of them (issue 7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.model import DropCause
from tests.conftest import Cli

from .samples import copied, names
from .test_hermes_damage import changed

NAMES = names()
FIRST = (
    "UPDATE messages SET content = 'hello', role = 'user', api_content = {} WHERE id = (SELECT min(id) FROM messages"
)
FIRST += " WHERE session_id = '{}')"


def drop_of_chain3(cli: Cli, store: Path) -> tuple[DropCause, str]:
    """The cause and the evidence of the one drop of the sample's chain."""
    drops = cli("--store", str(store), "cache", NAMES["chain4"], "--json").json["drops"]
    (drop,) = [drop for drop in drops if drop["session_id"] == NAMES["chain3"]]
    return drop["cause"], drop["evidence"]


@pytest.mark.parametrize(
    ("before", "after", "evidence"),
    [
        ("'<memory>one</memory> hello'", "'<memory>two</memory> hello'", "as sent differs at character 8: 'one</"),
        (
            "'<memory>one</memory> hello'",
            "NULL",
            "as sent differs at character 0: '<memory>one</memory> hello' / 'hello'",
        ),
        ("CAST(x'6100' AS TEXT)", "CAST(x'61ff' AS TEXT)", r"as sent differs at character 1: '\x00' / '\udcff'"),
    ],
)
def test_another_text_sent_of_the_same_message(
    cli: Cli, tmp_path: Path, before: str, after: str, evidence: str
) -> None:
    changed(tmp_path, FIRST.format(before, NAMES["chain2"]), FIRST.format(after, NAMES["chain3"]))
    cause, seen = drop_of_chain3(cli, tmp_path / "home" / "state.db")
    assert cause == "context-change"
    assert evidence in seen


def test_the_system_prompt_comes_before_the_messages(cli: Cli, tmp_path: Path) -> None:
    changed(
        tmp_path,
        FIRST.format("'x hello'", NAMES["chain2"]),
        FIRST.format("'y hello'", NAMES["chain3"]),
        f"UPDATE sessions SET system_prompt = 'PLACEHOLDER other' WHERE id = '{NAMES['chain3']}'",
    )
    cause, seen = drop_of_chain3(cli, tmp_path / "home" / "state.db")
    assert (cause, seen.split(":")[0]) == ("context-change", "system prompt differs at character 12")


def test_what_the_compaction_cut_is_no_change(cli: Cli, tmp_path: Path) -> None:
    changed(
        tmp_path,
        FIRST.format("'same'", NAMES["chain2"]),
        FIRST.format("'same'", NAMES["chain3"]),
        f"UPDATE messages SET api_content = 'other' WHERE session_id = '{NAMES['chain3']}' AND content <> 'hello'",
    )
    assert drop_of_chain3(cli, tmp_path / "home" / "state.db")[0] == "unknown"
    assert drop_of_chain3(cli, copied(tmp_path / "untouched") / "state.db")[0] == "unknown"
