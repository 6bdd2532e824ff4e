"""Every conversation by last activity, put together once and kept while the store does not change.

Most sessions stand alone: SQLite puts all of them in order, and only those that hang together with others, or that a
default filter may leave out, are looked at by the rules of ``links.py``. A filter typed into the list is then a look
into memory; what it looks into is read with the first letter.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Container, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar

from hermes_tui.model import ListEntry, Listing, ListQuery
from hermes_tui.records import dataclass
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.conversation import AUTOMATED_SOURCES, below, within
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.cells import filled_text, text_or_none
from hermes_tui.stores.hermes.links import TOOL_SOURCE, Links, batches, link_of, link_query
from hermes_tui.stores.hermes.listing import Candidate, Facts, filter_text, matches, users_of, why_left_out
from hermes_tui.stores.hermes.newest_first import UNKNOWN, by_activity
from hermes_tui.stores.hermes.rows import first_prompts
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.text import RawText

Answer = TypeVar("Answer")
_ENTRY: Final = tuple.__new__
"""Makes an entry without the detour of its constructor: a store has 70,000."""
MOST_TEXTS: Final = 8
"""So many texts that were typed are remembered with their rows; 70,000 rows are half a megabyte."""
_NEEDED: Final = ("id", "parent_session_id", "end_reason", "source", "started_at")


def answers(query: ListQuery) -> bool:
    """Whether this is a list of conversations by activity, however narrowed; a channel is followed the general way."""
    return query.order == "activity" and not query.sessions and query.channel is None


@dataclass(frozen=True, slots=True)
class Overview:
    """The conversations of a store as they were at one moment."""

    ordered: tuple[ListEntry, ...]
    """Every conversation, those too that are left out."""
    talks: dict[str, Candidate]
    """By tip: conversations of several sessions, and those a default filter may leave out."""
    links: Links
    """Of the sessions in ``talks``."""
    automated: frozenset[str]
    """Sessions that stand alone and that no person started."""


class Details(NamedTuple):
    """What the free text and the filters on source, model and folder look into."""

    facts: dict[str, Facts]
    sources: dict[str, str | None]
    users: Container[str] = frozenset()
    """Sessions the model asked for took part in."""


class _Found:
    """Rows with the texts that were asked for last: the next letter is looked for in the rows with those before it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._among: Sequence[ListEntry] = ()
        self._rows: dict[str, Sequence[ListEntry]] = {}

    def with_text(
        self, among: Sequence[ListEntry], wanted: str, has: Callable[[ListEntry], bool]
    ) -> Sequence[ListEntry]:
        """Those of these rows that have the text; ``has`` looks into one."""
        with self._lock:
            if among is not self._among:
                self._among, self._rows = among, {}
            known = [(len(rows), rows) for text, rows in self._rows.items() if text in wanted]
        _, fewest = min(known, default=(0, among), key=itemgetter(0))
        rows = self._rows.get(wanted) or [entry for entry in fewest if has(entry)]
        with self._lock:
            if among is self._among:
                self._rows[wanted] = rows
                while len(self._rows) > MOST_TEXTS:
                    del self._rows[next(iter(self._rows))]
        return rows


