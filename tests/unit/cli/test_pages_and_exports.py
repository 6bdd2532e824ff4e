"""show, export and resume on a store in memory: pages, long texts, damage, files."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes_tui.library.sources import Library
from hermes_tui.model import Problem, Usage
from hermes_tui.storage.errors import StoreUnreadable
from tests.conftest import Cli, Contract
from tests.unit.library.fake_store import MemoryStore, MemoryTranscript, message, session, store_named
from tests.unit.library.test_ids import library_of

PLAIN = "20260225_061321_a5cd68"
HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b1m \u202eevil\u202c <script>alert(1)</script> \ud800 end"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The command line finds these stores."""

    def use(*stores: MemoryStore) -> None:
        library: Library = library_of(*stores)
        monkeypatch.setattr("hermes_tui.cli.context.open_library", lambda *_: library)

    return use


@pytest.fixture
def store(opened: Callable[..., None]) -> MemoryStore:
    made = store_named("hermes/default")
    session(made, "s", title="A talk", cwd="/home/ana/code", usage=Usage(1, 2, 3), model="m")
    made.messages["s"] = [
        message("1", "first"),
        message("2", "thought", kind="reasoning", role="assistant"),
        message("2", "answer", part=1, kind="reply", role="assistant", usage=Usage(1, 2, 3, 4, 1)),
        message("3", "taken back", state="rewound"),
        message("4", None, kind="tool-call", role="assistant", tool_name="ls"),
        message("5", HOSTILE, kind="tool-result", role="tool"),
        message("6", "last", sent_text="last and more"),
    ]
    opened(made)
    return made


def ids(document: Any) -> list[str]:
    return [f"{one['id']}.{one['part']}" for one in document["messages"]]


def test_pages(cli: Cli, contract: Contract, store: MemoryStore) -> None:
    def page(*options: str) -> tuple[list[str], bool]:
        document = contract("show", cli("show", "s", "--json", *options).json)
        return ids(document), document["more"]

    everything = ["1.0", "2.0", "2.1", "4.0", "5.0", "6.0"]
    assert page() == (everything, False)
    assert page("--all") == (everything, False)
    assert page("--all-states") == (["1.0", "2.0", "2.1", "3.0", "4.0", "5.0", "6.0"], False)
    assert page("--limit", "2") == (["1.0"], True), "the next page begins behind all parts of the last message"
    assert page("--limit", "3") == (["1.0", "2.0", "2.1"], True)
    assert page("--after", "1", "--limit", "1") == (["2.0", "2.1"], True), "a message is given whole"
    assert page("--limit", "6") == (everything, False)
    assert page("--limit", "0") == ([], True)
    assert page("--tail", "2") == (["5.0", "6.0"], True)
    assert page("--tail", "6") == (everything, False)
    assert page("--tail", "99") == (everything, False)
    assert page("--after", "2") == (["4.0", "5.0", "6.0"], False), "all parts of the message named are passed"
    assert page("--after", "2", "--limit", "1") == (["4.0"], True)
    assert page("--after", "6") == ([], False)


def test_fifty_unless_said_otherwise(cli: Cli, store: MemoryStore) -> None:
    store.messages["s"] = [message(str(number), "x") for number in range(120)]
    document = cli("show", "s", "--json").json
    assert (len(document["messages"]), document["more"]) == (50, True)
    assert len(cli("show", "s", "--json", "--all").json["messages"]) == 120
    assert len(cli("show", "s", "--json", "--tail", "60").json["messages"]) == 60


def test_after_a_message_that_is_not_there(cli: Cli, contract: Contract, store: MemoryStore) -> None:
    for wrong in ("99", "3"):
        answer = cli("show", "s", "--json", "--after", wrong)
        assert answer.code == 1
        assert contract("error", answer.json)["error"]["code"] == "unknown-id"
    assert cli("show", "s", "--json", "--after", "3", "--all-states").code == 0


def test_sent_text_only_where_it_differs(cli: Cli, store: MemoryStore) -> None:
    found = {one["id"]: one for one in cli("show", "s", "--json", "--sent").json["messages"]}
    assert found["6"]["sent_text"] == "last and more"
    assert "sent_text" not in found["1"]
    assert "last and more" in cli("show", "s", "--sent").out
    assert "last and more" not in cli("show", "s").out


