"""A store of many logs over a made-up format: listing, rows, lineage, ledger, and what spans logs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hermes_tui.model import (
    ListQuery,
    PowerCut,
    Problem,
    Recovery,
    Request,
    ResumeCommand,
    SessionId,
    SessionRow,
    StoreRef,
    Usage,
)
from hermes_tui.storage.errors import Interrupted
from hermes_tui.storage.jsonl import Record, read_records
from hermes_tui.stores.log_index import LogIndex, logs_of
from hermes_tui.stores.logs import LogFile, LogFold, LogStore, LogSummary
from hermes_tui.stores.protocol import ChangeVerb, Transcript
from hermes_tui.text import RawText

DAY = 86_400.0


class ToyFold:
    """Lines are {"id"…} (a part of the row) or {"ask": [in, out], "key": …, "at": …} (a request)."""

    def __init__(self, store: ToyStore, log: LogFile, state: bytes | None) -> None:
        self.store = store
        self.log = log
        self.lines: list[dict] = json.loads(state) if state else []

    def wants(self, line: bytes) -> bool:
        return True

    def feed(self, record: Record) -> None:
        self.store.fed.append((Path(self.log.path).name, record.line))
        if record.problem is not None:
            self.lines.append({"problem": record.line})
        else:
            self.lines.append(dict(record.value))

    def summary(self) -> LogSummary:
        row = self.store.row_of(self.log, self.lines)
        requests = tuple(
            Request(row.id, row.id, line["key"], None, line.get("at"), RawText(line.get("model", "m")), None,
                    Usage(*line["ask"]))
            for line in self.lines if "ask" in line
        )  # fmt: skip
        problems = tuple(Problem(self.log.path, line["problem"], 0, "odd") for line in self.lines if "problem" in line)
        return LogSummary(row, requests, (), problems)

    def dump(self) -> bytes:
        return json.dumps(self.lines).encode()


class ToyStore(LogStore):
    """One file a log in one folder."""

    def __init__(self, folder: Path, now: float = 100 * DAY) -> None:
        super().__init__(StoreRef("codex", "toy", str(folder)), clock=lambda: now)
        self.fed: list[tuple[str, int]] = []
        self.peeked_at: list[str] = []
        self.shared: dict[str, list[str]] = {}

    def logs(self) -> Sequence[LogFile]:
        found = []
        for entry in sorted(os.scandir(self.ref.path), key=lambda entry: entry.path):
            stat = entry.stat()
            name = SessionId(entry.name.partition(".")[0])
            found.append(LogFile(entry.path, name, stat.st_size, stat.st_mtime_ns, stat.st_dev, stat.st_ino))
        return found

    def row_of(self, log: LogFile, lines: Sequence[dict]) -> SessionRow:
        said: dict = {}
        for line in lines:
            said.update({key: value for key, value in line.items() if key not in ("ask", "key", "at", "problem")})
        times = [line["at"] for line in lines if "at" in line]
        name = SessionId(said.pop("id", log.session_id))
        said.pop("model", None)
        return SessionRow(
            store=self.ref, id=name, root_id=name, tip_id=name, message_count=len(lines),
            started_at=said.pop("started_at", min(times, default=None)),
            last_active_at=max(times, default=None), **said,
        )  # fmt: skip

    def peek(self, log: LogFile) -> SessionRow:
        self.peeked_at.append(Path(log.path).name)
        lines = [dict(record.value) for record in read_records(log.path) if isinstance(record.value, dict)]
        return self.row_of(log, lines)

    def fold(self, log: LogFile, state: bytes | None = None) -> LogFold:
        return ToyFold(self, log, state)

    def family(self, index: LogIndex, ids: Sequence[SessionId]) -> Iterable[LogFile]:
        members = list(ids)
        for one in ids:
            members += [SessionId(name) for name in self.shared.get(one, ())]
        return logs_of(index, members)

    def own_requests(self, summaries: Iterable[tuple[LogFile, LogSummary]]) -> Iterator[tuple[LogFile, LogSummary]]:
        seen: set[str | None] = set()
        for log, summary in summaries:
            own = tuple(request for request in summary.requests if request.request_id not in seen)
            seen.update(request.request_id for request in own)
            yield log, LogSummary(summary.row, own, summary.compactions, summary.problems)

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        raise NotImplementedError

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        raise NotImplementedError

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        raise NotImplementedError

    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        raise NotImplementedError


def put(folder: Path, name: str, *lines: dict, mode: str = "w") -> Path:
    path = folder / f"{name}.log"
    with path.open(mode) as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def ask(key: str, at: float, fresh: int = 1, out: int = 1, **more: object) -> dict:
    return {"ask": [fresh, out], "key": key, "at": at, **more}


def ids(store: LogStore, **query: object) -> list[str]:
    return [entry.id for entry in store.listing(ListQuery(**query)).entries]


def test_newest_activity_first_and_unknown_last(tmp_path: Path) -> None:
    put(tmp_path, "old", ask("1", 10.0))
    put(tmp_path, "new", ask("2", 30.0))
    put(tmp_path, "mid", ask("3", 20.0))
    put(tmp_path, "never", {"title": "no times"})
    assert ids(ToyStore(tmp_path)) == ["new", "mid", "old", "never"]


def test_a_page_folds_only_its_own_logs(tmp_path: Path) -> None:
    for number in range(10):
        put(tmp_path, f"s{number}", ask(str(number), float(number)))
    store = ToyStore(tmp_path)
    page = store.listing(ListQuery(), limit=2)
    assert (page.total, len(page.entries)) == (10, 2)
    assert store.fed == []
    store.rows([entry.id for entry in page.entries])
    assert {name for name, _ in store.fed} == {"s9.log", "s8.log"}


def test_orders_that_need_sums_read_every_log(tmp_path: Path) -> None:
    put(tmp_path, "a", ask("1", 1.0, 5, 5), ask("2", 2.0, 5, 5))
    put(tmp_path, "b", ask("3", 3.0, 1, 1))
    put(tmp_path, "c", ask("4", 4.0, 90, 1, model="big"))
    store = ToyStore(tmp_path)
    assert ids(store, order="tokens") == ["c", "a", "b"]
    assert ids(store, order="messages") == ["a", "b", "c"]


def test_filters_are_and_and_default_ones_are_counted(tmp_path: Path) -> None:
    put(tmp_path, "plain", ask("1", 1.0), {"cwd": "/w/a/b", "source": "cli"})
    put(tmp_path, "beside", ask("2", 2.0), {"cwd": "/w/ab", "source": "cli"})
    put(tmp_path, "gone", ask("3", 3.0), {"cwd": "/w/a", "archived": True})
    put(tmp_path, "child", ask("4", 4.0), {"cwd": "/w/a", "lineage_kind": "delegation"})
    put(tmp_path, "tool", ask("5", 5.0), {"cwd": "/w/a", "source": "tool"})
    store = ToyStore(tmp_path)
    listing = store.listing(ListQuery(cwd="/w/a/"))
    assert [entry.id for entry in listing.entries] == ["plain"]
    assert listing.left_out == {"archived": 1, "delegated": 1, "tool": 1}
    assert store.listing(ListQuery(source="cli")).left_out == {}
    assert set(ids(store, archived=True, children=True, cwd="/w/a")) == {"plain", "gone", "child"}
    assert set(ids(store, sessions=True)) == {"plain", "beside", "gone", "child", "tool"}
    assert ids(store, since=2.0, until=2.0) == ["beside"]
    assert ids(store, text="BESIDE") == ["beside"]


def test_segments_of_one_session_are_one_row(tmp_path: Path) -> None:
    put(tmp_path, "seg1", {"id": "s", "title": "first"}, ask("1", 10.0, 1, 1))
    put(tmp_path, "seg2", {"id": "s"}, ask("2", 20.0, 2, 2))
    store = ToyStore(tmp_path)
    assert ids(store) == ["s"]
    (row,) = store.rows([SessionId("s")])
    assert (row.parts, row.usage, row.title, row.started_at, row.last_active_at) == (2, Usage(3, 3), "first", 10, 20)


def test_copied_requests_belong_to_the_earliest_session(tmp_path: Path) -> None:
    put(tmp_path, "z-first", ask("1", 10.0, 7, 7), ask("2", 11.0, 1, 1))
    put(tmp_path, "a-copy", {"parent_id": "z-first", "lineage_kind": "fork"}, {"started_at": 12.0},
        ask("1", 10.0, 7, 7), ask("3", 13.0, 2, 2))  # fmt: skip
    store = ToyStore(tmp_path)
    store.shared = {"a-copy": ["z-first"]}
    (copy,) = store.rows([SessionId("a-copy")])
    assert (copy.usage, copy.request_count) == (Usage(2, 2), 1)
    whole = store.usage("session", None, None, UTC)
    assert {part.key: part.spend.usage for part in whole.sums} == {"z-first": Usage(8, 8), "a-copy": Usage(2, 2)}
    assert [request.request_id for request in store.requests([SessionId("a-copy")])] == ["3"]
    assert [request.request_id for request in store.requests(None)] == ["1", "2", "3"]
    assert [request.request_id for request in store.requests(None, since=11.0)] == ["1", "2", "3"], "whole chains"
    assert [request.request_id for request in store.requests(None, since=12.0)] == ["3"]


def test_ledger_by_day_follows_the_zone_and_the_time_of_the_request(tmp_path: Path) -> None:
    put(tmp_path, "s", ask("1", 2 * DAY - 1), ask("2", 2 * DAY + 1), {"ask": [4, 4], "key": "3"})
    store = ToyStore(tmp_path)
    days = {part.key: part.spend.requests for part in store.usage("day", None, None, UTC).sums}
    assert days == {"1970-01-02": 2, "1970-01-03": 1}
    seoul = {part.key: part.spend.requests for part in store.usage("day", None, None, ZoneInfo("Asia/Seoul")).sums}
    assert seoul == {"1970-01-03": 3}
    some = store.usage("model", 2 * DAY, None, UTC)
    assert [part.spend.requests for part in some.sums] == [1]
    assert some.distinct == 1


def test_price_bands_and_models_are_kept_apart(tmp_path: Path) -> None:
    put(tmp_path, "s", ask("1", 1.0, 10), ask("2", 2.0, 300_000), ask("3", 3.0, 10, model="n"), ask("4", 4.0, 20))
    (row,) = ToyStore(tmp_path).rows([SessionId("s")])
    assert [(spend.model, spend.band, spend.requests) for spend in row.spend] == [
        ("m", 0, 2), ("m", 272_000, 1), ("n", 0, 1),
    ]  # fmt: skip


def test_lineage_with_orphans_and_cycles(tmp_path: Path) -> None:
    put(tmp_path, "root", ask("1", 1.0))
    put(tmp_path, "one", {"parent_id": "root", "lineage_kind": "fork"}, ask("2", 2.0))
    put(tmp_path, "two", {"parent_id": "one", "lineage_kind": "delegation"}, ask("3", 3.0))
    put(tmp_path, "lost", {"parent_id": "nowhere", "lineage_kind": "fork"}, ask("4", 4.0))
    put(tmp_path, "x", {"parent_id": "y", "lineage_kind": "fork"}, ask("5", 5.0))
    put(tmp_path, "y", {"parent_id": "x", "lineage_kind": "fork"}, ask("6", 6.0))
    put(tmp_path, "self", {"parent_id": "self", "lineage_kind": "fork"}, ask("7", 7.0))
    store = ToyStore(tmp_path)
    lineage = store.lineage(SessionId("two"))
    assert (lineage.tree_root_id, [node.id for node in lineage.nodes]) == ("root", ["root", "one", "two"])
    assert lineage.root_id == "two"
    (lost,) = store.lineage(SessionId("lost")).nodes
    assert lost.findings == ("orphan",)
    assert {node.id: node.findings for node in store.lineage(SessionId("x")).nodes} == {
        "x": ("cycle",), "y": ("cycle",),
    }  # fmt: skip
    assert store.lineage(SessionId("self")).nodes[0].findings == ("cycle",)
    assert {finding.code: finding.count for finding in store.findings()} == {"orphan": 1, "cycle": 3}
    (root,) = store.rows([SessionId("root")])
    assert (root.branches, root.delegated) == (1, 0)


def test_only_the_new_lines_of_a_growing_log_are_fed(tmp_path: Path) -> None:
    path = put(tmp_path, "s", ask("1", 1.0), ask("2", 2.0))
    store = ToyStore(tmp_path, now=path.stat().st_mtime)
    store.rows([SessionId("s")])
    put(tmp_path, "s", ask("3", 3.0), mode="a")
    store.fed.clear()
    (row,) = store.rows([SessionId("s")])
    assert (row.request_count, store.fed) == (3, [("s.log", 3)])
    store.fed.clear()
    store.rows([SessionId("s")])
    assert store.fed == []


def test_a_log_that_was_rewritten_is_read_anew(tmp_path: Path) -> None:
    path = put(tmp_path, "s", ask("1", 1.0), ask("2", 2.0))
    store = ToyStore(tmp_path, now=path.stat().st_mtime)
    store.rows([SessionId("s")])
    with path.open("r+") as file:
        file.write(
            json.dumps(ask("9", 1.0)) + "\n" + json.dumps(ask("8", 2.0)) + "\n" + json.dumps(ask("7", 3.0)) + "\n"
        )
    store.rows([SessionId("s")])
    assert [request.request_id for request in store.requests([SessionId("s")])] == ["9", "8", "7"]


def test_half_a_line_is_read_whole_the_next_time(tmp_path: Path) -> None:
    path = put(tmp_path, "s", ask("1", 1.0))
    line = json.dumps(ask("2", 2.0)) + "\n"
    with path.open("a") as file:
        file.write(line[:10])
    store = ToyStore(tmp_path, now=path.stat().st_mtime)
    (row,) = store.rows([SessionId("s")])
    assert row.request_count == 1
    with path.open("a") as file:
        file.write(line[10:])
    (row,) = store.rows([SessionId("s")])
    assert row.request_count == 2
    assert store.findings() == ()


def test_one_broken_log_hides_no_other(tmp_path: Path) -> None:
    put(tmp_path, "good", ask("1", 1.0))
    (tmp_path / "bad.log").write_bytes(b"\x00\x01 not json\n" + json.dumps(ask("2", 2.0)).encode() + b"\n")
    (tmp_path / "odd.log").write_bytes(b"[1, 2]\n")
    (tmp_path / "dir.log").mkdir()
    store = ToyStore(tmp_path)
    rows = {row.id: row for row in store.rows([SessionId(name) for name in ids(store, sessions=True)])}
    assert set(rows) == {"good", "bad", "odd", "dir"}
    assert rows[SessionId("good")].problems == 0
    assert rows[SessionId("bad")].request_count == 1
    assert rows[SessionId("odd")].problems == 1
    assert rows[SessionId("dir")].problems == 1
    assert store.status().state == "degraded"
    told = next(finding for finding in store.findings() if finding.code == "unreadable-lines")
    assert told.count == 3
    assert len(told.paths) == 3


def test_a_folder_that_is_gone_is_a_state_not_an_error(tmp_path: Path) -> None:
    store = ToyStore(tmp_path / "nowhere")
    status = store.status()
    assert (status.state, status.sessions) == ("unreadable", None)
    assert [finding.code for finding in status.findings] == ["store-unreadable"]
    assert status.findings[0].advice == "It was moved or deleted; name its new place with --store."
    assert [finding.code for finding in store.findings()] == ["store-unreadable"]
    store.stamp()


def test_advice_is_of_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ToyStore(tmp_path)
    told = []
    for error in (PermissionError(13, "Permission denied"), OSError(5, "Input/output error")):
        monkeypatch.setattr(store, "logs", lambda error=error: (_ for _ in ()).throw(error))
        told.append(store.status().findings[0].advice)
    assert told == [
        "You are not allowed to read it: ask its owner, or copy it.",
        "Check the disk or the network it lies on, and try again.",
    ]


def test_an_empty_folder_is_empty(tmp_path: Path) -> None:
    assert ToyStore(tmp_path).status().state == "empty"


def test_stamp_changes_with_a_log_and_opens_nothing(tmp_path: Path) -> None:
    put(tmp_path, "s", ask("1", 1.0))
    store = ToyStore(tmp_path)
    before = store.stamp()
    assert store.stamp() == before
    put(tmp_path, "s", ask("2", 2.0), mode="a")
    assert store.stamp() != before
    assert (store.fed, store.peeked_at) == ([], [])


def test_peeks_are_remembered_while_a_log_stays_as_it_is(tmp_path: Path) -> None:
    for name in "abc":
        put(tmp_path, name, ask(name, 1.0))
    store = ToyStore(tmp_path)
    store.listing(ListQuery())
    put(tmp_path, "b", ask("x", 9.0), mode="a")
    assert ids(store)[0] == "b"
    assert sorted(store.peeked_at) == ["a.log", "b.log", "b.log", "c.log"]


def test_ids_are_found_by_prefix(tmp_path: Path) -> None:
    for name in ("ab", "abc", "b"):
        put(tmp_path, name, ask(name, 1.0))
    store = ToyStore(tmp_path)
    assert store.resolve("ab") == (SessionId("ab"),)
    assert list(store.resolve("a")) == ["ab", "abc"]
    assert list(store.resolve("x")) == []


def test_interrupt_ends_what_runs_and_nothing_later(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"s{number}", ask(str(number), float(number)))
    store = ToyStore(tmp_path)
    running = store.requests(None)
    next(running)
    store.interrupt()
    with pytest.raises(Interrupted):
        list(running)
    assert len(list(store.requests(None))) == 5
