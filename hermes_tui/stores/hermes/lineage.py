"""The whole tree of sessions one session hangs in (facts/hermes.md section 7)."""

from __future__ import annotations

from typing import Final

from hermes_tui.model import Compaction, Lineage, LineageNode, SessionId, StoreRef
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.links import Link, Links, connected_links
from hermes_tui.stores.hermes.rows import row_maker
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.transcript import HermesTranscript, Part

MOST_COUNTED: Final = 200
"""Sessions of a tree whose compactions are told apart message by message; more would read the whole store."""


def read_lineage(asking: Asking, ref: StoreRef, session_id: str, now: float) -> Lineage:
    """The tree, root first, each session after its parent.

    Raises:
        KeyError: there is no such session.
    """

    def question(connection: ReadConnection, schema: Schema) -> tuple[Links, list[LineageNode]]:
        links = connected_links(connection, schema, session_id)
        ordered = in_tree_order(links, links.by_id[session_id])
        maker = row_maker(connection, schema, ref, links, ordered, conversation=False, now=now)
        return links, [
            LineageNode(
                SessionId(link.id),
                None if link.parent is None else SessionId(link.parent),
                links.kind(link),
                maker.session(link),
                (),
                odd_about(links, link),
            )
            for link in ordered
        ]

    links, nodes = asking.ask(question)
    conversation = [link.id for link in links.conversation(links.by_id[session_id])]
    found = _compactions(asking, links, nodes)
    return Lineage(
        SessionId(conversation[0]),
        nodes[0].id,
        tuple(map(SessionId, conversation)),
        tuple(_with_compactions(node, found.get(node.id, ())) for node in nodes),
    )


def _with_compactions(node: LineageNode, compactions: tuple[Compaction, ...]) -> LineageNode:
    return LineageNode(node.id, node.parent_id, node.kind, node.row, compactions, node.findings)


def in_tree_order(links: Links, start: Link) -> list[Link]:
    """Every connected session, parents before children, siblings by start."""
    root, seen = start, {start.id}
    while (above := links.parent(root)) is not None and above.id not in seen:
        seen.add(above.id)
        root = above
    ordered: list[Link] = []
    waiting, passed = [root], {root.id}
    while waiting:
        link = waiting.pop()
        ordered.append(link)
        below = [child for child in links.children.get(link.id, ()) if child.id not in passed]
        passed.update(child.id for child in below)
        waiting += sorted(below, key=lambda child: (child.started or 0.0, child.id), reverse=True)
    return ordered


def odd_about(links: Links, link: Link) -> tuple[str, ...]:
    """What is wrong with a session's place, as hyphenated words."""
    found: list[str] = []
    if links.orphan(link):
        found.append("orphan")
    if link.gone:
        found.append("session-row-gone")
    if any(link.id in ring for ring in links.rings):
        found.append("cycle")
    if link.bad_config:
        found.append("bad-model-config")
    if link.bad_time:
        found.append("absurd-time")
    if links.continues(link) and (above := links.parent(link)) is not None and links.next_part(above) is not link:
        found.append("lost-continuation")
    return tuple(found)


def part_of(links: Links, link: Link) -> Part:
    """A session as a part of a transcript."""
    return Part(link.id, links.kind(link), link.parent, links.continues(link))


def _compactions(asking: Asking, links: Links, nodes: list[LineageNode]) -> dict[str, tuple[Compaction, ...]]:
    """What each compaction kept and dropped, from the transcripts of the chains in the tree."""
    found: dict[str, tuple[Compaction, ...]] = {}
    counted = 0
    for node in nodes:
        link = links.by_id[node.id]
        if links.continues(link) and links.parent(link) is not None:
            continue
        chain = links.down(link)
        compacted = len(chain) > 1 or node.row.compactions
        if not compacted or counted + len(chain) > MOST_COUNTED:
            continue
        counted += len(chain)
        transcript = HermesTranscript(asking, [part_of(links, part) for part in chain])
        found.update(transcript.compactions())
    return found
