"""What usage costs where the store does not say: the user's own prices first, then genai-prices, offline.

genai-prices takes half a second to import (its table is 1.6 MB of Python), so the rates found for a model are kept in
our cache folder, and the package is imported only for a model that was never asked for. The kept file belongs to one
version of the table: another one makes it anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

from hermes_tui.locations import private_folder
from hermes_tui.model import PROMPT_BANDS, Cost, CostStatus, Spend
from hermes_tui.records import dataclass
from hermes_tui.settings import OwnPrice

MILLION: Final = 1_000_000
DAY: Final = 86_400.0
LOCAL_PROVIDERS: Final = frozenset(
    {"local", "custom", "ollama", "lmstudio", "lm-studio", "llamacpp", "llama.cpp", "vllm"}
)
"""Served by the user's own machine or contract: a price by the model's name alone would be invented."""
FORMAT: Final = 3
"""Of the kept file."""


@dataclass(frozen=True, slots=True)
class Rates:
    """USD for a million tokens, for prompts of one size."""

    input: float
    output: float
    reasoning: float
    """Mostly as output; some models charge it apart."""
    cache_read: float
    cache_write: float
    cache_write_1h: float


@dataclass(frozen=True, slots=True)
class Period:
    """The rates of a model from a time on, one for each of ``PROMPT_BANDS``."""

    since: float | None
    """``None``: always."""
    hours: tuple[float, float] | None
    """Seconds of the UTC day between which it holds; ``None``: all day."""
    bands: tuple[Rates, ...]

    def holds(self, at: float) -> bool:
        """Whether these rates hold at a time; an unknown time (inf) is any time of the newest period."""
        if self.since is not None and at < self.since:
            return False
        if self.hours is None or math.isinf(at):
            return True
        start, end = self.hours
        second = at % DAY
        return start <= second < end if start <= end else second >= start or second < end


@dataclass(frozen=True, slots=True)
class Priced:
    """What a part of usage costs and who says so."""

    usd: float | None
    status: CostStatus | None
    by: str | None
    """``store``, ``settings``, ``genai-prices <date>``; ``None`` where it is not known."""


NOTHING: Final = Priced(None, None, None)


class PriceTable:
    """Prices usage; safe to share between threads."""

    def __init__(self, own: Sequence[OwnPrice] = (), kept: Path | None = None) -> None:
        """``kept``: the file that rates once looked up are kept in; ``None``: they are looked up in every run."""
        self._own = tuple(own)
        self._kept = kept
        self._lock = Lock()
        self._periods: dict[tuple[str, str], tuple[Period, ...]] | None = None
        self._name = ""

    def priced(self, spend: Spend) -> Priced:
        """What this usage costs: the store's own word, else the user's, else the table's, else unknown."""
        if spend.cost_status == "included":
            return Priced(spend.cost_usd or 0.0, "included", "store")
        if _said(spend):
            return Priced(spend.cost_usd, _status_said(spend), "store")
        if not spend.usage.total and not spend.usage.reasoning:
            # Nothing was used: an unknown price of nothing is no unknown.
            return Priced(0.0, spend.cost_status, "store") if spend.cost_usd == 0 and spend.requests else NOTHING
        if (own := self._own_rates(spend)) is not None:
            return Priced(_amount(spend, own), "estimated", "settings")
        rates = self._table_rates(spend)
        if rates is not None:
            return Priced(_amount(spend, rates), "estimated", self._name)
        return Priced(None, "unknown", None)

    def cost(self, spends: Iterable[Spend]) -> Cost:
        """The sum of the known parts and how it is known (contract.md, Money)."""
        return merged(self.priced(spend) for spend in spends)

    def lost(self, spend: Spend, tokens: int) -> float | None:
        """What it cost to send so many tokens anew that were not read from the cache; ``None``: no price is known.

        Tokens that miss are written to the cache again where the provider charges writes, else sent as plain input.
        """
        rates = self._own_rates(spend) or self._table_rates(spend)
        if rates is None:
            return None
        written = spend.usage.cache_write > 0
        price = (rates.cache_write_1h if spend.write_1h else rates.cache_write) if written else rates.input
        return max(0.0, (price - rates.cache_read) * tokens / MILLION)

    def _own_rates(self, spend: Spend) -> Rates | None:
        model, provider = (spend.model or "").casefold(), (spend.provider or "").casefold()
        for own in self._own:
            if own.model.casefold() == model and (own.provider is None or own.provider.casefold() == provider):
                write = own.input if own.cache_write is None else own.cache_write
                return Rates(
                    own.input,
                    own.output,
                    own.output,
                    own.input if own.cache_read is None else own.cache_read,
                    write,
                    write if own.cache_write_1h is None else own.cache_write_1h,
                )
        return None

    def _table_rates(self, spend: Spend) -> Rates | None:
        if not spend.model or (spend.provider or "").casefold() in LOCAL_PROVIDERS:
            return None
        periods = self._periods_of(spend.model, spend.provider or "")
        if not periods:
            return None
        at = spend.last_at if spend.last_at is not None else math.inf
        current = periods[0]
        for period in periods:
            if period.holds(at):
                current = period
        edges = [place for place, edge in enumerate(PROMPT_BANDS) if edge <= spend.band]
        return current.bands[edges[-1]] if edges else current.bands[0]

    def _periods_of(self, model: str, provider: str) -> tuple[Period, ...]:
        key = (provider.casefold(), model.casefold())
        with self._lock:
            if self._periods is None:
                self._name, self._periods = _kept(self._kept)
            if key not in self._periods:
                self._name = self._name or _table_name()
                self._periods[key] = _looked_up(*key)
                _keep(self._kept, self._name, self._periods)
            return self._periods[key]


