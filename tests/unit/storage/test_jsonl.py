"""Any bytes in: no crash, nothing lost without a count, forward and backward agree, places are right."""

from __future__ import annotations

import errno
import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.storage import jsonl, log_bytes
from hermes_tui.storage.jsonl import read_head_tail, read_line_at, read_records, read_records_backward


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


def write(folder: Path, data: bytes, name: str = "a.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def values(path: Path) -> list[object]:
    return [r.value for r in read_records(path)]


DAMAGE = [
    *(b"\n", b"\r\n", b"\0\0\0", b"\xef\xbb\xbf", b'{"a": 1}\n', b'{"a"', b'"\xe2\x80\xa8"\n', b"NaN\n", b"null\n"),
    *(b'{"s": "\\ud800"}\n', b"123456789012345678901234567890\n", b'{"x": "\xff"}\n', b"[[[[", b" \n", b"\n\n"),
]
pieces = st.one_of(st.binary(max_size=40), st.sampled_from(DAMAGE))
logs = (
    st.lists(pieces, max_size=30).map(b"".join).filter(lambda data: data[1:4] not in (b"\xb5\x2f\xfd", b"\x2a\x4d\x18"))
)


def check_places(data: bytes, records: list[jsonl.Record]) -> None:
    lines = data.split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for record in records:
        assert record.raw == lines[record.line - 1]
        assert record.offset == starts[record.line - 1]
        assert record.length == len(record.raw)
        assert data[record.offset : record.offset + record.length] == record.raw
        assert record.complete == (record.line < len(lines))
        assert record.end == min(starts[record.line], len(data))
    told = {record.line for record in records}
    for number, line in enumerate(lines, 1):
        if number not in told:
            assert not line.strip(b" \t\r"), "a line that is not blank was lost"


@settings(max_examples=300, deadline=None)
@given(logs)
def test_any_bytes_give_every_line_with_its_place(folder: Path, data: bytes) -> None:
    path = write(folder, data)
    records = list(read_records(path))
    check_places(data, records)
    for record in records:
        if record.problem is None:
            assert record.rescued == ()
        if record.problem is None and record.value is None:
            assert record.raw.removeprefix(b"\xef\xbb\xbf").strip() == b"null"
        again = read_line_at(path, record.offset, record.length, record.line)
        assert again == record or "NaN" in repr(again)


@settings(max_examples=300, deadline=None)
@given(logs, st.integers(1, 50))
def test_backward_is_forward_reversed(folder: Path, data: bytes, block: int) -> None:
    path = write(folder, data)
    forward = repr(list(read_records(path)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "FIRST_BLOCK", block)
        patch.setattr(jsonl, "BLOCK", block + 3)
        patch.setattr(log_bytes, "LINE_BUFFER", block)
        backward = list(read_records_backward(path))
        assert repr(backward[::-1]) == forward
        assert repr(list(read_records(path))) == forward


@settings(max_examples=200, deadline=None)
@given(logs, st.lists(st.integers(0, 400), max_size=5))
def test_compressed_reads_as_plain(folder: Path, data: bytes, cuts: list[int]) -> None:
    plain = write(folder, data)
    edges = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    compress = zstandard.ZstdCompressor().compress
    packed = b"".join(compress(data[a:b]) for a, b in pairwise(edges))
    path = write(folder, packed, "a.jsonl.zst")
    assert repr(list(read_records(path))) == repr(list(read_records(plain)))
    assert repr(list(read_records_backward(path))) == repr(list(read_records_backward(plain)))


@settings(max_examples=200, deadline=None)
@given(logs, st.integers(0, 300))
def test_an_end_is_a_power_cut(folder: Path, data: bytes, end: int) -> None:
    path = write(folder, data)
    cut = write(folder, data[:end], "cut.jsonl")
    assert repr(list(read_records(path, end=end))) == repr(list(read_records(cut)))
    assert repr(list(read_records_backward(path, end=end))) == repr(list(read_records_backward(cut)))


@settings(max_examples=200, deadline=None)
@given(logs)
def test_reading_on_from_any_line_gives_the_rest(folder: Path, data: bytes) -> None:
    path = write(folder, data)
    records = list(read_records(path))
    for index, record in enumerate(records[:5]):
        rest = list(read_records(path, offset=record.end, line=record.line + 1))
        assert repr(rest) == repr(records[index + 1 :])


@settings(max_examples=200, deadline=None)
@given(logs, st.integers(1, 120))
def test_head_and_tail_never_give_a_line_twice(folder: Path, data: bytes, size: int) -> None:
    path = write(folder, data)
    whole = {r.offset: r for r in read_records(path)}
    head, tail = read_head_tail(path, size)
    offsets = [r.offset for r in head + tail]
    assert offsets == sorted(set(offsets))
    for record in head + tail:
        same = whole[record.offset]
        assert repr(record._replace(line=0)) == repr(same._replace(line=0))
        assert record.line in (0, same.line)
    for offset, record in whole.items():
        if record.end <= size or offset >= len(data) - size:
            assert offset in offsets


def test_kinds_of_damage(folder: Path) -> None:
    half = b'{"type": "b", "payload": {"inner": {"x": 1}, "text": "unfinis'
    good = b'{"type": "a", "payload": {"x": 1}}'
    cases: list[tuple[bytes, object, str | None, tuple[object, ...]]] = [
        (good, json.loads(good), None, ()),
        (good + b"\r", json.loads(good), None, ()),
        (b"\xef\xbb\xbf" + good, json.loads(good), None, ()),
        ('{"t": "a\u2028b"}'.encode(), {"t": "a\u2028b"}, None, ()),
        (b'{"t": "\\ud83d"}', {"t": "\ud83d"}, None, ()),
        (b'{"n": 123456789012345678901234567890}', {"n": 1.2345678901234568e29}, None, ()),
        (b"null", None, None, ()),
        (b'{"t": "\xff"}', {"t": "\ufffd"}, "bad UTF-8 at byte 7 of the line", ()),
        (b"\0" * 64, None, "64 NUL bytes", ()),
        (b"\0" * 64 + good, None, "64 NUL bytes beside the record", (json.loads(good),)),
        (good + good, None, "not JSON: Extra data at character 34", (json.loads(good), json.loads(good))),
        (half + good, None, "not JSON: Expecting ',' delimiter at character 63", (json.loads(good),)),
        (half, None, "not JSON: Unterminated string starting at at character 53", ()),
        (good + b"\0\0" + half, None, "not JSON: Extra data at character 34", (json.loads(good),)),
        (b'{"type": 12' + good, None, "not JSON: Expecting ',' delimiter at character 11", (json.loads(good),)),
        (b"[" * 100_000, None, "not JSON: nested too deeply", ()),
    ]
    path = write(folder, b"\n".join(case[0] for case in cases) + b"\n")
    for record, (raw, value, problem, rescued) in zip(read_records(path), cases, strict=True):
        assert record.raw == raw
        assert (record.value, record.problem, record.rescued) == (value, problem, rescued)


def test_a_torn_tail_is_told_from_a_last_line_without_newline(folder: Path) -> None:
    assert [r.problem for r in read_records(write(folder, b'{"a":1}\n{"b":'))] == [None, "torn tail"]
    (_, last) = read_records(write(folder, b'{"a":1}\n{"b":2}'))
    assert (last.value, last.problem, last.complete) == ({"b": 2}, None, False)


def test_a_cut_last_frame_gives_what_came_before(folder: Path) -> None:
    compress = zstandard.ZstdCompressor().compress
    first = compress(b'{"a":1}\n')
    second = compress(b"".join(b'{"b":%d,"x":"%s"}\n' % (i, os.urandom(20).hex().encode()) for i in range(100)))
    path = write(folder, first + second[:-20], "cut.jsonl.zst")
    records = list(read_records(path))
    assert records[0].value == {"a": 1}
    assert records[-1].problem == "the last compressed frame is cut short"
    assert next(r.problem for r in read_records_backward(path)) == "the last compressed frame is cut short"


def test_a_damaged_frame_is_said(folder: Path) -> None:
    good = zstandard.ZstdCompressor().compress(b'{"a":1}\n')
    path = write(folder, good + good[:4] + b"\xff" * 50, "bad.jsonl.zst")
    records = list(read_records(path))
    assert records[0].value == {"a": 1}
    assert records[-1].problem is not None
    assert "damaged" in records[-1].problem


@pytest.mark.parametrize("rows", [1, 400])
@pytest.mark.parametrize("place", [4, -3], ids=["its beginning", "its checksum"])
def test_behind_a_damaged_frame_the_next_one_is_read(folder: Path, rows: int, place: int) -> None:
    compress = zstandard.ZstdCompressor(write_checksum=True).compress
    wide = b"".join(b'{"b":%d,"x":"%s"}\n' % (i, os.urandom(40).hex().encode()) for i in range(rows))
    damaged = bytearray(compress(wide))
    damaged[place] ^= 0xFF
    good = [compress(b'{"a":%d}\n' % i) for i in range(4)]
    path = write(folder, good[0] + good[1] + bytes(damaged) + good[2] + good[3], "damaged.jsonl.zstd")
    records = list(read_records(path))
    assert [r.value for r in records if isinstance(r.value, dict) and "a" in r.value] == [{"a": i} for i in range(4)]
    assert records[-1].problem is not None
    assert "damaged" in records[-1].problem
    assert all(r.problem is None or "not JSON" in r.problem for r in records[:-1])
    for record in records[:-1]:
        assert read_line_at(path, record.offset, record.length).raw == record.raw


@pytest.mark.parametrize("start", [0, 3], ids=["read whole", "read on behind it"])
def test_damage_that_is_passed_is_told_where_it_lies(folder: Path, start: int) -> None:
    compress = zstandard.ZstdCompressor(write_checksum=True).compress
    good = [compress(b'{"a":%d}\n' % i) for i in range(4)]
    first, second = bytearray(compress(b'{"b":1}\n' * 9)), bytearray(compress(b'{"c":1}\n'))
    first[-3] ^= 0xFF
    second[-3] ^= 0xFF
    path = write(folder, b"".join([*good[:2], bytes(first), good[2], bytes(second), good[3]]), "damaged.jsonl.zstd")
    *records, damage = read_records(path, offset=start * len(b'{"a":0}\n'), line=start + 1)
    assert [r.value for r in records] == [{"a": i} for i in range(start, 4)]
    assert (damage.line, damage.offset, damage.length) == (3, 2 * len(b'{"a":0}\n'), 0)
    head, tail = read_head_tail(path, len(b'{"a":0}\n'))
    assert [r.value for r in (*head, *tail)] == [{"a": 0}, {"a": 3}, None]


@pytest.mark.parametrize("packed", [False, True])
def test_giant_lines_are_named_not_loaded(folder: Path, packed: bool) -> None:
    size = jsonl.GIANT_LINE + 100_000
    data = b'{"a":1}\n{"t":"' + b"x" * (size - 9) + b'"}\n{"b":2}\n'
    path = write(folder, zstandard.ZstdCompressor().compress(data) if packed else data, "giant.jsonl")
    records = list(read_records(path))
    assert [r.line for r in records] == [1, 2, 3]
    giant = records[1]
    assert giant.length == data.index(b'{"b"') - 9
    assert giant.value is None
    assert giant.problem == f"giant line of {giant.length:,} bytes, not loaded"
    assert giant.raw == data[8 : 8 + jsonl.GIANT_HEAD]
    assert records[2].value == {"b": 2}
    assert list(read_records_backward(path))[::-1] == records
    assert read_line_at(path, giant.offset, giant.length, 2) == giant
    assert jsonl.read_piece(path, 8 + 100, 50) == data[108:158]
    assert list(read_records(path, wants=lambda raw: b'"t"' in raw[:10])) == [giant]


def test_what_is_not_a_file_is_refused_at_once(folder: Path) -> None:
    pipe = folder / "pipe.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file") as told:
        list(read_records(pipe))
    assert told.value.errno == errno.EINVAL
    with pytest.raises(IsADirectoryError):
        list(read_records(folder))
    with pytest.raises(FileNotFoundError):
        list(read_records(folder / "none.jsonl"))


def test_a_line_that_moved_is_noticed(folder: Path) -> None:
    path = write(folder, b'{"a":1}\n{"b":2}\n')
    assert read_line_at(path, 8, 7, 2).value == {"b": 2}
    assert read_line_at(path, 8, 6).problem is not None
    assert read_line_at(path, 3, 10).problem is not None
    assert read_line_at(path, 100, 10).problem is not None


@pytest.mark.parametrize(("more", "giant"), [(-1, False), (0, False), (1, True)])
@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_a_newline_makes_no_line_a_giant(
    more: int, giant: bool, newline: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "GIANT_LINE", 64)
    path = tmp_path / "log.jsonl"
    line = b'"' + b"x" * (62 + more) + b'"'
    path.write_bytes(b"1\n" + line + newline)
    first, second = jsonl.read_records(path)
    assert first.value == 1
    assert (second.value is None, second.length) == (giant, 64 + more)
