"""Example conversations in Claude Code's format: made up, so that every screen has something to show.

The lines follow facts/claude-code.md; the people, projects and prices in them are invented.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hermes_tui.locations import private_folder
from hermes_tui.records import dataclass

OPUS: Final = "claude-opus-4-6"
HAIKU: Final = "claude-haiku-4-5"
VERSION: Final = "2.1.197"
WARM_TOKENS: Final = 11_400
"""System prompt and tools: what every request of a session shares."""
_NAMES: Final = uuid.UUID("6a1f3a52-20b4-4f7a-9d51-3d0b8a1c7e10")


def write_demo(folder: Path, now: float) -> None:
    """Write a config folder with made-up projects below ``folder``; times end shortly before ``now`` (Unix seconds).

    Raises:
        OSError: it cannot be written.
    """
    home = _Home(private_folder(folder), now)
    for write in (_webshop, _gateway, _korean, _japanese, _depot, _clock):
        write(home)


@dataclass(slots=True)
class _Home:
    """The config folder being written."""

    folder: Path
    now: float

    def session(self, name: str, cwd: str, ago: float, *, entrypoint: str = "cli") -> _Session:
        """A session that begins ``ago`` seconds before now."""
        return _Session(self, name, cwd, self.now - ago, entrypoint)

    def write(self, cwd: str, stem: str, lines: list[dict[str, object]], below: str | None = None) -> None:
        """Write a log into the bucket of its folder, as munging makes it (facts/claude-code.md section 1)."""
        bucket = private_folder(self.folder / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd))
        place = private_folder(bucket / below) if below else bucket
        path = place / f"{stem}.jsonl"
        path.touch(mode=0o600)
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


@dataclass(slots=True)
class _Session:
    """One transcript being made; every call adds lines."""

    home: _Home
    name: str
    cwd: str
    at: float
    entrypoint: str
    model: str = OPUS
    lines: list[dict[str, object]] = field(default_factory=list)
    leaf: str | None = None
    cached: int = 0
    """Tokens the next request can read from the cache."""
    count: int = 0
    agent: str | None = None
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its id."""
        return str(uuid.uuid5(_NAMES, self.name))

    def wait(self, seconds: float) -> _Session:
        """Let time go by; over five minutes the cache is gone."""
        self.at += seconds
        if seconds > 300:
            self.cached = 0
        return self

    def header(self, kind: str, **fields: object) -> _Session:
        """A line that is no message."""
        self.lines.append({"type": kind, **fields, "sessionId": self.id})
        return self

    def line(self, kind: str, **fields: object) -> str:
        """A message line behind the leaf."""
        self.count += 1
        mark = str(uuid.uuid5(_NAMES, f"{self.name}/{self.agent}/{self.count}"))
        time = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        own = {"agentId": self.agent} if self.agent else {}
        self.lines.append(
            {
                "parentUuid": self.leaf, "isSidechain": self.agent is not None, **own, "type": kind, **fields,
                "uuid": mark, "timestamp": time, "userType": "external", "entrypoint": self.entrypoint,
                "cwd": self.cwd, "sessionId": self.id, "version": VERSION, "gitBranch": "main", **self.extra,
            }
        )  # fmt: skip
        self.leaf = mark
        return mark

    def prompt(self, text: str) -> _Session:
        """Something typed."""
        self.at += 4
        self.line("user", message={"role": "user", "content": text}, promptSource="typed")
        return self

    def reply(self, *blocks: dict[str, object] | str, out: int = 240, new: int = 600, miss: bool = False) -> _Session:
        """One reply, a line a block; a string is text. ``new`` tokens are sent for the first time."""
        self.at += 7
        read = 0 if miss or not self.cached else self.cached
        total = (self.cached or WARM_TOKENS) + new
        written = total - read
        self.cached = total
        number = f"{uuid.uuid5(_NAMES, f'{self.name}/{self.agent}/reply/{self.count}').hex[:20]}"
        usage = {
            "input_tokens": 4, "cache_creation_input_tokens": written, "cache_read_input_tokens": read,
            "output_tokens": out, "service_tier": "standard",
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        }  # fmt: skip
        for block in blocks:
            content = {"type": "text", "text": block} if isinstance(block, str) else block
            stop = "tool_use" if content["type"] == "tool_use" else "end_turn"
            message = {
                "id": f"msg_{number}", "type": "message", "role": "assistant", "model": self.model,
                "content": [content], "stop_reason": stop, "stop_sequence": None, "usage": usage,
            }  # fmt: skip
            self.line("assistant", message=message, requestId=f"req_{number}")
        return self

    def result(self, call: str, text: str, *, parent: str | None = None) -> _Session:
        """What a tool gave back."""
        self.at += 2
        if parent is not None:
            self.leaf = parent
        content = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": False}]
        self.line("user", message={"role": "user", "content": content}, toolUseResult={"stdout": text, "stderr": ""})
        return self

    def compact(self, summary: str, before: int, after: int, trigger: str = "auto") -> _Session:
        """A compaction that keeps the last line."""
        kept, last = self.leaf, self.leaf
        self.at += 20
        self.leaf = None
        anchor = str(uuid.uuid5(_NAMES, f"{self.name}/{self.agent}/{self.count + 2}"))
        self.line(
            "system", subtype="compact_boundary", content="Conversation compacted", level="info", isMeta=False,
            logicalParentUuid=last,
            compactMetadata={
                "trigger": trigger, "preTokens": before, "postTokens": after,
                "preservedSegment": {"headUuid": kept, "anchorUuid": anchor, "tailUuid": kept},
                "preservedMessages": {"anchorUuid": anchor, "uuids": [kept], "allUuids": [kept]},
            },
        )  # fmt: skip
        self.line("user", message={"role": "user", "content": summary}, isCompactSummary=True,
                  isVisibleInTranscriptOnly=True)  # fmt: skip
        self.cached = 0
        return self

    def title(self, text: str, *, own: bool = False) -> _Session:
        """A title: the user's or one made in the background."""
        return self.header("custom-title", customTitle=text) if own else self.header("ai-title", aiTitle=text)

    def done(self, last_prompt: str) -> _Session:
        """Write it."""
        self.header("last-prompt", lastPrompt=last_prompt[:200], leafUuid=self.leaf)
        self.home.write(self.cwd, self.id, self.lines)
        return self


