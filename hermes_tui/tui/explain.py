"""Failures in words for people."""

from __future__ import annotations

from typing import cast

from hermes_tui.library.failures import Failure
from hermes_tui.text import clean, clean_line, literal


def explain(error: BaseException | None) -> tuple[str, str]:
    """A title and a text for people, cleaned, for any error."""
    if isinstance(error, Failure):
        return clean_line(error.message), clean(error.advice or "")
    title = getattr(error, "title", None)
    if isinstance(title, str):
        detail = cast(str, getattr(error, "detail", "") or str(error))
        advice = cast(str, getattr(error, "advice", "") or "")
        return clean_line(title), clean("\n".join(part for part in (detail, advice) if part))
    return clean_line(f"{type(error).__name__}: {error}"), literal(
        "This is not expected. The details are in the log file; other screens still work."
    )
