from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.library.sources import SourceOptions, open_library
from hermes_tui.settings import NO_SETTINGS, THEMES, load_settings


def settings_of(tmp_path: Path, text: str | bytes):
    path = tmp_path / "settings.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_settings(path)


def test_nothing_needs_it(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "settings.toml") == NO_SETTINGS


def test_everything_it_can_say(tmp_path: Path) -> None:
    found = settings_of(
        tmp_path,
        """
        roots = ["/srv/agents", "~/old"]
        theme = "nord"
        ascii = true

        [keymap]
        "list.down" = "n,down"

        [filters]
        archived = true
        order = "cost"

        [cache]
        drop_tokens = 2048
        drop_share = 0.25

        [[prices]]
        model = "local-7b"
        input = 0.1
        output = 0.2
        """,
    )
    assert found.problems == ()
    assert found.roots == ("/srv/agents", "~/old")
    assert (found.theme, found.ascii, found.keymap) == ("nord", True, (("list.down", "n,down"),))
    assert (found.filters.archived, found.filters.children, found.filters.order) == (True, False, "cost")
    assert (found.drop_tokens, found.drop_share) == (2_048, 0.25)
    (price,) = found.prices
    assert (price.model, price.provider, price.input, price.cache_read) == ("local-7b", None, 0.1, None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("roots = 'x'", "roots"),
        ("theme = 5", "theme"),
        ("colour = 'red'", "colour"),
        ("[filters]\narchived = 'yes'", "filters.archived"),
        ("[filters]\norder = 'size'", "filters.order"),
        ("filters = 3", "filters"),
        ("[cache]\ndrop_share = 2", "cache.drop_share"),
        ("[cache]\ndrop_tokens = true", "cache.drop_tokens"),
        ("[keymap]\n'list.down' = 5", "list.down"),
        ("prices = 1", "prices"),
        ("[[prices]]\ninput = 1", "model"),
        ("[[prices]]\nmodel = 'm'\ninput = -1", "prices[0].input"),
        ("theme = ", "nvalid value"),
        (b"theme = '\xff'", "utf-8"),
    ],
)
def test_a_bad_value_is_named_and_the_rest_holds(tmp_path: Path, text: str | bytes, word: str) -> None:
    found = settings_of(tmp_path, text)
    assert any(word in problem for problem in found.problems), found.problems
    assert all(str(tmp_path) in problem for problem in found.problems)
    assert found.prices == ()
    assert found.filters.order == "activity"


def test_a_good_value_beside_a_bad_one_counts(tmp_path: Path) -> None:
    found = settings_of(tmp_path, "theme = 'nord'\nroots = 5")
    assert (found.theme, found.roots, len(found.problems)) == ("nord", (), 1)


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(tmp_path: Path, content: bytes) -> None:
    assert settings_of(tmp_path, content).path is not None


def test_a_name_that_names_nothing_is_told(tmp_path: Path) -> None:
    """A theme, a command and a root that are not there were passed over without a word."""
    folder = tmp_path / "config"
    folder.mkdir(parents=True)
    folder.joinpath("settings.toml").write_text(
        "roots = ['/nowhere/at/all']\ntheme = 'mauve'\n[keymap]\n'list.fly' = 'f'\n", encoding="utf-8"
    )
    library = open_library(SourceOptions(), {"HOME": str(tmp_path), "HERMES_TUI_HOME": str(tmp_path)})
    told = library.settings.problems
    assert len(told) == 3
    assert all(any(word in one for one in told) for word in ("/nowhere/at/all", "mauve", "list.fly"))


def test_the_themes_are_those_of_the_screen() -> None:
    from textual.theme import BUILTIN_THEMES

    assert set(BUILTIN_THEMES) == THEMES