def test_problems_far_behind_the_page_are_told(cli: Cli, contract: Contract, opened: Callable[..., None]) -> None:
    made = store_named("codex")
    session(made, "s", problems=1)
    made.messages["s"] = [message(str(number), "x") for number in range(90)]
    made.problems = [Problem("/log", 85, 9_000, "half a line")]
    opened(made)
    document = contract("show", cli("show", "s", "--json", "--limit", "3").json)
    assert (len(document["messages"]), document["more"]) == (3, True)
    assert document["problems"] == [{"path": "/log", "line": 85, "offset": 9_000, "reason": "half a line"}]
    assert "half a line" in cli("show", "s", "--all").err


def break_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store fails once 200 messages were read of it."""
    whole = MemoryTranscript.load

    def failing(self: MemoryTranscript, heads: Any, *, sent: bool = False) -> Any:
        if self.loaded >= 200:
            raise StoreUnreadable("/stores/x", "disk I/O error")
        return whole(self, heads, sent=sent)

    monkeypatch.setattr(MemoryTranscript, "load", failing)


def test_a_store_that_breaks_off_in_the_middle_still_gives_one_document(
    cli: Cli, contract: Contract, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(monkeypatch)
    store.messages["s"] = [message(str(number), "x") for number in range(450)]
    answer = cli("show", "s", "--all", "--json")
    assert answer.code == 3
    document = contract("show", answer.json)
    assert len(document["messages"]) == 200
    assert "disk I/O error" in document["problems"][-1]["reason"]


def test_a_long_text_is_written_in_pieces_and_whole(cli: Cli, contract: Contract, store: MemoryStore) -> None:
    text = "가나다\x1b \ud800" * 100_000
    store.piece_over = 1_000
    store.messages["s"] = [message("1", text), message("2", "short")]
    document = contract("show", cli("show", "s", "--json").json)
    assert document["messages"][0]["text"] == text
    assert document["messages"][1]["text"] == "short"
    assert cli("show", "s").out.count("가나다") == 100_000
    assert json.loads(cli("export", "s", "--format", "json").out)["messages"][0]["text"] == text


def test_memory_stays_flat(store: MemoryStore, opened: Callable[..., None]) -> None:
    from hermes_tui.cli.run import run_command

    class Sink:
        """Counts and forgets."""

        size = 0

        def write(self, text: str) -> int:
            self.size += len(text)
            return len(text)

        def flush(self) -> None:
            return None

        def isatty(self) -> bool:
            return False

    body = "x" * 10_000
    store.messages["s"] = [message(str(number), body) for number in range(2_000)]
    for argv in (["show", "s", "--all", "--json"], ["export", "s", "--format", "html"]):
        sink = Sink()
        tracemalloc.start()
        assert run_command(argv, sink, Sink()) == 0  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert sink.size > 20_000_000
        assert peak < 8_000_000, argv


def test_hostile_text_never_reaches_a_terminal(cli: Cli, store: MemoryStore) -> None:
    store.sessions.clear()
    session(store, "s", title=HOSTILE, preview=HOSTILE, cwd=HOSTILE, model=HOSTILE, session_key=HOSTILE)
    for argv in (("list",), ("show", "s"), ("lineage", "s"), ("recover", "s"), ("cost", "--by", "cwd"), ("doctor",)):
        for more in ((), ("--json",)):
            answer = cli(*argv, *more)
            hostile = [sign for sign in answer.out + answer.err if _is_hostile(sign)]
            assert not hostile, (argv, more, hostile)
    resumed = cli("resume", "s", "--print").out
    assert not [sign for sign in resumed if _is_hostile(sign)]


def _is_hostile(sign: str) -> bool:
    return (ord(sign) < 32 and sign != "\n") or 0x7F <= ord(sign) < 0xA0 or sign in "\u202e\u202c\ud800"


class Tags(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html_runs_nothing_and_loads_nothing(cli: Cli, store: MemoryStore) -> None:
    store.sessions.clear()
    session(store, "s", title='"><script>x</script>', cwd="<img src=x onerror=alert(1)>")
    page = cli("export", "s", "--format", "html").out
    tags = Tags()
    tags.feed(page)
    assert not {"script", "img", "iframe", "link", "object"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name.startswith("on") or name in ("src", "href")]
    assert "default-src &#x27;none&#x27;" in page
    assert "prefers-color-scheme: dark" in page
    assert "<script>alert(1)</script>" in "".join(tags.text)
    assert "\x1b" not in page


def test_markdown(cli: Cli, store: MemoryStore) -> None:
    store.messages["s"].append(message("7", "# A heading\n---\nand text"))
    page = cli("export", "s").out
    assert page.startswith("# A talk\n")
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert len(headings) == 7
    assert "\\# A heading\n\\---\n" in page
    assert "taken back" not in page
    assert "taken back" in cli("export", "s", "--all-states").out


def test_json_lines_and_json(cli: Cli, contract: Contract, store: MemoryStore) -> None:
    lines = [json.loads(line) for line in cli("export", "s", "--format", "jsonl").out.splitlines()]
    assert [line["type"] for line in lines] == ["session"] + ["message"] * 6
    session(store, "t")
    document = json.loads(cli("export", "s", "t", "--format", "json").out)
    assert [one["session"]["id"] for one in document["exports"]] == ["s", "t"]
    for one in document["exports"]:
        contract("show", one)
    assert document["exports"][0]["messages"][-2]["text"] == HOSTILE, "bytes decide in JSON"


@pytest.mark.parametrize("form", ["md", "html", "json", "jsonl"])
def test_redaction_leaves_no_secret(cli: Cli, store: MemoryStore, form: str) -> None:
    secret = "sk-ant-abcdefghijklmnop"
    store.piece_over = 500
    store.messages["s"] += [
        message("7", f"key {secret} of ana@mail.example in /home/ana/x"),
        message("8", "pad " * 300 + secret + " pad" * 300),
    ]
    store.sessions.clear()
    session(store, "s", title=f"with {secret}", cwd="/home/ana/code")
    whole, redacted = cli("export", "s", "--format", form).out, cli("export", "s", "--format", form, "--redact").out
    for word in (secret, "ana@mail", "/home/ana"):
        assert word in whole
        assert word not in redacted
    assert "pad pad" in redacted


def test_files_are_never_written_over_without_a_word(
    cli: Cli, contract: Contract, store: MemoryStore, tmp_path: Path
) -> None:
    target = tmp_path / "talk.html"
    assert cli("export", "s", "--output", str(target), "--json").json == {"done": [str(target)]}
    first = target.read_text()
    assert first.startswith("<!doctype html>"), "the name says the format"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    target.write_text("mine")
    answer = cli("export", "s", "--output", str(target), "--json")
    assert (answer.code, contract("error", answer.json)["error"]["code"]) == (1, "refused")
    assert target.read_text() == "mine"
    assert cli("export", "s", "--output", str(target), "--yes").code == 0
    assert target.read_text() == first
    assert [path.name for path in tmp_path.iterdir()] == ["talk.html"]


def test_a_folder_gets_a_file_a_session(cli: Cli, store: MemoryStore, tmp_path: Path) -> None:
    session(store, "../../etc/passwd")
    assert cli("export", "s", "../../etc/passwd", "--output", str(tmp_path), "--format", "md").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_.._etc_passwd.md", "s.md"]


def test_sessions_of_like_names_get_files_of_their_own(cli: Cli, store: MemoryStore, tmp_path: Path) -> None:
    ids = ["a/b", "a_b", "A_B", "한" * 120, "한" * 121, "한" * 120 + "x"]
    for one in ids:
        session(store, one)
    answer = cli("export", *ids, "a/b", "--output", str(tmp_path), "--format", "json", "--json")
    assert answer.code == 0, answer.out
    written = [json.loads(Path(path).read_text())["session"]["id"] for path in answer.json["done"]]
    assert written == ids
    assert len(list(tmp_path.iterdir())) == len({path.name.casefold() for path in tmp_path.iterdir()}) == len(ids)
    assert max(len(path.name.encode()) for path in tmp_path.iterdir()) < 200


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_pipes_are_written_into_and_links_are_followed(cli: Cli, store: MemoryStore, tmp_path: Path) -> None:
    pipe, real, link = tmp_path / "pipe.md", tmp_path / "real.md", tmp_path / "link.md"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text(errors="replace")))
    reader.start()
    assert cli("export", "s", "--output", str(pipe)).code == 0
    reader.join(10)
    assert got[0].startswith("# A talk")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    link.symlink_to(real.name)
    assert cli("export", "s", "--output", str(link)).code == 0
    assert link.is_symlink()
    assert real.read_text().startswith("# A talk")
    assert cli("export", "s", "--output", str(link)).code == 1, "the file the link leads to is there"


@pytest.mark.parametrize("name", ["n" * 300 + ".md", "no/", "file.md/x.md"])
def test_places_that_cannot_be_are_refused(
    cli: Cli, contract: Contract, store: MemoryStore, tmp_path: Path, name: str
) -> None:
    (tmp_path / "file.md").write_text("mine")
    answer = cli("export", "s", "--output", f"{tmp_path}/{name}", "--json")
    assert (answer.code, contract("error", answer.json)["error"]["code"]) == (1, "refused")
    assert [path.name for path in tmp_path.iterdir()] == ["file.md"]


def test_a_name_as_long_as_a_name_can_be_is_written(cli: Cli, store: MemoryStore, tmp_path: Path) -> None:
    assert cli("export", "s", "--output", str(tmp_path / ("n" * 252 + ".md"))).code == 0


@pytest.mark.parametrize("form", ["md", "html", "jsonl"])
def test_one_json_document_is_no_other_format(cli: Cli, contract: Contract, store: MemoryStore, form: str) -> None:
    answer = cli("export", "s", "--format", form, "--json")
    assert (answer.code, contract("error", answer.json)["error"]["code"]) == (2, "wrong-use")


@pytest.mark.parametrize("command", [["show", "--all"], ["export"]], ids=["show", "export"])
def test_json_stays_json_when_a_store_fails_inside_a_long_text(
    cli: Cli, contract: Contract, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    whole = MemoryTranscript.piece

    def failing(self: MemoryTranscript, head: Any, start: int, length: int) -> Any:
        if start:
            raise StoreUnreadable("/stores/x", "disk I/O error")
        return whole(self, head, start, length)

    monkeypatch.setattr(MemoryTranscript, "piece", failing)
    store.piece_over = 1_000
    store.messages["s"] = [message("1", "x" * 600_000), message("2", "y")]
    answer = cli(*command, "s", "--json")
    assert answer.code == 3
    document = contract("show", answer.json)
    assert len(document["messages"][0]["text"]) == 1 << 18
    assert "disk I/O error" in document["problems"][-1]["reason"]


def test_an_export_to_the_screen_gives_what_could_be_read(
    cli: Cli, contract: Contract, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(monkeypatch)
    store.messages["s"] = [message(str(number), "x") for number in range(450)]
    session(store, "t")
    answer = cli("export", "s", "t", "--format", "json")
    assert answer.code == 3
    first, second = (contract("show", one) for one in answer.json["exports"])
    assert len(first["messages"]) == 200
    assert "disk I/O error" in first["problems"][-1]["reason"]
    assert second["problems"] == []
    assert "> not read:" in cli("export", "s").out


def test_a_tool_named_like_a_place_holder_is_a_tool(cli: Cli, store: MemoryStore) -> None:
    store.piece_over = 10
    store.messages["s"] = [message("1", "long enough to be cut", kind="tool-result", tool_name="\x00text\x00")]
    assert cli("show", "s", "--json").json["messages"][0]["tool_name"] == "\x00text\x00"


def test_redaction_reaches_names_and_what_was_not_read(cli: Cli, store: MemoryStore) -> None:
    store.sessions.clear()
    session(store, "s", model="ana@mail.example")
    store.messages["s"] = [message("1", "x", kind="tool-result", tool_name="ana@mail.example")]
    store.problems = [Problem("/home/ana/.agent/projects/-home-ana-code/log", 3, 0, "half a line")]
    for form in ("md", "html", "json", "jsonl"):
        page = cli("export", "s", "--format", form, "--redact").out
        assert "not read" in page or "half a line" in page
        assert "ana" not in page.replace("[user]", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```sh\n# a comment\n", "```sh\n# a comment\n```\n"),
        ("~~~~\n```\n# x", "~~~~\n```\n# x\n~~~~\n"),
        ("```\ncode\n```\n# A heading", "```\ncode\n```\n\\# A heading\n"),
        ("   ## prompt\n##\ttabbed\n##\n####### seven", "   \\## prompt\n\\##\ttabbed\n\\##\n####### seven\n"),
        ("Title\n=\nother\n-  \r# old\r\n# dos\r\n", "Title\n\\=\nother\n\\-  \r\\# old\r\n\\# dos\r\n"),
        ("<!-- the rest is hidden\n1 < 2\n<3", "\\<!-- the rest is hidden\n1 < 2\n<3\n"),
        ("```not a ` fence\n# x", "```not a ` fence\n\\# x\n"),
        ("x" * 70_000 + "# no heading\n# one", "x" * 70_000 + "# no heading\n\\# one\n"),
    ],
)
@pytest.mark.parametrize("piece", [1 << 20, 7])
def test_no_message_changes_the_document_around_it(
    cli: Cli, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, text: str, shown: str, piece: int
) -> None:
    monkeypatch.setattr("hermes_tui.library.exported.PIECE", max(piece, len(text) // 50))
    store.piece_over = piece
    store.messages["s"] = [message("1", text), message("2", "the next one")]
    pages = cli("export", "s").out.partition("## prompt · 1970-01-01T00:00:01.000Z\n\n")[2]
    first, heading, last = pages.partition("\n\n## prompt · ")
    # Long ones are not shown where they differ: it takes pytest minutes.
    assert first == shown or len(shown) > 1_000, (first, shown)
    assert hash(first) == hash(shown)
    assert heading
    assert last.endswith("\n\nthe next one\n\n")


def test_no_tool_output_leaves_its_code_block(cli: Cli, store: MemoryStore) -> None:
    fence = "`" * 12
    store.messages["s"] = [message("1", f"x\n{fence}\n## prompt\n  {fence}``  \n", kind="tool-result", role="tool")]
    assert f"{fence}\nx\n    {fence}\n## prompt\n    {fence}``  \n{fence}\n" in cli("export", "s").out


def test_a_failed_export_leaves_nothing_behind(
    cli: Cli, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> Any:
        raise StoreUnreadable("/stores/x", "disk I/O error")

    monkeypatch.setattr(MemoryTranscript, "load", failing)
    target = tmp_path / "talk.md"
    assert cli("export", "s", "--output", str(target)).code == 3
    assert list(tmp_path.iterdir()) == []
    assert cli("export", "s", "--output", str(tmp_path / "no" / "talk.md")).code == 1


def test_resume_prints_the_agents_command(cli: Cli, store: MemoryStore) -> None:
    assert cli("resume", "s", "--print").out == "cd /home/ana/code && AGENT_HOME='/a b' agent --resume s\n"
    found = cli("resume", "s", "--json").json
    assert (found["argv"], found["cwd"], found["environment"]) == (
        ["agent", "--resume", "s"], "/home/ana/code", {"AGENT_HOME": "/a b"},
    )  # fmt: skip
    session(store, "t", resumable=False)
    assert cli("resume", "t", "--print").code == 1
    refused = cli("resume", "s")
    assert refused.code == 1, "the folder is gone"
    assert "/home/ana/code is gone" in refused.err


def test_resume_asks_before_it_runs(cli: Cli, store: MemoryStore, tmp_path: Path) -> None:
    store.sessions.clear()
    session(store, "s", cwd=str(tmp_path))
    answer = cli("resume", "s")
    assert (answer.code, answer.out) == (1, "")
    assert "agent --resume s" in answer.err
    assert "--yes" in answer.err


def test_an_id_that_would_be_an_option_is_not_handed_to_an_agent(cli: Cli, store: MemoryStore) -> None:
    session(store, "--yolo")
    answer = cli("resume", "--print", "--", "--yolo")
    assert answer.code == 1
    assert "looks like an option" in answer.err


SLOWLY = """
import sys, time
from hermes_tui.library import exported
at_once = exported.pieces
def slowly(*asked):
    for piece in at_once(*asked):
        yield piece
        time.sleep(60)
exported.pieces = slowly
from hermes_tui.main import main
sys.exit(main())
"""
"""The program, which pauses inside a long text until a signal comes."""


@pytest.mark.skipif(os.name != "posix", reason="this system sends no signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_export_that_is_ended_leaves_nothing_behind(
    sample: Callable[[str], Path], tmp_path: Path, number: signal.Signals
) -> None:
    store = sample("hermes/home/state.db")
    raw = apsw.Connection(str(store))
    raw.execute("UPDATE messages SET content = ? WHERE id = 1", ("word " * 1_000_000,))
    raw.close()
    target = tmp_path / "out"
    target.mkdir()
    command = [sys.executable, "-c", SLOWLY, "export", PLAIN, "--store", str(store), "--output", f"{target}/x.md"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not list(target.iterdir()):
        time.sleep(0.002)
    running.send_signal(number)
    _, told = running.communicate(timeout=30)
    assert (running.returncode, told) == (128 + number, "")
    assert list(target.iterdir()) == []