DEFAULT_PRICES: Final = PriceTable()
"""The table alone, nothing kept: where no settings were read."""


def _said(spend: Spend) -> bool:
    """Whether the store names an amount; 0.0 with status unknown means "not known" (facts/hermes.md section 8)."""
    if spend.cost_usd is None:
        return False
    return spend.cost_status in ("actual", "estimated", "mixed") or spend.cost_usd > 0


def _status_said(spend: Spend) -> CostStatus:
    """How sure the store's amount is: an amount without a word about it is an estimate."""
    return spend.cost_status if spend.cost_status in ("actual", "mixed") else "estimated"


def merged(parts: Iterable[Priced]) -> Cost:
    """One cost of several: the sum of the known, and mixed where more than one status is inside."""
    usd: list[float] = []
    statuses: set[CostStatus] = set()
    for part in parts:
        if part.usd is not None:
            usd.append(part.usd)
        if part.status is not None:
            statuses.add(part.status)
    if not statuses:
        return Cost(None, None)
    return Cost(math.fsum(usd) if usd else None, "mixed" if len(statuses) > 1 else next(iter(statuses)))


def _amount(spend: Spend, rates: Rates) -> float:
    usage = spend.usage
    one_hour = min(spend.write_1h, usage.cache_write)
    millionths = (
        usage.input * rates.input
        + max(0, usage.output - usage.reasoning) * rates.output
        + min(usage.reasoning, usage.output) * rates.reasoning
        + usage.cache_read * rates.cache_read
        + (usage.cache_write - one_hour) * rates.cache_write
        + one_hour * rates.cache_write_1h
    )
    return millionths / MILLION


# --- genai-prices -----------------------------------------------------------------------------------------------------


def _table_file() -> Path | None:
    """The table's file, found without importing it."""
    import importlib.util

    spec = importlib.util.find_spec("genai_prices")
    return Path(spec.origin).with_name("data.py") if spec is not None and spec.origin else None


def _table_name() -> str:
    """Which table, and the day of the newest price in it that has begun: it carries no other date."""
    # Imported late: half a second, and its metadata another 20 ms.
    from importlib.metadata import version

    from genai_prices.data_snapshot import get_snapshot

    today = datetime.now(UTC).date()
    starts = [
        getattr(one.constraint, "start_date", None)
        for provider in get_snapshot().providers
        for model in provider.models
        if isinstance(model.prices, list)
        for one in model.prices
    ]
    days = [day for day in starts if day is not None and day <= today]
    newest = f", newest price {max(days)}" if days else ""
    return f"genai-prices {version('genai-prices')}{newest}"


