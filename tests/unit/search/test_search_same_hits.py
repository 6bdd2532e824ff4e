"""The same hits whichever index exists, and however it is damaged (issue 3)."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_tui.storage.errors import Interrupted
from hermes_tui.storage.fulltext import Matcher, parse_query
from hermes_tui.storage.reading import BUSY_MS, ReadConnection
from hermes_tui.stores.hermes import candidates
from hermes_tui.stores.hermes.package import PACKAGE
from hermes_tui.stores.hermes.store import HermesStore
from hermes_tui.stores.matching import without_escapes
from hermes_tui.stores.protocol import Proposed, SearchFilters
from tests.unit.search.layouts import DAMAGES, LAYOUTS, Row, make_store

PIECES = (
    "docker", "Docker", "chat-send", "chat", "send", "café", "Cafe\u0301", "cafe", "게이트웨이", "내부", "게", "修改",
    "服务端", "youer", "go", "GO", "é", "log", "\n", "\t", " ", " ", "-", ".", "%", "𠮷野家", "アイウ", "ー", "・",
    "nbar", "bar", "20", "04", "“", "🚀", "привет", "ПРИВЕТ", "हिन्दी", '"', "\\", "ß", "İ", "ㄱㄴ", "json", "u00e9",
)  # fmt: skip
SESSION_IDS = st.sampled_from(["s1", "s2"])
TOOLS = st.sampled_from(["read_file", "chat-send", "search"])
ACCENTED = frozenset("éßİ")
PLAIN_PIECES = tuple(piece for piece in PIECES if not ACCENTED & set(piece) and "\u0301" not in piece)


def rows_of(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Row]:
    """Messages of every kind with these texts."""
    return st.one_of(
        st.builds(Row, content=texts, role=st.sampled_from(["user", "assistant"]), session=SESSION_IDS),
        st.builds(Row, content=texts, role=st.just("tool"), tool_name=TOOLS),
        st.builds(
            Row,
            content=st.lists(
                st.one_of(texts.map(lambda text: {"type": "text", "text": text}), st.just({"type": "image_url"})),
                min_size=1,
                max_size=2,
            ),
            ascii_only=st.booleans(),
        ),
        st.builds(
            Row,
            content=st.one_of(st.none(), texts),
            role=st.just("assistant"),
            calls=st.lists(st.tuples(TOOLS, texts.map(lambda text: {"q": text})), max_size=2).map(tuple),
            ascii_only=st.booleans(),
        ),
    )  # fmt: skip


def queries_of(words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Queries of every form with these words."""
    return st.one_of(
        words,
        st.tuples(words, words).map(" ".join),
        st.tuples(words, words).map("".join),
        st.tuples(words, words).map(" OR ".join),
        st.tuples(words, words).map(" NOT ".join),
        st.tuples(words, words).map(lambda pair: f'"{pair[0]} {pair[1]}"'),
        words.map(lambda word: word[:2] + "*"),
        words.map(lambda word: word[-2:]),
    )


TEXTS = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)
ROWS = rows_of(TEXTS)
QUERIES = queries_of(st.sampled_from([piece for piece in PIECES if piece.strip()]))
PLAIN_ROWS = rows_of(st.lists(st.sampled_from(PLAIN_PIECES), max_size=7).map("".join))
PLAIN_QUERIES = queries_of(st.sampled_from([piece for piece in PLAIN_PIECES if piece.strip()]))


def expected(matcher: Matcher, rows: list[Row]) -> dict[tuple[str, str], tuple[tuple[int, int], ...]]:
    """What a reader of every row finds: (message, part) with the marks."""
    found: dict[tuple[str, str], tuple[tuple[int, int], ...]] = {}
    for number, row in enumerate(rows, start=1):
        entries = list(texts_of(row))
        own = {}
        for part, texts in entries:
            marks = next((marks for text in texts if (marks := matcher.find(text))), None)
            if marks:
                own[str(number), str(part)] = marks
        if not own and len(entries) > 1 and matcher.holds_together([text for _, texts in entries for text in texts]):
            part, marks = next(
                (part, marks) for part, texts in entries for text in texts if (marks := matcher.touches(text))
            )
            own[str(number), str(part)] = marks
        found.update(own)
    return found


