from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.library import prices
from hermes_tui.library.prices import PriceTable, merged
from hermes_tui.model import Cost, Spend, Usage
from hermes_tui.settings import OwnPrice
from hermes_tui.text import RawText

MILLION = 1_000_000


def spend(model: str | None = "claude-sonnet-4-5", provider: str | None = "anthropic", **more: object) -> Spend:
    usage = more.pop("usage", Usage(MILLION, MILLION, MILLION, MILLION))
    return Spend(
        None if model is None else RawText(model), None if provider is None else RawText(provider), usage, 1, **more  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> PriceTable:
    return PriceTable((), tmp_path / "cache" / "prices.json")


def test_reads_and_both_kinds_of_writes_have_prices_of_their_own(table: PriceTable) -> None:
    five_minutes = table.priced(spend())
    assert five_minutes.usd == pytest.approx(3.0 + 15.0 + 0.3 + 3.75)
    assert (five_minutes.status, (five_minutes.by or "").split()[0]) == ("estimated", "genai-prices")
    half_an_hour = table.priced(spend(write_1h=MILLION // 2))
    assert half_an_hour.usd == pytest.approx(3.0 + 15.0 + 0.3 + (3.75 + 6.0) / 2)


def test_a_long_prompt_has_the_price_of_its_band(table: PriceTable) -> None:
    assert table.priced(spend(band=200_000)).usd == pytest.approx(6.0 + 22.5 + 0.6 + 7.5)


def test_the_table_agrees_with_the_package_it_comes_from(table: PriceTable) -> None:
    from genai_prices import Usage as TheirUsage
    from genai_prices import calc_price

    for model in ("gpt-5", "claude-opus-4-5", "deepseek-chat", "gemini-2.5-pro", "gpt-4o-mini"):
        usage = Usage(1_000, 300, 2_000, 0)
        ours = table.priced(spend(model, None, usage=usage, last_at=1_790_000_000.0)).usd
        from datetime import UTC, datetime

        theirs = calc_price(
            TheirUsage(input_tokens=3_000, cache_read_tokens=2_000, output_tokens=300),
            model,
            genai_request_timestamp=datetime.fromtimestamp(1_790_000_000.0, UTC),
        )
        assert ours == pytest.approx(float(theirs.total_price)), model


@pytest.mark.parametrize("spent", [spend("nobody-knows-9", "acme"), spend(None, None), spend("gpt-5", "ollama")])
def test_what_nobody_prices_is_unknown_and_never_nothing(table: PriceTable, spent: Spend) -> None:
    priced = table.priced(spent)
    assert (priced.usd, priced.status, priced.by) == (None, "unknown", None)


def test_the_store_is_believed_first(table: PriceTable) -> None:
    assert table.priced(spend(cost_usd=1.25, cost_status="actual")).usd == 1.25
    assert table.priced(spend(cost_usd=0.0, cost_status="included")) == prices.Priced(0.0, "included", "store")
    assert table.priced(spend(cost_usd=0.0, cost_status="estimated")).usd == 0.0
    assert table.priced(spend("nimbus", "x", cost_usd=0.5)) == prices.Priced(0.5, "estimated", "store")


def test_unknown_by_the_store_may_be_priced_here_but_is_never_zero(table: PriceTable) -> None:
    assert table.priced(spend("nimbus", "x", cost_usd=0.0, cost_status="unknown")).usd is None
    assert table.priced(spend(cost_usd=0.0, cost_status="unknown")).status == "estimated"


def test_peoples_own_prices_come_before_the_table() -> None:
    own = [
        OwnPrice("Claude-Sonnet-4-5", "acme", 1.0, 2.0),
        OwnPrice("house-model", None, 1.0, 2.0, 0.5, None, 4.0),
    ]
    table = PriceTable(own)
    assert table.priced(spend("house-model", "any")).by == "settings"
    assert table.priced(spend("house-model", "any", write_1h=MILLION)).usd == pytest.approx(1.0 + 2.0 + 0.5 + 4.0)
    assert table.priced(spend(provider="acme")).usd == pytest.approx(1.0 + 2.0 + 1.0 + 1.0)
    assert (table.priced(spend()).by or "").startswith("genai-prices")


def test_one_cost_of_several_parts(table: PriceTable) -> None:
    known, unknown = spend(cost_usd=1.0, cost_status="estimated"), spend("nimbus", "x")
    assert table.cost([known, known]) == Cost(2.0, "estimated")
    assert table.cost([known, unknown]) == Cost(1.0, "mixed")
    assert table.cost([unknown]) == Cost(None, "unknown")
    assert table.cost([spend(cost_usd=1.0, cost_status="actual"), known]) == Cost(2.0, "mixed")
    assert table.cost([]) == Cost(None, None)
    assert table.cost([spend("nimbus", "x", usage=Usage()), known]) == Cost(1.0, "estimated")


def test_lost_tokens_cost_the_difference_to_a_read(table: PriceTable) -> None:
    assert table.lost(spend(usage=Usage(10, 10, 0, 10)), MILLION) == pytest.approx(3.75 - 0.3)
    assert table.lost(spend(usage=Usage(10, 10, 0, 0)), MILLION) == pytest.approx(3.0 - 0.3)
    assert table.lost(spend("nimbus", "x"), MILLION) is None


def test_rates_are_kept_and_the_package_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = PriceTable((), tmp_path / "prices.json").priced(spend())
    assert (tmp_path / "prices.json").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(prices, "_looked_up", lambda *_: pytest.fail("asked again"))
    assert PriceTable((), tmp_path / "prices.json").priced(spend()) == first


def test_kept_rates_of_another_table_or_broken_ones_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = PriceTable((), tmp_path / "prices.json").priced(spend())
    for content in (b"{", b"[]", b'{"stamp": 1}', b"\xff\x00"):
        (tmp_path / "prices.json").write_bytes(content)
        assert PriceTable((), tmp_path / "prices.json").priced(spend()) == first
    monkeypatch.setattr(prices, "_stamp", lambda: [0, 0, 0])
    monkeypatch.setattr(prices, "_looked_up", lambda *_: ())
    assert PriceTable((), tmp_path / "prices.json").priced(spend()).usd is None


def test_a_cache_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert PriceTable((), tmp_path / "file" / "prices.json").priced(spend()).usd is not None


money = st.one_of(st.none(), st.floats(0, 1_000))
spends = st.builds(
    lambda usage, usd, status: spend("nimbus", "x", usage=usage, cost_usd=usd, cost_status=status),
    st.builds(Usage, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    money,
    st.sampled_from([None, "actual", "estimated", "included", "unknown"]),
)


@given(st.lists(spends, max_size=8))
def test_money_of_parts_and_of_the_whole_agree(parts: list[Spend]) -> None:
    table = PriceTable()
    priced = [table.priced(part) for part in parts]
    whole = merged(priced)
    known = [one.usd for one in priced if one.usd is not None]
    if whole.status is not None:
        assert (whole.usd is None) == (not known)
    if whole.usd is not None:
        assert whole.usd == pytest.approx(sum(known))
    statuses = {one.status for one in priced if one.status is not None}
    assert whole.status == (None if not statuses else "mixed" if len(statuses) > 1 else next(iter(statuses)))


def test_a_price_that_begins_on_a_day_holds_from_that_day(table: PriceTable) -> None:
    before = table.priced(spend("claude-opus-4-6", last_at=1_770_000_000.0, band=200_000)).usd
    after = table.priced(spend("claude-opus-4-6", last_at=1_780_000_000.0, band=200_000)).usd
    assert before is not None
    assert after is not None
    assert before != after
    assert table.priced(replace(spend("claude-opus-4-6"), band=200_000)).usd == after, "an unknown time: the newest"
