"""The manual and the program say the same: what is in one (a command, a key, a setting, a code) is in the other."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib.util
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from hermes_tui import model, settings
from hermes_tui.cli.parser import COMMANDS, SCREEN_COMMANDS, build_parser
from hermes_tui.library.commands import COMMANDS as KEY_COMMANDS
from hermes_tui.library.commands import shown_key
from hermes_tui.library.failures import ExitCode, Failure
from hermes_tui.mirror.database import MirrorState
from hermes_tui.stores.changing import REASONS
from hermes_tui.stores.registry import KNOWN

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "hermes_tui"
PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md")))
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OTHERS_OPTIONS = frozenset({"--resume", "--fork-session", "--profile", "--session-id"})
"""Of the agents' own commands."""


@cache
def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def code_spans(page: str) -> list[str]:
    """What stands between single backticks, outside fenced blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", page))


def section(page: str, heading: str) -> str:
    """A section up to the next heading of its level or above; fails where there is none."""
    found = re.search(rf"(?m)^(#+) {re.escape(heading)}$", page)
    assert found, f"there is no section {heading!r}"
    rest = page[found.end() :]
    after = re.search(rf"(?m)^#{{1,{len(found[1])}}} ", rest)
    return rest[: after.start()] if after else rest


def first_cells(page: str) -> set[str]:
    """Everything in backticks in the first column of the page's tables."""
    rows = re.findall(r"(?m)^\| (`[^|]*`[^|]*) \|", page)
    return {span for row in rows for span in re.findall(r"`([^`]+)`", row)}


# Commands and options.


@cache
def subparsers() -> Mapping[str, argparse.ArgumentParser]:
    action = next(one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return action.choices


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings if name.startswith("--")} - {"--help"}


def common_options() -> set[str]:
    return set.intersection(*(options_of(parser) for parser in subparsers().values()))


def own_lines(part: str) -> str:
    """A command's own section without the sections below it."""
    return re.split(r"(?m)^#", part)[0]


@pytest.mark.parametrize("command", [*COMMANDS, *SCREEN_COMMANDS])
def test_every_command_and_its_options_are_in_the_manual(command: str) -> None:
    page = text("command-line.md")
    part = own_lines(section(page, f"`{command}`"))
    said = {option for line in part.splitlines() if line.startswith(("- ", "  ")) for option in OPTION.findall(line)}
    own = options_of(subparsers()[command]) - common_options()
    shared = {"--dry-run", "--yes"} if command in COMMANDS and COMMANDS[command] == "changes" else set()
    assert shared <= set(OPTION.findall(own_lines(section(page, "Changes"))))
    assert said == own - shared, f"{command}: manual and parser differ by {sorted(said ^ (own - shared))}"


def test_positional_words_of_commands_are_in_the_manual() -> None:
    page = text("command-line.md")
    for name, parser in subparsers().items():
        part = own_lines(section(page, f"`{name}`"))
        for action in parser._actions:
            if not action.option_strings and action.choices is None:
                assert f"{action.metavar}" in part, f"{name} {action.metavar}"


def test_common_options_are_in_the_manual() -> None:
    part = section(text("command-line.md"), "Options of every command")
    before = options_of(build_parser()) - common_options()
    assert set(OPTION.findall(part)) == common_options() | before


def test_no_command_of_the_manual_is_gone() -> None:
    known = set(COMMANDS) | set(SCREEN_COMMANDS)
    headings = re.findall(r"(?m)^#+ `([a-z]+)`$", text("command-line.md"))
    assert set(headings) == known
    for path in PAGES:
        for span in code_spans(path.read_text(encoding="utf-8")):
            words = span.split()
            if words[:1] == ["hermes-tui"] and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
                assert words[1] in known, f"{path.name}: {span}"


def test_no_option_of_the_manual_is_gone() -> None:
    known = set().union(*(options_of(parser) for parser in subparsers().values())) | options_of(build_parser())
    for path in PAGES:
        for option in OPTION.findall(path.read_text(encoding="utf-8")):
            assert option in known | OTHERS_OPTIONS | {"--help"}, f"{path.name}: {option}"


def test_choices_are_in_the_manual() -> None:
    page = text("command-line.md")
    for name, parser in subparsers().items():
        for action in parser._actions:
            if action.choices is not None and action.dest.split("_")[0] not in ("agent", "kind"):
                wanted = "|".join(str(choice) for choice in action.choices)
                assert wanted in own_lines(section(page, f"`{name}`")), f"{name} {action.dest}: {wanted}"


