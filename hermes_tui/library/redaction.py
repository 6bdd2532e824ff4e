"""Takes out of an export what should not leave the house: keys, tokens, passwords, e-mail addresses, home folders.

A small rule set of our own, each rule with what it is for; libraries for this look for hundreds of kinds of key and
take a second to load. It takes out rather too much than too little, and is no promise: read an export before you
publish it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

_RULES: Final[tuple[tuple[str, str], ...]] = (
    # A private key block, whole.
    (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", "[private key]"),
    # Keys that carry their maker's mark: OpenAI and Anthropic, GitHub, GitLab, Slack, AWS, Google, npm, PyPI, Hugging
    # Face; payment services.
    (r"\bsk-[A-Za-z0-9_-]{12,}", "[key]"),
    (r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})", "[key]"),
    (r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", "[key]"),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", "[key]"),
    (r"\bAIza[A-Za-z0-9_-]{30,}", "[key]"),
    (
        r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,})",
        "[key]",
    ),
    # A signed web token: three parts with dots, the first begins with {" in base64.
    (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", "[token]"),
    # A header that carries one.
    (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{12,}", r"\1 [token]"),
    # A secret in an address.
    (r"([a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@]+):[^\s:/@]+@", r"\1:[password]@"),
    # name = value, where the name says that it is one.
    (
        # Quotes of JSON inside JSON have backslashes before them; those behind the value stay.
        r"(?i)\b([A-Z0-9_.-]*(?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token|private[_-]?key)"
        r"[A-Z0-9_]*(?:\\*[\"'])?\s*[:=]\s*(?:\\*[\"'])?)[^\s\"',;]{3,}[^\s\"',;\\]",
        r"\1[secret]",
    ),
    # An e-mail address.
    (r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}", "[e-mail]"),
    # The user's name in a home folder, on Linux, macOS and Windows.
    (r"(/home/|/Users/|[A-Za-z]:\\{1,4}Users\\{1,4})[^/\\\s\"':]+", r"\1[user]"),
    # The same in the name of a project's folder, where agents write a dash for each slash.
    (r"((?<![^/\\\s\"'])-{1,2}(?:home|Users)-)[^-/\\\s\"']+", r"\1[user]"),
)
RULES: Final = tuple((re.compile(pattern, re.DOTALL), replacement) for pattern, replacement in _RULES)
HELD_BACK: Final = 16_384
"""Characters at the end of a piece that wait for the next one, so that a secret on the seam is seen whole."""


def redact(text: str) -> str:
    """The text without what should not leave the house."""
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return text


def redact_values(value: Any) -> Any:
    """Every text inside a JSON value redacted; keys stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_values(one) for key, one in value.items()}
    if isinstance(value, list):
        return [redact_values(one) for one in value]
    return value


def redact_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """A long text in pieces, redacted across their seams."""
    held = ""
    for piece in pieces:
        held += piece
        if len(held) > 2 * HELD_BACK:
            seam = _seam(held)
            yield redact(held[:seam])
            held = held[seam:]
    yield redact(held)


def _seam(text: str) -> int:
    """Where the text may be divided: at white space, not inside a key block, some way before its end."""
    seam = len(text) - HELD_BACK
    begun = text.rfind("-----BEGIN", 0, seam)
    if begun > 0 and text.find("-----END", begun, seam) < 0:
        return begun
    blank = max(text.rfind(" ", 0, seam), text.rfind("\n", 0, seam))
    return blank if blank > 0 else seam
