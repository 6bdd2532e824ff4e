"""Which stores are open, and which session an id means."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_tui.library.failures import AmbiguousId, StoreFailed, UnknownId
from hermes_tui.library.prices import DEFAULT_PRICES, PriceTable
from hermes_tui.locations import Locations, own_locations
from hermes_tui.mirror.answers import KeptAnswers
from hermes_tui.model import Agent, SessionId, StoreRef, StoreStatus
from hermes_tui.records import dataclass
from hermes_tui.settings import Settings, load_settings
from hermes_tui.storage.errors import Interrupted, StorageError, advice_for
from hermes_tui.stores import registry
from hermes_tui.stores.registry import Looked

if TYPE_CHECKING:
    # 5 ms before a list of Hermes stores, which asks nothing of it.
    from hermes_tui.mirror.database import MirrorDatabase
    from hermes_tui.stores.protocol import Store

Answer = TypeVar("Answer")

MOST_CANDIDATES: Final = 20
"""More than this is no help for choosing; a store gives no more either (stores/protocol.py, resolve)."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Which stores to open (contract.md, Which stores)."""

    paths: tuple[str, ...] = ()
    """``--store``: only there. Empty: each agent's own places and the roots of the settings file."""
    agents: tuple[Agent, ...] = ()
    """Empty: all."""
    profiles: tuple[str, ...] = ()
    """Empty: all."""


@dataclass(frozen=True, slots=True)
class Found:
    """A session and the store it is in."""

    store: Store
    session_id: SessionId
    prices: PriceTable = DEFAULT_PRICES
    """What its usage is priced with."""


@dataclass(frozen=True, slots=True)
class StoreFailure:
    """A store that could not answer one question."""

    ref: StoreRef
    reason: str
    """What failed and why."""
    advice: str | None


@dataclass(frozen=True, slots=True)
class Library:
    """The open stores with what all questions need: prices, settings, our own folders."""

    stores: tuple[Store, ...]
    looked_at: tuple[Looked, ...]
    locations: Locations
    settings: Settings
    prices: PriceTable
    missing: tuple[str, ...] = ()
    """Places given by hand where no store is, and agents' own places that we may not look into."""
    options: SourceOptions = field(default_factory=SourceOptions)
    mirror: MirrorDatabase | None = None
    """Our index over log stores; ``None``: not asked for (library/mirroring.py)."""
    answers: KeptAnswers | None = None
    """What stores answered before; ``None``: nothing is kept."""

    def store_named(self, name: str) -> Store | None:
        """The store with this short name."""
        return next((store for store in self.stores if store.ref.name == name), None)

    def ask(self, question: Callable[[Store], Answer]) -> tuple[list[tuple[Store, Answer]], list[StoreFailure]]:
        """Put one question to every store; one that fails is named and does not stop the others."""
        answers: list[tuple[Store, Answer]] = []
        failures: list[StoreFailure] = []
        for store in self.stores:
            try:
                answers.append((store, question(store)))
            except Interrupted:
                raise
            except (StorageError, OSError) as error:
                failures.append(store_failure(store.ref, error))
        return answers, failures

    def find(self, text: str) -> Found:
        """The session an id, a prefix or ``store:id`` means (contract.md, Common forms).

        Raises:
            UnknownId: no session is meant.
            AmbiguousId: several are; also when two stores have a session with this whole id.
            StoreFailed: none is, and no store could be read.
        """
        name, colon, rest = text.partition(":")
        if colon and rest and (store := self.store_named(name)) is not None:
            try:
                return self._one(text, rest, (store,))
            except UnknownId:
                # An id may look like that itself.
                found, _ = self._resolved(text, self.stores)
                if all(one.session_id != text for one in found):
                    raise
        return self._one(text, text, self.stores)

    def _one(self, typed: str, text: str, stores: Sequence[Store]) -> Found:
        found, failures = self._resolved(text, stores)
        whole = [one for one in found if one.session_id == text]
        if len(whole or found) == 1:
            return (whole or found)[0]
        if found:
            names = self._names(whole or found)
            more = " or more" if len(names) == MOST_CANDIDATES else ""
            raise AmbiguousId(
                f"{typed!r} may mean {len(names)}{more} sessions",
                "Type more of the id, or put the store's name and a colon before it.",
                names,
            )
        self._raise_unreadable(typed, stores, failures)
        raise UnknownId(
            f"No session has the id {typed!r}, and none begins with it",
            "See `hermes-tui list --sessions --all` for the ids." if self.stores else self.where_looked(),
            (),
        )

    def _names(self, found: Sequence[Found]) -> list[str]:
        """Each as it can be typed: the id where that is enough, else with its store."""
        ids = [one.session_id for one in found]
        names = [
            f"{one.store.ref.name}:{one.session_id}" if ids.count(one.session_id) > 1 else one.session_id
            for one in found
        ]
        return names[:MOST_CANDIDATES]

    def _resolved(self, text: str, stores: Sequence[Store]) -> tuple[list[Found], list[StoreFailure]]:
        found: list[Found] = []
        failures: list[StoreFailure] = []
        for store in stores if text else ():
            try:
                found += [Found(store, session_id, self.prices) for session_id in store.resolve(text)]
            except Interrupted:
                raise
            except (StorageError, OSError) as error:
                failures.append(store_failure(store.ref, error))
        return found, failures

    def _raise_unreadable(self, typed: str, stores: Sequence[Store], failures: Sequence[StoreFailure]) -> None:
        """Say that the store is the trouble, not the id, where no store at all could be read."""
        if not stores and self.missing:
            raise nothing_there(self.missing)
        broken = list(failures)
        for status in (store.status() for store in stores):
            if status.state == "unreadable" and all(one.ref != status.ref for one in broken):
                broken.append(StoreFailure(status.ref, _first_error(status), None))
        if broken and len(broken) == len(stores):
            raise StoreFailed(
                f"{typed!r} was not looked up: {broken[0].reason}", broken[0].advice or "See `hermes-tui doctor`."
            )

    def where_looked(self) -> str:
        """Where stores were looked for, and what to do when there is none."""
        places = ", ".join(dict.fromkeys(looked.path for looked in self.looked_at))
        return f"Looked in {places}. Use --store PATH for another place, or try `hermes-tui demo DIR` for an example."