def test_exit_codes_and_error_codes_are_in_the_manual() -> None:
    part = section(text("command-line.md"), "Exit codes")
    assert {int(code) for code in re.findall(r"(?m)^\| (\d) \|", part)} == {int(code) for code in ExitCode}
    codes = {kind.code for kind in Failure.__subclasses__()}
    assert codes <= set(code_spans(part))


# Keys.


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_keys_is_fresh() -> None:
    assert text("keys.md") == load(DOCS / "make_keys.py").page(), "run: python docs/make_keys.py"


def test_keys_inside_boxes_are_in_the_manual() -> None:
    boxes = load(DOCS / "make_keys.py").BOXES
    found: dict[str, set[str]] = {}
    for path in sorted((PACKAGE / "tui" / "dialogs").glob("*.py")):
        for call in calls(path, "Binding"):
            keys = call.args[0]
            assert isinstance(keys, ast.Constant)
            found.setdefault(path.stem, set()).update(str(keys.value).split(","))
    for module, keys in found.items():
        said = {key for names, _ in boxes[module][1] for key in names.split(",")}
        assert keys <= said, f"{module}: {sorted(keys - said)}"
    assert boxes.keys() <= {path.stem for path in (PACKAGE / "tui" / "dialogs").glob("*.py")}


def test_keys_the_readme_names_do_something() -> None:
    part = section((ROOT / "README.md").read_text(encoding="utf-8"), "Keys")
    signs = {shown_key(key) for command in KEY_COMMANDS for key in command.key.split(",")}
    signs |= {"Escape", "Ctrl+P"}
    for span in code_spans(part):
        assert span in signs, span


# Settings.


def flat_settings() -> dict[str, object]:
    """Every setting by its name in the file, with what holds without one."""
    names = {one.name for one in dataclasses.fields(settings.Settings)} - {"path", "problems"}
    default = settings.NO_SETTINGS
    found: dict[str, object] = {name: getattr(default, name) for name in names & {"roots", "theme", "ascii"}}
    found |= {f"cache.{name}": getattr(default, name) for name in names & {"drop_tokens", "drop_share"}}
    found |= {f"filters.{one.name}": one.default for one in dataclasses.fields(settings.Filters)}
    found |= {f"prices.{one.name}": None for one in dataclasses.fields(settings.OwnPrice)}
    assert names == {"roots", "theme", "ascii", "keymap", "prices", "filters", "drop_tokens", "drop_share"}
    return found


def test_every_setting_is_in_the_manual_with_its_default() -> None:
    page = text("settings.md")
    rows = dict(re.findall(r"(?m)^\| `([a-z0-9_.]+)` \| ([^|]+) \|", page))
    wanted = flat_settings()
    assert rows.keys() == wanted.keys()
    for name, default in wanted.items():
        said = rows[name].strip().strip("`")
        if not name.startswith("prices."):
            told = tomllib.loads(f"value = {said}")["value"]
            assert (told or None) == (list(default) or None if isinstance(default, tuple) else default or None), name
    section(page, "`[keymap]`")


def test_the_example_of_the_settings_page_is_good(tmp_path: Path) -> None:
    found = re.search(r"(?ms)^```toml\n(.*?)^```", text("settings.md"))
    assert found
    (tmp_path / "settings.toml").write_text(found[1], encoding="utf-8")
    loaded = settings.load_settings(tmp_path / "settings.toml")
    assert loaded.problems == ()
    assert loaded.prices
    ids = {command.id for command in KEY_COMMANDS}
    assert loaded.keymap
    assert all(name in ids for name, _ in loaded.keymap)


# Findings, causes, reasons, words.


