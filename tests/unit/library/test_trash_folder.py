"""What lies in the trash's folder and is no entry is counted, and stops nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.library.trash import Trash, TrashWriter
from hermes_tui.model import SessionId, StoreRef
from hermes_tui.stores.changing import StoredRow, Taken

BAD = (
    b"",
    b"{}\n",
    b"\xff\xfe\n",
    b'{"kind":"header"}\n',
    b'{"kind":"header","agent":"hermes","store":"s","path":"/p","verb":"delete","asked":[],"at":"x"}\n',
    b"null\n[1]\n",
)


@pytest.mark.parametrize("content", BAD)
def test_a_file_that_is_no_entry_is_counted(tmp_path: Path, content: bytes) -> None:
    store = StoreRef("hermes", "hermes/default", "/home/ana/.hermes/state.db", "default")
    writer = TrashWriter(tmp_path, "delete", store, [SessionId("s")], 1_000.0)
    writer.keep(Taken((SessionId("s"),), lambda: iter(()), ()))
    writer.close([SessionId("s")])
    (tmp_path / "odd.jsonl").write_bytes(content)
    trash = Trash(tmp_path)
    assert [entry.holds for entry in trash.entries()] == [frozenset({"s"})]
    assert trash.strangers() == (tmp_path / "odd.jsonl",)
    assert [identity for _, identity in trash.find("s")] == ["s"]


@pytest.mark.parametrize(
    ("title", "told"), [("Green branch", {"s": "Green branch"}), (None, {}), (b"\xff", {}), (7, {}), ("", {})]
)
def test_an_entry_knows_the_titles_of_its_sessions(tmp_path: Path, title: object, told: dict[str, str]) -> None:
    store = StoreRef("hermes", "hermes/default", "/home/ana/.hermes/state.db", "default")
    writer = TrashWriter(tmp_path, "delete", store, [SessionId("s")], 1_000.0)
    rows = [StoredRow("sessions", {"id": "s", "title": title}), StoredRow("messages", {"id": 1, "session_id": "s"})]
    writer.keep(Taken((SessionId("s"),), lambda: iter(rows), ()))
    writer.close([SessionId("s")])
    (entry,) = Trash(tmp_path).entries()
    assert entry.titles == told
    assert entry.holds == {"s"}
