"""Ranking by bm25, the same for every store and whichever index proposed the hits (contract.md, search)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hermes_tui.storage.fulltext import Matcher

RANKED: Final = 5_000
"""Hits that are ranked; where there are more, the newest so many."""
K1: Final = 1.2
B: Final = 0.75
"""As SQLite's FTS5 has them."""


def scores(matcher: Matcher, texts: Sequence[str]) -> list[float]:
    """A score for each text, larger is better; the texts are all hits of one search."""
    counted = [_counts(matcher, text) for text in texts]
    if not counted:
        return []
    average = sum(length for _, length in counted) / len(counted)
    terms = range(len(counted[0][0]))
    weights = [_weight(len(counted), sum(1 for often, _ in counted if often[term])) for term in terms]
    return [_score(often, length, weights, average) for often, length in counted]


def _counts(matcher: Matcher, text: str) -> tuple[Sequence[int], int]:
    if matcher.root is not None:
        return matcher.counts(text)
    return (len(matcher.find(text) or ()),), text.count(" ") + 1


def _weight(texts: int, having: int) -> float:
    """How much a term tells: rare ones more."""
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))


def _score(often: Sequence[int], length: int, weights: Sequence[float], average: float) -> float:
    stretch = K1 * (1 - B + B * length / average)
    return sum(
        weight * count * (K1 + 1) / (count + stretch) for weight, count in zip(weights, often, strict=True) if count
    )
