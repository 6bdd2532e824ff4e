"""From our records to the JSON shapes of the contract; nothing else knows the key names."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_tui.library.cache import CachePoint, Drop
    from hermes_tui.library.cost import CostRow
    from hermes_tui.library.health import Health, MirrorHealth
    from hermes_tui.model import (
        Compaction,
        Cost,
        Finding,
        LineageNode,
        Message,
        Problem,
        Recovery,
        SessionRow,
        StoreStatus,
        Usage,
    )

Shape = dict[str, Any]


def moment(seconds: float | None) -> str | None:
    """RFC 3339, UTC, milliseconds, ``Z``; ``None`` for what is no time of this world."""
    if seconds is None or not math.isfinite(seconds):
        return None
    try:
        text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None
    return text.removesuffix("+00:00") + "Z"


def finite(number: float | None) -> float | None:
    """``None`` for NaN and infinities, which are no JSON."""
    return number if number is not None and math.isfinite(number) else None


def tokens(usage: Usage | None) -> Shape:
    """The five token keys; all ``None`` where nothing is known."""
    return {
        "input_tokens": None if usage is None else usage.input,
        "output_tokens": None if usage is None else usage.output,
        "cache_read_tokens": None if usage is None else usage.cache_read,
        "cache_write_tokens": None if usage is None else usage.cache_write,
        "reasoning_tokens": None if usage is None else usage.reasoning,
    }


def tokens_and_rate(usage: Usage | None) -> Shape:
    """The token keys with the hit rate."""
    return {**tokens(usage), "cache_hit_rate": None if usage is None else usage.hit_rate}


def money(cost: Cost) -> Shape:
    """The two money keys."""
    return {"cost_usd": finite(cost.usd), "cost_status": cost.status}


def session(row: SessionRow) -> Shape:
    """A row of ``list``."""
    return {
        "agent": row.store.agent,
        "store": row.store.name,
        "profile": row.store.profile,
        "id": row.id,
        "root_id": row.root_id,
        "tip_id": row.tip_id,
        "parent_id": row.parent_id,
        "lineage_kind": row.lineage_kind,
        "parts": row.parts,
        "title": row.title,
        "preview": row.preview,
        "source": row.source,
        "session_key": row.session_key,
        "display_name": row.display_name,
        "model": row.model,
        "models": list(row.models),
        "provider": row.provider,
        "cwd": row.cwd,
        "git_branch": row.git_branch,
        "started_at": moment(row.started_at),
        "ended_at": moment(row.ended_at),
        "end_reason": row.end_reason,
        "last_active_at": moment(row.last_active_at),
        "message_count": row.message_count,
        "tool_call_count": row.tool_call_count,
        "request_count": row.request_count,
        **tokens_and_rate(row.usage),
        **money(row.cost),
        "archived": row.archived,
        "running": row.running,
        "resumable": row.resumable,
        "origin": row.origin,
        "problems": row.problems,
        "compactions": row.compactions,
        "branches": row.branches,
        "delegated": row.delegated,
        "pinned": row.pinned,
    }


def store(status: StoreStatus) -> Shape:
    """A store of ``list``."""
    return {
        "agent": status.ref.agent,
        "store": status.ref.name,
        "profile": status.ref.profile,
        "path": status.ref.path,
        "state": status.state,
        "origin": status.origin,
        "sessions": status.sessions,
        "lag": status.lag,
        "findings": sum(finding.count for finding in status.findings),
    }


def message(entry: Message, *, sent: bool = False) -> Shape:
    """A message of ``show`` and ``recover``."""
    head = entry.head
    shape: Shape = {
        "id": head.id,
        "part": head.part,
        "session_id": head.session_id,
        "role": head.role,
        "kind": head.kind,
        "state": head.state,
        "at": moment(head.at),
        "text": entry.text,
    }
    if sent and entry.sent_text is not None and entry.sent_text != entry.text:
        shape["sent_text"] = entry.sent_text
    shape |= {
        "tool_name": head.tool_name,
        "tool_call_id": head.tool_call_id,
        "model": entry.model,
        "usage": None if entry.usage is None else tokens(entry.usage),
        "path": head.path,
        "line": head.line,
        "offset": head.offset,
    }
    if entry.attachments:
        shape["attachments"] = list(entry.attachments)
    if entry.compaction is not None:
        shape["compaction"] = compaction(entry.compaction)
    return shape


def problem(one: Problem) -> Shape:
    """A place that could not be read."""
    return {"path": one.path, "line": one.line, "offset": one.offset, "reason": one.reason}


def compaction(one: Compaction) -> Shape:
    """A compaction of a lineage node."""
    return {
        "at": moment(one.at),
        "trigger": one.trigger,
        "before_tokens": one.before_tokens,
        "after_tokens": one.after_tokens,
        "kept": one.kept,
        "dropped": one.dropped,
    }


def node(one: LineageNode) -> Shape:
    """A session in its tree."""
    row = one.row
    return {
        "id": one.id,
        "parent_id": one.parent_id,
        "kind": one.kind,
        "title": row.title,
        "started_at": moment(row.started_at),
        "ended_at": moment(row.ended_at),
        "end_reason": row.end_reason,
        "message_count": row.message_count,
        **tokens_and_rate(row.usage),
        **money(row.cost),
        "model": row.model,
        "compactions": [compaction(event) for event in one.compactions],
        "findings": list(one.findings),
    }


def cost_row(row: CostRow) -> Shape:
    """A line of ``cost``, or its totals."""
    shape: Shape = {
        "key": row.key,
        "sessions": row.sessions,
        "requests": row.requests,
        **tokens_and_rate(row.usage),
        **money(row.cost),
        "priced_by": row.priced_by,
    }
    if row.store is not None:
        shape["store"] = row.store
    return shape


def cost_totals(row: CostRow) -> Shape:
    """The totals of ``cost``, with the USD of each status."""
    shape = cost_row(row)
    del shape["key"]
    return {**shape, "usd_by_status": {status: finite(usd) for status, usd in row.parts}}


def point(one: CachePoint) -> Shape:
    """A point of ``cache``."""
    request = one.request
    return {
        "session_id": request.session_id,
        "request_id": request.request_id,
        "at": moment(request.at),
        "model": request.model,
        **tokens_and_rate(request.usage),
        "store": one.store.name,
        "chain": request.chain,
        "calls": request.calls,
    }


def drop(one: Drop) -> Shape:
    """A drop of ``cache``."""
    request = one.request
    return {
        "session_id": request.session_id,
        "request_id": request.request_id,
        "message_id": request.message_id,
        "at": moment(request.at),
        "expected_tokens": one.expected_tokens,
        "read_tokens": one.read_tokens,
        "lost_tokens": one.lost_tokens,
        "from_rate": one.from_rate,
        "to_rate": one.to_rate,
        "cost_usd": finite(one.cost_usd),
        "cause": one.cause,
        "evidence": one.evidence,
        "expected": one.expected,
        "store": one.store.name,
        "model": request.model,
    }


def recovery_tail(one: Recovery) -> Shape:
    """What ``recover`` says beside the messages."""
    return {
        "baseline": one.baseline,
        "window": one.window,
        "reinjects_context": one.reinjects_context,
        "ignored": [{"path": rest.path, "line": rest.line, "reason": rest.reason} for rest in one.ignored],
        "list": session(one.row),
    }


def recovery_base(one: Recovery) -> Shape:
    """From where the recovery reads on."""
    return {"kind": one.base_kind, "at": moment(one.base_at), "path": one.base_path, "line": one.base_line}


def finding(one: Finding) -> Shape:
    """A finding of ``doctor``."""
    return {
        "code": one.code,
        "severity": one.severity,
        "count": max(1, one.count),
        "detail": one.detail,
        "advice": one.advice,
        "paths": list(one.paths),
    }


def health(report: Health) -> Shape:
    """The document of ``doctor``."""
    return {
        "stores": [
            {
                "agent": status.ref.agent,
                "store": status.ref.name,
                "path": status.ref.path,
                "state": status.state,
                "findings": [finding(one) for one in status.findings],
            }
            for status in report.stores
        ],
        "mirror": _mirror(report.mirror),
        "settings": [finding(one) for one in report.settings],
        "missing": list(report.missing),
        "trash": {
            "path": report.trash.path,
            "bytes": report.trash.bytes,
            "sessions": report.trash.sessions,
            "unreadable": list(report.trash.strangers),
        },
    }


def _mirror(mirror: MirrorHealth) -> Shape:
    return {
        "path": mirror.path,
        "bytes": mirror.bytes,
        "sessions": mirror.sessions,
        "lag": mirror.lag,
        "lead": mirror.lead,
        "fallbacks": dict(mirror.fallbacks),
    }