def texts_of(row: Row) -> Iterator[tuple[int, list[str]]]:
    """The texts of a row by part, the plain ones first, worked out by hand."""
    part = 0
    content = row.content
    if isinstance(content, list):
        spoken = [piece["text"] for piece in content if "text" in piece]
        content = (
            "\n".join(spoken) if any(spoken) else "\n".join("[image_url]" for piece in content if "text" not in piece)
        )
    if content or not row.calls:
        text = content or ""
        if row.role == "tool" and row.tool_name:
            text = f"{row.tool_name}\n{text}"
        yield part, [text, *([without_escapes(text)] if row.role == "tool" and "\\u" in text else [])]
        part += 1
    for name, given_arguments in row.calls:
        text = f"{name}\n" + json.dumps(given_arguments, ensure_ascii=row.ascii_only)
        yield part, [text, *([without_escapes(text)] if "\\" in text else [])]
        part += 1


def searched(path: Path, matcher: Matcher) -> list[Proposed]:
    (store,) = PACKAGE.open(path, {"HOME": "/nowhere"})
    proposal = store.propose(matcher, SearchFilters(), "newest")
    hits = list(proposal.messages)
    assert proposal.incomplete is None
    return hits


def check(path: Path, matcher: Matcher, rows: list[Row]) -> None:
    hits = searched(path, matcher)
    found = {(hit.message.head.id, str(hit.message.head.part)): hit.marks for hit in hits}
    assert found == expected(matcher, rows)
    assert len(hits) == len(found)
    orders = [hit.order for hit in hits]
    assert orders == sorted(orders, reverse=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROWS, min_size=1, max_size=9), queries=st.lists(QUERIES, min_size=1, max_size=4))
def test_every_layout_gives_what_a_reader_of_every_row_finds(layout: str, rows: list[Row], queries: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = make_store(Path(folder) / "state.db", layout, rows)
        for query in queries:
            check(path, parse_query(query), rows)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROWS, min_size=1, max_size=9), query=QUERIES, least=st.sampled_from([0, 1, 3]))
def test_two_halves_read_side_by_side_hold_every_hit(rows: list[Row], query: str, least: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(candidates, "TWO_HALVES", least)
        check(make_store(Path(folder) / "state.db", "none", rows), parse_query(query), rows)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(PLAIN_ROWS, min_size=1, max_size=9), query=PLAIN_QUERIES, few=st.sampled_from([0, 1, 2]))
def test_the_strict_question_finds_what_the_loose_one_does(rows: list[Row], query: str, few: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(candidates, "FEW", few)
        # Not row by row: what the indexes propose is all there is.
        patched.setattr(candidates, "SMALL_STORE", 0)
        patched.setattr(candidates, "CHECKED_ROWS", -1)
        check(make_store(Path(folder) / "state.db", "inline", rows), parse_query(query), rows)


@pytest.mark.parametrize("stopped", ["first", "second"])
def test_a_half_that_is_stopped_stops_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: str) -> None:
    """Whichever half is interrupted: the search ends with that, and neither connection stays open."""
    path = make_store(tmp_path / "state.db", "none", [Row(content=f"docker {number}") for number in range(9)])
    (store,) = PACKAGE.open(path, {"HOME": "/nowhere"})
    assert isinstance(store, HermesStore)
    monkeypatch.setattr(candidates, "TWO_HALVES", 0)
    read = candidates._ids

    def stopping(connection: ReadConnection, sql: str, values: tuple[Any, ...]) -> list[int]:
        if values[0] == (1 if stopped == "first" else 6):
            store.interrupt()
        return read(connection, sql, values)

    monkeypatch.setattr(candidates, "_ids", stopping)
    proposal = store.propose(parse_query("docker"), SearchFilters(), "newest")
    with pytest.raises(Interrupted):
        list(proposal.messages)
    assert not store.asking.interrupts._alive


