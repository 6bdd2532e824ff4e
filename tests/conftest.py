"""What every test starts from: a home of its own, no store of the developer, one time zone, the samples to copy."""

from __future__ import annotations

import io
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Two cores shared with whatever else runs: how long one example takes says nothing. The fixtures are the same for all.
# The same examples each time, so that a change is judged by what it changed; ``--hypothesis-profile=explore`` looks for
# new ones.
settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("project"), derandomize=False)
settings.load_profile("project")

DATA = Path(__file__).parent / "data"
SAMPLES = DATA / "samples"
STORE_VARIABLES = (
    "HERMES_HOME", "CODEX_HOME", "CODEX_SQLITE_HOME", "CLAUDE_CONFIG_DIR", "DSH_HOME", "DSH_SESSION_ROOT", "NO_COLOR",
    "COLUMNS", "LOCALAPPDATA", "HERMES_TUI_ASCII",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder nobody has used, in UTC."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("HERMES_TUI_HOME", str(home / "own"))
    monkeypatch.setenv("TZ", "UTC")
    for name in STORE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield home
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """Copies a sample (``hermes``, ``codex/…``) and gives the copy: reading must not touch the original."""

    def copy(name: str) -> Path:
        target = tmp_path / "samples" / name
        source = SAMPLES / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
        return target

    return copy


@dataclass(frozen=True)
class Answer:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Cli = Callable[..., Answer]


@pytest.fixture
def cli() -> Cli:
    """Runs a command of the command line in this process: ``cli("list", "--json", store=path)``."""

    def run(*argv: str, store: Path | None = None) -> Answer:
        from hermes_tui.cli.run import run_command

        out, err = io.StringIO(), io.StringIO()
        where = [] if store is None else ["--store", str(store)]
        code = run_command([*where, *argv], out, err)
        return Answer(code, out.getvalue(), err.getvalue())

    return run


Contract = Callable[[str, Any], Any]


@pytest.fixture(scope="session")
def contract() -> Contract:
    """Holds a document against one shape of contract.schema.json and gives it back."""
    from jsonschema import Draft202012Validator

    schema = json.loads((DATA / "contract.schema.json").read_text())
    validators = {
        name: Draft202012Validator({**shape, "$defs": schema["$defs"]}) for name, shape in schema["$defs"].items()
    }

    def hold(name: str, document: Any) -> Any:
        problems = [
            f"{list(error.absolute_path)}: {error.message[:200]}" for error in validators[name].iter_errors(document)
        ]
        assert not problems, "\n".join(problems[:10])
        return document

    return hold
