"""Errors for people: what failed, on what, why, what to try; and which exit code each has (contract.md)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What the process answers; scripts rely on it (contract.md, Common forms)."""

    DONE = 0
    """Done; also an empty list or report."""
    REFUSED = 1
    """Refused, unknown or ambiguous id, search without hits."""
    WRONG_USE = 2
    """Wrong options or values."""
    STORE_UNREADABLE = 3
    """A store could not be read; what could be read is printed."""


class Failure(Exception):
    """A failure the user can do something about."""

    code: ClassVar[str] = "failed"
    """Stable name in JSON."""
    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED

    def __init__(self, message: str, advice: str | None = None, candidates: Sequence[str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        """What failed, on what and why."""
        self.advice = advice
        """What to try."""
        self.candidates = None if candidates is None else tuple(candidates)
        """What may have been meant, each as it can be typed."""


class UnknownId(Failure):
    """No session has this id or prefix."""

    code = "unknown-id"


class AmbiguousId(Failure):
    """Several sessions have this id or prefix."""

    code = "ambiguous-id"


class Unexpected(Failure):
    """A fault of this program; the log has the details."""

    code = "unexpected"


class Refused(Failure):
    """Something we do not do, with the reason and the way that works."""

    code = "refused"


class WrongUse(Failure):
    """A value on the command line makes no sense."""

    code = "wrong-use"
    exit_code = ExitCode.WRONG_USE


class StoreFailed(Failure):
    """A store, or the place where one should be, could not be read."""

    code = "store-unreadable"
    exit_code = ExitCode.STORE_UNREADABLE
