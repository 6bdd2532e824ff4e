"""The settings file: extra roots, theme, keymap, own prices, default filters. Nothing needs it or breaks by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from hermes_tui.records import dataclass

DROP_TOKENS: Final = 1_024
"""A cache drop loses at least so many tokens: providers cache no shorter prefix (issue 7)."""
DROP_SHARE: Final = 0.5
"""… and at least this share of what was expected (issue 7)."""
MAX_BYTES: Final = 1 << 20
"""A settings file is some lines long; a larger one is not read."""

THEMES: Final = frozenset({
    "ansi-dark", "ansi-light", "atom-one-dark", "atom-one-light", "catppuccin-frappe",
    "catppuccin-latte", "catppuccin-macchiato", "catppuccin-mocha", "dracula", "flexoki",
    "gruvbox", "monokai", "nord", "rose-pine", "rose-pine-dawn",
    "rose-pine-moon", "solarized-dark", "solarized-light", "textual-dark", "textual-light",
    "tokyo-night",
})  # fmt: skip
"""Names Textual gives its themes; written down, for the command line does without Textual. A test compares them."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """What a model costs by the user's own word, in USD for a million tokens."""

    model: str
    provider: str | None = None
    """``None``: whoever serves it."""
    input: float = 0.0
    output: float = 0.0
    cache_read: float | None = None
    """``None``: as input."""
    cache_write: float | None = None
    """``None``: as input."""
    cache_write_1h: float | None = None
    """``None``: as ``cache_write``."""


@dataclass(frozen=True, slots=True)
class Filters:
    """How the list starts."""

    archived: bool = False
    children: bool = False
    automated: bool = True
    order: str = "activity"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the settings file says, or what holds without one."""

    roots: tuple[str, ...] = ()
    """More places to look for stores, beside the default ones."""
    theme: str | None = None
    ascii: bool = False
    """Draw with ASCII signs only."""
    keymap: tuple[tuple[str, str], ...] = ()
    """(command id, keys) pairs."""
    prices: tuple[OwnPrice, ...] = ()
    filters: Filters = field(default_factory=Filters)
    drop_tokens: int = DROP_TOKENS
    drop_share: float = DROP_SHARE
    path: str | None = None
    """The file that was read; ``None``: there is none."""
    problems: tuple[str, ...] = ()
    """What could not be used, each in a sentence."""


NO_SETTINGS: Final = Settings()


class _Table:
    """One table of the file: takes values out by type and remembers what was wrong or never asked for."""

    def __init__(self, name: str, values: object, problems: list[str]) -> None:
        self._name = name
        self._problems = problems
        self._values: dict[str, Any] = {}
        if isinstance(values, Mapping):
            self._values = dict(values)
        elif values is not None:
            problems.append(f"{name or 'the file'} must be a table; it is ignored")

    def take(self, key: str, check: Callable[[object], Value | None], default: Value, wanted: str) -> Value:
        """The value of a key when it is what is wanted, else the default, with a problem noted."""
        if key not in self._values:
            return default
        raw = self._values.pop(key)
        value = check(raw)
        if value is None:
            self._problems.append(f"{self._path(key)} = {raw!r} is ignored: it must be {wanted}")
            return default
        return value

    def table(self, key: str) -> _Table:
        return _Table(self._path(key), self._values.pop(key, None), self._problems)

    def tables(self, key: str) -> list[_Table]:
        raw = self._values.pop(key, [])
        if not isinstance(raw, list):
            self._problems.append(f"{self._path(key)} is ignored: write it as [[{self._path(key)}]]")
            return []
        return [_Table(f"{self._path(key)}[{place}]", value, self._problems) for place, value in enumerate(raw)]

    def items(self) -> list[tuple[str, object]]:
        rest = sorted(self._values.items())
        self._values.clear()
        return rest

    def done(self) -> None:
        """Note what nobody asked for: mostly a slip of the pen."""
        self._problems += [f"{self._path(key)} is not a setting; it is ignored" for key in sorted(self._values)]

    def _path(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


def _text(raw: object) -> str | None:
    return raw if isinstance(raw, str) and raw.strip() else None


def _theme(raw: object) -> str | None:
    return raw if isinstance(raw, str) and raw in THEMES else None


def _truth(raw: object) -> bool | None:
    return raw if isinstance(raw, bool) else None


def _texts(raw: object) -> tuple[str, ...] | None:
    if isinstance(raw, list) and all(isinstance(one, str) and one for one in raw):
        return tuple(raw)
    return None


def _amount(raw: object) -> float | None:
    """A price: not negative, finite."""
    if isinstance(raw, (int, float)) and not isinstance(raw, bool) and 0 <= raw < 1e9:
        return float(raw)
    return None


def _count(raw: object) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0 else None


def _share(raw: object) -> float | None:
    amount = _amount(raw)
    return amount if amount is not None and 0 < amount <= 1 else None


_ORDERS: Final = ("activity", "started", "tokens", "cost", "messages")


def _order(raw: object) -> str | None:
    return raw if isinstance(raw, str) and raw in _ORDERS else None


def load_settings(path: Path) -> Settings:
    """Read the settings file; a missing one is no problem, a bad one is a problem in words, never an error."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return Settings(path=str(path), problems=(f"{path} is ignored: it is larger than {MAX_BYTES} bytes",))
        raw = path.read_bytes()
    except FileNotFoundError:
        return NO_SETTINGS
    except OSError as error:
        return Settings(path=str(path), problems=(f"{path} cannot be read: {error.strerror or error}",))
    # Imported late: it costs 4 ms, and most people have no settings file.
    import tomllib

    try:
        values = tomllib.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Settings(path=str(path), problems=(f"{path} is ignored: {error}",))
    return _settings(values, path)


