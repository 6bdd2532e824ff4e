"""Where the stylesheets lie, beside an installed package or at the top of the repository, and when they are parsed."""

from __future__ import annotations

from pathlib import Path

from textual.css.stylesheet import Stylesheet

_PACKAGE = Path(__file__).resolve().parent.parent


def sheet(name: str) -> Path:
    """The stylesheet of this name."""
    beside = _PACKAGE / "styles" / name
    return beside if beside.is_file() else _PACKAGE.parent / "styles" / name


class ParsedOnce(Stylesheet):
    """Parses a source once for the colours of a theme.

    Textual parses every source again when a screen brings a stylesheet of its own, and once more while the app starts,
    where the theme is set that the styles were read for: 8 ms before the first list, 15 ms for each new screen.
    """

    def set_variables(self, variables: dict[str, str]) -> None:
        """Forget what was parsed, if these are others."""
        if variables != self._variables:
            super().set_variables(variables)

    def reparse(self) -> None:
        """Parse what is new; a source with an error leaves the rules as they were."""
        self.parse()
