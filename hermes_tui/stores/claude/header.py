"""What the lines beside the conversation say of a session: titles, folder, branch, where it stands."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.stores.claude.graph import LeafMark
from hermes_tui.stores.claude.lines import Fields, text_of, time_of

PROMPT_CUT: Final = 200
"""Characters of a prompt used as a title or preview (facts/claude-code.md section 6)."""
CONTEXT_FIELDS: Final = (("version", "Claude Code"), ("entrypoint", "entry point"), ("cwd", "folder"))
"""Fields of a line the system prompt depends on, and what people call them."""


@dataclass(slots=True)
class Header:
    """The last word of each kind; for folder and entry point the first."""

    custom_title: str | None = None
    ai_title: str | None = None
    last_prompt: str | None = None
    summaries: dict[str, str] = field(default_factory=dict)
    """Old titles by the line they are about, which may lie in another file; '' where none is named."""
    cwd: str | None = None
    relocated: str | None = None
    git_branch: str | None = None
    entrypoint: str | None = None
    session_id: str | None = None
    """The first id a line carries; a resume goes by the file name all the same (section 8)."""
    forked_from: str | None = None
    """The session a ``/branch`` copied from."""
    mark: LeafMark | None = None
    first_at: float | None = None
    last_at: float | None = None
    birth: float | None = None
    """The time of the first line that is no message but has one: when this file was begun, not what it copied."""
    context: dict[str, str] = field(default_factory=dict)
    said: tuple[object, ...] = ()
    """The same fields of the line before, to see quickly that nothing changed."""

    @property
    def folder(self) -> str | None:
        """Where it runs: a relocation overrides the first line that has a folder (section 1)."""
        return self.relocated or self.cwd

    def take_message(self, fields: Fields, at: float | None) -> list[str]:
        """Take in a message line; ``at`` is its time, if it has one that makes sense.

        Returns:
            what changed since the line before that the system prompt depends on, in words.
        """
        return self._context_changes(fields) if self.look(fields, at) else []

    def look(self, fields: Fields, at: float | None) -> bool:
        """The same without comparing: whether anything differs from the line before that might be a change."""
        if at is not None:
            if self.first_at is None or at < self.first_at:
                self.first_at = at
            if self.last_at is None or at > self.last_at:
                self.last_at = at
        get = fields.get
        if self.session_id is None:
            self.session_id = text_of(get("sessionId"))
        if self.forked_from is None and "forkedFrom" in fields:
            forked = fields["forkedFrom"]
            self.forked_from = text_of(forked.get("sessionId")) if isinstance(forked, dict) else None
        said = (get("version"), get("entrypoint"), get("cwd"), get("gitBranch"))
        if said == self.said:
            return False
        self.said = said
        self.cwd = self.cwd or text_of(get("cwd"))
        self.git_branch = text_of(get("gitBranch")) or self.git_branch
        self.entrypoint = self.entrypoint or text_of(get("entrypoint"))
        return True

    def _context_changes(self, fields: Fields) -> list[str]:
        changes = []
        for key, name in CONTEXT_FIELDS:
            value = text_of(fields.get(key))
            if value is None:
                continue
            before = self.context.get(key)
            if before is not None and before != value:
                changes.append(f"{name} {before} -> {value}")
            self.context[key] = value
        return changes

    def take(self, fields: Fields, lines_before: int) -> None:
        """Take in a line that is no message; ``lines_before`` message lines stood above it."""
        kind = fields.get("type")
        if self.birth is None:
            snapshot = fields.get("snapshot")
            self.birth = time_of((snapshot if isinstance(snapshot, dict) else fields).get("timestamp"))
        if kind == "custom-title":
            self.custom_title = text_of(fields.get("customTitle")) or self.custom_title
        elif kind == "ai-title":
            self.ai_title = text_of(fields.get("aiTitle")) or self.ai_title
        elif kind == "summary":
            self._take_summary(fields)
        elif kind == "relocated":
            self.relocated = text_of(fields.get("relocatedCwd")) or self.relocated
        elif kind == "last-prompt":
            self._take_last_prompt(fields, lines_before)

    def _take_summary(self, fields: Fields) -> None:
        summary = text_of(fields.get("summary"))
        if summary is not None:
            self.summaries[text_of(fields.get("leafUuid")) or ""] = summary

    def _take_last_prompt(self, fields: Fields, lines_before: int) -> None:
        self.last_prompt = text_of(fields.get("lastPrompt")) or self.last_prompt
        if "leafUuid" in fields:
            explicit = fields.get("explicit") is True
            self.mark = LeafMark(text_of(fields.get("leafUuid")), lines_before) if explicit else None

    def title(self, own: str | None, first_prompt: str | None) -> str | None:
        """The title by the order of section 7; ``own`` is a summary that is about this session."""
        return self.custom_title or self.ai_title or self.last_prompt or own or first_prompt
