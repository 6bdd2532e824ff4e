"""Page after page of a search gives what one long page gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_tui.stores.hermes.candidates import Candidates
from tests.conftest import Cli

from .samples import names
from .test_hermes_damage import changed

NAMES = names()
ORDERS = ("newest", "oldest", "rank")
FAR = 9_000_000_000_000_000_001
"""The id of a salvaged row: further from the others than a float can tell."""


def paged(cli: Cli, store: Path, query: str, order: str, size: int) -> Iterator[Any]:
    """The hits of pages of some size, until there is no next one."""
    after: list[str] = []
    for _ in range(100):
        page = cli("search", query, "--sort", order, "--limit", str(size), *after, "--json", store=store).json
        yield from page["hits"]
        if page["next"] is None:
            return
        after = ["--after", page["next"]]
    raise AssertionError("the pages do not end")


def told(hits: Any) -> list[tuple[str, int]]:
    return [(hit["message_id"], hit["part"]) for hit in hits]


def with_several_hits(folder: Path) -> Path:
    """Rows that say the word in their text and in two tool calls, two logs beside."""
    calls = json.dumps([{"function": {"name": "write", "arguments": "quagga"}}] * 2)
    changed(
        folder,
        *(
            "INSERT INTO messages(session_id, role, content, tool_calls, timestamp)"
            f" VALUES ('{NAMES['plain']}', 'assistant', 'a quagga {number}', '{calls}', {1772400000 + number})"
            for number in range(3)
        ),
    )
    for number in range(2):
        entry = {"role": "assistant", "content": "quagga", "timestamp": 1772400001 + number}
        entry["tool_calls"] = json.loads(calls)
        (folder / "home" / "sessions" / f"20250101_09000{number}_page.jsonl").write_text(json.dumps(entry) + "\n")
    return folder / "home"


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_a_page_may_end_between_two_hits_of_one_message(cli: Cli, tmp_path: Path, order: str, logs: bool) -> None:
    """The other hits of that message were on no page."""
    home = with_several_hits(tmp_path)
    if not logs:
        for log in home.glob("sessions/*.jsonl"):
            log.unlink()
    store = home / "state.db"
    whole = told(cli("search", "quagga", "--sort", order, "--json", store=store).json["hits"])
    assert len(whole) == (15 if logs else 9)
    for size in (1, 2):
        assert told(paged(cli, store, "quagga", order, size)) == whole


@pytest.mark.parametrize("order", ORDERS)
def test_pages_end_at_ids_beyond_those_of_a_float(cli: Cli, tmp_path: Path, order: str) -> None:
    """The second page began with the hit of the first, and so did every other."""
    changed(
        tmp_path,
        *(
            "INSERT INTO messages(id, session_id, role, content, timestamp)"
            f" VALUES ({FAR + number}, '{NAMES['plain']}', 'user', 'quagga {number}', 1772400000)"
            for number in range(3)
        ),
    )
    store = tmp_path / "home" / "state.db"
    found = told(paged(cli, store, "quagga", order, 1))
    assert sorted(found) == [(str(FAR + number), 0) for number in range(3)]


def test_an_id_far_from_the_others_does_not_keep_a_scan_busy(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every id between was looked at, for years."""
    changed(
        tmp_path,
        "INSERT INTO messages(id, session_id, role, content, timestamp)"
        f" VALUES ({FAR}, '{NAMES['plain']}', 'user', 'quagga', 1772400000)",
    )
    asked = Candidates.window
    windows: list[int] = []

    def counted(*args: Any) -> Any:
        windows.append(1)
        assert len(windows) < 20, "it looks where nothing is"
        return asked(*args)

    monkeypatch.setattr(Candidates, "window", counted)
    store = tmp_path / "home" / "state.db"
    for order in ("newest", "oldest"):
        windows.clear()
        found = cli("search", "quag+a|docker", "--regex", "--sort", order, "--json", store=store).json
        assert {hit["message_id"] for hit in found["hits"]} > {str(FAR)}
        assert len(found["hits"]) == 4


def test_a_gap_of_ids_does_not_hide_what_no_index_holds(cli: Cli, tmp_path: Path) -> None:
    """The newest layout keeps the beginning of tool output; the rest is looked for among the newest rows, by id."""
    changed(
        tmp_path,
        *(
            "INSERT INTO messages(id, session_id, role, tool_name, content, timestamp) VALUES"
            f" ({number}, '{NAMES['plain']}', 'tool', 'terminal', '{'x ' * 5000}quagga', 1772400000)"
            for number in (5_000, FAR)
        ),
        which="home/profiles/newlayout",
    )
    (home,) = tmp_path.glob("home-*")
    found = cli("search", "quagga", "--json", store=home / "state.db").json
    assert (sorted(told(found["hits"])), found["incomplete"]) == ([("5000", 0), (str(FAR), 0)], None)