class Overviews:
    """Keeps the overview of one store while its stamp stays the same; may be used from any thread."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._lock = threading.Lock()
        self._stamp: object = None
        self._kept: dict[str, object] = {}

    def listing(self, query: ListQuery, limit: int | None, stamp: object) -> Listing | None:
        """The answer; ``None``: the store lacks a column this needs."""
        overview = self._keep(stamp, "overview", lambda: self._asking.ask(_read_overview))
        if overview is None:
            return None
        details: Details | None = None
        if query.source is not None or query.model is not None or query.cwd is not None:
            details = self._keep(stamp, "details", lambda: self._asking.ask(_read_details))
        if details is not None and query.model is not None:
            model = query.model
            details = details._replace(
                users=self._keep(stamp, f"users of {model}", lambda: self._asking.ask(users_of, model))
            )
        if details is not None or query.since is not None or query.until is not None:
            shown, reasons = _divided(overview, query, lambda entry: _passes(entry, overview, query, details))
        else:
            switches = f"{query.archived} {query.children} {query.automated}"
            shown, reasons = self._keep(stamp, switches, lambda: _divided(overview, query))
        if query.text:
            shown = self._with_text(shown, query.text.casefold(), overview, stamp)
        return Listing(tuple(shown[:limit]), len(shown), dict(reasons))

    def _with_text(
        self, entries: Sequence[ListEntry], wanted: str, overview: Overview, stamp: object
    ) -> Sequence[ListEntry]:
        """Rows with the text in title, id, source, model, folder or preview."""
        texts = self._keep(stamp, "texts", lambda: self._asking.ask(_filter_texts, overview))
        previews = self._keep(
            stamp, "previews", lambda: _folded_previews(overview, self._asking.ask(first_prompts, list(texts)))
        )
        looked_into = self._keep(stamp, "found", lambda: _Found())
        return looked_into.with_text(
            entries, wanted, lambda entry: wanted in texts[entry.id] or wanted in previews.get(entry.id, "")
        )

    def _keep(self, stamp: object, name: str, make: Callable[[], Answer]) -> Answer:
        """What was made for this stamp, else made now; ``stamp`` is older than what is read then."""
        with self._lock:
            if self._stamp == stamp and name in self._kept:
                return self._kept[name]  # type: ignore[return-value]
        made = make()
        with self._lock:
            if self._stamp != stamp:
                self._stamp, self._kept = stamp, {}
            self._kept[name] = made
        return made


def _divided(
    overview: Overview, query: ListQuery, passes: Callable[[ListEntry], bool] | None = None
) -> tuple[Sequence[ListEntry], Counter[str]]:
    """The rows that are shown, and how many of those that pass are left out, by reason."""
    left = _left_out(overview, query)
    passing = overview.ordered if passes is None else tuple(filter(passes, overview.ordered))
    reasons = Counter(left[entry.id] for entry in passing if entry.id in left)
    return tuple(entry for entry in passing if entry.id not in left), reasons


def _left_out(overview: Overview, query: ListQuery) -> dict[str, str]:
    """Why conversations are left out, by tip."""
    left = {tip: reason for tip, one in overview.talks.items() if (reason := why_left_out(one, query, overview.links))}
    if not query.automated:
        left.update(dict.fromkeys(overview.automated, "automated"))
    return left


def _passes(entry: ListEntry, overview: Overview, query: ListQuery, details: Details | None) -> bool:
    """Whether a row passes the filters that were asked for, the free text aside."""
    one = overview.talks.get(entry.id)
    if one is not None:
        return matches(one, query, *(({}, frozenset()) if details is None else (details.facts, details.users)))
    if details is not None:
        facts = details.facts.get(entry.id)
        if query.source is not None and details.sources.get(entry.id) != query.source:
            return False
        if query.model is not None and entry.id not in details.users:
            return False
        if query.cwd is not None and not below(facts.cwd if facts else None, query.cwd):
            return False
    return within(None if entry.order == UNKNOWN else entry.order, query.since, query.until)


def _read_overview(connection: ReadConnection, schema: Schema) -> Overview | None:
    if not (schema.has("sessions", *_NEEDED) and schema.has("messages", "session_id", "timestamp")):
        return None
    archived, hidden, config = (schema.column("sessions", name, "s") for name in ("archived", "hidden", "model_config"))
    where = f"""WHERE (s.parent_session_id IS NOT NULL OR s.source = '{TOOL_SOURCE}' OR instr({config}, '_from')
        OR ifnull({archived}, 0) <> 0 OR ifnull({hidden}, 0) <> 0
        OR s.id IN (SELECT parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL))"""
    links = Links(map(link_of, connection.rows(link_query(schema, where))))
    talks = {one.tip.id: one for one in (Candidate(links.down(link)) for link in links.listed())}
    ordered = [
        _ENTRY(ListEntry, (identity, active, ()))
        for active, identity in by_activity(connection, schema)
        if identity not in links.by_id or identity in talks
    ]
    if "PRIMARY KEY" not in schema.objects["sessions"].upper():
        # A salvaged table may have lost its key, and so hold a session twice: one row of the list.
        ordered = list({entry.id: entry for entry in reversed(ordered)}.values())[::-1]
    sources = ", ".join(f"'{source}'" for source in sorted(AUTOMATED_SOURCES))
    automated = connection.rows(f"SELECT id FROM sessions WHERE source IN ({sources}) AND typeof(id) = 'text'")
    alone = frozenset(row[0] for row in automated if row[0] not in links.by_id)
    return Overview(tuple(ordered), talks, links, alone)


def _read_details(connection: ReadConnection, schema: Schema, where: str = "", ids: Sequence[str] = ()) -> Details:
    columns = schema.select("sessions", ("id", "source", "model", "cwd", "title"), "s")
    facts: dict[str, Facts] = {}
    sources: dict[str, str | None] = {}
    same: dict[str, str] = {}
    for identity, source, model, cwd, title in connection.rows(f"SELECT {columns} FROM sessions s {where}", ids):
        key = text_or_none(identity) or ""
        # Few models, folders and sources stand in many rows.
        model, cwd, source = (
            None if word is None else same.setdefault(word, word)
            for word in (filled_text(model), filled_text(cwd), text_or_none(source))
        )
        facts[key] = Facts(model, cwd, filled_text(title), 0, 0)
        sources[key] = source
    return Details(facts, sources)


def _filter_texts(connection: ReadConnection, schema: Schema, overview: Overview) -> dict[str, str]:
    """What the free text looks into, previews aside, by session; of a tip that of its whole conversation."""
    cells = ", ".join(f"nullif({schema.column('sessions', name, 's')}, '')" for name in ("source", "model", "cwd"))
    title = schema.column("sessions", "title", "s")
    sql = f"SELECT s.id, concat_ws(char(10), nullif({title}, ''), s.id, {cells}) FROM sessions s"
    texts = {identity: text.casefold() for identity, text in connection.rows(f"{sql} WHERE typeof(s.id) = 'text'")}
    facts: dict[str, Facts] = {}
    several = [one for one in overview.talks.values() if len(one.parts) > 1]
    for some in batches([part.id for one in several for part in one.parts]):
        details = _read_details(connection, schema, f"WHERE s.id IN ({','.join('?' * len(some))})", some)
        facts.update(details.facts)
    texts.update((one.tip.id, filter_text(one, facts)) for one in several)
    return texts


def _folded_previews(overview: Overview, prompts: dict[str, RawText]) -> dict[str, str]:
    """The preview of each row, by tip: that of its newest part that has one."""
    found = {identity: prompt.casefold() for identity, prompt in prompts.items()}
    for tip, one in overview.talks.items():
        preview = next((found[part.id] for part in reversed(one.parts) if part.id in found), None)
        if preview is not None:
            found[tip] = preview
    return found
