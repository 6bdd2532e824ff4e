"""What the model would be sent if a Hermes session were resumed now.

The product resumes at the compression tip and sends the tip's live rows (facts/hermes.md section 7).
"""

from __future__ import annotations

from hermes_tui.model import IgnoredRecord, Message, MessageHead, Recovery, SessionRow
from hermes_tui.stores.hermes.transcript import HermesTranscript

_WHY: dict[str, str] = {
    "compacted": "was summarised away by a compaction",
    "rewound": "was taken back by the user",
}


def build_recovery(transcript: HermesTranscript, tip: SessionRow, *, continues: bool) -> Recovery:
    """The live rows of the tip, and where they begin."""
    live: list[MessageHead] = []
    ignored: dict[str, IgnoredRecord] = {}
    for batch in transcript.heads():
        for head in batch:
            if head.state in _WHY:
                ignored[head.id] = IgnoredRecord(None, None, f"message {head.id} {_WHY[head.state]}")
            else:
                live.append(head)
    messages: list[Message] = transcript.load(live, sent=True)
    summary = next((head for head in live if head.kind == "summary"), None)
    compacted = summary is not None or continues
    return Recovery(
        session_id=tip.id,
        base_kind="compaction" if compacted else "start",
        base_at=summary.at if summary is not None else tip.started_at if continues else None,
        base_path=None,
        base_line=None,
        messages=tuple(messages),
        baseline=None,
        window=None,
        reinjects_context=False,
        ignored=tuple(ignored.values()),
        row=tip,
    )
