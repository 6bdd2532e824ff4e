"""Ranking by bm25, the same for every store and whichever index proposed the hits (contract.md, search)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from hermes_tui.records import dataclass
from hermes_tui.storage.fulltext import Matcher
from hermes_tui.stores.protocol import Proposal, Proposed, Ranked, Store

RANKED: Final = 5_000
"""Hits that are ranked; where there are more, the newest so many."""
K1: Final = 1.2
B: Final = 0.75
"""As SQLite's FTS5 has them."""


@dataclass(slots=True)
class Stream:
    """The proposals of one store."""

    store: Store
    proposal: Proposal
    head: Proposed | None = None
    at: float = math.inf
    """The time the head counts with; an unknown one counts as the one before it."""


class RankedHit(NamedTuple):
    """A hit, or a candidate that is still to be read. A tuple, because there may be 5,000 of them."""

    stream: Stream
    hit: Proposed | None = None
    ranked: Ranked | None = None
    key: int = 0
    """Of the candidate, for ``ranked.read``."""


def ranking(
    matcher: Matcher, read: Sequence[tuple[Stream, Proposed]], scored: Sequence[tuple[Stream, Ranked]]
) -> list[RankedHit]:
    """Hits and candidates, best first; of equal ones those that come first.

    Scores of different indexes cannot be compared, so each counts in parts of the best of its kind.
    """
    own = scores(matcher, [hit.text or "" for _, hit in read])
    rated = list(zip(_shares(own), (RankedHit(stream, hit) for stream, hit in read), strict=True))
    for stream, ranked in scored:
        shares = _shares([score for score, _ in ranked.scores])
        candidates = (RankedHit(stream, None, ranked, key) for _, key in ranked.scores)
        rated += zip(shares, candidates, strict=True)
    return [one for _, one in sorted(rated, key=lambda pair: -pair[0])]


def _shares(found: Sequence[float]) -> list[float]:
    best = max(found, default=0.0)
    return [score / best for score in found] if best > 0 else [0.0] * len(found)


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
