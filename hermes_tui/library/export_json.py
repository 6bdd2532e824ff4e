"""JSON and JSON Lines of conversations, in the shapes of the contract's ``show``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes_tui.library import shapes
from hermes_tui.library.exported import Exported, Write
from hermes_tui.library.json_output import ObjectWriter, dumps
from hermes_tui.library.redaction import redact_values


def write_json(sources: Sequence[Callable[[], Exported]], write: Write) -> None:
    """One session: the document of ``show``. Several: ``{"exports": [those documents]}``."""
    if len(sources) == 1:
        _write_session(sources[0](), write, "\n")
        return
    write('{"exports":[')
    for place, source in enumerate(sources):
        write("," if place else "")
        _write_session(source(), write, "")
    write("]}\n")


def _write_session(exported: Exported, write: Write, end: str) -> None:
    def unended(text: str) -> object:
        return write(text.rstrip("\n") + end if text == "}\n" else text)

    writer = ObjectWriter(unended)
    writer.key("session", exported.session_shape())
    writer.items("messages", (exported.message_pieces(message) for message in exported.messages()))
    writer.key("more", False)
    problems = [shapes.problem(one) for one in exported.problems]
    writer.key("problems", redact_values(problems) if exported.options.redact else problems)
    writer.close()


def write_jsonl(sources: Sequence[Callable[[], Exported]], write: Write) -> None:
    """A line for each session (``type`` session), then a line for each of its messages (``type`` message)."""
    for source in sources:
        exported = source()
        write(dumps({"type": "session", **exported.session_shape()}) + "\n")
        for message in exported.messages():
            write('{"type":"message",')
            for place, piece in enumerate(exported.message_pieces(message)):
                write(piece if place else piece.removeprefix("{"))
            write("\n")
        for one in exported.problems:
            shape = {"type": "problem", **shapes.problem(one)}
            write(dumps(redact_values(shape) if exported.options.redact else shape) + "\n")