def _think(text: str) -> dict[str, object]:
    return {"type": "thinking", "thinking": text, "signature": "ZGVtbw=="}


def _use(name: str, call: str, **given: object) -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def _webshop(home: _Home) -> None:
    """A rewind, a dead branch, a fork and a branch."""
    shop = home.session("webshop", "/home/ana/src/webshop", 9_000).title("Fix the rounding bug in cart.py")
    shop.prompt("The cart total is off by one cent for three items at 0.35. Find out why.")
    shop.reply(_think("Floats, most likely. Look at the sum first."), "I'll look at how the total is summed.",
               _use("Read", "toolu_demo_shop1", file_path="/home/ana/src/webshop/cart.py"))  # fmt: skip
    shop.result("toolu_demo_shop1", "def total(items):\n    return round(sum(i.price * i.count for i in items), 2)\n")
    shop.reply("The prices are floats. 0.35 × 3 is 1.0499999…, which rounds down. Decimal would do.", out=420)
    fork_at, warm, copied = shop.leaf, shop.cached, list(shop.lines)
    shop.prompt("Just add 0.005 before rounding.").reply("That hides it for these three items only.", out=90)
    shop.leaf, shop.cached = fork_at, warm
    shop.wait(40).prompt("Use Decimal then, and keep the old signature.")
    shop.reply("Done; `total` still takes the same items.", _use("Edit", "toolu_demo_shop2", file_path="cart.py",
               old_string="round(sum", new_string="quantise(sum"))  # fmt: skip
    shop.result("toolu_demo_shop2", "The file was updated.").reply("All 41 tests pass.", out=60)
    shop.done("Use Decimal then, and keep the old signature.")

    fork = home.session("webshop-fork", shop.cwd, 8_200)
    fork.lines = [{**line, "sessionId": fork.id} for line in copied if "uuid" in line]
    fork.header("mode", mode="normal")
    fork.lines.insert(0, fork.lines.pop())
    fork.leaf = fork_at
    fork.prompt("What if we stored cents as integers instead?")
    fork.reply("Then nothing can round at all; the API would have to change, though.", out=310, new=9_000, miss=True)
    fork.done("What if we stored cents as integers instead?")

    branch = home.session("webshop-branch", shop.cwd, 7_000)
    branch.lines = [
        {**line, "sessionId": branch.id, "forkedFrom": {"sessionId": shop.id, "messageUuid": line["uuid"]}}
        for line in copied if "uuid" in line
    ]  # fmt: skip
    branch.leaf = fork_at
    branch.title("Rounding, the other way", own=True).prompt("Show me the smallest patch that fixes only this case.")
    branch.reply("```diff\n-    return round(total, 2)\n+    return round(total + 1e-9, 2)\n```", out=140, new=8_000)
    branch.done("Show me the smallest patch that fixes only this case.")


