"""The short ways a large transcript is read by give the answers of the long ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.model import MessageHead, SessionId, StoreRef
from hermes_tui.stores.claude import skim
from hermes_tui.stores.claude.graph import Builder, build
from hermes_tui.stores.claude.lines import Entry
from hermes_tui.stores.claude.store import ClaudeStore
from tests.unit.claude.test_claude_samples import folder, store

__all__ = ["folder", "store"]

LINES = st.lists(
    st.tuples(
        st.integers(-1, 9),
        st.sampled_from(("user", "assistant", "boundary", "result")),
        st.integers(0, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)


def entries_of(lines: list[tuple[int, str, int, bool]]) -> list[Entry]:
    """Lines whose parents stand anywhere, also below them, some of them twice."""
    found = []
    for place, (parent, kind, reply, again) in enumerate(lines):
        found.append(
            Entry(
                uuid=f"u{place - 1 if again and place else place}",
                parent=None if parent < 0 else f"u{parent}",
                logical_parent="u0" if kind == "boundary" else None,
                type={"boundary": "system", "result": "user"}.get(kind, kind),
                subtype="compact_boundary" if kind == "boundary" else "",
                sidechain=False,
                at=float(place),
                line=place + 1,
                offset=place,
                length=1,
                message_id=f"m{reply}" if kind == "assistant" else None,
                has_result=kind == "result",
            )
        )
    return found


@given(LINES)
def test_lines_that_stand_in_order_are_given_as_they_stand(lines: list[tuple[int, str, int, bool]]) -> None:
    entries = entries_of(lines)
    short = build(entries, None, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Builder, "_stands_in_order", lambda *_: False)
        assert build(entries, None, {}).order == short.order


def everything(store: ClaudeStore) -> dict[SessionId, tuple[list[MessageHead], object, object]]:
    found = {}
    for session_id in store.index().rows:
        transcript = store.transcript([session_id])
        heads = [head for batch in transcript.heads() for head in batch]
        found[session_id] = (heads, transcript.load(heads), store.recovery(session_id).messages)
    return found


def test_usual_lines_are_shown_as_if_each_had_been_fed(store: ClaudeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    short = everything(store)
    monkeypatch.setattr(skim.ClaudeSkim, "_has_usual_fields", lambda *_: False)
    assert everything(store) == short


def test_the_end_is_the_end_of_the_whole(store: ClaudeStore) -> None:
    for session_id in store.index().rows:
        heads = [head for batch in store.transcript([session_id]).heads() for head in batch]
        for count in (0, 1, 3, 50, 5_000):
            wanted = heads[-count:] if count else []
            assert list(store.transcript([session_id]).tail(count)) == wanted


def test_a_line_that_is_another_when_it_is_read_again_is_left_out(store: ClaudeStore, tmp_path: Path) -> None:
    session_id, logs = max(store.index().logs_of.items(), key=lambda item: item[1][0].size)
    log = tmp_path / "projects" / "x" / f"{session_id}.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(Path(logs[0].path).read_bytes())
    transcript = ClaudeStore(StoreRef("claude", "claude", str(tmp_path))).transcript([session_id])
    whole = len(transcript.tail(10_000))
    log.write_bytes(b" " * log.stat().st_size)
    assert 0 < len(transcript.tail(10_000)) < whole
    log.unlink()
    assert not transcript.tail(10_000)
    assert "cannot be read any more" in transcript.problems[-1].reason
