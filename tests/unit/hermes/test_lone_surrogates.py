"""Half an emoji in JSON: the agent writes it as an escape, which its own Python and SQLite read and others refuse."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Cli

from .samples import names
from .test_hermes_damage import changed, codes

NAMES = names()
HALF = "\\ud83d"


def test_half_an_emoji_leaves_a_message_readable(cli: Cli, tmp_path: Path) -> None:
    """Structured content was shown as raw JSON, and a row of tool calls as one call without a name."""
    named = [{"name": "writer", "arguments": "\ud83d"}, {"name": "other", "arguments": {"x": "\ud83d"}}]
    calls = json.dumps([{"function": one} for one in named])
    changed(
        tmp_path,
        "INSERT INTO messages(session_id, role, content, timestamp) VALUES"
        f' (\'{NAMES["plain"]}\', \'user\', char(0) || \'json:[{{"type":"text","text":"half {HALF} quagga"}}]\', 1)',
        "INSERT INTO messages(session_id, role, tool_calls, timestamp)"
        f" VALUES ('{NAMES['plain']}', 'assistant', '{calls}', 2)",
    )
    store = tmp_path / "home" / "state.db"
    shown = cli("show", NAMES["plain"], "--tail", "3", "--json", store=store).json
    assert [(one["tool_name"], one["text"]) for one in shown["messages"]] == [
        (None, "half \ud83d quagga"),
        ("writer", "\ud83d"),
        ("other", '{"x":"\\ud83d"}'),
    ]
    assert [one["reason"] for one in shown["problems"] if "structured" in one["reason"]] == []
    (hit,) = cli("search", "quagga", "--json", store=store).json["hits"]
    assert hit["snippet"] == "half \ud83d >>>quagga<<<"


def test_a_marker_beside_half_an_emoji_counts(cli: Cli, tmp_path: Path) -> None:
    """SQLite reads such a model_config, so the agent's own list does; NaN it refuses."""
    config = '\'{"note":"%s","_branched_from":"%s"}\''
    store = changed(
        tmp_path,
        f"UPDATE sessions SET model_config = {config % (HALF, NAMES['trunk'])} WHERE id = '{NAMES['branch']}'",
        f"UPDATE sessions SET model_config = '{{\"t\":NaN}}' WHERE id = '{NAMES['plain']}'",
    )
    assert codes(store)["bad-model-config"] == 1
    rows = cli("list", "--sessions", "--all", "--json", store=tmp_path / "home" / "state.db").json["sessions"]
    assert {row["id"]: row["lineage_kind"] for row in rows}[NAMES["branch"]] == "branch"


def test_half_an_emoji_in_a_log_is_no_fault(cli: Cli, tmp_path: Path) -> None:
    """A log with such a tool call ended every search over the home."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "20250101_090000_half01.jsonl").write_text(
        f'{{"role":"assistant","content":null,"tool_calls":[{{"function":{{"name":"w","arguments":"{HALF} a"}}}}]}}\n'
        f'{{"role":"user","content":{{"odd":"{HALF} quagga"}}}}\n'
    )
    shown = cli("show", "20250101_090000_half01", "--json", store=tmp_path)
    assert [one["text"] for one in shown.json["messages"]] == ["\ud83d a", '{"odd":"\\ud83d quagga"}']
    assert len(cli("search", "quagga", "--json", store=tmp_path).json["hits"]) == 1


def test_a_picture_beside_an_empty_text_is_named(cli: Cli, tmp_path: Path) -> None:
    parts = '[{"type":"text","text":""},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]'
    changed(
        tmp_path,
        "INSERT INTO messages(session_id, role, content, timestamp)"
        f" VALUES ('{NAMES['plain']}', 'user', char(0) || 'json:{parts}', 1)",
    )
    shown = cli("show", NAMES["plain"], "--tail", "1", "--json", store=tmp_path / "home" / "state.db").json
    assert shown["messages"][0]["text"] == "[image/png]"
