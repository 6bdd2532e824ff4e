"""Words and numbers of the screens: plurals, small sums, parts that must not touch, ends of paths."""

from __future__ import annotations

from datetime import UTC

from hermes_tui.library.annotations import Annotation
from hermes_tui.library.cache import CachePoint, CacheReport
from hermes_tui.library.commands import shown_key
from hermes_tui.library.health import Health, MirrorHealth
from hermes_tui.model import Finding, Request, SessionId, StoreRef, StoreStatus, Usage
from hermes_tui.text import RawText
from hermes_tui.tui.formats import Moment, counted, usd
from hermes_tui.tui.glyphs import UNICODE
from hermes_tui.tui.inks import Line, line_width, spread
from hermes_tui.tui.views.drop_table import curve_of
from hermes_tui.tui.views.facets import origins_text
from hermes_tui.tui.views.health_report import health_lines, summary
from hermes_tui.tui.views.transcript_head import head_lines


def text_of(line: Line) -> str:
    return "".join(text for text, _ in line)


def test_ctrl_is_written_the_same_way_for_every_key() -> None:
    assert [shown_key(key) for key in ("ctrl+z", "ctrl+p", "slash", "ctrl+slash", "J")] == ["^z", "^p", "/", "^/", "J"]


def test_one_is_not_many() -> None:
    assert counted(1, "request") == "1 request"
    assert counted(1_204, "request") == "1,204 requests"
    assert counted(0, "miss was", "misses were") == "0 misses were"


def test_a_sum_too_small_for_four_places_is_not_nothing() -> None:
    assert (usd(0), usd(0.00001), usd(0.0004), usd(0.014)) == ("0.00", "<0.0001", "0.0004", "0.01")


def test_a_part_that_is_cut_does_not_run_into_the_other() -> None:
    line = spread((("all conversations, 159 requests", ""),), (("7 drops", ""),), 24)
    assert text_of(line) == "all conversatio… 7 drops"
    assert line_width(line) == 24


def test_the_origin_says_what_is_still_to_do() -> None:
    assert origins_text([("scan", 27), ("store", None)]) == "scan, store, 27 logs not in the mirror yet"


def test_health_reads_as_sentences_and_keeps_the_end_of_a_path() -> None:
    ref = StoreRef("codex", "codex", "/" + "long/" * 30 + "the-end", None)
    finding = Finding("damaged", "error", "it is damaged (malformed)", advice="Copy it.", paths=(ref.path,))
    status = StoreStatus(ref, "degraded", "scan", 1, findings=(finding,), fallbacks=(("not-in-mirror", 2),))
    health = Health((status,), MirrorHealth(), (), ())
    lines = [text_of(line.line) for line in health_lines(health, 100, UNICODE)]
    assert any(line.rstrip().endswith("1 session · from scan") for line in lines)
    assert any("read from the logs 2 times: not in the mirror yet" in line for line in lines)
    assert any(line.strip() == "It is damaged (malformed)" for line in lines)
    assert sum(line.rstrip().endswith("/the-end") and "…" in line for line in lines) == 2
    assert all(len(line) <= 100 for line in lines)
    assert "X 1 error" in text_of(summary(health))


def test_what_health_says_of_the_mirror_is_wrapped_and_not_cut() -> None:
    mirror = MirrorHealth("/x/mirror.sqlite", 125_000_000, 5_000, 0, 0)
    lines = [text_of(line.line) for line in health_lines(Health((), mirror, (), ()), 80, UNICODE)]
    assert all(len(line) <= 80 for line in lines)
    assert " ".join(" ".join(lines).split()).find("0 gone from disk · 125 MB") > 0


def test_the_head_of_a_transcript_names_what_was_said_about_it() -> None:
    said = Annotation(True, (RawText("urgent"), RawText("shop")), RawText("ask\x1b Ana"))
    first, second = head_lines(None, "", "record", 80, UNICODE, said)
    assert "pinned" in text_of(second)
    assert "#urgent #shop" in text_of(second)
    assert "note ask" in text_of(second)
    assert "\x1b" not in text_of(second)
    assert line_width(second) == 80
    assert head_lines(None, "", "record", 80, UNICODE, Annotation(False, (), None)) == [first]


def test_the_curve_goes_from_the_first_request_to_the_last_though_they_come_chain_by_chain() -> None:
    store = StoreRef("hermes", "hermes/default", "/home/ana/.hermes/state.db", "default")

    def point(chain: str, at: float, read: int) -> CachePoint:
        usage = Usage(input=10, cache_read=read)
        return CachePoint(store, Request(SessionId("s"), chain, None, None, at, None, None, usage))

    points = (point("s", 3_600.0, 30), point("s", 7_200.0, 90), point("s title", 60.0, 0))
    curve = curve_of(CacheReport(points, (), 0.0), Moment(7_200.0, UTC), by_day=False)
    assert curve.values == (0.0, 0.75, 0.9)
    assert (curve.first, curve.last) == ("1 Jan 00:01", "1 Jan 02:00")
