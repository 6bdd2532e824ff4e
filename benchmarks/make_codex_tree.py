"""Write a large Codex home and its right answers: ``make_codex_tree.py FOLDER --sessions 3000 --bytes 370000``.

Every choice comes from the seed, so two runs give the same bytes. ``truth.json`` holds a thread's id, path, title,
folder, tokens, requests, compactions and bytes. Without ``--mirror`` the tree is the case of a list from a scan; with
it the agent's own ``state_5.sqlite`` knows every thread.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

import apsw

from hermes_tui.stores.codex.demo_writer import Clock, Rollout

BEGUN = 1_770_000_000.0
WORDS = (
    *("parser", "index", "cache", "merge", "branch", "review", "schema", "ledger", "invoice", "round", "socket"),
    *("retry", "queue", "worker", "lock", "append", "record", "offset", "window", "prompt", "test", "fixture", "diff"),
    *("patch", "link", "module", "import", "route", "시험", "문서", "목록", "복구", "거울", "원문", "압축", "기록"),
)
FOLDERS = ("bookshop", "weather", "notes", "compiler", "문서", "data lake")
MIRROR = "state_5.sqlite"
TABLES = """
CREATE TABLE backfill_state (id INTEGER PRIMARY KEY CHECK (id = 1), status TEXT NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE thread_spawn_edges (parent_thread_id TEXT NOT NULL, child_thread_id TEXT NOT NULL PRIMARY KEY,
    status TEXT NOT NULL);
CREATE TABLE threads (
    id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    source TEXT NOT NULL, model_provider TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT NOT NULL,
    sandbox_policy TEXT NOT NULL, approval_mode TEXT NOT NULL, tokens_used INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0, git_branch TEXT, cli_version TEXT NOT NULL DEFAULT '',
    first_user_message TEXT NOT NULL DEFAULT '', agent_nickname TEXT, model TEXT, created_at_ms INTEGER,
    updated_at_ms INTEGER, preview TEXT NOT NULL DEFAULT '', name TEXT, is_pinned INTEGER NOT NULL DEFAULT 0);
CREATE INDEX idx_threads_updated_at_ms ON threads(updated_at_ms DESC, id DESC);
"""
"""What a list reads of the mirror's tables (facts/codex.md section 8)."""
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
        "archived": talk.archived, "model": talk.model, "at": at, "turns": turns, "compactions": compactions,
        "tokens": talk.totals, "bytes": path.stat().st_size,
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


def write_mirror(home: Path, truth: list[dict[str, object]]) -> None:
    """The agent's own list of these threads, as current as their files."""
    database = apsw.Connection(str(home / MIRROR))
    database.execute("PRAGMA journal_mode = WAL")
    with database:
        database.execute(TABLES)
        database.execute("INSERT INTO backfill_state VALUES (1, 'complete', ?)", (int(BEGUN),))
        for thread in truth:
            path = home / str(thread["path"])
            changed = path.stat().st_mtime_ns // 1_000_000
            begun = int(float(str(thread.get("at", BEGUN))) * 1000)
            tokens = thread["tokens"]
            used = tokens.get("total_tokens", 0) if isinstance(tokens, dict) else 0
            database.execute(
                "INSERT INTO threads VALUES (?, ?, ?, ?, 'cli', 'openai', ?, ?, '{}', 'never', ?, ?, 'main', '0.171.0',"
                " ?, NULL, ?, ?, ?, ?, NULL, 0)",
                (
                    thread["id"], str(path), begun // 1000, changed // 1000, thread["cwd"], thread["title"], used,
                    int(bool(thread["archived"])), thread["title"], thread.get("model"), begun, changed,
                    thread["title"],
                ),
            )  # fmt: skip
    database.close()


def main() -> None:
    """Read the arguments and write the tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=3000)
    parser.add_argument("--bytes", type=int, default=370_000, help="of a usual thread")
    parser.add_argument("--huge", type=int, default=0, help="bytes of one more thread")
    parser.add_argument("--days", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mirror", action="store_true", help="write the agent's own list of threads as well")
    asked = parser.parse_args()
    truth = write_tree(asked.folder, Plan(asked.sessions, asked.bytes, asked.huge, asked.days), asked.seed)
    (asked.folder / "truth.json").write_text(json.dumps(truth, ensure_ascii=False), encoding="utf-8")
    if asked.mirror:
        write_mirror(asked.folder, truth)
    print(f"{len(truth)} threads, {sum(int(str(thread['bytes'])) for thread in truth):,} bytes in {asked.folder}")


if __name__ == "__main__":
    main()