def _settings(values: dict[str, Any], path: Path) -> Settings:
    problems: list[str] = []
    top = _Table("", values, problems)
    cache = top.table("cache")
    settings = Settings(
        roots=top.take("roots", _texts, (), "a list of folders"),
        theme=top.take("theme", _theme, None, "the name of a theme (Ctrl+P, theme, lists them)"),
        ascii=top.take("ascii", _truth, False, "true or false"),
        keymap=_keymap(top.table("keymap"), problems),
        prices=tuple(price for one in top.tables("prices") if (price := _price(one, problems)) is not None),
        filters=_filters(top.table("filters")),
        drop_tokens=cache.take("drop_tokens", _count, DROP_TOKENS, "a number of tokens above 0"),
        drop_share=cache.take("drop_share", _share, DROP_SHARE, "a share above 0, at most 1"),
        path=str(path),
    )
    cache.done()
    top.done()
    return replace(settings, problems=tuple(f"{path}: {problem}" for problem in problems))


def _keymap(table: _Table, problems: list[str]) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for command, keys in table.items():
        if isinstance(keys, str) and keys:
            pairs.append((command, keys))
        else:
            problems.append(f"keymap.{command} is ignored: it must be keys in quotes, with commas between")
    return tuple(pairs)


def _filters(table: _Table) -> Filters:
    default = Filters()
    filters = Filters(
        archived=table.take("archived", _truth, default.archived, "true or false"),
        children=table.take("children", _truth, default.children, "true or false"),
        automated=table.take("automated", _truth, default.automated, "true or false"),
        order=table.take("order", _order, default.order, "one of " + ", ".join(_ORDERS)),
    )
    table.done()
    return filters


def _price(table: _Table, problems: list[str]) -> OwnPrice | None:
    wanted = "USD for a million tokens, 0 or more"
    model = table.take("model", _text, "", "the name of a model")
    before = len(problems)
    price = OwnPrice(
        model=model,
        provider=table.take("provider", _text, None, "the name of a provider"),
        input=table.take("input", _amount, 0.0, wanted),
        output=table.take("output", _amount, 0.0, wanted),
        cache_read=table.take("cache_read", _amount, None, wanted),
        cache_write=table.take("cache_write", _amount, None, wanted),
        cache_write_1h=table.take("cache_write_1h", _amount, None, wanted),
    )
    bad_value = len(problems) > before
    table.done()
    if not model:
        problems.append("a price without a model is ignored")
        return None
    if bad_value:
        # A price with a bad part would charge 0 for it: no price is better than a wrong one.
        problems.append(f"the price of {model} is ignored until that is mended")
        return None
    return price
