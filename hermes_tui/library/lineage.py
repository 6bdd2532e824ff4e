"""The tree of sessions that hang together, with what each cost."""

from __future__ import annotations

from dataclasses import replace

from hermes_tui.library.catalog import priced
from hermes_tui.library.sources import Found
from hermes_tui.model import Lineage


def lineage_of(found: Found) -> Lineage:
    """The whole connected tree around a session, root first."""
    tree = found.store.lineage(found.session_id)
    return replace(tree, nodes=tuple(replace(node, row=priced(node.row, found.prices)) for node in tree.nodes))
