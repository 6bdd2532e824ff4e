"""Forks, the surface, compactions, tokens and titles: what a log means (facts/dsh.md sections 2 and 4)."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from hermes_tui.model import ListQuery, SessionId, Usage
from tests.conftest import Cli
from tests.unit.dsh.conftest import Log, messages_of, opened, rows_of, texts, used

PARENT = SessionId("session-p")
FORK = SessionId("session-f")


def forked(home: Path, version: int = 4, marker: bool = True, own: bool = True) -> None:
    """A parent of one turn, and a fork that copied it."""
    Log("session-p", version).talk("in the parent", "ja", used(1, 2, 3, 4)).write(home)
    more = {"isSeeded": True} if version >= 2 else {"seedLength": 6}
    fork = Log("session-f", version, parentSession="session-p", **more)
    fork.talk("in the parent", "ja", used(1, 2, 3, 4))
    assert fork.seq == 6
    if marker:
        fork.event("session/end-seed", {"inherited": True})
    if own:
        fork.talk("in the fork", "nein", used(10, 20, 30, 40))
    fork.write(home)


def test_fork_keeps_what_it_copied_out_of_its_sums(tmp_path: Path) -> None:
    forked(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)[FORK]
    assert (row.usage, row.request_count, row.message_count) == (Usage(10, 40, 30, 20), 1, 2)
    assert (row.preview, row.parent_id, row.lineage_kind, row.resumable) == ("in the fork", PARENT, "fork", False)
    messages = messages_of(store, FORK)
    assert texts(messages, "prompt", "inherited") == ["in the parent"]
    assert texts(messages, "prompt", "live") == ["in the fork"]
    assert rows_of(store)[PARENT].branches == 1


def test_first_request_of_a_fork_is_told_to_be_one(tmp_path: Path) -> None:
    forked(tmp_path)
    (request,) = opened(tmp_path).requests([FORK])
    assert [event.cause for event in request.events] == ["fork"]


def test_old_versions_count_the_inherited_events(tmp_path: Path) -> None:
    for version in (0, 1):
        home = tmp_path / str(version)
        forked(home, version, marker=False)
        row = rows_of(opened(home))[FORK]
        assert (row.usage, row.preview, row.lineage_kind) == (Usage(10, 40, 30, 20), "in the fork", "fork")


def test_fork_without_own_events_has_no_tokens(tmp_path: Path) -> None:
    for number, (version, marker) in enumerate([(4, True), (4, False), (0, False)]):
        home = tmp_path / str(number)
        forked(home, version, marker, own=False)
        store = opened(home)
        row = rows_of(store)[FORK]
        assert (row.usage, row.request_count, row.message_count) == (Usage(), 0, 0)
        assert texts(messages_of(store, FORK), "prompt", "inherited") == ["in the parent"]


def test_fork_of_a_fork_is_cut_at_the_last_inherited_marker(tmp_path: Path) -> None:
    log = Log("session-f", parentSession="session-p", isSeeded=True)
    log.talk("oldest", "1", used(1, 1, 1, 1))
    log.event("session/end-seed", {"inherited": True})
    log.talk("middle", "2", used(2, 2, 2, 2))
    log.event("session/end-seed", {"inherited": True})
    log.talk("own", "3", used(5, 6, 7, 8))
    log.write(tmp_path)
    row = rows_of(opened(tmp_path))[FORK]
    assert (row.usage, row.preview) == (Usage(5, 8, 7, 6), "own")


def test_resume_marker_without_inherited_cuts_nothing(tmp_path: Path) -> None:
    log = Log().talk("one", "1", used(1, 1, 1, 1))
    log.event("session/end-seed", {})
    log.talk("two", "2", used(1, 1, 1, 1))
    log.event("session/end-seed", {"inherited": False})
    log.talk("three", "3", used(1, 1, 1, 1)).write(tmp_path)
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.request_count, row.message_count) == (3, 6)


def test_store_total_counts_each_request_once(tmp_path: Path) -> None:

    forked(tmp_path)
    report = opened(tmp_path).usage("model", None, None, UTC)
    assert [part.spend.usage for part in report.sums] == [Usage(11, 44, 33, 22)]
    assert report.sessions == {"deepseek-flash": 2}


def compacted(log: Log, start: int, end: int, gone: list[int], text: str = "the summary") -> int:
    log.event("compaction/start", {"compactionId": "c", "turn": log.turn})
    summary = {
        "compactionId": "c", "summary": [{"type": "text", "text": text}], "shadowedSeqs": gone,
        "shadowedTokenCount": 99, "model": "deepseek-flash", "usage": used(1, 1, 1, 5),
    }  # fmt: skip
    log.event("compaction/summary", summary)
    data = {
        "role": "user", "content": [{"type": "text", "text": text}],
        "source": {"kind": "compact-checkpoint", "compactionId": "c"}, "id": f"checkpoint-{log.seq}",
    }  # fmt: skip
    seq = log.event("user/message", data, surfaceOp={"op": "replace", "startSeq": start, "endSeq": end})
    log.event("compaction/end", {"compactionId": "c", "turn": log.turn})
    return seq


def test_replacement_goes_by_place_on_the_surface_not_by_number(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    first = log.user("one")
    second = log.reply("eins", used(1, 1, 1, 1))
    third = log.user("two")
    checkpoint = compacted(log, first, second, [first, second])
    fourth = log.reply("zwei", used(1, 1, 1, 1))
    # On the surface now: checkpoint, third, fourth; the checkpoint's number is the higher one.
    again = compacted(log, checkpoint, third, [checkpoint, third], "a second summary")
    log.end()
    log.write(tmp_path)
    store = opened(tmp_path)
    state = store.backend.read(store.index().logs[0]).state
    assert state.surface == [again, fourth]
    messages = messages_of(store, "session-a")
    assert texts(messages, state="compacted") == ["one", "eins", "two", "the summary"]
    assert texts(messages, state="live") == ["zwei", "a second summary"]
    row = rows_of(store)["session-a"]
    assert (row.compactions, row.message_count) == (2, 1)
    recovery = store.recovery(row.id)
    assert [m.text for m in recovery.messages] == ["a second summary", "zwei"]
    assert (recovery.base_kind, recovery.base_line) == ("compaction", again + 2)
    told = [(c.dropped, c.kept) for c in store.lineage(row.id).nodes[0].compactions]
    assert told == [(2, 1), (2, 1)]


def test_failed_compaction_is_none(tmp_path: Path) -> None:
    log = Log().talk()
    log.event("compaction/start", {"compactionId": "c", "turn": 1})
    log.event("compaction/end", {"compactionId": "c", "turn": 1, "error": "no text"})
    log.write(tmp_path)
    store = opened(tmp_path)
    assert rows_of(store)["session-a"].compactions == 0
    assert texts(messages_of(store, "session-a"), "notice") == ["compaction failed: no text"]


def test_summary_whose_checkpoint_was_lost_changes_nothing(tmp_path: Path) -> None:
    log = Log().talk("one", "eins")
    log.event("compaction/start", {"compactionId": "c", "turn": 1})
    log.event("compaction/summary", {"compactionId": "c", "shadowedSeqs": [2], "usage": used(1, 1, 1, 1)})
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert (row.compactions, row.message_count, row.usage) == (0, 2, Usage(3, 20, 100, 10))
    assert [m.text for m in store.recovery(row.id).messages] == ["one", "eins"]


def test_pruned_tool_result_is_replaced(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("run it")
    log.reply("", used(1, 1, 1, 1), call=("c1", "bash"))
    old = log.result("c1", "very long output")
    log.event("compaction/prune", {"turn": 1})
    log.result("c1", "[pruned]", op={"op": "replace", "startSeq": old, "endSeq": old})
    log.reply("done", used(1, 1, 1, 1), step=2)
    log.end()
    log.write(tmp_path)
    store = opened(tmp_path)
    messages = messages_of(store, "session-a")
    assert texts(messages, "tool-result", "compacted") == ["very long output"]
    assert texts(messages, "tool-result", "live") == ["[pruned]"]
    assert rows_of(store)["session-a"].message_count == 4
    second = list(store.requests([SessionId("session-a")]))[1]
    assert [event.cause for event in second.events] == ["compaction"]


def test_replacement_of_what_is_not_there_is_a_problem(tmp_path: Path) -> None:
    log = Log().talk()
    compacted(log, 900, 901, [])
    log.write(tmp_path)
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.problems, row.compactions, row.resumable) == (1, 0, False)


def test_streamed_usage_and_message_are_one_call(tmp_path: Path) -> None:
    log = Log(version=0)
    log.begin()
    log.user("hello")
    usage = {"inputTokens": 7, "outputTokens": 8, "cacheReadTokens": 9, "reasoningTokens": 2}
    log.packed(["h", "i", "!", "!"])
    log.event("assistant/chunk", {"turn": 1, "step": 1, "chunk": {"type": "usage", "usage": usage}})
    log.reply("hi!!", usage)
    log.end()
    log.begin()
    log.event("assistant/chunk", {"turn": 2, "step": 1, "chunk": {"type": "usage", "usage": usage}})
    log.reply("the message itself says nothing", None)
    log.end()
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert (row.usage, row.request_count, row.problems) == (Usage(14, 16, 18, 0, 4), 2, 0)
    assert not any(request.reports_writes for request in store.requests([row.id]))


def test_packed_rows_move_the_sequence(tmp_path: Path) -> None:
    log = Log(version=1)
    log.begin()
    log.user("hello")
    log.packed(["a", "b", "c"])
    log.packed(["x"] * 40, "reasoning-chunks")
    log.reply("abc", used(1, 2, 3, 4))
    log.end()
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert (row.problems, row.message_count) == (0, 2)
    state = store.backend.read(store.index().logs[0]).state
    assert state.events == log.seq


def test_failed_attempts_are_calls_with_the_usage_they_have(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("hello")
    log.event("assistant/attempt", {"turn": 1, "step": 1, "stream": []})
    log.event("assistant/attempt", {"turn": 1, "step": 1, "stream": [], "usage": used(4, 0, 0, 0)})
    log.reply("hi", used(1, 1, 1, 1))
    log.end()
    log.write(tmp_path)
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.usage, row.request_count) == (Usage(5, 1, 1, 1), 3)


def test_model_and_context_changes_are_told_with_the_request(tmp_path: Path) -> None:
    log = Log()

    def header(tools: int, model: str) -> None:
        config = {"provider": "deepseek-official", "model": model, "maxTokens": 1}
        log.event(
            "request/header", {"header": {"config": config, "tools": [{"name": f"t{tools}"}]}, "reason": "series"}
        )

    for tools, model in ((1, "a"), (1, "a"), (2, "a"), (2, "b")):
        log.begin()
        header(tools, model)
        log.reply("x", used(1, 1, 1, 1), model=model)
        log.end()
    log.write(tmp_path)
    store = opened(tmp_path)
    causes = [[event.cause for event in r.events] for r in store.requests([SessionId("session-a")])]
    assert causes == [[], [], ["context-change"], ["model-change"]]
    row = rows_of(store)["session-a"]
    assert (row.model, row.models) == ("b", ("a", "b"))
    assert store.listing(ListQuery(model="a")).total == 1


def test_last_title_wins(tmp_path: Path) -> None:
    log = Log().talk()
    for title, kind in (("first", "fallback"), ("second", "provider"), ("mine", "user"), ("", "provider")):
        log.event("session/title", {"title": title, "messageSeqs": [], "source": {"kind": kind}})
    log.write(tmp_path)
    assert rows_of(opened(tmp_path))["session-a"].title == "mine"


def test_only_typed_messages_are_prompts(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("the folder is /w/a", "runtime-context")
    log.user("you have a skill", "skill")
    log.user("typed")
    log.user("a helper is done", "subagent-settled")
    log.reply("ok", used(1, 1, 1, 1))
    log.end()
    log.write(tmp_path)
    messages = messages_of(opened(tmp_path), "session-a")
    assert texts(messages, "prompt") == ["typed"]
    assert texts(messages, "context") == ["the folder is /w/a", "you have a skill"]
    assert rows_of(opened(tmp_path))["session-a"].preview == "typed"
    assert rows_of(opened(tmp_path))["session-a"].message_count == 2


def queue(log: Log, text: str, message_id: str) -> None:
    item = {"content": [{"type": "text", "text": text}], "source": {"kind": "user"}, "role": "user", "id": message_id}
    log.event("agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": [item]})


def with_one_that_waits() -> Log:
    """A prompt that was queued and sent, and one that still waits."""
    log = Log()
    queue(log, "hello", "m1")
    log.begin()
    log.user("hello", message_id="m1")
    log.reply("hi", used(1, 1, 1, 1))
    log.end()
    queue(log, "never delivered", "m2")
    return log


def test_queued_prompt_is_shown_once(tmp_path: Path) -> None:
    with_one_that_waits().write(tmp_path)
    messages = messages_of(opened(tmp_path), "session-a")
    assert texts(messages, "prompt") == ["hello"]
    assert texts(messages, "notice") == ["queued, not sent: never delivered"]


def test_a_prompt_that_waits_is_found_through_the_mirror_too(tmp_path: Path, cli: Cli) -> None:
    with_one_that_waits().write(tmp_path / "dsh")
    for word, count in (("delivered", 1), ("hello", 1), ("queued", 0)):
        scanned = cli("search", word, "--json", store=tmp_path / "dsh").json
        assert (scanned["route"], len(scanned["hits"])) == ({"dsh": "scan"}, count)
    assert cli("mirror", "update", "--json", store=tmp_path / "dsh").code == 0
    for word, count in (("delivered", 1), ("hello", 1), ("queued", 0)):
        found = cli("search", word, "--json", store=tmp_path / "dsh").json
        assert (found["route"], len(found["hits"])) == ({"dsh": "mirror"}, count)


def test_order_of_a_parent_is_the_first_text_of_a_sub_agents_prompt(tmp_path: Path) -> None:
    log = Log("child", parentSession="session-p", origin="subagent", delegationDepth=1)
    log.begin()
    blocks = [{"type": "text", "text": "count the files"}, {"type": "text", "text": "parent session: session-p"}]
    data = {"role": "user", "content": blocks, "source": {"kind": "user"}, "id": "m"}
    log.event("user/message", data, surfaceOp="append")
    log.end()
    log.write(tmp_path)
    messages = messages_of(opened(tmp_path), "child")
    assert [(m.head.kind, m.head.part, m.text) for m in messages] == [
        ("prompt", 0, "count the files"),
        ("context", 1, "parent session: session-p"),
    ]
    row = rows_of(opened(tmp_path))["child"]
    assert (row.lineage_kind, row.message_count, row.preview) == ("delegation", 1, "count the files")


def test_call_made_by_a_program_is_shown_where_no_reply_holds_it(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("go")
    log.reply("", used(1, 1, 1, 1), call=("c1", "bash"))
    log.event("tool/call", {"turn": 1, "step": 1, "callId": "c1", "name": "bash", "arguments": "{}"})
    log.result("c1", "out")
    log.event("tool/call", {"turn": 1, "step": 1, "callId": "c2", "name": "read", "arguments": {"path": "x"}})
    log.end()
    log.write(tmp_path)
    messages = messages_of(opened(tmp_path), "session-a")
    calls = [(m.head.tool_name, m.head.tool_call_id, m.text) for m in messages if m.head.kind == "tool-call"]
    assert calls == [("bash", "c1", "{}"), ("read", "c2", '{"path":"x"}')]
    (result,) = [m for m in messages if m.head.kind == "tool-result"]
    assert (result.head.tool_name, result.head.tool_call_id, result.text) == ("bash", "c1", "out")
    assert rows_of(opened(tmp_path))["session-a"].tool_call_count == 2


def test_calls_of_one_id_are_as_many_as_the_replies_that_make_them(tmp_path: Path) -> None:
    log = Log()
    for _ in range(3):
        log.begin()
        log.user("go")
        log.reply("", used(1, 1, 1, 1), call=("call_0", "bash"))
        log.event("tool/call", {"turn": log.turn, "step": 1, "callId": "call_0", "name": "bash", "arguments": "{}"})
        log.result("call_0", "out")
        log.end()
    log.write(tmp_path)
    assert rows_of(opened(tmp_path))["session-a"].tool_call_count == 3


def test_a_call_copied_before_it_was_started_is_the_parents(tmp_path: Path) -> None:
    fork = Log("fork", parentSession="gone", isSeeded=True)
    fork.begin()
    fork.user("go")
    fork.reply("", used(1, 1, 1, 1), call=("c1", "fork"))
    fork.event("session/end-seed", {"inherited": True})
    fork.event("tool/call", {"turn": 1, "step": 1, "callId": "c1", "name": "fork", "arguments": "{}"})
    fork.result("c1", "you are the fork")
    fork.write(tmp_path)
    row = rows_of(opened(tmp_path))["fork"]
    assert (row.tool_call_count, row.message_count) == (0, 1)
    live = [m.head.kind for m in messages_of(opened(tmp_path), "fork") if m.head.state == "live"]
    assert live == ["tool-result"]


def test_what_is_said_as_a_bare_text_is_read(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    prompt = {"role": "user", "content": "a bare question", "source": {"kind": "user"}, "id": "u"}
    log.event("user/message", prompt, surfaceOp="append")
    message = {"role": "assistant", "content": "a bare answer", "id": "a"}
    log.event("assistant/message", {"turn": 1, "step": 1, "message": message}, surfaceOp="append")
    log.end()
    log.write(tmp_path)
    messages = messages_of(opened(tmp_path), "session-a")
    assert [(m.head.kind, m.text) for m in messages] == [("prompt", "a bare question"), ("reply", "a bare answer")]
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.preview, row.message_count) == ("a bare question", 2)
