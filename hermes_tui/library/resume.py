"""The agent's own command that goes on with a session."""

from __future__ import annotations

import shlex
from pathlib import Path

from hermes_tui.library.catalog import row_of
from hermes_tui.library.failures import Refused, UnknownId
from hermes_tui.library.sources import Found
from hermes_tui.model import ResumeCommand


def resume_command(found: Found) -> ResumeCommand:
    """The command, with the folder to run it in.

    Raises:
        Refused: the agent itself cannot resume this session.
        UnknownId: it went away.
    """
    row = row_of(found, conversation=True)
    if row is None:
        raise UnknownId(f"{found.session_id} is no longer there")
    if not row.resumable:
        raise Refused(
            f"{found.store.ref.agent} cannot resume {found.session_id}",
            "Its own program refuses such sessions (a sub-agent, nothing to load, or a log it cannot read). "
            "`hermes-tui recover` shows what would be loaded.",
        )
    command = found.store.resume_command(row)
    if row.id.startswith("-") or row.tip_id.startswith("-"):
        # A store can hold any id; this one would be read as an option of the agent.
        raise Refused(f"{found.session_id} cannot be resumed: its id looks like an option of {command.argv[0]}")
    return command


def shell_line(command: ResumeCommand) -> str:
    """The whole of it as one line for a POSIX shell."""
    parts = [f"{name}={shlex.quote(value)}" for name, value in command.environment]
    parts += [shlex.quote(word) for word in command.argv]
    line = " ".join(parts)
    return f"cd {shlex.quote(command.cwd)} && {line}" if command.cwd else line


def folder_is_gone(command: ResumeCommand) -> bool:
    """Whether the session's folder no longer exists, so that the command cannot run there."""
    return command.cwd is not None and not Path(command.cwd).is_dir()