def _gateway(home: _Home) -> None:
    """Two compactions, an expired cache, a change of model, long tool output."""
    log = home.session("gateway", "/home/ana/srv/gateway", 3 * 86_400).title("Gateway log rotation", own=True)
    log.prompt("The rotated files never get their old permissions back, look at the unit first.")
    log.reply(_use("Bash", "toolu_demo_gw1", command="systemctl cat gateway.service")).result(
        "toolu_demo_gw1", "[Service]\nUser=gateway\nExecStart=/usr/bin/gateway\n"
    )
    log.reply("The unit runs as gateway, logrotate creates the new file as root before the hook runs.", out=380)
    log.wait(432).prompt("And the second host?")
    log.reply(_use("Bash", "toolu_demo_gw2", command="ssh second journalctl -u gateway"), new=700)
    lines = (f"Feb 27 01:{n // 60 % 60:02}:{n % 60:02} second gateway[812]: rotated log.{n}" for n in range(1, 2_400))
    log.result("toolu_demo_gw2", "\n".join(lines))
    log.reply("The same: every rotation leaves a file owned by root.", out=150, new=48_000)
    log.compact("Both hosts run the same unit. Rotated files belong to root because logrotate creates them first.",
                118_400, 21_300)  # fmt: skip
    log.prompt("Write the create line for logrotate.").reply("`create 0640 gateway adm`", out=40, new=1_900)
    log.model = HAIKU
    log.cached = 0
    log.wait(30).prompt("Shorter explanation for the ticket, please.").reply(
        "Wrong owner after rotation; fixed.", out=35
    )
    log.compact("logrotate now has `create 0640 gateway adm`; the ticket text is written.", 31_000, 9_200, "manual")
    log.prompt("Deploy it to both hosts.").reply("Deployed; the next rotation is at 03:00.", out=70)
    log.done("Deploy it to both hosts.")


def _korean(home: _Home) -> None:
    notes = home.session("korean", "/home/ana/노트/게이트웨이", 3_600).title("게이트웨이 내부 구조 정리")
    notes.prompt("게이트웨이내부 log_rotation 문서를 한국어로 정리해 주세요.")
    notes.reply(_think("문서 구조부터 확인한다."), "정리했습니다: 수신부, 큐, 기록부 세 부분으로 나뉩니다.", out=510)
    notes.prompt("표로도 보여 주세요.").reply("| 부분 | 역할 |\n|---|---|\n| 수신부 | 연결을 받는다 |", out=130)
    notes.done("표로도 보여 주세요.")


def _japanese(home: _Home) -> None:
    tests = home.session("japanese", "/home/ana/src/予約", 6 * 86_400).title("予約テストの修正")
    tests.prompt("予約の二重登録を防ぐテストを書いてください。")
    tests.reply("テストを追加しました。", _use("Bash", "toolu_demo_jp1", command="pytest -q tests/test_予約.py"))
    tests.result("toolu_demo_jp1", "3 passed in 0.41s").reply("三件とも通りました。", out=45)
    tests.done("予約の二重登録を防ぐテストを書いてください。")


def _depot(home: _Home) -> None:
    """Two sub-agents at once, their own logs beside the session."""
    depot = home.session("depot", "/home/ana/notes", 5 * 86_400, entrypoint="sdk-cli")
    depot.prompt("Count the files in the depot, left and right wing, with two helpers.")
    depot.reply(
        _use("Agent", "toolu_demo_dp1", description="left wing", prompt="Count the files in left/."),
        _use("Agent", "toolu_demo_dp2", description="right wing", prompt="Count the files in right/."),
    )
    second = depot.leaf
    first = str(depot.lines[-2]["uuid"])
    depot.result("toolu_demo_dp1", "118 files.", parent=first).result("toolu_demo_dp2", "97 files.", parent=second)
    depot.reply("215 files: 118 left, 97 right.", out=50)
    depot.done("Count the files in the depot, left and right wing, with two helpers.")
    for number, (wing, call, said) in enumerate((("left", "toolu_demo_dp1", "118 files."),
                                                 ("right", "toolu_demo_dp2", "97 files."))):  # fmt: skip
        stem = f"agent-demo{number}"
        child = home.session("depot", depot.cwd, 5 * 86_400 - 20, entrypoint="sdk-cli")
        child.agent, child.model = stem.removeprefix("agent-"), HAIKU
        child.prompt(f"Count the files in {wing}/.").reply(_use("Bash", f"{call}_ls", command=f"ls {wing} | wc -l"))
        child.result(f"{call}_ls", said.split()[0]).reply(said, out=12)
        home.write(depot.cwd, stem, child.lines, f"{depot.id}/subagents")
        meta = {"agentType": "general-purpose", "description": f"{wing} wing", "toolUseId": call, "spawnDepth": 1}
        place = home.folder / "projects" / re.sub(r"[^A-Za-z0-9]", "-", depot.cwd) / depot.id / "subagents"
        (place / f"{stem}.meta.json").write_text(json.dumps(meta), encoding="utf-8")


def _clock(home: _Home) -> None:
    """A session of a few moments ago, its last turn unfinished."""
    clock = home.session("clock", "/home/ana/code/clock", 90)
    clock.prompt("Why does the clock drift by two seconds a day?")
    clock.reply("The timer adds its own latency each tick.", _use("Read", "toolu_demo_ck1", file_path="clock.py"))
    clock.result("toolu_demo_ck1", "while True:\n    sleep(1)\n    tick()\n")
    clock.done("Why does the clock drift by two seconds a day?")