def store_failure(ref: StoreRef, error: Exception) -> StoreFailure:
    """A storage error with the store it happened in."""
    if isinstance(error, StorageError):
        return StoreFailure(ref, f"{error.title}: {error.detail}", error.advice)
    advice = advice_for(error) if isinstance(error, OSError) else None
    return StoreFailure(ref, f"{ref.path} cannot be read: {error}", advice)


def _first_error(status: StoreStatus) -> str:
    reasons = [finding.detail for finding in status.findings if finding.severity == "error"]
    return f"{status.ref.path} cannot be read" + (f" ({reasons[0]})" if reasons else "")


def nothing_there(paths: Sequence[str]) -> StoreFailed:
    """The failure for places where no store is: given by hand, or an agent's own that we may not look into."""
    named = ", ".join(paths)
    shut = next((why for path in paths if (why := registry.why_shut(Path(path).expanduser())) is not None), None)
    if shut is not None:
        return StoreFailed(f"{named} cannot be read: {shut}", advice_for(shut))
    absent = [path for path in paths if not Path(path).expanduser().exists()]
    reason = "does not exist" if len(absent) == len(paths) else "holds no store that is known"
    around = [
        place for path in paths if path not in absent and (place := registry.store_around(Path(path).expanduser()))
    ]
    if around:
        import shlex

        where = shlex.quote(str(around[0].path))
        return StoreFailed(f"{named} is only part of a {around[0].agent} store", f"Give the whole: --store {where}")
    return StoreFailed(
        f"{named} {reason}",
        "Looked for a state.db, a Hermes home with profiles, a Codex home, a Claude config folder, a DSH home, or a "
        "folder that holds several of these.",
    )


def open_library(options: SourceOptions, environ: Mapping[str, str] | None = None) -> Library:
    """Find the stores and make them ready; opens no file of theirs yet."""
    variables = os.environ if environ is None else environ
    locations = own_locations(variables)
    settings = _checked(load_settings(locations.settings))
    places, looked, missing = _places(options, settings, variables)
    if options.agents:
        places = [place for place in places if place.agent in options.agents]
    stores = registry.open_places(places, variables)
    if options.profiles:
        stores = [store for store in stores if (store.ref.profile or "default") in options.profiles]
    answers = KeptAnswers(locations.answers)
    for store in stores:
        store.answers = answers
    return Library(
        stores=tuple(stores),
        looked_at=tuple(looked),
        locations=locations,
        settings=settings,
        prices=PriceTable(settings.prices, locations.prices),
        missing=tuple(missing),
        options=options,
        answers=answers,
    )


def _checked(settings: Settings) -> Settings:
    """The settings, with a problem for each value that names nothing there is."""
    problems = [
        f"{settings.path}: roots: {root} holds no store that is known"
        for root in settings.roots
        if not registry.places_at(Path(root).expanduser().absolute())
    ]
    if settings.keymap:
        from hermes_tui.library.commands import COMMANDS

        known = {command.id for command in COMMANDS}
        problems += [
            f"{settings.path}: keymap.{name} is ignored: no command has this name; `hermes-tui keys` lists them"
            for name, _ in settings.keymap
            if name not in known
        ]
    return replace(settings, problems=(*settings.problems, *problems))


def _places(
    options: SourceOptions, settings: Settings, environ: Mapping[str, str]
) -> tuple[list[registry.Place], list[Looked], list[str]]:
    if options.paths:
        return _given(options.paths)
    places, looked = registry.default_places(environ, _home(environ))
    more, looked_more, _ = _given(settings.roots)
    shut = [one.path for one in looked if one.shut and (not options.agents or one.agent in options.agents)]
    return places + more, looked + looked_more, shut


def _given(paths: Sequence[str]) -> tuple[list[registry.Place], list[Looked], list[str]]:
    places: list[registry.Place] = []
    looked: list[Looked] = []
    missing: list[str] = []
    for path in paths:
        found = registry.places_at(Path(path).expanduser().absolute())
        places += found
        looked.append(Looked(None, path, bool(found)))
        if not found:
            missing.append(path)
    return places, looked, missing


def _home(environ: Mapping[str, str]) -> Path:
    """The user's home folder by these variables, so that a test's environment is enough."""
    named = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(named) if named else Path.home()
