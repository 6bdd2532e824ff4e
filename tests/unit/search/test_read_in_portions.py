"""A search over logs reads of a long session what its page shows, and gives the same hits as when it reads all."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes_tui.model import Message, MessageHead, SessionId
from hermes_tui.storage.fulltext import parse_query
from hermes_tui.stores import registry, scan
from hermes_tui.stores.codex.transcript import CodexTranscript
from hermes_tui.stores.logs import LogStore
from hermes_tui.stores.protocol import Proposal, Proposed, SearchFilters, Transcript
from tests.unit.codex.rollouts import meta, turn, write

TURNS = 400
OTHER = "01a1ee59-7a00-7000-8000-0000000000bb"


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """Two sessions that overlap in time, each with a hit in all of its prompts and half of its replies."""
    for start, words in ((0, {}), (TURNS // 2, {"id": OTHER, "name": f"rollout-2026-07-01T00-00-00-{OTHER}.jsonl"})):
        turns = range(start, start + TURNS)
        said = (turn(number, f"needle {number}", "needle" if number % 2 else "hay", number * 10) for number in turns)
        head = meta(**({"id": words["id"]} if words else {}))
        write(tmp_path, [head, *itertools.chain.from_iterable(said)], **({"name": words["name"]} if words else {}))
    (found,) = registry.open_places([registry.Place("codex", tmp_path)], {})
    assert isinstance(found, LogStore)
    return found


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries were read, each time."""
    counts: list[int] = []
    load = CodexTranscript.load

    def counted(transcript: CodexTranscript, heads: Sequence[MessageHead], **words: Any) -> list[Message]:
        counts.append(len(heads))
        return load(transcript, heads, **words)

    monkeypatch.setattr(CodexTranscript, "load", counted)
    return counts


def asked(store: LogStore, order: Any, after: tuple[float, ...] | None = None, **filters: Any) -> Proposal:
    return store.propose(parse_query("needle"), SearchFilters(**filters), order, after=after)


def places(found: Sequence[Proposed]) -> list[tuple[str, int | None, tuple[float, ...]]]:
    return [(one.message.head.session_id, one.message.head.line, one.order) for one in found]


def test_the_first_page_reads_the_newest_messages_only(store: LogStore, loaded: list[int]) -> None:
    page = list(itertools.islice(asked(store, "newest").messages, 20))
    assert len(page) == 20
    assert sum(loaded) <= 2 * scan.FIRST_PORTION + 4
    orders = [one.order for one in page]
    assert orders == sorted(orders, reverse=True)


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_all_hits_come_in_order_however_they_are_read(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    lazily = places(list(asked(store, order).messages))
    assert len(lazily) == 2 * TURNS + TURNS
    assert [place[2] for place in lazily] == sorted((place[2] for place in lazily), reverse=order == "newest")
    for first, open_ in ((1, 32), (7, 1), (64, 0)):
        monkeypatch.setattr(scan, "FIRST_PORTION", first)
        monkeypatch.setattr(scan, "MOST_OPEN", open_)
        assert places(list(asked(store, order).messages)) == lazily


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_go_on_where_the_last_one_ended(store: LogStore, loaded: list[int], order: str) -> None:
    whole = places(list(asked(store, order).messages))
    found: list[tuple[str, int | None, tuple[float, ...]]] = []
    after = None
    while page := places(list(itertools.islice(asked(store, order, after).messages, 150))):
        found += page
        after = page[-1][2]
    assert found == whole
    loaded.clear()
    assert places(list(asked(store, order, whole[-2][2]).messages)) == whole[-1:]
    assert sum(loaded) <= 4, "what was given before is not read again"


def test_a_filter_of_times_holds_in_portions(store: LogStore) -> None:
    whole = list(asked(store, "newest").messages)
    until = whole[500].message.head.at
    assert until is not None
    some = places(list(asked(store, "newest", until=until).messages))
    assert some == [
        place
        for place, one in zip(places(whole), whole, strict=True)
        if one.message.head.at is not None and one.message.head.at <= until
    ]


def test_what_fails_half_way_keeps_what_was_read(
    store: LogStore, loaded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = places(list(asked(store, "newest").messages))
    loaded.clear()
    load = CodexTranscript.load

    def failing(transcript: CodexTranscript, heads: Sequence[MessageHead], **words: Any) -> list[Message]:
        if len(loaded) >= 2:
            raise OSError(5, "the disk does not answer")
        return load(transcript, heads, **words)

    monkeypatch.setattr(CodexTranscript, "load", failing)
    proposal = asked(store, "newest")
    found = places(list(proposal.messages))
    assert scan.FIRST_PORTION <= len(found) < len(whole)
    assert [place for place in whole if place in found] == found
    assert "the disk does not answer" in (proposal.incomplete or "")


def test_hits_that_wait_for_their_turn_keep_no_transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = 3 * scan.MOST_OPEN
    for number in range(sessions):
        thread = f"01a1ee59-7a00-7000-8000-{number:012d}"
        lines = [meta(id=thread), *turn(1, "needle", "hay", number), *turn(2, "hay", "hay", 10_000 + number)]
        write(tmp_path, lines, name=f"rollout-2026-07-01T00-00-00-{thread}.jsonl")
    (found,) = registry.open_places([registry.Place("codex", tmp_path)], {})
    assert isinstance(found, LogStore)
    opened: list[weakref.ref[object]] = []
    read = found.transcript

    def noted(ids: Sequence[SessionId]) -> Transcript:
        transcript = read(ids)
        opened.append(weakref.ref(transcript))
        return transcript

    monkeypatch.setattr(found, "transcript", noted)
    hits = asked(found, "newest").messages
    assert next(iter(hits)).message.text == "needle"
    gc.collect()
    assert len(opened) == sessions, "all of them overlap"
    assert sum(one() is not None for one in opened) <= 1
