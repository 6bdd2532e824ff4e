"""The real Claude Code at work while the browser watches: nothing fails, all appears, its folder is as without us."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_tui.library.search import SearchRequest, search
from tests.beside.test_claude_resume import SERVER, program
from tests.beside.watching import names, opened, seen, watching

pytestmark = pytest.mark.beside

PORT = 8792
SESSIONS, TURNS = 3, 2
TALK = f"""
set -e
ip link set lo up 2>/dev/null || true
echo any > "$REQUESTS/now"
"$PYTHON" "$SERVER" {PORT} "$REQUESTS" &
server=$!
trap 'kill $server' EXIT
sleep 1
for session in $(seq {SESSIONS}); do
  "$CLAUDE" -p "Question $session of the day" < /dev/null
  "$CLAUDE" -p --continue "And once more, $session" < /dev/null
done
"""
PASSING = ("backups", "shell-snapshots", "cache", "statsig", "telemetry", "plugins", ".claude.json", "debug")
"""What is no session data."""


def talk(home: Path) -> subprocess.Popen[str]:
    """Start the real program on a few sessions, in an empty home."""
    folders = {name: home / name for name in ("config", "work", "requests")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(folders["config"]),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{PORT}", "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE": str(program()), "PYTHON": sys.executable,
        "SERVER": str(SERVER), "REQUESTS": str(folders["requests"]),
    }  # fmt: skip
    return subprocess.Popen(
        ["unshare", "-n", "bash", "-c", TALK], cwd=folders["work"], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_claude_code_works_as_if_nobody_watched(tmp_path: Path) -> None:
    # One place for both, one after the other: Claude Code names folders by it.
    alone, watched, own = tmp_path / "alone", tmp_path / "home", tmp_path / "own"
    done = talk(watched)
    said, _ = done.communicate(timeout=400)
    assert done.returncode == 0, said
    watched.rename(alone)

    done = talk(watched)
    with watching(watched / "config", own, "question") as troubles:
        said, _ = done.communicate(timeout=400)
    assert done.returncode == 0, said
    assert troubles == []
    assert names(watched / "config", PASSING) == names(alone / "config", PASSING)

    library = opened(watched / "config", own)
    found = seen(library)
    assert len(found) == SESSIONS
    assert {row.preview for row in found} == {f"Question {number} of the day" for number in range(1, SESSIONS + 1)}
    # The scripted server gives every reply the same id: within a session that is one reply.
    assert [row.request_count for row in found] == [1] * SESSIONS
    assert len(list(search(library, SearchRequest("once more")))) == SESSIONS
