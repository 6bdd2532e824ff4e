"""Resumes awkward transcripts and the samples with the real Claude Code and compares what it sends with what we say.

The program talks to a server on the loopback device that records each request; it runs in a network namespace of its
own, with an empty home. What it sent for the made-up ones is also recorded in tests/data/claude/resumed.json, which the
unit tests use; REMAKE=1 writes that file again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.claude.building import Made
from tests.unit.claude.cases import refused, resumable
from tests.unit.claude.resuming import recorded, said_by_us, sent_by_program

pytestmark = pytest.mark.beside

VERSION = "2.1.197"
ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests/data/samples/claude/dot-claude/projects"
RECORDED = ROOT / "tests/data/claude/resumed.json"
CACHE = Path(tempfile.gettempdir()) / "hermes-tui-beside" / f"claude-code-{VERSION}"
PORT = 8765
SERVER = ROOT / "tests/beside/claude_server.py"


def program() -> Path:
    """The real program, installed when it is not there."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here, so Claude Code cannot be installed")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"], check=False).returncode:
        pytest.skip("no network namespace can be made here, and the real program must not reach the network")
    found = sorted(CACHE.glob("node_modules/@anthropic-ai/claude-code-linux-*/claude"))
    if not found:
        CACHE.mkdir(parents=True, exist_ok=True)
        package = f"@anthropic-ai/claude-code@{VERSION}"
        done = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(CACHE), package],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        found = sorted(CACHE.glob("node_modules/@anthropic-ai/claude-code-linux-*/claude"))
        if not found:
            pytest.skip(f"Claude Code {VERSION} could not be installed: {done.stderr.strip()[-300:]}")
    return found[0]


def resume_all(work: Path, logs: dict[str, tuple[str, bytes]]) -> dict[str, Any]:
    """Resume every log (name: id and bytes); give by name the request it sent, or ``None`` when it refused."""
    claude = program()
    cwd, home, config, sent = work / "cwd", work / "home", work / "config", work / "sent"
    bucket = config / "projects" / re.sub("[^A-Za-z0-9]", "-", str(cwd))
    for folder in (cwd, home, bucket, sent):
        folder.mkdir(parents=True)
    for session_id, text in logs.values():
        (bucket / f"{session_id}.jsonl").write_bytes(text)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(config),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{PORT}", "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }  # fmt: skip
    steps = ["ip link set lo up", f"'{sys.executable}' '{SERVER}' {PORT} '{sent}' & server=$!", "sleep 1"]
    for name, (session_id, _) in logs.items():
        steps.append(f"echo '{name}' > '{sent}/now'; timeout 60 '{claude}' -p --resume {session_id} ping; true")
    steps.append("kill $server")
    script = "\n".join(steps)
    subprocess.run(
        ["unshare", "-n", "bash", "-c", script], cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, check=True, timeout=60 + 10 * len(logs),
    )  # fmt: skip
    answers: dict[str, Any] = {}
    for name in logs:
        file = sent / f"{name}.json"
        answers[name] = json.loads(file.read_text()) if file.exists() else None
    return answers


def made_logs(made: list[Made]) -> dict[str, tuple[str, bytes]]:
    return {one.name: (one.id, one.text().encode("utf-8", "surrogatepass")) for one in made}


def test_the_real_program_sends_what_was_recorded_and_what_we_say(tmp_path: Path) -> None:
    cases = resumable()
    answers = resume_all(tmp_path / "real", made_logs(cases))
    sent = {name: None if body is None else sent_by_program(body) for name, body in answers.items()}
    if os.environ.get("REMAKE"):
        RECORDED.write_text(json.dumps(sent, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert sent == recorded()
    for one in cases:
        ours = said_by_us(one.write(tmp_path / "ours"))
        assert ours == sent[one.name], one.name


def test_the_real_program_refuses_what_we_call_not_resumable(tmp_path: Path) -> None:
    answers = resume_all(tmp_path / "real", made_logs(refused()))
    assert answers == dict.fromkeys(answers)


def test_the_samples_are_resumed_as_we_say(tmp_path: Path) -> None:
    logs = {path.stem: (path.stem, path.read_bytes()) for path in sorted(SAMPLES.glob("*/*.jsonl"))}
    answers = resume_all(tmp_path / "real", logs)
    for path in sorted(SAMPLES.glob("*/*.jsonl")):
        assert said_by_us(path) == sent_by_program(answers[path.stem]), path.stem
