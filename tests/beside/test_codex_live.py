"""The real Codex at work while the browser watches: nothing fails, all appears, its folder is as without us.

Codex talks to a scripted server on the loopback device, in a network namespace of its own, with an empty home.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hermes_tui.library.search import SearchRequest, search
from tests.beside.watching import names, opened, seen, watching

pytestmark = pytest.mark.beside

VERSION = "0.171.0"
CACHE = Path(tempfile.gettempdir()) / "hermes-tui-beside" / f"codex-{VERSION}"
SERVER = Path(__file__).with_name("codex_server.py")
PORT = 8791
THREADS, TURNS = 3, 2
PASSING = ("skills", ".tmp", "tmp", "shell_snapshots")
"""Folders that are no session data."""
SETTINGS = f"""
model = "gpt-5.5"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{PORT}/v1"
wire_api = "responses"
"""
TALK = f"""
set -e
ip link set lo up 2>/dev/null || true
"$PYTHON" "$SERVER" {PORT} "$REQUESTS" &
server=$!
trap 'kill $server' EXIT
sleep 1
for thread in $(seq {THREADS}); do
  "$CODEX" exec --skip-git-repo-check "Question $thread of the day" < /dev/null
  "$CODEX" exec --skip-git-repo-check resume --last "And once more, $thread" < /dev/null
done
"""


def program() -> Path:
    """The real program, installed when it is not there."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here, so Codex cannot be installed")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"], check=False).returncode:
        pytest.skip("no network namespace can be made here, and the real program must not reach the network")
    found = CACHE / "node_modules" / ".bin" / "codex"
    if not found.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(CACHE), f"@openai/codex@{VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if not found.exists():
            pytest.skip(f"Codex {VERSION} could not be installed: {done.stderr.strip()[-300:]}")
    return found


def talk(home: Path) -> subprocess.Popen[str]:
    """Start the real program on a few threads, in an empty home."""
    codex = home / ".codex"
    requests = home / "requests"
    for folder in (codex, requests):
        folder.mkdir(parents=True)
    (codex / "config.toml").write_text(SETTINGS)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(codex), "CODEX": str(program()),
        "PYTHON": sys.executable, "SERVER": str(SERVER), "REQUESTS": str(requests),
    }  # fmt: skip
    return subprocess.Popen(
        ["unshare", "-n", "bash", "-c", TALK], cwd=home, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_codex_works_as_if_nobody_watched(tmp_path: Path) -> None:
    # Codex refuses to put its programs below /tmp: both homes lie beside it, and are taken away again.
    base = Path(tempfile.mkdtemp(prefix="hermes-tui-beside-", dir="/var/tmp"))
    try:
        alone, watched, own = base / "alone", base / "watched", tmp_path / "own"
        done = talk(alone)
        said, _ = done.communicate(timeout=300)
        assert done.returncode == 0, said

        done = talk(watched)
        with watching(watched / ".codex", own, "question") as troubles:
            said, _ = done.communicate(timeout=300)
        assert done.returncode == 0, said
        assert troubles == []
        assert names(watched / ".codex", PASSING) == names(alone / ".codex", PASSING)

        library = opened(watched / ".codex", own)
        found = seen(library)
        assert len(found) == THREADS
        assert {row.title for row in found} == {f"Question {number} of the day" for number in range(1, THREADS + 1)}
        assert [row.request_count for row in found] == [TURNS] * THREADS
        requests = THREADS * TURNS
        usages = [row.usage for row in found]
        assert sum(one.cache_read for one in usages if one) == 900 * requests
        assert sum(one.input for one in usages if one) == sum(100 + number for number in range(1, requests + 1))
        hits = list(search(library, SearchRequest("answer number")))
        assert len(hits) == requests
    finally:
        shutil.rmtree(base)
