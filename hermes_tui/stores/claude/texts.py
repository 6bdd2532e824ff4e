"""What a text inside a user line is: typed by a person, put there by the program, or a command and its output.

The wrappers and the rule for a true prompt: facts/claude-code.md section 6.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from hermes_tui.model import MessageKind

_TAG: Final = re.compile(r"\s*<[a-z][\w-]*[\s>/]")
_INTERRUPTED: Final = "[Request interrupted by user"
_COMMAND: Final = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS: Final = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_BASH_INPUT: Final = re.compile(r"\s*<bash-input>(.*?)</bash-input>", re.DOTALL)
_OUTPUT: Final = re.compile(
    r"<(local-command-stdout|local-command-stderr|bash-stdout|bash-stderr)>(.*?)</\1>", re.DOTALL
)
_OUTPUT_START: Final = ("<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>")
_REMINDER: Final = re.compile(r"\s*<system-reminder>(?:(?!</?system-reminder>).)*</system-reminder>\s*", re.DOTALL)


class ShownText(NamedTuple):
    """A text as a person should see it."""

    kind: MessageKind
    text: str
    """Without wrappers; the stored text is what was sent."""


def user_text(text: str, *, meta: bool = False, summary: bool = False) -> ShownText:
    """What one text of a user line is.

    ``meta`` stands for every mark that nobody typed it: isMeta, isVisibleInTranscriptOnly, a tool result beside it.
    """
    if summary:
        return ShownText("summary", text)
    # Every wrapper begins with this sign, and most texts have none.
    command = command_text(text) if "<" in text else None
    if command is not None:
        return ShownText("context", command)
    if text.lstrip().startswith(_INTERRUPTED):
        return ShownText("notice", text)
    if meta:
        return ShownText("context", text)
    typed = without_reminders(text)
    if ("<" in typed and _TAG.match(typed)) or not typed.strip():
        return ShownText("context", text)
    return ShownText("prompt", typed)


def is_plain_prompt(text: str) -> bool:
    """Whether :func:`user_text` says that this is a prompt as it stands, by what no wrapper can be without."""
    return "<" not in text and _INTERRUPTED not in text and bool(text) and not text.isspace()


def command_text(text: str) -> str | None:
    """``/x args``, ``! cmd`` or the output of either; ``None`` when the text is no such wrapper."""
    start = text.lstrip()
    if start.startswith(("<command-name>", "<command-message>")):
        name = _COMMAND.search(text)
        if name is not None:
            arguments = _ARGUMENTS.search(text)
            return f"{name[1].strip()} {arguments[1].strip() if arguments else ''}".rstrip()
    if start.startswith("<bash-input>"):
        typed = _BASH_INPUT.match(text)
        return f"! {typed[1].strip()}" if typed else None
    if start.startswith(_OUTPUT_START):
        return "\n".join(part for _, part in _OUTPUT.findall(text) if part) if _OUTPUT.search(text) else None
    return None


def without_reminders(text: str) -> str:
    """The text without ``<system-reminder>`` blocks before and behind it; inside it they stay: they may be quoted."""
    if "<system-reminder>" not in text:
        return text
    begin, end = 0, len(text)
    while (found := _REMINDER.match(text, begin)) is not None and found.end() > begin:
        begin = found.end()
    blocks = list(_REMINDER.finditer(text, begin))
    while blocks and blocks[-1].end() == end:
        end = blocks.pop().start()
    return text[begin:end] if end > begin else ""