def _looked_up(provider: str, model: str) -> tuple[Period, ...]:
    """The rates of a model from genai-prices; empty where it knows none."""
    # Imported late: half a second, needed once for each model nobody asked for before.
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    info = None
    for name in (provider or None, None):
        try:
            info = snapshot.find_provider_model(model, None, name, None)[1]
        except LookupError:
            continue
        break
    if info is None:
        return ()
    prices = info.prices
    if not isinstance(prices, list):
        return (Period(None, None, _bands(prices)),)
    return tuple(Period(_since(one.constraint), _hours(one.constraint), _bands(one.prices)) for one in prices)


def _since(constraint: Any) -> float | None:
    day = getattr(constraint, "start_date", None)
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _hours(constraint: Any) -> tuple[float, float] | None:
    if getattr(constraint, "start_time", None) is None:
        return None
    return _second_of_day(constraint.start_time), _second_of_day(constraint.end_time)


def _second_of_day(time: Any) -> float:
    offset = time.utcoffset()
    seconds = time.hour * 3600 + time.minute * 60 + time.second - (offset.total_seconds() if offset else 0)
    return float(seconds % DAY)


def _bands(prices: Any) -> tuple[Rates, ...]:
    return tuple(_rates(prices, edge + 1) for edge in PROMPT_BANDS)


def _rates(prices: Any, prompt_size: int) -> Rates:
    def rate(name: str, default: float) -> float:
        price = getattr(prices, name, None)
        if price is None:
            return default
        tiers = getattr(price, "tiers", None)
        if tiers is None:
            return float(price)
        current = price.base
        for tier in sorted(tiers, key=lambda one: one.start):
            if prompt_size > tier.start:
                current = tier.price
        return float(current)

    plain = rate("input_mtok", 0.0)
    output = rate("output_mtok", 0.0)
    write = rate("cache_write_mtok", plain)
    return Rates(
        input=plain,
        output=output,
        reasoning=rate("output_reasoning_mtok", output),
        cache_read=rate("cache_read_mtok", plain),
        cache_write=write,
        cache_write_1h=rate("cache_write_1h_mtok", write),
    )


# --- the kept rates ---------------------------------------------------------------------------------------------------


def _stamp() -> list[object]:
    table = _table_file()
    if table is None:
        return [FORMAT, 0, 0]
    stat = table.stat()
    return [FORMAT, stat.st_size, stat.st_mtime_ns]


def _kept(kept: Path | None) -> tuple[str, dict[tuple[str, str], tuple[Period, ...]]]:
    """The table's name and the rates kept for this very table; nothing where there are none or they can't be read."""
    import json

    if kept is None:
        return "", {}
    try:
        document = json.loads(kept.read_bytes())
        if document["stamp"] != _stamp():
            return "", {}
        known = {(one["provider"], one["model"]): _periods(one["periods"]) for one in document["models"]}
        return str(document["name"]), known
    except (OSError, ValueError, KeyError, TypeError):
        # A cache that cannot be used is made anew; nothing but half a second is lost.
        return "", {}


def _periods(raw: list[dict[str, Any]]) -> tuple[Period, ...]:
    return tuple(
        Period(
            one["since"],
            None if one["hours"] is None else (one["hours"][0], one["hours"][1]),
            tuple(Rates(**band) for band in one["bands"]),
        )
        for one in raw
    )


def _keep(kept: Path | None, name: str, known: dict[tuple[str, str], tuple[Period, ...]]) -> None:
    # Imported late: needed only on the day a new model is seen.
    import json
    from dataclasses import asdict

    from hermes_tui.storage.whole_file import whole_file

    if kept is None:
        return
    document = {
        "stamp": _stamp(),
        "name": name,
        "models": [
            {"provider": provider, "model": model, "periods": [asdict(period) for period in periods]}
            for (provider, model), periods in known.items()
        ],
    }
    try:
        private_folder(kept.parent)
        with whole_file(kept) as file:
            json.dump(document, file)
    except OSError:
        # A read-only cache folder costs half a second a run, no more.
        return
