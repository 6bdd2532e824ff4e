"""A question asked in a thread of its own, beside another: SQLite lets Python's lock go while it works."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Aside(Thread, Generic[Answer]):
    """One question, asked at once. Not a pool: importing one costs as much as the question."""

    def __init__(self, question: Callable[[], Answer]) -> None:
        super().__init__(daemon=True)
        self._question = question
        self._answer: list[Answer] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Ask; what goes wrong waits for :meth:`answer`."""
        try:
            self._answer.append(self._question())
        except BaseException as error:  # noqa: BLE001  raised again where the answer is wanted
            self._error = error

    def answer(self) -> Answer:
        """Wait for the answer; raises what the question raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._answer[0]
