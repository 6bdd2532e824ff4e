"""Events that say what a prompt before them says are not parsed; whatever stands in them, the fold says the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes_tui.mirror.projector import Projection, project
from hermes_tui.model import StoreRef
from hermes_tui.stores.codex.skim import CodexSkim, passed_over
from hermes_tui.stores.codex.store import CodexStore
from hermes_tui.stores.log_source import fold_log

THREAD = "01a16128-ff97-7fe5-910b-510e60551426"
TEXTS = ("ask", "ask again", 'say "no"', "two\\nlines", "\u00e4h", "<environment_context>x", "[image]", "")
BEHIND = (
    {}, {"images": [], "local_images": []}, {"images": ["data:x"]}, {"id": "m7"}, {"id": 7}, {"message": "other"},
    {"k1": 1}, {"k": 1}, {"i1d": 7}, {"images1": ["data:x"]}, {"type": "agent_message"},
)  # fmt: skip


class Log:
    """Lines as the program writes them, one a second."""

    def __init__(self, *, paginated: bool) -> None:
        self.lines: list[bytes] = []
        mode = {"history_mode": "paginated"} if paginated else {}
        self.put("session_meta", {"id": THREAD, "session_id": THREAD, "cwd": "/w", "source": "cli", **mode})

    def put(self, kind: str, payload: dict[str, object], **more: object) -> None:
        at = f"2026-10-22T01:{len(self.lines) // 60:02d}:{len(self.lines) % 60:02d}.000Z"
        self.lines.append(orjson.dumps({"timestamp": at, "type": kind, "payload": payload, **more}))

    def raw(self, text: str, behind: dict[str, object]) -> None:
        content = [{"type": "input_text", "text": text}]
        self.put("response_item", {"type": "message", "role": "user", "content": content, **behind})

    def event(self, text: str, behind: dict[str, object]) -> None:
        # Written by hand: a key may come twice.
        line = {"timestamp": "2026-10-22T02:00:00.000Z", "type": "event_msg", "payload": {"type": "user_message"}}
        more = orjson.dumps({"message": text})[1:-1] + (b"," + orjson.dumps(behind)[1:-1] if behind else b"")
        self.lines.append(orjson.dumps(line)[:-2] + b"," + more + b"}}")

    def item(self, text: str, behind: dict[str, object]) -> None:
        content = [{"type": "text", "text": text, "text_elements": []}]
        item = {"type": "UserMessage", "id": f"u{len(self.lines)}", "content": content}
        payload = {"type": "item_completed", "thread_id": THREAD, "turn_id": "t", "item": item, **behind}
        self.put("event_msg", payload)

    def turn(self, text: str, behind: dict[str, object]) -> None:
        del text, behind
        self.put("event_msg", {"type": "task_started", "turn_id": "t", "model_context_window": 9})

    def reply_item(self, text: str, behind: dict[str, object]) -> None:
        item = {"type": "AgentMessage", "id": f"m{text[:3]}", "content": [{"type": "Text", "text": text}]}
        payload = {"type": "item_completed", "thread_id": THREAD, "turn_id": "t", "item": item, **behind}
        self.put("event_msg", payload)

    def named_reply(self, text: str, behind: dict[str, object]) -> None:
        self.reply(text, behind, id=f"m{text[:3]}")

    def reply(self, text: str, behind: dict[str, object], **more: str) -> None:
        del behind
        content = [{"type": "output_text", "text": text}]
        self.put("response_item", {"type": "message", "role": "assistant", "content": content, **more})

    def many(self, text: str, behind: dict[str, object]) -> None:
        del text, behind
        for number in range(70):
            self.put("response_item", {"type": "reasoning", "id": f"r{number}", "summary": []})


def projected(log: Log) -> tuple[Projection, Projection]:
    """Told by first bytes, and each line fed."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / f"rollout-2026-10-22T01-00-00-{THREAD}.jsonl"
        path.write_bytes(b"\n".join(log.lines) + b"\n")
        store = CodexStore(StoreRef("codex", "main", folder))
        [file] = store.logs()
        quick = project(store, file, None)
        patch.setattr(store, "skim", lambda *_: None)
        return quick, project(store, file, None)


