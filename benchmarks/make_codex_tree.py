"""Write a large Codex home and its right answers: ``make_codex_tree.py FOLDER --sessions 3000 --bytes 370000``.

Every choice comes from the seed, so two runs give the same bytes. ``truth.json`` holds a thread's id, path, title,
folder, tokens, requests, compactions and bytes. There is no mirror: the tree is the case of a list from a scan.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

from hermes_tui.stores.codex.demo_writer import Clock, Rollout

BEGUN = 1_770_000_000.0
WORDS = (
    *("parser", "index", "cache", "merge", "branch", "review", "schema", "ledger", "invoice", "round", "socket"),
    *("retry", "queue", "worker", "lock", "append", "record", "offset", "window", "prompt", "test", "fixture", "diff"),
    *("patch", "link", "module", "import", "route", "시험", "문서", "목록", "복구", "거울", "원문", "압축", "기록"),
)
FOLDERS = ("bookshop", "weather", "notes", "compiler", "문서", "data lake")
FULL = 180_000
"""Tokens of context at which a thread is compacted."""


@dataclass(frozen=True)
class Plan:
    """How large the tree becomes."""

    sessions: int
    size: int
    """Bytes of a usual thread."""
    huge: int
    """Bytes of one more thread; 0 for none."""
    days: float


def words(source: random.Random, count: int) -> str:
    return " ".join(source.choices(WORDS, k=count))


def write_thread(home: Path, number: int, target: int, at: float, source: random.Random) -> dict[str, object]:
    """One thread of about so many bytes, and the truth about it."""
    folder = f"/home/mina/src/{source.choice(FOLDERS)}"
    talk = Rollout(
        home,
        Clock(at),
        source,
        folder,
        model=source.choice(("gpt-5.5", "gpt-5.1-codex")),
        legacy=source.random() < 0.25,
        origin=source.choices(("cli", "vscode", "exec"), (5, 4, 1))[0],
        archived=source.random() < 0.05,
    )
    title, compactions, turns, written = "", 0, 0, 0
    while written < target:
        prompt = f"Task {number}.{turns}: {words(source, 12)}"
        title = title or prompt
        talk.turn(prompt, pause=source.randrange(20, 900))
        for _ in range(source.randrange(1, 7)):
            if source.random() < 0.5:
                talk.think(words(source, 10))
            talk.run(f"rg -n {source.choice(WORDS)}", words(source, source.choice((30, 150, 900))))
        if talk.context > FULL:
            talk.compact(words(source, 200))
            compactions += 1
        talk.answer(words(source, source.choice((20, 60, 200))))
        turns += 1
        written = talk.size
    path = talk.save()
    os.utime(path, (talk.clock.at, talk.clock.at))
    return {
        "id": talk.thread_id, "path": str(path.relative_to(home)), "title": title, "cwd": folder,
        "archived": talk.archived, "turns": turns, "compactions": compactions, "tokens": talk.totals,
        "bytes": path.stat().st_size,
    }  # fmt: skip


def write_tree(home: Path, plan: Plan, seed: int) -> list[dict[str, object]]:
    """The whole tree; the truth about each thread."""
    source = random.Random(seed)
    truth = []
    for number in range(plan.sessions):
        at = BEGUN + number * plan.days * 86_400 / max(1, plan.sessions) + source.randrange(3000)
        target = max(12_000, int(source.lognormvariate(0, 1.0) * plan.size / 1.65))
        truth.append(write_thread(home, number, target, at, source))
    if plan.huge:
        truth.append(write_thread(home, plan.sessions, plan.huge, BEGUN + plan.days * 86_400, source))
    return truth


def main() -> None:
    """Read the arguments and write the tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=3000)
    parser.add_argument("--bytes", type=int, default=370_000, help="of a usual thread")
    parser.add_argument("--huge", type=int, default=0, help="bytes of one more thread")
    parser.add_argument("--days", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    truth = write_tree(asked.folder, Plan(asked.sessions, asked.bytes, asked.huge, asked.days), asked.seed)
    (asked.folder / "truth.json").write_text(json.dumps(truth, ensure_ascii=False), encoding="utf-8")
    print(f"{len(truth)} threads, {sum(int(str(thread['bytes'])) for thread in truth):,} bytes in {asked.folder}")


if __name__ == "__main__":
    main()
