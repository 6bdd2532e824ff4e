"""The signs we draw with, once in Unicode and once in ASCII; every one is exactly one cell wide."""

from __future__ import annotations

from typing import Final

from hermes_tui.records import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs; a colour never stands without one of them or a word."""

    ellipsis: str
    cursor: str
    """Marks the row under the cursor."""
    picked: str
    """Marks a row that was selected."""
    pinned: str
    running: str
    bad: str
    estimated: str
    own: str
    """A session of the conversation at hand."""
    other: str
    fork: str
    """A branch of the tree that goes on below."""
    last: str
    """The last branch."""
    pipe: str
    rule: str
    heavy: str
    bar: str
    """The left edge of the current message."""
    full: str
    empty: str
    level: tuple[str, str, str]
    """A bar of a share: full, half, empty."""
    rising: str
    """Heights from low to high, for a line of small bars."""
    middot: str
    right: str
    left: str
    down: str
    axis_v: str
    axis_tick: str
    axis_corner: str
    unseen: str
    """Stands for text that is not read yet."""
    column: str
    """Parts two panes."""
    open: str
    closed: str


UNICODE: Final = Glyphs(
    ellipsis="…", cursor="▌", picked="●",
    pinned="◆", running="*", bad="!", estimated="~", own="●", other="○", fork="├─", last="└─",
    pipe="│ ", rule="─", heavy="═", bar="▌", full="█", empty="░", level=("━", "╸", "─"), rising="▁▂▃▄▅▆▇█", middot="·",
    right="→", left="←", down="↓", axis_v="│", axis_tick="┤", axis_corner="└", unseen="░",
    column="│", open="▾", closed="▸",
)  # fmt: skip
ASCII: Final = Glyphs(
    ellipsis=".", cursor=">", picked="x",
    pinned="^", running="*", bad="!", estimated="~", own="@", other="o", fork="|-", last="`-",
    pipe="| ", rule="-", heavy="=", bar="|", full="#", empty=".", level=("#", "=", "."), rising=".:#", middot="-",
    right=">", left="<", down="v", axis_v="|", axis_tick="+", axis_corner="+", unseen=".",
    column="|", open="v", closed=">",
)  # fmt: skip