def calls(path: Path, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in names:
                yield node


FTS = ("messages-fts", "messages-fts-trigram", "messages-fts-cjk")
COMPUTED: Mapping[str, frozenset[str]] = {
    "stores/codex/findings.py": frozenset(
        f"agent-mirror-{why}" for why in ("missing", "mid-backfill", "broken", "locked", "unknown-schema")
    ),
    "stores/dsh/store.py": frozenset({"flat-log", "duplicate-session", "unreadable-folder"}),
    "stores/log_findings.py": frozenset({"unreadable-lines", "session-format-unsupported"}),
    "stores/hermes/checks.py": frozenset(
        {f"{table}-{what}" for table in FTS for what in ("stale", "damaged", "rebuilding", "differs")}
        | {"orphan-messages", "orphan-usage", "compression-lock", "turn-lease"}
    ),
}
"""Codes that are put together at run time, by the module that does it."""


@cache
def finding_codes() -> frozenset[str]:
    """The codes of every finding the program can make."""
    found: set[str] = set()
    computed: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith("tui/"):
            continue
        for call in calls(path, "Finding", "_finding"):
            code = call.args[0] if call.args else next(one.value for one in call.keywords if one.arg == "code")
            if isinstance(code, ast.Constant):
                found.add(str(code.value))
            else:
                assert place in COMPUTED, f"{place}:{call.lineno}: name the codes it makes in COMPUTED of this test"
                computed.add(place)
    assert computed == COMPUTED.keys(), "COMPUTED names a module that makes no code any more"
    return frozenset(found.union(*COMPUTED.values()))


def test_computed_codes_are_still_made() -> None:
    """Each part of a computed code stands in its module, so that a gone one is noticed."""
    for place, codes in COMPUTED.items():
        source = (PACKAGE / place).read_text(encoding="utf-8") + (PACKAGE / "stores/dsh/store.py").read_text()
        for code in codes:
            parts = re.split(r"agent-mirror-|messages-fts-trigram-|messages-fts-cjk-|messages-fts-", code)
            assert all(part in source for part in parts), f"{place}: {code}"


def test_every_finding_is_in_the_manual() -> None:
    said = {span for span in first_cells(text("health.md")) if "-" in span or span in finding_codes()}
    assert finding_codes() - said == set()
    assert said - finding_codes() == set()


def test_states_and_severities_are_in_the_manual() -> None:
    assert set(get_args(model.StoreState)) <= first_cells(text("health.md"))
    assert all(f"`{one}`" in text("health.md") for one in get_args(model.Severity))


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("cache.md", get_args(model.DropCause)),
        ("lineage.md", get_args(model.LineageKind)),
        ("transcript.md", get_args(model.MessageState)),
        ("search.md", get_args(model.Route)),
        ("costs.md", get_args(model.CostStatus)),
        ("changes.md", tuple(REASONS)),
    ],
)
def test_every_word_has_its_row(page: str, words: tuple[str, ...]) -> None:
    assert set(words) <= first_cells(text(page))


def test_no_reason_or_cause_of_the_manual_is_gone() -> None:
    reasons = first_cells(section(text("changes.md"), "What is left alone, and why"))
    assert reasons == set(REASONS)
    assert first_cells(section(text("cache.md"), "Causes")) == set(get_args(model.DropCause))


def test_kinds_of_messages_are_in_the_manual() -> None:
    for kind in get_args(model.MessageKind):
        assert kind in text("transcript.md"), kind


def test_reasons_to_read_past_the_mirror_are_in_the_manual() -> None:
    source = PACKAGE / "mirror" / "source.py"
    counted = {
        str(call.args[0].value)
        for call in calls(source, "_count")
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    told = next(
        node
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == "_reason"
    )
    counted |= {
        str(node.value.value)
        for node in ast.walk(told)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant)
    }
    states = set(get_args(MirrorState)) - {"ready"}
    assert counted
    assert first_cells(section(text("mirror.md"), "When it is used, and when not")) == counted | states


def test_variables_of_the_agents_are_in_the_manual() -> None:
    named = first_cells(section(text("command-line.md"), "Variables"))
    for known in KNOWN:
        assert set(known.variables) - {"LOCALAPPDATA"} <= named


def test_files_the_pages_for_developers_name_are_there() -> None:
    there = {path.name for path in PACKAGE.rglob("*.py")} | {path.name for path in (ROOT / "docs").glob("*.py")}
    for name in ("architecture.md", "adding-an-agent.md"):
        for found in re.findall(r"[a-z_]+\.py\b", text(name)):
            assert found in there, f"{name}: {found}"


# Benchmarks and links.


def test_every_benchmark_is_in_the_manual_and_none_is_gone() -> None:
    named = set(re.findall(r"`benchmarks/([a-z_]+\.py)`", text("performance.md")))
    assert named == {path.name for path in (ROOT / "benchmarks").glob("*.py") if path.name != "__init__.py"}


def slug(heading: str) -> str:
    """The anchor of a heading, as the web sites that show Markdown make it."""
    plain = heading.replace("`", "").lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain))


def anchors(path: Path) -> set[str]:
    page = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"(?m)^#+ (.+)$", page)}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", page):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = path if not name else (path.parent / name).resolve()
        assert there.exists(), f"{path.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{path.name}: {target}"


def test_every_page_is_reached_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in DOCS.glob("*.md"):
        assert f"docs/{path.name}" in readme, path.name
