"""A log that was written anew in its place: what the mirror had of it is not believed, before an update or after."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.unit.dsh.conftest import Log, log_name, put, used, zipped

Rewrite = Callable[[Log], Log]


def same_length(_log: Log) -> Log:
    return Log().talk("alpha", "first", used(7, 10, 100, 20)).talk("zetaa", "other").talk("gamma", "last")


def longer(_log: Log) -> Log:
    return Log().talk("zetaa", "other").talk("delta", "longer than before").talk("more", "of it").talk("end", "it is")


def longer_with_the_same_end(_log: Log) -> Log:
    return same_length(_log).talk("delta", "more")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rewrite", [same_length, longer, longer_with_the_same_end])
def test_a_rewritten_log_is_read_again(tmp_path: Path, cli: Cli, rewrite: Rewrite, packed: bool) -> None:
    def write(log: Log, second: int) -> None:
        data = zipped(log.bytes()) if packed else log.bytes()
        path = put(tmp_path / "dsh", data, log_name(4, packed))
        os.utime(path, (1_800_000_000 + second,) * 2)

    def told() -> list[Any]:
        rows = cli("list", "--json", store=tmp_path / "dsh").json["sessions"]
        hits = [cli("search", word, "--json", store=tmp_path / "dsh").json["hits"] for word in ("zetaa", "betaa")]
        return [rows[0]["input_tokens"], rows[0]["message_count"], rows[0]["preview"], *map(len, hits)]

    log = Log().talk("alpha", "first").talk("betaa", "prior").talk("gamma", "last")
    write(log, 0)
    assert told() == [9, 6, "alpha", 0, 1]
    assert cli("mirror", "update", "--json", store=tmp_path / "dsh").code == 0
    write(rewrite(log), 1)
    expected = {same_length: [13, 6, "alpha", 1, 0], longer: [12, 8, "zetaa", 1, 0]}
    right = expected.get(rewrite, [16, 8, "alpha", 1, 0])
    assert told() == right
    assert cli("mirror", "update", "--json", store=tmp_path / "dsh").code == 0
    assert told() == right