KINDS = ("raw", "event", "item", "turn", "reply", "named_reply", "reply_item", "many")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["raw", "event", "item", *KINDS]),
        st.sampled_from(TEXTS),
        st.sampled_from(BEHIND),
    ),
    max_size=25,
)
PAIRS = st.lists(st.tuples(st.sampled_from(["event", "item"]), st.sampled_from(TEXTS), st.sampled_from(BEHIND)))


def same(log: Log) -> None:
    quick, fed = projected(log)
    assert (quick.card, quick.requests) == (fed.card, fed.requests)
    told, expected = ({*zip(some.lines, some.words, strict=True)} for some in (quick.talk, fed.talk))
    # A reply is told by itself or by an event; which of them is indexed, or both, does not matter.
    assert all(b'"AgentMessage"' in log.lines[line - 1] for line, _ in told ^ expected)
    assert {words for _, words in expected} <= {words for _, words in told}


@settings(max_examples=150, deadline=None)
@given(paginated=st.booleans(), steps=STEPS)
@example(paginated=False, steps=[("raw", "ask", {"id": "m7"}), ("event", "ask again", {"id": "m7"})])
def test_lines_of_prompts_in_any_order(paginated: bool, steps: list[tuple[str, str, dict[str, object]]]) -> None:
    log = Log(paginated=paginated)
    for what, text, behind in steps:
        # Replies are told again by items or by events of their own, never by both.
        if not (what == "reply_item" if not paginated else behind.get("type") == "agent_message"):
            getattr(log, what)(text, behind)
    same(log)


@settings(max_examples=100, deadline=None)
@given(paginated=st.booleans(), steps=PAIRS)
def test_events_right_behind_their_prompts(paginated: bool, steps: list[tuple[str, str, dict[str, object]]]) -> None:
    """The usual order, in which what stands behind the text differs now and then."""
    log = Log(paginated=paginated)
    for what, text, behind in steps:
        log.turn("", {})
        log.raw(text, {})
        getattr(log, what)(text, behind)
        log.reply("done", {})
    same(log)


@pytest.mark.parametrize("what", ["event", "item"])
def test_most_of_them_are_not_parsed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(paginated=what == "item")
    for number in range(9):
        log.turn("", {})
        log.raw(f"ask {number}", {})
        getattr(log, what)(f"ask {number}", {"started_at_ms": 1_700_000_000 + number} if what == "item" else {})
    parsed: list[int | None] = []
    parse: Callable[..., bool] = CodexSkim._parsed

    def counted(skim: CodexSkim, found: object, *rest: object) -> bool:
        parsed.append(found.lastindex)  # type: ignore[attr-defined]
        return parse(skim, found, *rest)

    monkeypatch.setattr(CodexSkim, "_parsed", counted)
    projected(log)
    assert len(parsed) == 9 + 1, "each prompt, and the first event"


def test_damage_in_one_that_was_not_parsed_is_found_later(tmp_path: Path) -> None:
    log = Log(paginated=True)
    for number in range(3):
        log.raw(f"ask {number}", {})
        log.item(f"ask {number}", {"started_at_ms": number + 1})
    log.lines[-1] = log.lines[-1].replace(b'"started_at_ms":3', b'"started_at_ms":')
    path = tmp_path / f"rollout-2026-10-22T01-00-00-{THREAD}.jsonl"
    path.write_bytes(b"\n".join(log.lines) + b"\n")
    store = CodexStore(StoreRef("codex", "main", str(tmp_path)))
    [file] = store.logs()
    assert len(fold_log(file, store.fold).summary.problems) == 1
    assert passed_over(log.lines[-1])
