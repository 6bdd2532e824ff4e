"""The command line on the Codex sample, against the README and the real program's answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_tui.stores import kept_answers
from tests.conftest import SAMPLES, Cli, Contract
from tests.unit.codex.rollouts import meta, turn, write

EXPECTED = json.loads((SAMPLES / "codex/expected.json").read_text())
LABELS: dict[str, str] = {
    label: found if isinstance(found, str) else found[0]
    for label, found in EXPECTED["labels"].items()
    if label not in ("never_used", "ephemeral")
}
OWN = {
    # label: input with cached / cached / output / requests
    "exec": (1_875, 896, 242, 3), "exec_tz": (380, 0, 46, 1), "provider2": (344, 0, 45, 1),
    "patch": (3_697, 2_304, 412, 5), "fork_first_turn": (1_038, 0, 48, 1), "fork_whole": (2_392, 1_024, 128, 2),
    "compacted": (60_134, 49_024, 1_914, 16), "legacy": (32_502, 14_976, 556, 8), "legacy_fork": (923, 0, 45, 1),
    "image": (460, 0, 44, 1), "interrupted": (550, 256, 43, 1), "failed": (0, 0, 0, 0),
    "reverted": (1_895, 1_024, 164, 4), "archived": (376, 0, 42, 1), "parent_of_subagent": (904, 256, 132, 2),
    "subagents": (344, 0, 45, 1), "model_switch": (998, 256, 82, 2),
}  # fmt: skip


@pytest.fixture
def home(sample: Callable[[str], Path]) -> Path:
    return sample("codex")


def test_seventeen_threads_one_of_them_archived(cli: Cli, contract: Contract, home: Path) -> None:
    found = contract("list", cli("list", "--json", "--sessions", "--all", store=home).json)
    rows = {row["id"]: row for row in found["sessions"]}
    assert set(rows) == set(LABELS.values())
    assert [row["id"] for row in found["sessions"] if row["archived"]] == [LABELS["archived"]]
    for label, (prompt, cached, output, requests) in OWN.items():
        row = rows[LABELS[label]]
        tokens = (row["input_tokens"], row["cache_read_tokens"], row["output_tokens"], row["request_count"])
        assert tokens == (prompt - cached, cached, output, requests), label
    assert rows[LABELS["patch"]]["title"] == "Cart rounding"
    assert rows[LABELS["reverted"]]["parts"] == 2
    assert rows[LABELS["legacy_fork"]]["parent_id"] == LABELS["legacy"]
    assert rows[LABELS["subagents"]]["parent_id"] == LABELS["parent_of_subagent"]
    assert rows[LABELS["model_switch"]]["model"] == "mock-large"
    assert set(rows[LABELS["model_switch"]]["models"]) == {"gpt-5.5", "mock-large"}


def test_the_default_list(cli: Cli, home: Path) -> None:
    found = cli("list", "--json", store=home).json
    left = {LABELS["archived"], LABELS["subagents"]}
    assert {row["id"] for row in found["sessions"]} == set(LABELS.values()) - left
    assert found["left_out"] == {"archived": 1, "delegated": 1}


def test_every_response_once(cli: Cli, contract: Contract, home: Path) -> None:
    for by in ("model", "day", "session", "cwd", "source", "provider", "task", "profile"):
        found = contract("cost", cli("cost", "--json", "--by", by, store=home).json)
        totals = found["totals"]
        assert totals["input_tokens"] + totals["cache_read_tokens"] == sum(own[0] for own in OWN.values()), by
        assert totals["cache_read_tokens"] == sum(own[1] for own in OWN.values())
        assert totals["output_tokens"] == sum(own[2] for own in OWN.values())
        assert totals["requests"] == sum(own[3] for own in OWN.values())


def test_turns(cli: Cli, contract: Contract, home: Path) -> None:
    for label, thread_id in LABELS.items():
        answer = EXPECTED["threads"].get(thread_id)
        if answer is None or not answer.get("turns_list"):
            continue
        # What the program itself shows as typed by a person, in its thread list.
        typed = [
            item[1]
            for turn in answer["turns_list"]
            for item in turn["items"]
            if item[0] == "userMessage" and item[1] is not None
        ]
        found = contract("show", cli("show", thread_id, "--json", "--all", store=home).json)
        prompts = [message["text"] for message in found["messages"] if message["kind"] == "prompt"]
        assert [text[:40] for text in prompts if text] == [text[:40] for text in typed], label


def test_what_a_resume_would_send(cli: Cli, contract: Contract, home: Path) -> None:
    for label, thread_id in LABELS.items():
        resume = (EXPECTED["threads"].get(thread_id) or {}).get("resume") or {}
        if not resume.get("model_input"):
            continue
        found = contract("recover", cli("recover", thread_id, "--json", store=home).json)
        # Without the base instructions at the start, the probe at the end (README), and context that is sent again.
        wanted = [
            entry
            for entry in resume["model_input"][1:-1]
            if entry[0] == "message" and entry[1] != "developer" and not entry[2].startswith("<environment_context>")
        ]
        texts = [message["text"] or "" for message in found["messages"] if message["role"] in ("user", "assistant")]
        for _, _, start in wanted:
            assert any(text.startswith(start[:60]) for text in texts), (label, start)


def test_five_compactions_the_last_by_hand(cli: Cli, contract: Contract, home: Path) -> None:
    found = contract("lineage", cli("lineage", LABELS["compacted"], "--json", store=home).json)
    triggers = [one["trigger"] for one in found["nodes"][0]["compactions"]]
    assert len(triggers) == 5
    assert triggers[-1] == "manual"
    legacy = cli("lineage", LABELS["legacy"], "--json", store=home).json
    counts = {node["id"]: len(node["compactions"]) for node in legacy["nodes"]}
    assert counts[LABELS["legacy"]] == 2


def test_no_bad_drop(cli: Cli, contract: Contract, home: Path) -> None:
    found = contract("cache", cli("cache", "--json", store=home).json)
    assert len(found["points"]) == sum(own[3] for own in OWN.values())
    assert [drop for drop in found["drops"] if not drop["expected"]] == []
    assert found["unknown_share"] == 0


def test_the_power_went_after_a_compaction(cli: Cli, contract: Contract, home: Path) -> None:
    """The classroom question: cut between the last compaction and the world state that follows it."""
    whole = contract("recover", cli("recover", LABELS["compacted"], "--json", store=home).json)
    line = whole["base"]["line"]
    cut = contract("recover", cli("recover", LABELS["compacted"], "--json", "--cut", str(line), store=home).json)
    assert (cut["base"]["kind"], cut["base"]["line"]) == ("compaction", line)
    assert (cut["baseline"], cut["reinjects_context"]) == (None, True)
    assert cut["list"]["title"] == whole["list"]["title"]
    torn = contract("recover", cli("recover", LABELS["compacted"], "--json", "--cut", f"{line}:20", store=home).json)
    assert torn["base"]["line"] != line


def test_halves_of_signs_are_mirrored_and_found(cli: Cli, home: Path) -> None:
    path = next(home.rglob(f"*{LABELS['exec']}*"))
    text = path.read_text().replace('"text":"List the files', r'"text":"\ud83dList\udc00한글\ud800 the files')
    path.write_text(text)
    read = cli("search", "files 한글", "--json", store=home)
    assert [(hit["session_id"], hit["kind"]) for hit in read.json["hits"]] == [(LABELS["exec"], "prompt")]
    assert cli("mirror", "update", store=home).code == 0
    asked = cli("search", "files 한글", "--json", store=home)
    assert (asked.json["route"], asked.json["hits"]) == ({"codex": "mirror"}, read.json["hits"])
    assert cli("search", "\udcff", "--json", store=home).code == 1


def test_a_reply_said_again_is_found_where_only_its_event_is_left(cli: Cli, tmp_path: Path) -> None:
    again = turn(2, "once more", "Done.", 20)
    lost = next(number for number, line in enumerate(again) if '"assistant"' in line)
    again[lost] = again[lost][:40]
    write(tmp_path, [meta(), *turn(1, "do it", "Done.", 10), *again])
    read = cli("search", "Done", "--json", store=tmp_path)
    assert len(read.json["hits"]) == 2
    assert cli("mirror", "update", store=tmp_path).code == 0
    assert cli("search", "Done", "--json", store=tmp_path).json["hits"] == read.json["hits"]


def test_what_is_glued_to_a_line_of_no_words_is_found(cli: Cli, tmp_path: Path) -> None:
    lines = [meta(), *turn(1, "do it", "Finished.", 10)]
    place = next(number for number, line in enumerate(lines) if '"agent_message"' in line)
    lines[place : place + 2] = [lines[2] + lines[place + 1]]
    write(tmp_path, lines)
    read = cli("search", "Finished", "--json", store=tmp_path)
    assert [(hit["message_id"], hit["part"]) for hit in read.json["hits"]] == [("msg_a011", 1)]
    assert cli("mirror", "update", store=tmp_path).code == 0
    assert cli("search", "Finished", "--json", store=tmp_path).json["hits"] == read.json["hits"]


def test_a_missing_rollout_is_told_with_a_mirror_of_ours_as_well(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was answered is kept at once, though the files were just written.
    monkeypatch.setattr(kept_answers, "SETTLED_NS", -(10**12))
    for path in home.rglob(f"*{LABELS['image']}*"):
        path.unlink()
    before = cli("show", LABELS["image"], "--json", store=home).json
    assert cli("mirror", "update", store=home).code == 0
    for _ in range(2):
        assert cli("list", "--json", store=home).code == 0
        told = cli("show", LABELS["image"], "--json", store=home).json
        assert told["problems"] == before["problems"]
        assert told["problems"][0]["path"].endswith(f"{LABELS['image']}.jsonl")


def test_a_newer_mirror_passed_over_is_told_where_the_list_was_kept(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "SETTLED_NS", -(10**12))
    (home / "state_6.sqlite").write_bytes(b"no database" * 99)
    assert cli("mirror", "update", store=home).code == 0
    for _ in range(2):
        assert cli("list", "--json", store=home).code == 0
        (told,) = [one for one in cli("doctor", "--json", store=home).json["stores"][0]["findings"]
                   if one["code"] == "agent-mirror-broken"]  # fmt: skip
        assert told["detail"].startswith("generation 6 of the mirror is not used")
