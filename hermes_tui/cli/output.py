"""Standard output that tells its own failures from those of stores."""

from __future__ import annotations

from typing import Any, TextIO, cast


class OutputLost(Exception):
    """What was printed cannot leave us: the disk it goes to is full, or it was taken away."""


class _Guarded:
    """A stream whose failures are :class:`OutputLost`; a reader that is gone stays what it is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As the stream's own."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.strerror or str(error)) from error

    def flush(self) -> None:
        """As the stream's own."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.strerror or str(error)) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guarded(stream: TextIO) -> TextIO:
    """The stream, with its failures told apart."""
    return cast(TextIO, _Guarded(stream))
