"""What a hit is: copies, states, orphans, filters, order, pages, context (contract.md, search)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Answer, Cli, Contract
from tests.unit.codex.rollouts import THREAD, meta, turn, write
from tests.unit.search.layouts import DAMAGES, LAYOUTS, Row, Session, make_store

Sample = Callable[[str], Path]


def found(cli: Cli, contract: Contract, store: Path, *argv: str) -> dict[str, Any]:
    """A search by the command line, held against the contract."""
    answer = cli("search", *argv, "--json", store=store)
    document: dict[str, Any] = contract("search", answer.json)
    assert answer.code == (0 if document["hits"] else 1)
    for hit in document["hits"]:
        plain = hit["snippet"].replace(">>>", "").replace("<<<", "")
        marked = [plain[start : start + length] for start, length in hit["marks"]]
        assert marked == re.findall(r">>>(.+?)<<<", hit["snippet"], re.DOTALL)
    return document


def ids(document: dict[str, Any]) -> list[str]:
    return [hit["message_id"] for hit in document["hits"]]


README = [
    ("docker", ["1", "5", "6"]),
    ("docker deployment", ["6"]),
    ("deploy*", ["6"]),
    ("chat-send", ["3", "4", "66"]),
    ("my-app.config.ts", ["3", "4"]),
    ('"exact phrase"', ["3"]),
    ("docker NOT stale", ["1", "5"]),
    ("hello AND", ["104"]),
    ("sure_thing", ["122"]),
    ("100%", ["122"]),
    ("내부", ["7", "12", "17", "22", "47", "48", "51", "52"]),
    ("부", ["7", "12", "17", "22", "47", "48", "51", "52"]),
    ("게이트웨이내부", ["7", "12", "17", "22", "47"]),
    ("비용", ["49", "50"]),
    ("内部", ["53", "54", "57"]),
    ("会话 索引", ["54"]),
    ("ゲートウェイ", ["57"]),
    ("zebrafish", []),
    ("(unbalanced", []),
    ("TODO: fix", []),
]


@pytest.mark.parametrize("profile", ["", "profiles/newlayout"])
@pytest.mark.parametrize(("query", "wanted"), README)
def test_sample_store_gives_what_its_readme_says(
    cli: Cli, contract: Contract, sample: Sample, profile: str, query: str, wanted: list[str]
) -> None:
    store = sample("hermes/home") / profile / "state.db"
    document = found(cli, contract, store, query)
    assert sorted(ids(document), key=int) == wanted
    assert document["incomplete"] is None


def test_rewound_messages_only_on_request(cli: Cli, contract: Contract, sample: Sample) -> None:
    store = sample("hermes/home") / "state.db"
    assert found(cli, contract, store, "zebrafish")["hits"] == []
    document = found(cli, contract, store, "zebrafish", "--all-states")
    assert [hit["state"] for hit in document["hits"]] == ["rewound", "rewound"]


@pytest.mark.parametrize("way", ["rotated", "inplace"])
def test_a_message_kept_by_three_compactions_is_one_hit(cli: Cli, contract: Contract, sample: Sample, way: str) -> None:
    store = sample(f"hermes/cli/{way}") / "state.db"
    document = found(cli, contract, store, '"turn 7"', "--kind", "prompt")
    (hit,) = document["hits"]
    assert hit["message_id"] == "13"
    assert hit["copies"] == 4
    assert hit["root_id"] == hit["session_id"]


def test_a_message_a_branch_copied_is_one_hit_in_the_trunk(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    talk = [Row("plan the harbour"), Row("the harbour needs a crane", role="assistant")]
    branch = [Row(row.content, role=row.role, session="b") for row in talk]
    own = Row("the harbour in winter", session="b")
    sessions = [
        Session("s1", title="Trunk", end_reason="branched"),
        Session("b", parent="s1", config='{"_branched_from": "s1"}', title="Branch", started=1_780_000_100.0),
    ]
    store = make_store(tmp_path / "state.db", "inline", [*talk, *branch, own], sessions)
    document = found(cli, contract, store, "harbour")
    assert [(hit["message_id"], hit["copies"], hit["state"]) for hit in document["hits"]] == [
        ("5", 1, "live"),
        ("2", 2, "live"),
        ("1", 2, "live"),
    ]
    inherited = found(cli, contract, store, "crane", "--source", "cli", "--since", "2026-05-28T20:26:42.5Z")
    assert [(hit["message_id"], hit["state"], hit["copies"]) for hit in inherited["hits"]] == [("4", "inherited", 2)]


def test_a_kept_output_that_says_something_else_is_found_by_that(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    """Compactions shorten outputs of tools: what only the shortened one says was found nowhere."""
    store = make_store(
        tmp_path / "state.db",
        "inline",
        [
            Row("please", session="s1"),
            Row("a long listing", role="tool", call_id="c1", session="s1"),
            Row("please", session="s2"),
            Row("listing (shortened)", role="tool", call_id="c1", session="s2"),
            Row("and on", session="s2"),
        ],
        [
            Session("s1"),
            Session("s2", parent="s1", config='{"_branched_from": "s1"}'),
        ],
    )
    assert ids(found(cli, contract, store, "listing")) == ["2"]
    assert ids(found(cli, contract, store, "long")) == ["2"]
    assert ids(found(cli, contract, store, "shortened")) == ["4"]


def test_what_people_repeat_is_no_copy(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    rows = [Row("yes please"), Row("done", role="assistant"), Row("yes please"), Row("done", role="assistant")]
    store = make_store(tmp_path / "state.db", "inline", rows)
    assert [hit["copies"] for hit in found(cli, contract, store, "please")["hits"]] == [1, 1]


def test_orphaned_messages_are_found_and_marked(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    rows = [Row("the lighthouse keeper", session="gone"), Row("the lighthouse", session="s1")]
    store = make_store(tmp_path / "state.db", "inline", rows)
    document = found(cli, contract, store, "lighthouse")
    assert ids(document) == ["2", "1"]
    orphan = document["hits"][1]
    assert (orphan["session_title"], orphan["root_id"], orphan["source"]) == (None, None, None)
    people = cli("search", "lighthouse", store=store)
    assert "its session is gone" in people.out


def test_hidden_messages_are_never_found_and_archived_sessions_are(
    cli: Cli, contract: Contract, tmp_path: Path
) -> None:
    rows = [Row("secret lantern", display_kind="hidden"), Row("open lantern", session="old")]
    sessions = [Session("s1"), Session("old", archived=1)]
    store = make_store(tmp_path / "state.db", "inline", rows, sessions)
    assert ids(found(cli, contract, store, "lantern", "--all-states")) == ["2"]


def test_filters(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    rows = [
        Row("anchor one", session="a"),
        Row("anchor two", session="a", role="assistant"),
        Row("anchor out", session="a", role="tool", tool_name="read_file"),
        Row(None, session="a", role="assistant", calls=(("write_file", {"text": "anchor"}),)),
        Row("anchor cron", session="c"),
        Row("anchor child", session="child"),
        Row("deep", session="a", role="assistant", reasoning="anchor thought"),
    ]
    sessions = [
        Session("a", key="agent:main:tg:dm:1", cwd="/srv/gateway", end_reason="compression"),
        Session("c", source="cron", model="other"),
        Session("child", parent="a", cwd="/srv/gateway/deep", started=1_780_000_900.0),
    ]
    store = make_store(tmp_path / "state.db", "inline", rows, sessions)

    def by(*argv: str) -> list[str]:
        return ids(found(cli, contract, store, "anchor", *argv))

    assert by() == ["6", "5", "4", "3", "2", "1"]
    assert by("--source", "cron") == ["5"]
    assert by("--exclude-source", "cron") == ["6", "4", "3", "2", "1"]
    assert by("--role", "tool") == ["3"]
    assert by("--kind", "tool-call") == ["4"]
    assert by("--kind", "reply") == ["2"]
    assert by("--kind", "reasoning") == ["7"]
    assert by("--model", "other") == ["5"]
    assert by("--cwd", "/srv/gateway") == ["6", "4", "3", "2", "1"]
    assert by("--cwd", "/srv/gate") == []
    assert by("--channel", "agent:main:tg:dm:1") == ["6", "4", "3", "2", "1"]
    assert by("--since", "2026-05-28T20:26:43Z", "--until", "2026-05-28T20:26:44.5Z") == ["5", "4"]
    assert by("--sort", "oldest") == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_are_whole_where_clocks_go_back(cli: Cli, contract: Contract, tmp_path: Path, order: str) -> None:
    """The last line of a log, or its first, does not tell the time the session was active from and to."""
    for number in range(4):
        thread = f"{THREAD[:-1]}{number}"
        lines = [meta(thread), *turn(1, "a barrel", "of barrel", 100 + number, thread=thread)]
        lines += turn(2, "barrel again", "barrel said", 5 * number, thread=thread)
        write(tmp_path, lines, thread=thread)
    whole = found(cli, contract, tmp_path, "barrel", "--sort", order, "--limit", "99")["hits"]
    assert len(whole) == 16  # prompts and replies of four threads
    given: list[object] = []
    after: list[str] = []
    for _ in whole:
        page = found(cli, contract, tmp_path, "barrel", "--sort", order, "--limit", "3", *after)
        given += page["hits"]
        if page["next"] is None:
            break
        after = ["--after", page["next"]]
    assert given == whole


def test_pages_go_on_where_they_ended(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    rows = [Row(f"barrel {number} " + "barrel " * (number % 5)) for number in range(23)]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make_store(tmp_path / name / "state.db", "inline", rows)
    for order in ("newest", "oldest", "rank"):
        whole = found(cli, contract, tmp_path, "barrel", "--sort", order, "--all")
        assert len(whole["hits"]) == 46
        assert whole["next"] is None
        pages: list[tuple[str, str]] = []
        after: list[str] = []
        while True:
            page = found(cli, contract, tmp_path, "barrel", "--sort", order, "--limit", "5", *after)
            pages += [(hit["store"], hit["message_id"]) for hit in page["hits"]]
            if page["next"] is None:
                break
            after = ["--after", page["next"]]
        assert pages == [(hit["store"], hit["message_id"]) for hit in whole["hits"]]


def test_stores_are_merged_by_time(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    for name, start in (("one", 0), ("two", 1)):
        (tmp_path / name).mkdir()
        rows = [Row("rudder", at=1_780_000_000.0 + 2 * number + start) for number in range(4)]
        make_store(tmp_path / name / "state.db", "inline", rows)
    times = [hit["at"] for hit in found(cli, contract, tmp_path, "rudder")["hits"]]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == 8


def test_rank_puts_the_message_that_says_it_most_first(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    rows = [Row("keel " + "and other words " * 30), Row("keel keel keel"), Row("a keel is a keel, they say")]
    store = make_store(tmp_path / "state.db", "inline", rows)
    document = found(cli, contract, store, "keel", "--sort", "rank")
    assert ids(document) == ["2", "3", "1"]
    assert document["ranked_of"] is None


def test_context_is_what_stands_around_in_the_session(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    rows = [
        Row("x" * 300),
        Row("elsewhere", session="s2"),
        Row("the compass", role="assistant"),
        Row("taken back", active=0),
        Row([{"type": "text", "text": "추가 질문"}, {"type": "image_url"}]),
    ]
    store = make_store(tmp_path / "state.db", "inline", rows)
    (hit,) = found(cli, contract, store, "compass")["hits"]
    assert hit["context"]["before"] == {"role": "user", "text": "x" * 200 + "…"}
    assert hit["context"]["after"] == {"role": "user", "text": "추가 질문"}


def test_text_with_markers_of_its_own_keeps_the_marks_right(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    store = make_store(tmp_path / "state.db", "inline", [Row(">>> sextant = 1  <<<>>> sextant")])
    (hit,) = found(cli, contract, store, "sextant")["hits"]
    assert len(hit["marks"]) == 2


def test_titles_come_from_the_conversation(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    rows = [Row("hawser one", session="root"), Row("hawser two", session="tip")]
    sessions = [
        Session("root", end_reason="compression"),
        Session("tip", parent="root", title="Mooring", started=1_780_000_500.0),
    ]
    store = make_store(tmp_path / "state.db", "inline", rows, sessions)
    hits = found(cli, contract, store, "hawser")["hits"]
    assert [hit["session_title"] for hit in hits] == ["Mooring", "Mooring"]
    assert {hit["root_id"] for hit in hits} == {"root"}


@pytest.mark.parametrize(
    ("layout", "damage", "query", "route"),
    [
        ("inline", "sound", "anchor", "fts"),
        ("inline", "sound", "내부", "trigram"),
        ("inline", "sound", "부", "trigram"),
        ("new", "sound", "anchor", "fts"),
        ("new", "sound", "내부", "cjk"),
        ("new-without-pairs", "sound", "게이트", "trigram"),
        ("new-without-pairs", "sound", "내부", "scan"),
        ("very-old", "sound", "anchor", "fts"),
        ("none", "sound", "anchor", "scan"),
        ("inline", "zeroed-words", "anchor", "scan"),
        ("inline", "zeroed-trigrams", "내부", "scan"),
        ("inline", "structure", "anchor", "scan"),
        ("inline", "stale", "anchor", "scan"),
        ("inline", "rows-missing", "anchor", "scan"),
        ("inline", "no-triggers", "anchor", "scan"),
        ("new", "half-built", "anchor", "fts"),
        ("new", "stale", "내부", "scan"),
    ],
)
def test_route_is_what_was_used_and_trouble_is_said(
    cli: Cli, contract: Contract, tmp_path: Path, layout: str, damage: str, query: str, route: str
) -> None:
    rows = [Row(f"anchor 게이트웨이내부 word{number} and more") for number in range(12)]
    store = make_store(tmp_path / "state.db", layout, rows, damage=damage)
    answer: Answer = cli("search", query, "--json", store=store)
    document = contract("search", answer.json)
    assert document["route"] == {"hermes/default": route}
    assert len(document["hits"]) == 12
    assert document["incomplete"] is None
    assert bool(answer.err) == (damage not in ("sound", "half-built"))


def test_every_damage_and_layout_is_tested() -> None:
    assert set(DAMAGES) == {
        "sound", "zeroed-words", "zeroed-trigrams", "structure", "stale", "half-built", "rows-missing", "no-triggers",
    }  # fmt: skip
    assert len(LAYOUTS) == 6


def test_nothing_to_look_for_is_said(cli: Cli, contract: Contract, sample: Sample) -> None:
    store = sample("hermes/home") / "state.db"
    for query in ("***", '"', "%"):
        answer = cli("search", query, "--json", store=store)
        assert answer.code == 1
        assert "no letter" in contract("search", answer.json)["incomplete"]


@pytest.mark.parametrize("argv", [["(", "--regex"], ["docker", "--after", "nonsense"], ["docker", "--sort", "best"]])
def test_wrong_use_is_an_error_with_advice(cli: Cli, contract: Contract, sample: Sample, argv: list[str]) -> None:
    store = sample("hermes/home") / "state.db"
    answer = cli("search", *argv, "--json", store=store)
    assert answer.code == 2
    contract("error", answer.json)


def test_a_cursor_of_another_search_is_refused(cli: Cli, contract: Contract, sample: Sample) -> None:
    store = sample("hermes/home") / "state.db"
    page = found(cli, contract, store, "gateway", "--limit", "1")
    assert cli("search", "docker", "--after", page["next"], "--json", store=store).code == 2


def test_regex_reads_everything(cli: Cli, contract: Contract, sample: Sample) -> None:
    store = sample("hermes/home") / "state.db"
    document = found(cli, contract, store, r"chat-\w+d", "--regex")
    assert set(ids(document)) >= {"3", "4", "66"}
    assert document["route"] == {"hermes/default": "scan"}


@pytest.mark.parametrize("name", ["codex", "claude/dot-claude", "dsh/dot-dsh"])
def test_logs_are_searched_too(cli: Cli, contract: Contract, sample: Sample, name: str) -> None:
    store = sample(name)
    document = found(cli, contract, store, "the OR a OR 的", "--all")
    assert document["hits"]
    assert set(document["route"].values()) == {"scan"}
    times = [hit["at"] for hit in document["hits"] if hit["at"]]
    assert len(times) > 3
    oldest = found(cli, contract, store, "the OR a OR 的", "--all", "--sort", "oldest")
    assert sorted(map(str, ids(oldest))) == sorted(map(str, ids(document)))


def test_logs_beside_the_database_are_searched_too(cli: Cli, contract: Contract, sample: Sample) -> None:
    home = sample("hermes/home")
    document = found(cli, contract, home / "state.db", "legacy")
    (hit,) = document["hits"]
    assert hit["session_id"] == "20250101_090000_legacy"
    assert hit["context"] == {"before": None, "after": {"role": "assistant", "text": "yes"}}
    whole = found(cli, contract, home / "state.db", "legacy OR docker OR yes")
    first = found(cli, contract, home / "state.db", "legacy OR docker OR yes", "--limit", "2")
    rest = found(cli, contract, home / "state.db", "legacy OR docker OR yes", "--after", first["next"])
    assert ids(first) + ids(rest) == ids(whole)


def test_logs_are_searched_where_the_database_cannot_be_read(cli: Cli, contract: Contract, sample: Sample) -> None:
    home = sample("hermes/home")
    (home / "state.db").write_bytes(b"not a database at all" * 100)
    answer = cli("search", "legacy", "--json", store=home)
    document = contract("search", answer.json)
    assert answer.code == 3
    assert {hit["session_id"] for hit in document["hits"]} >= {"20250101_090000_legacy"}
    assert "cannot be read" in document["incomplete"]


def test_a_cancelled_search_ends_without_an_error(tmp_path: Path) -> None:
    from hermes_tui.library.search import SearchRequest, search
    from hermes_tui.library.sources import SourceOptions, open_library

    store = make_store(tmp_path / "state.db", "none", [Row(f"halyard {number}") for number in range(200)])
    library = open_library(SourceOptions(paths=(str(store),)))
    run = search(library, SearchRequest("halyard", limit=None))
    seen = 0
    for _ in run:
        seen += 1
        run.cancel()
    assert run.cancelled
    assert 0 < seen <= 200
    after = search(library, SearchRequest("halyard", limit=None))
    assert len(list(after)) == 200


def test_searching_leaves_nothing_behind(cli: Cli, contract: Contract, sample: Sample) -> None:
    home = sample("hermes/home")
    before = sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in home.rglob("*"))
    found(cli, contract, home, "내부 OR docker", "--all")
    assert sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in home.rglob("*")) == before
