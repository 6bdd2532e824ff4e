"""One fact a line: what a person said about a session, and what all facts about it add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, cast

from hermes_tui.records import dataclass
from hermes_tui.text import RawText

FactVerb = Literal["pin", "unpin", "tag", "untag", "note"]
_FAR: Final = 1e12
"""Seconds; no calendar goes so far, and NaN is not between either."""
_NOTHING: Final = RawText("")
VERBS: Final[frozenset[str]] = frozenset({"pin", "unpin", "tag", "untag", "note"})


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session wherever it lies: names such as ``codex#2`` change from run to run, paths do not."""

    agent: str
    store_path: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the log."""

    key: SessionKey
    verb: FactVerb
    at: float
    """Unix seconds."""
    value: RawText = _NOTHING
    """The tag or the note; a note of '' takes the note away."""

    def to_json(self) -> dict[str, object]:
        """The line as it is written."""
        return {
            "at": self.at,
            "agent": self.key.agent,
            "store": self.key.store_path,
            "session": self.key.session_id,
            "verb": self.verb,
            "value": self.value,
        }

    @staticmethod
    def from_json(value: object) -> Fact | None:
        """The fact a line holds; ``None`` where it is none of ours (a newer version may write other verbs)."""
        if not isinstance(value, Mapping):
            return None
        verb, at, text = value.get("verb"), value.get("at"), value.get("value", "")
        names = (value.get("agent"), value.get("store"), value.get("session"))
        if not isinstance(verb, str) or verb not in VERBS or not isinstance(text, str):
            return None
        if not isinstance(at, int | float) or not -_FAR < at < _FAR:
            return None
        if not all(isinstance(name, str) for name in names):
            return None
        agent, store, session = cast("tuple[str, str, str]", names)
        return Fact(SessionKey(agent, store, session), cast(FactVerb, verb), float(at), RawText(text))


@dataclass(frozen=True, slots=True)
class Annotation:
    """What all facts about one session add up to."""

    pinned: bool = False
    tags: tuple[RawText, ...] = ()
    """In the order they were given, each once."""
    note: RawText | None = None

    def __bool__(self) -> bool:
        return self.pinned or bool(self.tags) or self.note is not None

    def with_fact(self, fact: Fact) -> Annotation:
        """This annotation after one more fact."""
        if fact.verb in ("pin", "unpin"):
            return replace(self, pinned=fact.verb == "pin")
        if fact.verb == "note":
            return replace(self, note=fact.value or None)
        others = tuple(tag for tag in self.tags if tag != fact.value)
        return replace(self, tags=(*others, fact.value) if fact.verb == "tag" else others)


NO_ANNOTATION: Final = Annotation()
