"""Search hits as the JSON of the contract."""

from __future__ import annotations

from typing import Any

from hermes_tui.library.search import SearchHit, SearchRun
from hermes_tui.library.shapes import moment
from hermes_tui.stores.protocol import Neighbour

Shape = dict[str, Any]


def hit(one: SearchHit) -> Shape:
    """One hit."""
    head, session = one.head, one.session
    return {
        "agent": one.store.ref.agent,
        "store": one.store.ref.name,
        "session_id": head.session_id,
        "root_id": one.root_id,
        "message_id": head.id,
        "part": head.part,
        "role": head.role,
        "kind": head.kind,
        "state": head.state,
        "at": moment(head.at),
        "snippet": one.snippet.marked,
        "marks": [list(mark) for mark in one.snippet.marks],
        "copies": one.copies,
        "session_title": one.title,
        "source": None if session is None else session.source,
        "model": one.model,
        "session_started_at": None if session is None else moment(session.started_at),
        "context": {"before": _neighbour(one.before), "after": _neighbour(one.after)},
    }


def ending(run: SearchRun) -> Shape:
    """What stands after the hits; right once the run is exhausted."""
    return {"route": run.route, "next": run.next, "ranked_of": run.ranked_of, "incomplete": run.incomplete}


def _neighbour(one: Neighbour | None) -> Shape | None:
    return None if one is None else {"role": one.role, "text": one.text}
