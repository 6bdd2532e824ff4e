"""HTML of conversations: one file, everything escaped, no script allowed, light and dark, readable offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from hermes_tui.library.exported import Exported, Write
from hermes_tui.model import Message
from hermes_tui.text import clean, clean_line

FOLDED: Final = frozenset({"reasoning", "tool-call", "tool-result", "context", "notice", "summary", "unknown"})
"""Kinds that are closed at first."""
STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fdfdfb; --quiet: #6a6f76;
  --line: #d9dbd6; --mark: #2b5fb3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e0; --paper: #17191c; --quiet: #9a9fa6; --line: #34383d; --mark: #8ab4f8; }
}
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.55 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.4rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
article { border-top: 1px solid var(--line); padding: .6rem 0; }
article.prompt { border-left: 3px solid var(--mark); padding-left: .8rem; }
header, summary { color: var(--quiet); font-size: .85rem; } summary { cursor: pointer; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .4rem 0; }
.tool-call pre, .tool-result pre, .context pre { font: 13px/1.45 ui-monospace, monospace; }
"""
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Nothing is loaded and nothing runs, whatever a message says."""


def write_html(sources: Sequence[Callable[[], Exported]], write: Write) -> None:
    """The whole file."""
    first = sources[0]() if sources else None
    title = _title(first) if first is not None else "hermes-tui"
    write('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n')
    write(f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n')
    write('<meta name="viewport" content="width=device-width, initial-scale=1">\n')
    write('<meta name="referrer" content="no-referrer">\n')
    write(f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n")
    for place, source in enumerate(sources):
        _write_session(first if place == 0 and first is not None else source(), write)
    write("</body>\n</html>\n")


def _title(exported: Exported) -> str:
    return clean_line(exported.name())


def _write_session(exported: Exported, write: Write) -> None:
    write(f"<section>\n<h1>{escape(_title(exported))}</h1>\n<dl>\n")
    for name, value in exported.facts():
        write(f"<dt>{name}</dt><dd>{escape(clean_line(value))}</dd>\n")
    write("</dl>\n")
    for message in exported.messages():
        _write_message(exported, message, write)
    for place in exported.unread():
        write(f"<p>not read: {escape(clean_line(place))}</p>\n")
    write("</section>\n")


def _write_message(exported: Exported, message: Message, write: Write) -> None:
    head = message.head
    line = escape(clean_line(exported.heading(head)))
    folded = head.kind in FOLDED
    write(f'<article class="{escape(head.kind)}">\n')
    write(f"<details><summary>{line}</summary>\n" if folded else f"<header>{line}</header>\n")
    write("<pre>")
    for piece in exported.text(message):
        write(escape(clean(piece)))
    write("</pre>\n")
    for name in message.attachments:
        write(f"<p>[attached: {escape(clean_line(exported.word(name) or ''))}]</p>\n")
    write("</details>\n" if folded else "")
    write("</article>\n")
