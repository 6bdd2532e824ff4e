"""Time costs and cache points of a Hermes store against bare statements over the same rows (issue 7).

    python benchmarks/cost_hermes.py FOLDER      (a store made by make_hermes_store.py)

Processor time, the best of some runs, for other programs may be using the machine; the ratio is to the bare statements,
measured in the same run: one GROUP BY over the usage rows and one sum over the sessions, which lie behind long prompts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

from hermes_tui.model import CostGrouping
from hermes_tui.stores.hermes.package import PACKAGE
from hermes_tui.stores.hermes.store import HermesStore

RUNS = 3
GROUPINGS: tuple[CostGrouping, ...] = ("model", "day", "task", "source", "cwd", "session")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
BARE = (
    f"SELECT model, billing_provider, task, {', '.join(f'sum({name})' for name in TOKENS)}, sum(estimated_cost_usd),"
    " count(DISTINCT session_id) FROM session_model_usage GROUP BY 1, 2, 3",
    f"SELECT sum({' + '.join(TOKENS)}) FROM sessions",
)


def spent(work: Callable[[], object]) -> float:
    """Processor milliseconds, the best of some runs."""
    times = []
    for _ in range(RUNS):
        begun = time.process_time()
        work()
        times.append((time.process_time() - begun) * 1000)
    return min(times)


def main() -> None:
    store = PACKAGE.open(Path(sys.argv[1]), {})[0]
    assert isinstance(store, HermesStore)
    bare = spent(lambda: [store.asking.ask(lambda connection, _, sql=sql: connection.rows(sql)) for sql in BARE])
    print(f"{'bare statements':20} {bare:8.1f} ms")
    for grouping in GROUPINGS:
        took = spent(lambda grouping=grouping: store.usage(grouping, None, None, UTC))
        print(f"{'usage by ' + grouping:20} {took:8.1f} ms  {took / bare:5.1f} times the bare statements")
    took = spent(lambda: sum(1 for _ in store.requests(None)))
    print(f"{'every cache point':20} {took:8.1f} ms  {took / bare:5.1f} times the bare statements")


if __name__ == "__main__":
    main()
