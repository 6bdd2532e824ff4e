"""What benchmarks measure and print: a name, seconds of the clock and of the processor, megabytes, the limit."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Figures:
    """Measures, prints and remembers what was too slow."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    def measure(self, name: str, what: Callable[[], T], limit: float | None = None) -> tuple[T, float]:
        """Run once; the answer and the seconds of the processor, which other programs disturb least."""
        clock, begun = time.perf_counter(), time.process_time()
        answer = what()
        used, took = time.process_time() - begun, time.perf_counter() - clock
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{name:34} {took:8.3f} s {used:8.3f} s cpu {memory:5} MB" + (f"  limit {limit:.3f}" if limit else ""))
        if limit is not None and used > limit:
            self.passed.append(name)
        return answer, used
