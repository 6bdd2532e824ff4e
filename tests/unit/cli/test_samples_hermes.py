"""The command line on the Hermes sample, against the numbers of its README."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Cli, Contract

NAMES = {
    "plain": "20260225_061321_a5cd68", "plain2": "20260225_110122_4d3c1a", "chain1": "20260226_061323_ca264e",
    "chain2": "20260226_154924_18b8ff", "chain3": "20260227_012525_25165e", "chain4": "20260227_110126_3031d0",
    "trunk": "20260228_061327_bb3b93", "branch": "20260228_062752_1db208", "branch_old": "20260228_064217_6deceb",
    "boss": "20260301_061330_1332a1", "kid1": "20260301_061345_2c0146", "kid2": "20260301_061406_de06ce",
    "grandkid": "20260301_061427_d61aa9", "tg": "20260302_061334_11e20b8f", "zh": "20260302_110135_6cad4a26",
    "ja": "20260302_132536_3f62f8", "cron1": "cron_job03_20260303_061320", "cron2": "cron_job04_20260304_061320",
    "rich": "20260305_061339_cb19b4", "inplace": "20260306_061340_1963c5", "arch1": "20260307_061341_7131a3",
    "arch2": "20260307_154942_17d9af", "arch_single": "20260308_061343_442f7d", "toolsrc": "20260309_061344_9447ab",
    "ghost": "20260309_083745_d69964", "empty_live": "20260309_110146_49dbcd", "nomodel": "20260309_132547_8a6a63ec",
    "included": "20260309_154948_9df154", "actual": "20260309_181349_5c882b",
    "unknowncost": "20260309_203750_34c3b7", "clock": "20260310_061351_6030a1", "race1": "20260311_061352_beaae4",
    "race_live": "20260311_061411_31e26b", "race_stale": "20260311_061433_2025e0",
    "twin_a": "20260401_120000_aa0001", "twin_b": "20260401_120000_aa0002",
}  # fmt: skip
DEFAULT_LIST = (
    "twin_b twin_a race_live clock unknowncost actual included nomodel empty_live ghost inplace rich cron2 cron1 ja zh "
    "tg boss branch_old branch trunk chain4 plain2 plain"
).split()
RATES = {
    "plain": 0.8, "chain1": 0.92, "chain2": 0.9, "chain3": 0.08, "chain4": 0.88, "boss": 0.82, "tg": 0.8,
    "rich": 0.627, "inplace": 0.946, "arch1": 0.8, "arch2": 0.8,
}  # fmt: skip


"""As the README has them, but for rich: its 0.637 leaves out two auxiliary calls that the contract counts."""


def name_of(session_id: str) -> str:
    return next((name for name, known in NAMES.items() if known == session_id), session_id)


@pytest.fixture
def home(sample: Callable[[str], Path]) -> Path:
    return sample("hermes/home")


@pytest.fixture
def store(home: Path) -> Path:
    return home / "state.db"


def test_the_default_list(cli: Cli, contract: Contract, store: Path) -> None:
    found = contract("list", cli("list", "--json", store=store).json)
    names = [name_of(row["id"]) for row in found["sessions"]]
    # The product keeps a conversation's place by its root's start; ours is by last activity, which is the same here.
    assert [name for name in names if name in NAMES] == DEFAULT_LIST
    # README: a legacy JSONL with no row in the database is listed too.
    assert set(names) - set(NAMES) == {"20250101_090000_legacy"}
    assert found["left_out"] == {"archived": 2, "delegated": 3, "tool": 1}
    assert found["total"] == len(DEFAULT_LIST) + 1


def test_every_session_on_its_own_line(cli: Cli, contract: Contract, store: Path) -> None:
    found = contract("list", cli("list", "--json", "--sessions", "--all", store=store).json)
    assert sorted(name_of(row["id"]) for row in found["sessions"]) == sorted([*NAMES, "20250101_090000_legacy"])
    assert found["left_out"] == {}
    by_name = {name_of(row["id"]): row for row in found["sessions"]}
    for name, rate in RATES.items():
        assert by_name[name]["cache_hit_rate"] == pytest.approx(rate, abs=0.0006), name
    kinds = {name: row["lineage_kind"] for name, row in by_name.items() if row["lineage_kind"] != "root"}
    assert kinds == {
        "chain2": "compaction", "chain3": "compaction", "chain4": "compaction", "branch": "branch",
        "branch_old": "branch", "kid1": "delegation", "kid2": "delegation", "grandkid": "delegation",
        "arch2": "compaction", "race_live": "compaction", "race_stale": "compaction",
    }  # fmt: skip


def test_a_chain_is_one_row_with_its_sums(cli: Cli, store: Path) -> None:
    row = next(one for one in cli("list", "--json", store=store).json["sessions"] if one["id"] == NAMES["chain4"])
    assert (row["root_id"], row["tip_id"], row["parts"]) == (NAMES["chain1"], NAMES["chain4"], 4)
    assert (row["input_tokens"], row["cache_read_tokens"], row["cache_write_tokens"]) == (122_000, 278_000, 0)
    assert row["cost_usd"] == pytest.approx(0.034 + 0.04 + 0.286 + 0.046)
    assert row["cost_status"] == "estimated"
    assert row["started_at"].startswith("2026-02-26T06:13")
    assert row["last_active_at"].startswith("2026-02-27T11:0")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--archived",), {"arch2", "arch_single"}),
        (("--children",), {"kid1", "kid2", "grandkid"}),
        (("--source", "tool"), set()),
    ],
)
def test_what_is_left_out_comes_back_when_asked_for(
    cli: Cli, store: Path, options: tuple[str, ...], names: set[str]
) -> None:
    found = cli("list", "--json", "--all", *options, store=store).json
    assert names <= {name_of(row["id"]) for row in found["sessions"]}


def test_filters(cli: Cli, store: Path) -> None:
    def names(*options: str) -> set[str]:
        rows = cli("list", "--json", "--all", *options, store=store).json["sessions"]
        return {name_of(row["id"]) for row in rows}

    assert names("--source", "telegram") == {"tg", "nomodel"}
    assert names("--model", "sol-9") == {"boss", "rich"}
    assert "rich" in names("--model", "nimbus-4-large"), "it was changed to that one"
    assert names("--model", "nimbus-4-mini") == {"cron1", "cron2"}, "titles alone are no talk"
    assert "chain4" not in names("--since", "2026-03-01")
    assert names("--until", "2026-02-25T12:00:00Z") >= {"plain", "plain2"}
    assert names("--model", "sol") == set()


def test_orders_and_limits(cli: Cli, store: Path) -> None:
    by_tokens = cli("list", "--json", "--order", "tokens", "--limit", "3", store=store).json
    sizes = [sum(row[key] for key in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"))
             for row in by_tokens["sessions"]]  # fmt: skip
    assert sizes == sorted(sizes, reverse=True)
    assert (len(sizes), by_tokens["total"]) == (3, 25)
    by_cost = cli("list", "--json", "--order", "cost", "--all", store=store).json["sessions"]
    costs = [-1.0 if row["cost_usd"] is None else row["cost_usd"] for row in by_cost]
    assert costs == sorted(costs, reverse=True)
    assert name_of(by_cost[0]["id"]) == "chain4"
    by_messages = cli("list", "--json", "--order", "messages", "--all", store=store).json["sessions"]
    counts = [row["message_count"] for row in by_messages]
    assert counts == sorted(counts, reverse=True)
    assert cli("list", "--json", "--limit", "0", store=store).json["sessions"] == []


def test_costs_by_model_and_task(cli: Cli, contract: Contract, store: Path) -> None:
    found = contract("cost", cli("cost", "--json", store=store).json)
    rows = {row["key"]: row for row in found["rows"]}
    large = rows["nimbus-4-large"]
    assert (large["requests"], large["input_tokens"], large["output_tokens"], large["cache_read_tokens"]) == (
        55, 216_600, 14_000, 484_600,
    )  # fmt: skip
    assert large["cache_hit_rate"] == pytest.approx(0.691, abs=0.0005)
    sol = rows["sol-9"]
    assert (sol["input_tokens"], sol["cache_read_tokens"], sol["cache_write_tokens"], sol["reasoning_tokens"]) == (
        2_500, 87_000, 4_800, 320,
    )  # fmt: skip
    assert (rows["codex-mini"]["cost_usd"], rows["codex-mini"]["cost_status"]) == (0.0, "included")
    assert (rows["local-7b"]["cost_usd"], rows["local-7b"]["cost_status"]) == (None, "unknown")
    tasks = {row["key"]: row for row in cli("cost", "--json", "--by", "task", store=store).json["rows"]}
    assert (tasks["title_generation"]["input_tokens"], tasks["vision"]["input_tokens"]) == (400, 1_500)
    assert tasks["main"]["cache_read_tokens"] == 571_600
    assert found["time_zone"] == "UTC"


def test_totals_agree_at_every_grouping(cli: Cli, contract: Contract, store: Path) -> None:
    keys = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd")
    totals = []
    for by in ("model", "task", "day", "source", "cwd", "store", "profile", "channel", "provider", "session"):
        found = contract("cost", cli("cost", "--json", "--by", by, store=store).json)
        totals.append({key: pytest.approx(found["totals"][key]) for key in keys})
        for key in keys[:-1]:
            assert sum(row[key] for row in found["rows"]) == found["totals"][key], (by, key)
    assert all(total == totals[0] for total in totals)
    rows = cli("list", "--json", "--sessions", "--all", store=store).json["sessions"]
    for key in keys[:-1]:
        assert sum(row[key] or 0 for row in rows) == totals[0][key], key


def test_lineage_of_a_chain_and_of_a_delegation(cli: Cli, contract: Contract, store: Path) -> None:
    found = contract("lineage", cli("lineage", NAMES["chain2"], "--json", store=store).json)
    assert [name_of(one) for one in found["conversation"]] == ["chain1", "chain2", "chain3", "chain4"]
    assert (name_of(found["root_id"]), name_of(found["tree_root_id"])) == ("chain1", "chain1")
    found = contract("lineage", cli("lineage", NAMES["grandkid"], "--json", store=store).json)
    assert {name_of(node["id"]) for node in found["nodes"]} == {"boss", "kid1", "kid2", "grandkid"}
    assert name_of(found["tree_root_id"]) == "boss"
    found = cli("lineage", NAMES["race_stale"], "--json", store=store).json
    assert [name_of(one) for one in cli("lineage", NAMES["race1"], "--json", store=store).json["conversation"]] == [
        "race1", "race_live",
    ]  # fmt: skip
    assert {name_of(node["id"]) for node in found["nodes"]} == {"race1", "race_live", "race_stale"}


def test_show_states_and_pages(cli: Cli, contract: Contract, store: Path) -> None:
    found = contract("show", cli("show", NAMES["inplace"], "--json", store=store).json)
    states = [message["state"] for message in found["messages"]]
    assert (states.count("compacted"), states.count("rewound")) == (12, 0)
    everything = contract("show", cli("show", NAMES["inplace"], "--json", "--all-states", store=store).json)
    assert [message["state"] for message in everything["messages"]].count("rewound") == 2
    ids = [int(message["id"]) for message in everything["messages"]]
    assert ids == sorted(ids)
    first = contract("show", cli("show", NAMES["inplace"], "--json", "--limit", "4", store=store).json)
    assert (len(first["messages"]), first["more"]) == (4, True)
    assert first["messages"] == found["messages"][:4]
    after = cli("show", NAMES["inplace"], "--json", "--after", first["messages"][-1]["id"], store=store).json
    assert after["messages"] == found["messages"][4:]
    tail = cli("show", NAMES["inplace"], "--json", "--tail", "3", store=store).json
    assert (tail["messages"], tail["more"]) == (found["messages"][-3:], True)
    assert cli("show", NAMES["inplace"], "--json", "--after", "nope", store=store).code == 1


def test_show_of_a_conversation_is_its_chain(cli: Cli, contract: Contract, store: Path) -> None:
    found = contract("show", cli("show", NAMES["chain3"], "--conversation", "--json", "--all", store=store).json)
    assert found["session"]["id"] == NAMES["chain4"]
    sessions = list(dict.fromkeys(name_of(message["session_id"]) for message in found["messages"]))
    assert sessions == ["chain1", "chain2", "chain3", "chain4"]
    assert len({(message["id"], message["part"]) for message in found["messages"]}) == len(found["messages"])


def test_sent_bytes_only_on_request(cli: Cli, store: Path) -> None:
    plain = cli("show", NAMES["rich"], "--json", "--all", store=store).json["messages"]
    assert all("sent_text" not in message for message in plain)
    sent = cli("show", NAMES["rich"], "--json", "--all", "--sent", store=store).json["messages"]
    differing = [message for message in sent if "sent_text" in message]
    assert len(differing) == 1
    assert "memory-context" in differing[0]["sent_text"]


def test_hostile_text_leaves_as_escapes(cli: Cli, store: Path) -> None:
    for options in (("show", NAMES["rich"], "--all", "--json"), ("list", "--json", "--all")):
        text = cli(*options, store=store).out
        assert not [sign for sign in text if ord(sign) < 32 and sign != "\n"]
        assert not [sign for sign in text if 0x7F <= ord(sign) < 0xA0]
    for options in (("show", NAMES["rich"], "--all"), ("list", "--all"), ("lineage", NAMES["rich"])):
        text = cli(*options, store=store).out
        assert not [sign for sign in text if (ord(sign) < 32 and sign != "\n") or 0x7F <= ord(sign) < 0xA0], options


def test_the_cache_falls_where_the_readme_says(cli: Cli, contract: Contract, store: Path) -> None:
    found = contract("cache", cli("cache", "--json", store=store).json)
    bad = {name_of(drop["session_id"]): drop for drop in found["drops"] if not drop["expected"]}
    assert set(bad) == {"chain3", "rich"}
    assert bad["rich"]["cause"] == "model-change"
    assert (bad["chain3"]["from_rate"], bad["chain3"]["to_rate"]) == (0.9, 0.08)
    assert found["unknown_share"] == 0.5
    one = contract("cache", cli("cache", NAMES["chain1"], "--json", store=store).json)
    assert [name_of(point["session_id"]) for point in one["points"]] == ["chain1", "chain2", "chain3", "chain4"]
    assert all(point["request_id"] is None for point in found["points"])


def test_recovery_is_the_active_rows_of_the_tip(cli: Cli, contract: Contract, store: Path) -> None:
    found = contract("recover", cli("recover", NAMES["inplace"], "--json", store=store).json)
    assert found["base"]["kind"] == "compaction"
    assert all(message["state"] == "live" for message in found["messages"])
    assert contract("recover", cli("recover", NAMES["plain"], "--json", store=store).json)["base"]["kind"] == "start"


def test_twins_are_ambiguous(cli: Cli, contract: Contract, store: Path) -> None:
    answer = cli("show", "20260401_120000_aa", "--json", store=store)
    assert answer.code == 1
    found = contract("error", answer.json)["error"]
    assert (found["code"], sorted(found["candidates"])) == ("ambiguous-id", [NAMES["twin_a"], NAMES["twin_b"]])


def test_a_home_has_a_store_a_profile(cli: Cli, contract: Contract, home: Path) -> None:
    found = contract("list", cli("list", "--json", "--all", store=home).json)
    stores = {store["store"]: store["state"] for store in found["stores"]}
    assert stores == {
        "hermes/default": "ok", "hermes/empty": "empty", "hermes/newlayout": "ok", "hermes/sales": "ok",
    }  # fmt: skip
    only = cli("list", "--json", "--profile", "sales", store=home).json
    assert [row["store"] for row in only["sessions"]] == ["hermes/sales"] * 3
    twice = cli("show", NAMES["plain"], "--json", store=home)
    assert (twice.code, twice.json["error"]["candidates"]) == (
        1, [f"hermes/default:{NAMES['plain']}", f"hermes/newlayout:{NAMES['plain']}"],
    )  # fmt: skip
    assert cli("show", f"hermes/newlayout:{NAMES['plain']}", "--json", store=home).code == 0


def test_doctor(cli: Cli, contract: Contract, home: Path) -> None:
    answer = cli("doctor", "--json", store=home)
    assert answer.code == 0
    found = contract("doctor", answer.json)
    assert {store["store"] for store in found["stores"]} >= {"hermes/default", "hermes/sales"}


def test_reading_leaves_the_home_as_it_was(cli: Cli, home: Path) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {
            str(Path(folder) / name): (stat.st_size, stat.st_mtime_ns)
            for folder, _, names in os.walk(home)
            for name in names
            for stat in [(Path(folder) / name).stat()]
        }

    before = state()
    for argv in (
        ("list",), ("cost",), ("cache",), ("doctor",), ("show", f"hermes/default:{NAMES['chain4']}", "--conversation"),
        ("lineage", f"hermes/sales:{'20260318_061322_c0306c'}"), ("recover", f"hermes/default:{NAMES['rich']}"),
    ):  # fmt: skip
        assert cli(*argv, "--json", store=home).code == 0, argv
    assert state() == before


@pytest.mark.parametrize("options", [(), ("--sessions",), ("--archived", "--children")])
def test_the_order_by_cost_is_that_of_the_printed_costs(cli: Cli, home: Path, options: tuple[str, ...]) -> None:
    rows = cli("list", "--json", "--all", "--order", "cost", *options, store=home).json["sessions"]
    costs = [-1.0 if row["cost_usd"] is None else round(row["cost_usd"], 9) for row in rows]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 0.2


def test_a_log_beside_an_empty_database_is_read(cli: Cli, contract: Contract, home: Path) -> None:
    """The list showed such a log, but no command that takes an id knew it."""
    (home / "state.db").write_bytes(b"")
    legacy = "20250101_090000_legacy"
    for asked in (legacy, "20250101", f"hermes/default:{legacy}"):
        shown = contract("show", cli("show", asked, "--conversation", "--json", store=home / "state.db").json)
        assert shown["messages"][0]["text"] == "only in a legacy file"
    assert contract("lineage", cli("lineage", legacy, "--json", store=home / "state.db").json)["root_id"] == legacy
    assert cli("show", "nothing", "--json", store=home / "state.db").code == 3


def test_what_a_sound_store_cannot_do_is_refused(cli: Cli, contract: Contract, store: Path) -> None:
    """Exit code 3 is for stores that cannot be read."""
    for words in (("20250101_090000_legacy",), (NAMES["plain"], "--cut", "3")):
        answer = cli("recover", *words, "--json", store=store)
        assert (answer.code, contract("error", answer.json)["error"]["code"]) == (1, "refused")


def test_tables_for_people_leave_out_what_is_not_known(cli: Cli, store: Path) -> None:
    """A Hermes store keeps no sizes of compactions; one hit is one hit; bad drops come before expected ones."""
    lineage = cli("lineage", NAMES["chain1"], store=store).out
    assert "compaction" in lineage
    assert "?" not in lineage
    marked = ["expected;" in line for line in cli("cache", store=store).out.splitlines()[1:-1] if line[:3] == "202"]
    assert set(marked) == {True, False}
    assert marked == sorted(marked)
    assert "1 hit ·" in cli("search", "the", "--limit", "1", store=store).out
