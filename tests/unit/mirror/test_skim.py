"""Lines told by their first bytes, or taken in quicker, say the same as lines that are fed one by one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hermes_tui.mirror.answers import KeptAnswers
from hermes_tui.mirror.backfill import Backfill
from hermes_tui.mirror.codec import load_summary
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.projector import Projection, project
from hermes_tui.mirror.source import MirrorSource
from hermes_tui.model import UsageReport
from hermes_tui.storage.log_lines import read_lines
from hermes_tui.stores.codex import fold
from hermes_tui.stores.codex.skim import passed_over
from hermes_tui.stores.log_findings import UNREADABLE_LINES
from hermes_tui.stores.log_source import LogFile, LogSummary, ScanSource, fold_log
from hermes_tui.stores.logs import LogStore
from hermes_tui.stores.registry import open_places, places_at

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "tests" / "data" / "samples"
AGENTS = ("codex", "claude")
SAMPLE = {"codex": SAMPLES / "codex", "claude": SAMPLES / "claude" / "dot-claude"}


def maker(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def made(agent: str) -> Path:
    """A small tree as the benchmarks make them, in both dialects and with compactions; kept for the whole run."""
    home = Path(tempfile.mkdtemp(prefix=f"skim-{agent}-")) / agent
    if agent == "codex":
        module = maker("make_codex_tree")
        module.FULL = 14_000  # so that these small ones are compacted too
        module.write_tree(home, module.Plan(10, 60_000, 0, 30.0), 3)
    else:
        module = maker("make_claude_tree")
        module.COMPACT_AT = 14_000
        module.make(home, 8, 60_000, 3)
    return home


@pytest.fixture(scope="module", autouse=True)
def _clean() -> Iterator[None]:
    yield
    for agent in AGENTS:
        shutil.rmtree(made(agent).parent, ignore_errors=True)
    made.cache_clear()


def store_of(home: Path) -> LogStore:
    [store] = [one for one in open_places(places_at(home), {}) if isinstance(one, LogStore)]
    return store


def plain(summary: LogSummary) -> LogSummary:
    """The same whether it was kept or made anew."""
    row = replace(summary.row, origin="scan")
    return replace(summary, row=row, requests=tuple(summary.requests))


def fed(store: LogStore, log: LogFile) -> LogSummary:
    return plain(fold_log(log, store.fold).summary)


def told_by_feeding(store: LogStore, log: LogFile, monkeypatch: pytest.MonkeyPatch) -> Projection:
    with monkeypatch.context() as patch:
        patch.setattr(store, "skim", lambda *_: None)
        return project(store, log, None)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("home", ["sample", "made"])
class TestWholeTrees:
    def test_summaries_are_the_same(self, agent: str, home: str) -> None:
        store = store_of(SAMPLE[agent] if home == "sample" else made(agent))
        assert len(store.logs()) > 5
        for log in store.logs():
            assert plain(fold_log(log, store.fold, skim=store.skim).summary) == fed(store, log), log.path

    def test_so_are_the_texts(self, agent: str, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
        store = store_of(SAMPLE[agent] if home == "sample" else made(agent))
        for log in store.logs():
            assert project(store, log, None).talk == told_by_feeding(store, log, monkeypatch).talk, log.path


def test_most_lines_of_a_rollout_are_not_parsed() -> None:
    store = store_of(made("codex"))
    raws = [raw for log in store.logs() for lines in read_lines(log.path) for raw in lines.cut()]
    assert sum(map(passed_over, raws)) > len(raws) / 2


@pytest.mark.parametrize(
    "mark",
    [
        b'"type":"token_usage_record"',
        b'"payload":{"type":"function_call"', b'"payload":{"type":"function_call_output"',
        b'"payload":{"type":"custom_tool_call"', b'"payload":{"type":"custom_tool_call_output"',
        b'"item":{"type":"CommandExecution"', b'"item":{"type":"FileChange"', b'"item":{"type":"AgentMessage"',
        b'"payload":{"type":"reasoning"', b'"payload":{"type":"task_started"', b'"type":"turn_context"',
    ],
)  # fmt: skip
def test_lines_as_the_program_writes_them_are_told_by_their_first_bytes(mark: bytes) -> None:
    store = store_of(SAMPLE["codex"])
    plain_logs = [log.path for log in store.logs() if log.path.endswith(".jsonl")]
    raws = [raw for path in plain_logs for lines in read_lines(path) for raw in lines.cut() if mark in raw[:300]]
    assert raws
    assert all(map(passed_over, raws))


def own_lines(agent: str) -> list[bytes]:
    """The lines of one made log, whose last turn has ended."""
    log = min(store_of(made(agent)).logs(), key=lambda log: log.size)
    return Path(log.path).read_bytes().splitlines()


def other_lines(agent: str) -> list[bytes]:
    """Lines of the samples, which hold much that is unusual."""
    lines: list[bytes] = []
    for other in store_of(SAMPLE[agent]).logs():
        if not other.path.endswith(".zst"):
            lines += [line for line in Path(other.path).read_bytes().split(b"\n")[1:12] if len(line) < 4_000]
    return lines


def path_in(home: Path, agent: str) -> Path:
    """Where a log of this agent may lie: as the smallest of the made tree does."""
    made_log = Path(min(store_of(made(agent)).logs(), key=lambda log: log.size).path)
    path = home / made_log.relative_to(made(agent))
    path.parent.mkdir(parents=True)
    return path


changes = st.lists(
    st.tuples(
        st.sampled_from(
            ["drop", "twice", "swap", "cut", "glue", "tail", "blank", "nul", "cr", "utf8", "junk", "other"]
        ),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
    ),
    max_size=6,
)


def changed(lines: list[bytes], others: list[bytes], some: list[tuple[str, int, int]]) -> list[bytes]:
    for what, first, second in some:
        if not lines:
            break
        at, other = first % len(lines), second % len(lines)
        line = lines[at]
        if what == "drop":
            del lines[at]
        elif what == "twice":
            lines.insert(other, line)
        elif what == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif what == "cut":
            lines[at] = line[: second % (len(line) + 1)]
        elif what == "glue":
            lines[at] = line[: second % (len(line) + 1)] + lines[other]
        elif what == "tail":
            lines[at] = line + lines[other][second % (len(lines[other]) + 1) :]
        elif what == "blank":
            lines.insert(at, b" " * (second % 3))
        elif what in ("nul", "cr", "utf8", "junk"):
            place = second % (len(line) + 1)
            piece = {"nul": b"\0\0", "cr": b"\r", "utf8": b"\xff\xfe", "junk": b'","id":"x"'}[what]
            lines[at] = line[:place] + piece + line[place:]
        elif others:
            lines.insert(at, others[second % len(others)])
    return lines


@pytest.mark.parametrize("agent", AGENTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(some=[("utf8", 9, 300)], cut=5_000, torn=False)
@example(some=[("glue", 9, 300), ("cut", 12, 280)], cut=20, torn=True)
@given(some=changes, cut=st.integers(0, 10_000), torn=st.booleans())
def test_whatever_a_log_holds_and_however_it_grew(
    agent: str, some: list[tuple[str, int, int]], cut: int, torn: bool
) -> None:
    """The filled mirror says of a log what feeding each of its lines says, also when it was filled in two steps."""
    data = b"\n".join(changed(own_lines(agent), other_lines(agent), some)) + (b"" if torn else b"\n")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        path = path_in(home, agent)
        database = MirrorDatabase(Path(name) / "own" / "mirror.sqlite")
        for part in (data[: cut * len(data) // 10_000], data):
            path.write_bytes(part) if not path.exists() else append(path, part[path.stat().st_size :])
            store = store_of(home)
            Backfill(database, [store], workers=0).run()
            [log] = [one for one in store.logs() if Path(one.path) == path]
            [(card, requests)] = database.rows("SELECT card, requests FROM logs WHERE path = ?", (str(path),))
            assert plain(load_summary(card, requests, store.ref)) == fed(store, log)
        database.close()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


class TestDamageBehindTheFirstBytes:
    @pytest.mark.parametrize("damage", [b"\xff", b'"', b"\0"])
    @pytest.mark.parametrize("which", [0, 1, -1])
    def test_it_counts_once_every_line_was_parsed(self, tmp_path: Path, damage: bytes, which: int) -> None:
        home, database = tmp_path / "home", MirrorDatabase(tmp_path / "own" / "mirror.sqlite")
        path = path_in(home, "codex")
        store = store_of(made("codex"))
        lines = own_lines("codex")
        passed = [place for place, line in enumerate(lines) if b'_output"' in line or b'"token_' in line]
        at = passed[which]
        assert passed_over(lines[at])
        lines[at] = lines[at][:-12] + damage + lines[at][-12:]
        path.write_bytes(b"\n".join(lines) + b"\n")
        store = store_of(home)
        Backfill(database, [store], workers=0, tools=False).run()
        assert self.kept(database, store).row.problems == 0
        # Until then doctor reads such a log itself.
        store.source = MirrorSource(database, store, ScanSource(store.fold))
        assert UNREADABLE_LINES in [finding.code for finding in store.findings()]
        Backfill(database, [store], workers=0).run()
        [log] = store.logs()
        assert self.kept(database, store) == fed(store, log)
        assert self.kept(database, store).row.problems == 1

    def test_a_log_that_grows_goes_on_from_what_was_folded_again(self, tmp_path: Path) -> None:
        home, database = tmp_path / "home", MirrorDatabase(tmp_path / "own" / "mirror.sqlite")
        path = path_in(home, "codex")
        store = store_of(made("codex"))
        lines = own_lines("codex")
        at = next(place for place, line in enumerate(lines) if passed_over(line))
        lines[at] = lines[at][:-12] + b"\0" + lines[at][-12:]
        for some in (lines[:-9], lines[-9:]):
            append(path, b"".join(line + b"\n" for line in some))
            store = store_of(home)
            Backfill(database, [store], workers=0).run()
            [log] = store.logs()
            assert self.kept(database, store) == fed(store, log)

    def test_what_was_told_by_first_bytes_alone_is_not_kept(self, tmp_path: Path) -> None:
        home, database = tmp_path / "home", MirrorDatabase(tmp_path / "own" / "mirror.sqlite")
        path = path_in(home, "codex")
        lines = own_lines("codex")
        at = max(place for place, line in enumerate(lines) if b'"token_usage_record"' in line)
        lines[at] = lines[at][:-12] + b'"' + lines[at][-12:]
        path.write_bytes(b"\n".join(lines) + b"\n")
        os.utime(path, (1.7e9, 1.7e9))
        answers = tmp_path / "own" / "answers"

        def opened() -> LogStore:
            store = store_of(home)
            store.source = MirrorSource(database, store, ScanSource(store.fold))
            store.answers = KeptAnswers(answers)
            return store

        def usage(store: LogStore) -> UsageReport:
            return store.usage("model", None, None, UTC)

        def kept_usage() -> bool:
            return any(b"'usage'" in file.read_bytes() for file in answers.iterdir())

        Backfill(database, [store_of(home)], workers=0, tools=False).run()
        early = opened()
        told = usage(early)
        assert not kept_usage()
        Backfill(database, [store_of(home)], workers=0).run()
        whole = usage(store_of(home))
        assert whole != told, "the damaged line counted before it was parsed"
        assert usage(opened()) == whole
        assert usage(early) == whole, "what stayed open sees the damage too"
        assert kept_usage()

    def kept(self, database: MirrorDatabase, store: LogStore) -> LogSummary:
        [(card, requests)] = database.rows("SELECT card, requests FROM logs")
        return plain(load_summary(card, requests, store.ref))


@pytest.mark.parametrize("key", ["payload", "timestamp", "type", "message"])
@pytest.mark.parametrize("agent", AGENTS)
def test_keys_that_come_twice_are_no_reason_to_fail(agent: str, key: str, tmp_path: Path) -> None:
    """The last of them counts to a parser, the first to who looks at the first bytes."""
    home = Path(shutil.copytree(SAMPLE[agent], tmp_path / SAMPLE[agent].name))
    for log in store_of(home).logs():
        path = Path(log.path)
        lines = path.read_bytes().splitlines()
        twice = [line[:-1] + f',"{key}":"twice"}}'.encode() for line in lines[1:]]
        path.write_bytes(b"\n".join([lines[0], *twice]) + b"\n")
    store = store_of(home)
    for log in store.logs():
        told = project(store, log, None)
        assert load_summary(told.card, told.requests, store.ref).row.id == fed(store, log).row.id


def test_a_large_running_rollout_is_not_read_again_for_a_call_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = own_lines("codex")
    begun = next(place for place, line in enumerate(lines) if b'"function_call"' in line)
    path = path_in(tmp_path / "home", "codex")
    path.write_bytes(b"".join(line + b"\n" for line in lines[: begun + 1]))
    store = store_of(tmp_path / "home")
    [log] = store.logs()
    before = fed(store, log)
    monkeypatch.setattr(fold, "_MOST_READ_AGAIN", 10)
    monkeypatch.setattr(fold, "read_records", None)
    assert fed(store, log) == before
