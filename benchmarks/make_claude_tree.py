"""Write a large Claude config folder and its answers: ``make_claude_tree.py FOLDER --sessions 2000 --bytes 550000``.

Every choice comes from the seed, so two runs give the same bytes. Sizes have a long tail: a few sessions are twenty
times the mean. ``truth.json`` holds a session's id, folder, title, prompts, requests, tokens, compactions and dead
branches, and the tokens of all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BEGUN = 1_770_000_000.0
MODEL = "claude-opus-4-6"
WORDS = ["ledger", "parser", "socket", "branch", "cursor", "retry", "layout", "queue", "footer", "thread", "schema"]
TOOLS = ("Bash", "Read", "Edit", "Grep", "Write")
LONGEST_OUTPUT = 180_000
COMPACT_AT = 160_000
USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


@dataclass
class Session:
    """One transcript being made."""

    dice: random.Random
    cwd: str
    at: float
    id: str = ""
    lines: list[str] = field(default_factory=list)
    size: int = 0
    leaf: str | None = None
    context: int = 9_000
    prompts: int = 0
    requests: int = 0
    compactions: int = 0
    branches: int = 0
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(USAGE, 0))
    last_prompt: str = ""
    title: str | None = None

    def __post_init__(self) -> None:
        self.id = self.mark()

    def mark(self) -> str:
        return str(uuid.UUID(int=self.dice.getrandbits(128), version=4))

    def words(self, characters: int) -> str:
        return " ".join(self.dice.choice(WORDS) for _ in range(max(1, characters // 7)))

    def write(self, fields: dict[str, Any]) -> None:
        line = json.dumps(fields, separators=(",", ":"))
        self.lines.append(line)
        self.size += len(line) + 1

    def message(self, kind: str, **fields: Any) -> None:
        self.at += self.dice.uniform(0.3, 8.0)
        mark = self.mark()
        time = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.write(
            {
                "parentUuid": self.leaf, "isSidechain": False, "type": kind, **fields, "uuid": mark, "timestamp": time,
                "userType": "external", "entrypoint": "cli", "cwd": self.cwd, "sessionId": self.id,
                "version": "2.1.197", "gitBranch": "main",
            }
        )  # fmt: skip
        self.leaf = mark

    def turn(self) -> None:
        """A prompt and what came of it."""
        self.prompts += 1
        self.last_prompt = f"Question {self.prompts}: {self.words(self.dice.randrange(30, 180))}"
        self.message("user", message={"role": "user", "content": self.last_prompt})
        for _ in range(self.dice.randrange(1, 6)):
            self.step()
        if self.context > COMPACT_AT:
            self.compact()

    def step(self) -> None:
        """One reply of several lines and the result of its call."""
        self.requests += 1
        number = f"{self.id[:8]}{self.requests:06}"
        new, missed = self.dice.randrange(90, 1_600), self.dice.random() < 0.04
        written, read = (self.context + new, 0) if missed else (new, self.context)
        usage = dict(zip(USAGE, (self.dice.randrange(1, 12), written, read, self.dice.randrange(20, 900)), strict=True))
        for name, value in usage.items():
            self.tokens[name] += value
        self.context += new
        call = f"toolu_{number}"
        blocks: list[dict[str, Any]] = [
            {"type": "text", "text": self.words(self.dice.randrange(40, 900))},
            {"type": "tool_use", "id": call, "name": self.dice.choice(TOOLS), "input": {"command": self.words(60)}},
        ]
        if self.dice.random() < 0.4:
            blocks.insert(0, {"type": "thinking", "thinking": self.words(140), "signature": "c2ln"})
        for block in blocks:
            message = {
                "id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL, "content": [block],
                "stop_reason": "tool_use", "stop_sequence": None, "usage": usage,
            }  # fmt: skip
            self.message("assistant", message=message, requestId=f"req_{number}")
        output = self.words(min(LONGEST_OUTPUT, int(self.dice.paretovariate(1.1) * 420)))
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": False}
        self.message("user", message={"role": "user", "content": [result]}, toolUseResult={"stdout": output})

    def compact(self) -> None:
        self.compactions += 1
        before, last = self.context, self.leaf
        self.context, self.leaf = 12_000, None
        said = {"trigger": "auto", "preTokens": before, "postTokens": self.context}
        self.message("system", subtype="compact_boundary", content="Conversation compacted", level="info",
                     logicalParentUuid=last, compactMetadata=said)  # fmt: skip
        content = f"What was said so far: {self.words(4_000)}"
        marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        self.message("user", message={"role": "user", "content": content}, **marks)

    def fill(self, wanted: int) -> None:
        """Turns until the file is so large; now and then a rewind after the third."""
        rewind_to: str | None = None
        while self.size < wanted or not self.prompts:
            if self.prompts == 3 and rewind_to is not None and self.dice.random() < 0.3:
                self.leaf, rewind_to = rewind_to, None
                self.branches += 1
            self.turn()
            if self.prompts == 2:
                rewind_to = self.leaf
        if self.dice.random() < 0.6:
            self.title = f"About {self.words(20)}"
            self.write({"type": "ai-title", "aiTitle": self.title, "sessionId": self.id})
        last = {"type": "last-prompt", "lastPrompt": self.last_prompt[:200], "leafUuid": self.leaf}
        self.write({**last, "sessionId": self.id})

    def truth(self) -> dict[str, Any]:
        return {
            "id": self.id, "cwd": self.cwd, "title": self.title or self.last_prompt[:200], "prompts": self.prompts,
            "requests": self.requests, "tokens": self.tokens, "compactions": self.compactions,
            "dead_branches": self.branches, "bytes": self.size,
        }  # fmt: skip


def make(folder: Path, sessions: int, mean: int, seed: int) -> None:
    """Write the tree."""
    dice = random.Random(seed)
    shares = [min(dice.paretovariate(1.4), 40.0) for _ in range(sessions)]
    scale = sessions * mean / sum(shares)
    truths = []
    for number, share in enumerate(shares):
        project = number % max(3, sessions // 40)
        cwd = f"/home/ana/code/{WORDS[project % len(WORDS)]}-{project}.site"
        session = Session(random.Random(seed * 1_000_003 + number), cwd, BEGUN + number * 7_200)
        session.fill(int(share * scale))
        bucket = folder / "projects" / re.sub("[^A-Za-z0-9]", "-", cwd)
        bucket.mkdir(parents=True, exist_ok=True)
        path = bucket / f"{session.id}.jsonl"
        path.write_text("\n".join(session.lines) + "\n", encoding="utf-8")
        os.utime(path, (session.at, session.at))
        truths.append(session.truth())
    total = {name: sum(truth["tokens"][name] for truth in truths) for name in USAGE}
    answers = {"sessions": truths, "tokens": total, "bytes": sum(truth["bytes"] for truth in truths)}
    (folder / "truth.json").write_text(json.dumps(answers), encoding="utf-8")
    print(f"{sessions:,} sessions, {answers['bytes']:,} bytes in {folder}")


def main() -> None:
    """Read the arguments and write."""
    parser = argparse.ArgumentParser(description="Write a large Claude config folder and its right answers.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--bytes", type=int, default=550_000, help="mean size of a session")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    make(given.folder, given.sessions, given.bytes, given.seed)


if __name__ == "__main__":
    main()
