"""Time the transcript of one very long Hermes conversation: first screen, end, long texts, all heads.

    python benchmarks/transcript_hermes.py FOLDER --messages 100000

The store is made in FOLDER where there is none: one conversation, with a tool output of 2 MB and a message of 20 MB on
the first screen and another tool output of 2 MB on the last. CPU time stands beside wall time, for other programs may
be using the machine; limits hold for CPU time. ``--check`` ends with 1 when one is passed.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import apsw
from figures import Figures
from make_hermes_store import INDEXES, TABLES, Maker

from hermes_tui.collector import collect_rarely
from hermes_tui.model import ListQuery, MessageHead
from hermes_tui.stores.hermes.package import PACKAGE
from hermes_tui.stores.hermes.store import HermesStore

PAGE = 50
FIRST_SCREEN_S = 0.15
"""The first screen of 100,000 messages takes no longer (issue 2)."""
LONG = 2 << 20
GIANT = 20 << 20
PIECE = 1 << 20


class Mean(random.Random):
    """Draws the mean where the maker draws a length, so that the conversation has the length that was asked for."""

    def expovariate(self, lambd: float = 1.0) -> float:
        return 1 / lambd


def make(folder: Path, messages: int) -> None:
    """One conversation with long texts at both ends."""
    folder.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(folder / "state.db"))
    connection.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")
    connection.execute(TABLES)
    with connection:
        Maker(Mean(1), 1, messages, 300, 0).fill(connection)
        tools = [row[0] for row in connection.execute("SELECT id FROM messages WHERE role = 'tool' ORDER BY id")]
        for number in (tools[0], tools[-1]):
            connection.execute(
                "UPDATE messages SET content = ? WHERE id = ?", ("output line 42\n" * (LONG // 15), number)
            )
        first = connection.execute("SELECT min(id) FROM messages WHERE role = 'user' AND id > 1").get
        connection.execute("UPDATE messages SET content = ? WHERE id = ?", ("길고 긴 글 " * (GIANT // 15), first))
        connection.execute(INDEXES)
    connection.close()


def longest(heads: Sequence[MessageHead]) -> MessageHead:
    return max(heads, key=lambda head: head.size)


def measure(folder: Path, figures: Figures) -> None:
    """What a reader waits for."""
    store = PACKAGE.open(folder, {})[0]
    assert isinstance(store, HermesStore)
    entry = store.listing(ListQuery(sessions=True)).entries[0]
    chain = store.chain(entry.id)
    transcript = store.transcript(chain)
    heads, _ = figures.measure("first screen: heads", lambda: next(iter(transcript.heads())), FIRST_SCREEN_S)
    figures.measure("first screen: texts", lambda: transcript.load(heads[:PAGE], sent=True), FIRST_SCREEN_S)
    giant = longest(heads)
    figures.measure(f"a piece of {giant.size:,} bytes", lambda: transcript.piece(giant, 0, PIECE), FIRST_SCREEN_S)
    figures.measure("its middle", lambda: transcript.piece(giant, 5 * PIECE, PIECE), FIRST_SCREEN_S)
    fresh = store.transcript(chain)
    last, _ = figures.measure("jump to the end: heads", lambda: fresh.tail(PAGE), FIRST_SCREEN_S)
    figures.measure("jump to the end: texts", lambda: fresh.load(last, sent=True), FIRST_SCREEN_S)
    count, _ = figures.measure("all heads", lambda: sum(len(batch) for batch in store.transcript(chain).heads()))
    print(f"{count:,} entries")
    figures.measure("recover", lambda: store.recovery(entry.id))


def main() -> int:
    """Make the store where it is missing, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--check", action="store_true", help="end with 1 when a limit is passed")
    asked = parser.parse_args()
    if not (asked.folder / "state.db").exists():
        make(asked.folder, asked.messages)
    collect_rarely()
    figures = Figures()
    measure(asked.folder, figures)
    for name in figures.passed:
        print(f"too slow: {name}", file=sys.stderr)
    return 1 if asked.check and figures.passed else 0


if __name__ == "__main__":
    sys.exit(main())
