"""Which lines a resume sends, in its order: the chain after the last compaction, with what that one kept.

The rules are facts/claude-code.md section 4. What the facts leave open was seen by resuming made-up transcripts with
the real program; tests/beside/test_claude_resume.py does it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes_tui.stores.claude.graph import Builder, LeafMark, Preserved
from hermes_tui.stores.claude.lines import BRIDGED_TYPE, MESSAGE_TYPES, Entry


def resumed(
    entries: Sequence[Entry],
    mark: LeafMark | None,
    preserved: dict[str, Preserved],
    *,
    sidechain: bool,
    built: Builder | None = None,
) -> tuple[list[Entry], Entry | None]:
    """The lines that are sent, and the compaction they begin with; ``built`` is made of all these lines already."""
    lines_said = sum(entry.type in MESSAGE_TYPES for entry in entries)
    if mark is not None:
        # Fewer lines are walked than were read: the mark wins if it won in the file.
        mark = LeafMark(mark.leaf, len(entries)) if mark.place >= lines_said else None
    linked = relinked(entries, preserved)
    if built is not None and linked is entries:
        builder = built.resuming(mark)
    else:
        builder = Builder(linked, mark, {}, sidechain, history=False)
    leaf = builder.leaf()
    chain = builder.walk(leaf) if leaf is not None else []
    nodes = builder.latest
    bounds = [place for place, uuid in enumerate(chain) if nodes[uuid].boundary]
    boundary = nodes[chain[bounds[-1]]] if bounds else None
    if boundary is None and len(linked) < len(entries):
        # Its summary is lost, but what it cut off is left out all the same.
        boundary = next(entry for entry in reversed(entries) if entry.boundary)
    chain = chain[bounds[-1] + 1 :] if bounds else chain
    extras = builder.parallel(chain)
    last = {nodes[uuid].message_id: uuid for uuid in chain if nodes[uuid].message_id is not None}
    lines: list[Entry] = []
    for uuid in chain:
        lines.append(nodes[uuid])
        message_id = nodes[uuid].message_id
        if message_id is not None and last[message_id] == uuid:
            added = [nodes[extra] for extra in extras.get(message_id, ())]
            lines += sorted(added, key=lambda entry: (entry.has_result, entry.at or 0.0))
    return lines, boundary


def relinked(entries: Sequence[Entry], preserved: dict[str, Preserved]) -> Sequence[Entry]:
    """The lines as they hang together after the last compaction, when that one kept some word for word.

    Everything above it that was not kept is left out; the kept ones follow the anchor one after another, and what
    followed the anchor or a line left out follows the last of them. When a kept line is missing nothing is changed.
    """
    places = [place for place, entry in enumerate(entries) if entry.boundary]
    said = preserved.get(entries[places[-1]].uuid) if places else None
    if said is None:
        return entries
    latest = {entry.uuid: entry for entry in entries}
    kept = said.uuids or tuple(_segment(said, latest))
    if not kept or any(uuid not in latest for uuid in kept):
        return entries
    bound = places[-1]
    below = {entry.uuid for entry in entries[bound:]}
    above = {entry.uuid for entry in entries[:bound]} - set(kept) - below
    moved = above | {said.anchor}
    before: dict[str, str | None] = dict(zip(kept, (said.anchor, *kept), strict=False))
    if set(kept) <= below:
        return [entry for entry in entries if entry.uuid not in above]
    result = []
    for entry in entries:
        if entry.uuid in above and entry.type != BRIDGED_TYPE:
            continue
        if entry.uuid in before:
            result.append(entry._replace(parent=before[entry.uuid]))
        elif entry.uuid in below and entry.parent is not None and entry.parent in moved:
            result.append(entry._replace(parent=kept[-1]))
        else:
            result.append(entry)
    return result


def _segment(said: Preserved, latest: dict[str, Entry]) -> list[str]:
    """The uuids from head to tail; empty when they do not hang together."""
    found: dict[str, None] = {}
    at = said.tail
    while at is not None and at in latest and at not in found:
        found[at] = None
        if at == said.head:
            return list(reversed(found))
        at = latest[at].parent
    return []
