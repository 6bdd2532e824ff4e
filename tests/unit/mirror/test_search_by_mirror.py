"""The same hits with the mirror, without it, with half of it, and when the logs went on since."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from hermes_tui.library.mirroring import update_mirror, with_mirror
from hermes_tui.library.search import SearchRequest, search
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.lines import MirrorLines
from hermes_tui.storage.fulltext import parse_query
from hermes_tui.storage.jsonl import read_records
from hermes_tui.stores.logs import LogStore
from hermes_tui.stores.protocol import SearchFilters

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
HOMES = {"codex": "codex", "claude": "claude/dot-claude", "dsh": "dsh/dot-dsh"}
QUERIES = (
    "the", "hello", "helper", "count the files", "파일", "파", "시험", "exec_command", "Bash", "echo*", '"the file"',
    "cart OR lexer", "turn NOT compaction", "weather-cli", "step", "placeholder", "100%", "zebrafish", "ls",
    "notes.txt", "tool_use", "Agent", "read",
)  # fmt: skip


@pytest.fixture(params=sorted(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES / HOMES[request.param], tmp_path / "home")
    return tmp_path / "home"


def opened(home: Path, own: Path) -> Library:
    return open_library(SourceOptions(paths=(str(home),)), {"HERMES_TUI_HOME": str(own), "HOME": str(own)})


Hit = tuple[str, str, int, str, str, int]


def hits(
    library: Library, query: str, *, all_states: bool = True, sort: Literal["newest", "oldest"] = "newest"
) -> list[Hit]:
    run = search(library, SearchRequest(query, sort=sort, limit=None, filters=SearchFilters(all_states=all_states)))
    found = [
        (hit.head.session_id, hit.head.id, hit.head.part, hit.head.state, str(hit.snippet), hit.copies) for hit in run
    ]
    assert run.incomplete is None or "no letter" in run.incomplete
    return found


def route(library: Library, query: str) -> set[str]:
    run = search(library, SearchRequest(query))
    list(run)
    return set(run.route.values())


class TestSameHits:
    def test_the_mirror_changes_no_hit(self, home: Path, tmp_path: Path) -> None:
        plain, own = opened(home, tmp_path / "own"), tmp_path / "own"
        expected = {query: hits(plain, query) for query in QUERIES}
        assert sum(len(found) for found in expected.values()) > 20
        mirrored = with_mirror(opened(home, own))
        assert update_mirror(mirrored).progress.phase == "done"
        assert route(mirrored, "the") == {"mirror"}
        assert {query: hits(mirrored, query) for query in QUERIES} == expected

    @pytest.mark.parametrize("sort", ["newest", "oldest"])
    def test_nor_do_portions_of_the_index(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sort: Literal["newest", "oldest"]
    ) -> None:
        expected = {query: hits(opened(home, tmp_path / "own"), query, sort=sort) for query in QUERIES}
        mirrored = with_mirror(opened(home, tmp_path / "own"))
        update_mirror(mirrored)
        taken = []
        reach_back = MirrorLines._reach_back

        def counted(lines: MirrorLines, table: str, reached: int) -> int:
            taken.append(table)
            return reach_back(lines, table, reached)

        monkeypatch.setattr("hermes_tui.mirror.lines.FIRST_PORTION", 1)
        monkeypatch.setattr(MirrorLines, "_reach_back", counted)
        assert {query: hits(mirrored, query, sort=sort) for query in QUERIES} == expected
        assert len(taken) > 3 * len(QUERIES)

    def test_nor_does_it_when_logs_are_written_anew_and_words_of_the_old_ones_stay(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The index cannot delete words; the same ids are given again, and what they lead to is read from the log."""
        expected = {query: hits(opened(home, tmp_path / "own"), query) for query in QUERIES}
        mirrored = with_mirror(opened(home, tmp_path / "own"))
        update_mirror(mirrored)
        assert mirrored.mirror is not None
        texts = mirrored.mirror.rows("SELECT COUNT(*) FROM texts")
        logs = [path for path in home.rglob("*.jsonl*") if path.is_file()]
        for path in logs:
            shutil.copy2(path, path.with_name("anew"))
            path.with_name("anew").replace(path)
        again = with_mirror(opened(home, tmp_path / "own"))
        assert update_mirror(again).progress.phase == "done"
        assert mirrored.mirror.rows("SELECT COUNT(*) FROM texts") == texts
        assert int(mirrored.mirror.rows("SELECT value FROM meta WHERE key = 'stale'")[0][0]) > 0
        assert {query: hits(again, query) for query in QUERIES} == expected
        monkeypatch.setattr("hermes_tui.mirror.ledger.MOST_STALE", 1)
        assert update_mirror(again).progress.logs_done > 0
        assert mirrored.mirror.rows("SELECT value FROM meta WHERE key = 'stale'") == []
        assert {query: hits(again, query) for query in QUERIES} == expected

    @pytest.mark.parametrize("when", ["before", "meanwhile"])
    def test_a_log_that_left_the_mirror_is_read_itself(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
    ) -> None:
        """Somebody emptied it after this search began: that it has no lines of a log any more says nothing of it."""
        home = shutil.copytree(SAMPLES / HOMES["codex"], tmp_path / "home")
        library = with_mirror(opened(home, tmp_path / "own"))
        update_mirror(library)
        database = library.mirror
        assert database is not None
        [store] = [store for store in library.stores if isinstance(store, LogStore)]
        index_for = store.line_index
        assert index_for is not None
        lines = index_for(parse_query("the"))
        assert lines is not None
        told = [log for log in store.logs() if lines.candidates(log) is not None]
        assert len(told) > 2
        lines = index_for(parse_query("the"))
        assert lines is not None

        def empty() -> None:
            with database.writer() as writer:
                writer.write(lambda connection: connection.execute("DELETE FROM texts; DELETE FROM logs"))

        if when == "before":
            empty()
        else:
            reach = MirrorLines._reach
            monkeypatch.setattr(MirrorLines, "_reach", lambda *rest: (empty(), reach(*rest)))
        assert [log for log in told if lines.candidates(log) is not None] == []

    def test_a_store_is_given_its_own_lines_only(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        homes = [shutil.copytree(SAMPLES / HOMES[agent], tmp_path / agent) for agent in ("codex", "claude")]
        own = {"HERMES_TUI_HOME": str(tmp_path / "own"), "HOME": str(tmp_path / "own")}
        library = with_mirror(open_library(SourceOptions(paths=tuple(map(str, homes))), own))
        update_mirror(library)
        taken: list[object] = []
        rows_of = MirrorDatabase.rows

        def told(database: MirrorDatabase, sql: str, bindings: Sequence[object] = ()) -> list[tuple[object, ...]]:
            found = rows_of(database, sql, bindings)
            taken.extend(row[1] for row in found if "MATCH" in sql)
            return found

        monkeypatch.setattr(MirrorDatabase, "rows", told)
        assert library.mirror is not None
        for store in library.stores:
            del taken[:]
            found = search(library, SearchRequest("the", agents=(store.ref.agent,)))
            assert list(found)
            own_logs = {
                log for (log,) in rows_of(library.mirror, "SELECT id FROM logs WHERE store = ?", (store.ref.path,))
            }
            assert set(taken) <= own_logs
            assert taken

    def test_nor_does_half_of_it(self, home: Path, tmp_path: Path) -> None:
        plain = opened(home, tmp_path / "own")
        expected = {query: hits(plain, query) for query in QUERIES}
        mirrored = with_mirror(opened(home, tmp_path / "own"))
        update_mirror(mirrored, tools=False)
        assert {query: hits(mirrored, query) for query in QUERIES} == expected

    def test_what_the_logs_said_since_is_found(self, home: Path, tmp_path: Path) -> None:
        mirrored = with_mirror(opened(home, tmp_path / "own"))
        update_mirror(mirrored)
        for store in mirrored.stores:
            assert isinstance(store, LogStore)
            for log in store.logs():
                _say_again(Path(log.path))
        expected = {query: hits(opened(home, tmp_path / "none"), query) for query in QUERIES}
        again = with_mirror(opened(home, tmp_path / "own"))
        assert {query: hits(again, query) for query in QUERIES} == expected

    def test_a_pattern_is_a_scan(self, home: Path, tmp_path: Path) -> None:
        mirrored = with_mirror(opened(home, tmp_path / "own"))
        update_mirror(mirrored)
        run = search(mirrored, SearchRequest("h[ae]l+", regex=True))
        list(run)
        assert set(run.route.values()) == {"scan"}


def _say_again(path: Path) -> None:
    """Append a log's last whole line to it once more, where it can be appended to."""
    if path.suffix != ".jsonl":
        return
    last = [record.raw for record in read_records(path)][-1]
    with path.open("ab") as file:
        file.write(last.replace(b"hello", b"zebrafish") + b"\n")
