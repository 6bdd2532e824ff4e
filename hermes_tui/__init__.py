"""A terminal browser for the conversations that AI agents leave on disk."""

from typing import Final

__version__: Final = "0.1.0"
