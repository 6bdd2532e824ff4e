"""Options, exit codes, errors, and what must not be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_tui import __version__
from hermes_tui.cli.parser import COMMANDS
from hermes_tui.library.commands import COMMANDS as SCREEN_COMMANDS
from hermes_tui.main import main, no_screen_reason
from tests.conftest import Cli, Contract

PLAIN = "20260225_061321_a5cd68"


@pytest.fixture
def store(sample: Callable[[str], Path]) -> Path:
    return sample("hermes/home/state.db")


def test_options_stand_before_or_after_the_command(cli: Cli, store: Path) -> None:
    after = cli("list", "--store", str(store), "--json", "--agent", "hermes")
    before = cli("--json", "--agent", "hermes", "--store", str(store), "list")
    assert after.code == before.code == 0
    assert after.json == before.json
    assert after.json["total"] > 20


def test_stores_before_and_after_add_up(cli: Cli, sample: Callable[[str], Path], store: Path) -> None:
    other = sample("hermes/home/profiles/sales/state.db")
    found = cli("--store", str(store), "list", "--json", "--store", str(other)).json
    assert [one["sessions"] > 0 for one in found["stores"]] == [True, True]


def test_a_store_named_twice_is_opened_once(cli: Cli, store: Path) -> None:
    link = store.parent / "again"
    link.symlink_to(store.parent, target_is_directory=True)
    found = cli("--store", str(store), "list", "--json", "--store", str(link / "state.db")).json
    assert len(found["stores"]) == 1


def test_two_stores_of_one_kind_and_profile_are_numbered(
    cli: Cli, sample: Callable[[str], Path], store: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "state.db").write_bytes(store.read_bytes())
    answer = cli("--store", str(store), "--store", str(other / "state.db"), "list", "--json")
    assert [one["store"] for one in answer.json["stores"]] == ["hermes/default", "hermes/default#2"]
    twice = cli("--store", str(store), "--store", str(other / "state.db"), "show", PLAIN, "--json")
    assert twice.json["error"]["candidates"] == [f"hermes/default:{PLAIN}", f"hermes/default#2:{PLAIN}"]
    shown = cli("--store", str(store), "--store", str(other), "show", f"hermes/default#2:{PLAIN}", "--json")
    assert shown.json["session"]["store"] == "hermes/default#2"


def test_a_folder_of_homes_is_looked_into(cli: Cli, sample: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("hermes/home", "codex", "claude/dot-claude", "dsh/dot-dsh"):
        sample(name)
    found = cli("list", "--json", "--all", store=tmp_path / "samples").json
    assert {one["agent"] for one in found["stores"]} == {"hermes", "codex", "claude", "dsh"}
    only = cli("list", "--json", "--all", "--agent", "dsh", "--agent", "claude", store=tmp_path / "samples").json
    assert {one["agent"] for one in only["stores"]} == {"claude", "dsh"}


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (("list", "--order", "size"), "size"),
        (("list", "--limit", "-1"), "-1"),
        (("list", "--limit", "x"), "x"),
        (("list", "--since", "soon"), "soon"),
        (("list", "--nonsense"), "--nonsense"),
        (("list", "--all", "--limit", "3"), "--limit"),
        (("list", "--agent", "emacs"), "emacs"),
        (("list", "--store", ""), "empty path"),
        (("list", "--cwd", ""), "empty path"),
        (("nonsense",), "nonsense"),
        (("show",), "ID"),
        (("cost", "--by", "mood"), "mood"),
        (("recover", "abc", "--cut", "one"), "one"),
        (("export",), "ID"),
        ((), "command"),
    ],
)
def test_wrong_use(cli: Cli, contract: Contract, store: Path, argv: tuple[str, ...], word: str) -> None:
    answer = cli(*argv, "--json", store=store)
    assert answer.code == 2
    error = contract("error", answer.json)["error"]
    assert error["code"] == "wrong-use"
    assert word in error["message"]
    plain = cli(*argv, store=store)
    assert (plain.code, plain.out) == (2, "")
    assert word in plain.err


def test_a_folder_is_meant_from_the_current_one(cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {row["cwd"] for row in cli("list", "--json", "--all", store=store).json["sessions"]}
    place = next(path for path in sorted(filter(None, folders)) if path.startswith("/"))
    expected = cli("list", "--json", "--all", "--cwd", place, store=store).json["total"]
    assert expected > 0
    monkeypatch.setattr(os, "getcwd", lambda: place)
    monkeypatch.setenv("HOME", place)
    for written in (".", "./", "../" + Path(place).name, "~", "~/."):
        assert cli("list", "--json", "--all", "--cwd", written, store=store).json["total"] == expected, written


@pytest.mark.parametrize("argv", [("list",), ("search", "the")])
def test_a_limit_beyond_any_number_is_no_limit(cli: Cli, store: Path, argv: tuple[str, ...]) -> None:
    key = {"list": "sessions", "search": "hits"}[argv[0]]
    limited = cli(*argv, "--limit", "9" * 30, "--json", store=store)
    assert (limited.code, limited.json[key]) == (0, cli(*argv, "--all", "--json", store=store).json[key])


def test_a_place_without_a_store(cli: Cli, contract: Contract, tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", tmp_path):
        answer = cli("list", "--json", store=place)
        assert answer.code == 3
        assert str(place) in contract("error", answer.json)["error"]["message"]


def test_a_place_without_a_store_beside_one(cli: Cli, contract: Contract, store: Path, tmp_path: Path) -> None:
    answer = cli("--store", str(tmp_path / "nowhere"), "list", "--json", store=store)
    assert answer.code == 3
    assert contract("list", answer.json)["total"] > 20
    assert "nowhere" in answer.err


def test_a_store_that_cannot_be_read_is_named_and_the_rest_is_printed(
    cli: Cli, contract: Contract, sample: Callable[[str], Path], store: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "state.db").write_bytes(b"no database at all, but long enough to look at" * 40)
    for argv in (("list",), ("cost",), ("cache",), ("doctor",)):
        answer = cli("--store", str(broken / "state.db"), *argv, "--json", store=store)
        assert answer.code == 3, argv
        contract(argv[0], answer.json)
        assert str(broken) in answer.err
    listed = cli("--store", str(broken / "state.db"), "list", "--json", store=store).json
    assert [one["state"] for one in listed["stores"]] == ["ok", "unreadable"]
    assert listed["total"] > 20
    alone = cli("show", PLAIN, "--json", store=broken / "state.db")
    assert (alone.code, alone.json["error"]["code"]) == (3, "store-unreadable")
    assert cli("--store", str(broken / "state.db"), "show", PLAIN, "--json", store=store).code == 0


def test_no_store_anywhere_says_where_it_looked_and_offers_the_demo(
    cli: Cli, contract: Contract, own_home: Path
) -> None:
    answer = cli("list", "--json")
    assert answer.code == 0
    assert contract("list", answer.json) == {"sessions": [], "total": 0, "left_out": {}, "stores": []}
    for word in (".hermes", ".codex", ".claude", ".dsh", "hermes-tui demo"):
        assert word in answer.err
    assert contract("error", cli("show", "abc", "--json").json)["error"]["candidates"] == []
    for command in ("cost", "cache", "doctor"):
        found = cli(command, "--json")
        assert found.code == 0
        contract(command, found.json)


def test_default_places_and_variables(
    cli: Cli, sample: Callable[[str], Path], own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_home / ".claude").symlink_to(sample("claude/dot-claude"), target_is_directory=True)
    assert [one["store"] for one in cli("list", "--json").json["stores"]] == ["claude"]
    monkeypatch.setenv("HERMES_HOME", str(sample("hermes/home")))
    monkeypatch.setenv("CODEX_HOME", str(sample("codex")))
    monkeypatch.setenv("DSH_HOME", str(sample("dsh/dot-dsh")))
    stores = [one["store"] for one in cli("list", "--json").json["stores"]]
    assert set(stores) >= {"hermes/default", "hermes/sales", "codex", "claude", "dsh"}
    one = cli("list", "--json", "--profile", "sales").json
    assert [store["store"] for store in one["stores"]] == ["hermes/sales"]


def test_roots_of_the_settings_file(cli: Cli, sample: Callable[[str], Path], own_home: Path) -> None:
    config = own_home / "own" / "config"
    config.mkdir(parents=True)
    (config / "settings.toml").write_text(f"roots = ['{sample('dsh/dot-dsh')}']\ncolour = 1\n")
    assert [one["store"] for one in cli("list", "--json").json["stores"]] == ["dsh"]
    settings = cli("doctor", "--json").json["settings"]
    assert [one["code"] for one in settings] == ["settings-ignored"]


def test_here_means_this_folder_and_below(
    cli: Cli, sample: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes_tui.cli import parser

    home = sample("claude/dot-claude")
    monkeypatch.setattr(parser.os, "getcwd", lambda: "/home/ana/code/weather-cli")
    rows = cli("list", "--here", "--json", store=home).json["sessions"]
    assert {row["cwd"] for row in rows} == {"/home/ana/code/weather-cli"}
    everything = cli("cost", "--json", store=home).json["totals"]
    here = cli("--here", "cost", "--json", store=home).json["totals"]
    assert 0 < here["requests"] < everything["requests"]
    points = cli("cache", "--json", "--here", store=home).json["points"]
    assert len(points) == here["requests"]
    monkeypatch.setattr(parser.os, "getcwd", lambda: "/home/ana/code/weather")
    assert cli("list", "--here", "--json", store=home).json["sessions"] == [], (
        "a name that only begins alike is no parent"
    )


def test_keys_lists_every_command_of_the_screen(cli: Cli) -> None:
    listed = cli("keys", "--json").json["commands"]
    assert [one["id"] for one in listed] == [one.id for one in SCREEN_COMMANDS]
    text = cli("keys").out
    assert all(one.name[:6] in text for one in SCREEN_COMMANDS)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["--help"])
    assert leaving.value.code == 0
    text = capsys.readouterr().out
    assert all(command in text for command in (*COMMANDS, "open"))


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hermes-tui {__version__}\n"


def test_every_command_searches_for_rings_of_objects_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[tuple[int, ...]] = []
    monkeypatch.setattr("gc.set_threshold", lambda *rounds: set_to.append(rounds))
    assert main([]) == 2
    assert set_to
    youngest, younger, old = set_to[0]
    assert youngest * younger * old >= 500_000
    assert youngest * younger <= 50_000, "so long a look through them holds up the keys"


def test_the_screen_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "terminal" in capsys.readouterr().err
    assert main(["open", "abc"]) == 2


def test_dumb_terminals_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "dumb" in (no_screen_reason({"TERM": "dumb"}) or "")
    assert no_screen_reason({}) is not None
    assert no_screen_reason({"TERM": "xterm-256color"}) is None


PROBE = """
import io, sys
from hermes_tui.cli.run import run_command
code = run_command({argv!r}, io.StringIO(), io.StringIO())
heavy = sorted(name for name in ("textual", "rich", "genai_prices", "sqlite3", "watchfiles") if name in sys.modules)
print(code, ",".join(heavy))
"""


def imported(argv: list[str], environ: dict[str, str]) -> tuple[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argv=argv)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    code, _, names = done.stdout.strip().partition(" ")
    return code, [name for name in names.split(",") if name]


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"demo"}))
def test_no_command_imports_the_screen_or_another_sqlite(command: str, store: Path) -> None:
    argv = [command, "--store", str(store)]
    argv += [PLAIN] if command in ("show", "lineage", "recover", "export", "resume") else []
    argv += ["--print"] if command == "resume" else []
    _, names = imported(argv, {})
    assert "textual" not in names
    assert "sqlite3" not in names


def test_a_list_for_programs_imports_nothing_that_draws_or_prices(sample: Callable[[str], Path], store: Path) -> None:
    assert imported(["list", "--json", "--store", str(store)], {}) == ("0", []), "the store names all prices"
    home = str(sample("claude/dot-claude"))
    assert imported(["list", "--json", "--store", home], {}) == ("0", ["genai_prices"]), "a new model is looked up"
    assert imported(["list", "--json", "--store", home], {}) == ("0", []), "and not again"


def test_the_version_imports_next_to_nothing() -> None:
    probe = (
        "import sys; before = set(sys.modules); from hermes_tui.main import main; main(['--version']); "
        "print(len(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < 40


def test_a_reader_that_goes_away_is_no_error(store: Path) -> None:
    command = f"{sys.executable} -m hermes_tui list --all --json --store '{store}' | head -c 20"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith('{"sessions":')


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "argv",
    [["list"], ["list", "--json"], ["show", PLAIN, "--json"], ["export", PLAIN], ["show", "nobody", "--json"]],
    ids=" ".join,
)
def test_a_full_disk_under_the_output_is_said_and_no_fault_of_ours(store: Path, argv: list[str]) -> None:
    command = [sys.executable, "-m", "hermes_tui", *argv, "--store", str(store)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "hermes-tui: The answer could not be written: No space left on device\n"


def test_closed_streams_are_no_fault(store: Path) -> None:
    command = f"{sys.executable} -m hermes_tui list --store '{store}'"
    assert subprocess.run(["bash", "-c", f"{command} >&- 2>&- <&-"]).returncode == 0
    told = subprocess.run(["bash", "-c", f"{command} >&-"], capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "")


def test_output_is_utf_8_whatever_the_locale(store: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hermes_tui", "list", "--all", "--store", str(store)],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "200"},
        capture_output=True, check=True,
    )  # fmt: skip
    assert "게이트웨이" in done.stdout.decode("utf-8")


def test_json_is_one_document_on_stdout(store: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hermes_tui", "list", "--json", "--store", str(store), "--store", "/nowhere"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 3
    assert json.loads(done.stdout)["total"] > 20
    assert "/nowhere does not exist" in done.stderr


@pytest.mark.parametrize(
    ("name", "whole", "part"),
    [
        ("codex", "", "sessions"),
        ("codex", "", "session_index.jsonl"),
        ("claude/dot-claude", "", "projects"),
        ("claude/dot-claude", "", "projects/-home-ana-code-tui-app"),
        ("dsh/dot-dsh", "", "storages"),
        ("dsh/dot-dsh", "sessions", "sessions/--home-ana-code-weather-cli--"),
    ],
)
def test_part_of_a_store_is_told_with_the_whole(
    cli: Cli, sample: Callable[[str], Path], name: str, whole: str, part: str
) -> None:
    home = sample(name)
    answer = cli("list", "--store", str(home / part), "--json")
    assert answer.code == 3
    assert f"{part} is only part of a {name.partition('/')[0]} store" in answer.json["error"]["message"]
    assert answer.json["error"]["advice"] == f"Give the whole: --store {home / whole}"


def test_a_fault_of_ours_is_a_message_and_a_log(
    cli: Cli, contract: Contract, store: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("surprise \x1b[31m")

    monkeypatch.setattr("hermes_tui.cli.listing.listing", broken)
    answer = cli("list", "--json", store=store)
    assert answer.code == 1
    assert "surprise" in contract("error", answer.json)["error"]["message"]
    plain = cli("list", store=store)
    assert "\x1b" not in plain.err
    assert "Traceback" not in plain.err
    log = own_home / "own" / "cache" / "hermes-tui.log"
    assert str(log) in plain.err
    assert log.read_text().count("RuntimeError: surprise") == 2
    assert log.stat().st_mode & 0o777 == 0o600
