"""Which rows carry the mark of a bad cache drop: for the list and the lineage tree, for what is on screen only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes_tui.library.cache import points_of
from hermes_tui.library.sources import Library
from hermes_tui.model import Lineage, SessionId, SessionRow
from hermes_tui.storage.errors import Interrupted, StorageError

if TYPE_CHECKING:
    from hermes_tui.stores.protocol import Store


def marked(library: Library, rows: Sequence[SessionRow]) -> list[SessionRow]:
    """The rows with the tokens lost by their worst unexpected drop, over the whole chain of a conversation."""
    worst: dict[tuple[str, SessionId], int] = {}
    for store in library.stores:
        own = [row for row in rows if row.store.name == store.ref.name]
        if not own:
            continue
        try:
            chains = {row.id: store.chain(row.id) if row.parts > 1 else (row.id,) for row in own}
            lost = worst_by_session(library, store, tuple({one for chain in chains.values() for one in chain}))
        except Interrupted:
            raise
        except (StorageError, OSError):
            # A mark is an extra: its store says itself, in its status, that it cannot be read.
            continue
        for session_id, chain in chains.items():
            worst[store.ref.name, session_id] = max(lost.get(one, 0) for one in chain)
    return [replace(row, worst_drop_lost=worst.get((row.store.name, row.id), row.worst_drop_lost)) for row in rows]


def worst_by_session(library: Library, store: Store, ids: tuple[SessionId, ...]) -> Mapping[SessionId, int]:
    """Tokens lost by the worst unexpected drop of each of these sessions; sessions without one are left out."""
    lost: dict[SessionId, int] = {}
    for point in points_of(library, store, ids, None):
        if point.drop is not None and not point.drop.expected:
            session_id = point.request.session_id
            lost[session_id] = max(lost.get(session_id, 0), point.drop.lost_tokens)
    return lost


def marked_lineage(library: Library, store: Store, tree: Lineage) -> Lineage:
    """The tree with the same marks, each session by itself."""
    try:
        lost = worst_by_session(library, store, tuple(node.id for node in tree.nodes))
    except Interrupted:
        raise
    except (StorageError, OSError):
        # As above: the tree itself was read.
        return tree
    nodes = tuple(replace(node, row=replace(node.row, worst_drop_lost=lost.get(node.id, 0))) for node in tree.nodes)
    return replace(tree, nodes=nodes)
