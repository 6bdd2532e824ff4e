"""What a list of Hermes stores does not wait for, told by the modules a fresh process has loaded after it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Cli

PROBE = """
import io, sys
from hermes_tui.cli.run import run_command
code = run_command({argv!r}, io.StringIO(), io.StringIO())
print(code, *sorted(name for name in sys.modules if name.startswith("hermes_tui.")))
"""


def loaded(*argv: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argv=list(argv))],
        capture_output=True,
        text=True,
        check=True,
    )
    code, *names = done.stdout.split()
    assert code == "0"
    return set(names)


@pytest.fixture
def store(sample: Callable[[str], Path]) -> Path:
    return sample("hermes/home")


def test_a_list_of_hermes_stores_loads_no_mirror_though_there_is_one(cli: Cli, store: Path, own_home: Path) -> None:
    assert cli("mirror", "update", "--json", store=store).code == 0
    assert (own_home / "own" / "cache" / "mirror.sqlite").exists()
    # Logs from before the database are read by more.
    shutil.rmtree(store / "sessions")
    names = loaded("list", "--json", "--profile", "default", "--store", str(store))
    assert {name for name in names if name.startswith("hermes_tui.mirror.")} == {"hermes_tui.mirror.answers"}
    late = {"hermes_tui.stores.protocol", "hermes_tui.stores.logs", "hermes_tui.storage.fulltext", "hermes_tui.tui"}
    assert not late & names


def test_its_health_and_its_annotations_know_the_mirror(cli: Cli, store: Path) -> None:
    assert cli("mirror", "update", "--json", store=store).code == 0
    assert cli("doctor", "--json", store=store).json["mirror"]["path"] is not None
    (one, *_) = cli("list", "--json", store=store).json["sessions"]
    assert cli("pin", one["id"], "--json", store=store).code == 0
    assert [pinned["id"] for pinned in cli("pins", "--json", store=store).json["pins"]] == [one["id"]]


@pytest.mark.parametrize("words", [["--store", "/somewhere"], ["open", "some-id"], []])
def test_the_screen_loads_no_command(words: list[str]) -> None:
    probe = f"import sys; from hermes_tui.cli.parser import parse; parse({words!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    names = {name for name in done.stdout.split() if name.startswith("hermes_tui.cli.")}
    assert names == {"hermes_tui.cli.parser"}


def test_help_and_what_is_no_command_name_all_of_them(cli: Cli) -> None:
    assert "annotations" in {name.rpartition(".")[2] for name in _after("parse(['--help'])")}
    assert "invalid choice: 'lst'" in cli("lst").err


def test_a_command_that_is_none_names_the_one_that_may_be_meant(cli: Cli) -> None:
    assert "Did you mean `hermes-tui list`? See `hermes-tui --help`." in cli("lst").err
    assert "Did you mean `hermes-tui doctor`?" in cli("health").err
    assert "Did you mean" not in cli("qqqqqq").err
    assert "Did you mean" not in cli("list", "--agent", "hermess").err


def _after(call: str) -> set[str]:
    begin = "import sys\nfrom hermes_tui.cli.parser import parse\n"
    probe = f"{begin}try: {call}\nexcept SystemExit: pass\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