def test_a_store_read_without_locks_has_one_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that comes meanwhile makes each reader take locks, which none may while another has no locks."""
    path = make_store(tmp_path / "made.db", "none", [Row(content=f"docker {number}") for number in range(9)])
    agent = apsw.Connection(str(path))
    agent.execute("PRAGMA journal_mode=WAL; UPDATE messages SET content = content || ' again'").fetchall()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", tmp_path / f"state.db{suffix}")
    monkeypatch.setattr(candidates, "TWO_HALVES", 0)
    read, lower_done = candidates._ids, Event()

    def disturbed(connection: ReadConnection, sql: str, values: tuple[Any, ...]) -> list[int]:
        if values[0] > 1:
            lower_done.wait()
        if values[1] == 9:
            shutil.copy(f"{path}-shm", tmp_path / "state.db-shm")
        found = read(connection, sql, values)
        lower_done.set()
        return found

    monkeypatch.setattr(candidates, "_ids", disturbed)
    begun = time.monotonic()
    hits = searched(tmp_path / "state.db", parse_query("again"))
    agent.close()
    assert len(hits) == 9
    assert time.monotonic() - begun < BUSY_MS / 1000


@pytest.mark.parametrize("damage", DAMAGES[1:])
@pytest.mark.parametrize("layout", ["inline", "new"])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROWS, min_size=1, max_size=9), queries=st.lists(QUERIES, min_size=1, max_size=4))
def test_damage_changes_no_hit(layout: str, damage: str, rows: list[Row], queries: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = make_store(Path(folder) / "state.db", layout, rows, damage=damage)
        for query in queries:
            check(path, parse_query(query), rows)


@pytest.mark.parametrize("old_trigrams", [False, True])
@pytest.mark.parametrize("layout", ["inline", "new"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(PLAIN_ROWS, min_size=1, max_size=9), query=PLAIN_QUERIES)
def test_indexes_and_gaps_alone_find_everything(layout: str, old_trigrams: bool, rows: list[Row], query: str) -> None:
    """In a large store rows are not checked one by one: the asks and gaps of the plan must do.

    Left out: accented words glued to CJK, which neither of the two indexes of the old layout can find.
    """
    matcher = parse_query(query)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "SMALL_STORE", 0)
        patch.setattr(candidates, "CHECKED_ROWS", -1)
        path = make_store(Path(folder) / "state.db", layout, rows, old_trigrams=old_trigrams)
        check(path, matcher, rows)


@pytest.mark.parametrize("layout", ["inline", "new"])
@pytest.mark.parametrize("word", ["привет", "हिन्दी", "ελλάδα", "مرحبا", "ქართული", "straße", "𐐨𐐩"])
def test_words_of_other_scripts_are_found_in_escaped_tool_calls(layout: str, word: str) -> None:
    """JSON keeps them as escapes, each case in one of its own; no row is looked at unasked."""
    rows = [
        Row(content=None, role="assistant", calls=(("read_file", {"q": written}),), ascii_only=True)
        for written in (word, word.upper() if len(word.upper()) == len(word) else word, f"docker {word}!")
    ]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "SMALL_STORE", 0)
        patch.setattr(candidates, "CHECKED_ROWS", -1)
        path = make_store(Path(folder) / "state.db", layout, rows)
        check(path, parse_query(word), rows)
        check(path, parse_query(f"{word} docker"), rows)


@pytest.mark.parametrize("layout", ["inline", "new"])
def test_a_word_right_behind_an_escape_is_found(layout: str) -> None:
    """``\\u201cdocker``: quotes and dashes are escaped in tool calls."""
    rows = [Row(content=None, role="assistant", calls=(("read_file", {"q": "“docker”"}),), ascii_only=True)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "SMALL_STORE", 0)
        patch.setattr(candidates, "CHECKED_ROWS", -1)
        check(make_store(Path(folder) / "state.db", layout, rows), parse_query("docker"), rows)
