"""Errors of the storage layer, worded for the person who sees them: what failed, why, what to try."""

from __future__ import annotations


class StorageError(Exception):
    """Something under a store could not be done."""

    def __init__(self, title: str, detail: str, advice: str | None = None) -> None:
        self.title = title
        """What failed, on what."""
        self.detail = detail
        """Why."""
        self.advice = advice
        """What to try; ``None`` where nothing sensible can be said."""
        super().__init__(" ".join(part for part in (f"{title}: {detail}", advice) if part))

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, dict(self.__dict__))


def _restore(kind: type[StorageError], args: tuple[object, ...], state: dict[str, object]) -> StorageError:
    """Build an error that crossed a process boundary; subclasses have constructors of their own."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class NotPossible(StorageError):
    """The store is sound, but what was asked for cannot be had of this session."""


class StoreUnreadable(StorageError):
    """A database file cannot be read."""

    def __init__(self, path: str, reason: str, advice: str | None = None) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} cannot be read", reason, advice)


class SchemaDrift(StoreUnreadable):
    """A table or column that was there a moment ago is gone: read the schema again and ask again."""


class Interrupted(StorageError):
    """The question was given up because somebody asked for that."""

    def __init__(self) -> None:
        super().__init__("The query was stopped", "a newer one took its place or the program is closing")


class DeadlineExceeded(StorageError):
    """The question took longer than it was allowed to."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            "The query was stopped", f"it took longer than {seconds:g} seconds", "Narrow it down, or try again later."
        )


class WriteLost(StorageError):
    """A change was not made: another program held the file through every try. Nothing is half done."""

    def __init__(self, path: str, tries: int, waited_s: float, reason: str) -> None:
        self.path = path
        self.tries = tries
        self.waited_s = waited_s
        """Seconds from the first try to the last."""
        self.reason = reason
        super().__init__(
            f"The change to {path} was not made",
            f"{reason} through {tries} tries in {waited_s:.1f} seconds",
            "Nothing was changed. Try again when the agent is less busy, or close it.",
        )


class WriteFailed(StorageError):
    """A change was refused by the database for a reason that trying again does not cure."""

    def __init__(self, path: str, reason: str, advice: str | None = None, code: int = 0) -> None:
        self.path = path
        self.reason = reason
        self.code = code
        """SQLite's extended result code; 0 where it was not SQLite."""
        super().__init__(f"The change to {path} was not made", reason, advice)


class StoreDamaged(StoreUnreadable):
    """SQLite says the file, or one index in it, is malformed."""

    def __init__(self, path: str, reason: str, advice: str | None = None, code: int = 11) -> None:
        self.code = code
        """SQLite's extended result code: 267 (CORRUPT_VTAB) is a full-text index, not the base tables."""
        super().__init__(path, reason, advice)


class StoreBusy(StoreUnreadable):
    """Another program holds the file, or it changes faster than it can be read."""


class QueryFailed(StorageError):
    """SQLite refused one statement: a tokenizer it does not have, JSON it cannot read, a match it cannot parse."""

    def __init__(self, path: str, reason: str, code: int = 1) -> None:
        self.path = path
        self.reason = reason
        self.code = code
        super().__init__(f"A question to {path} was refused", reason)


def advice_for(error: OSError) -> str:
    """What to do about a folder or file that cannot be read."""
    match error:
        case FileNotFoundError():
            return "It was moved or deleted; name its new place with --store."
        case PermissionError():
            return "You are not allowed to read it: ask its owner, or copy it."
        case NotADirectoryError():
            return "There is a file where a folder is expected."
        case _:
            return "Check the disk or the network it lies on, and try again."
