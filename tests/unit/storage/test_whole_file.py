"""A file of ours is there whole or not at all, whenever we are told to end."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import apsw
import pytest

from hermes_tui.storage.errors import StoreUnreadable
from hermes_tui.storage.reading import read_only
from hermes_tui.storage.whole_file import unused_name, whole_file


def test_it_takes_its_name_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("old")
    with whole_file(path) as file:
        file.write("half a pair \ud800\n")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "half a pair \\ud800\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, OSError])
def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "kept"
    path.write_text("old")
    with pytest.raises(error), whole_file(path):
        raise error
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_a_signal_right_after_the_making_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = os.open

    def made_and_ended(*asked: object) -> int:
        os.close(make(*asked))  # type: ignore[arg-type]
        assert len(list(tmp_path.iterdir())) == 1
        raise SystemExit(143)

    monkeypatch.setattr(os, "open", made_and_ended)
    with pytest.raises(SystemExit), whole_file(tmp_path / "kept"):
        pass
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_a_private_copy_goes_when_we_are_ended_right_after_its_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE m(id)")
    other.execute("PRAGMA cache_size=1")
    other.execute("BEGIN")
    other.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 20000) INSERT INTO m SELECT i FROM n"
    )
    hot, journal = path.read_bytes(), Path(f"{path}-journal").read_bytes()
    other.execute("ROLLBACK")
    other.close()
    path.write_bytes(hot)
    Path(f"{path}-journal").write_bytes(journal)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    make = Path.mkdir

    def made_and_ended(folder: Path, mode: int) -> None:
        make(folder, mode)
        raise SystemExit(143)

    monkeypatch.setattr(Path, "mkdir", made_and_ended)
    with pytest.raises(SystemExit), read_only(path):
        pass
    assert list(temporary.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no folder"))
    with pytest.raises(StoreUnreadable), read_only(path):
        pass


def test_no_two_temporary_names_are_alike(tmp_path: Path) -> None:
    names = {unused_name(tmp_path, ".part") for _ in range(1000)}
    assert len(names) == 1000
    assert all(name.name.startswith(".hermes-tui-") and name.suffix == ".part" for name in names)
