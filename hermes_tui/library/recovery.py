"""What the model would be sent if a session were resumed now, or after a power cut."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from hermes_tui.library.catalog import priced
from hermes_tui.library.failures import WrongUse
from hermes_tui.library.sources import Found
from hermes_tui.model import PowerCut, Recovery
from hermes_tui.storage.errors import StoreUnreadable, advice_for

_CUT: Final = re.compile(r"(\d{1,15})(?::(\d{1,15}))?")


def recover(found: Found, cut: PowerCut | None = None) -> Recovery:
    """What a resume would load; from the log, never from a mirror (design.md, rule 1).

    Raises:
        StoreUnreadable: the log cannot be read.
    """
    try:
        answer = found.store.recovery(found.session_id, cut)
    except OSError as error:
        path = error.filename if isinstance(error.filename, str) else found.store.ref.path
        raise StoreUnreadable(path, error.strerror or str(error), advice_for(error)) from error
    return replace(answer, row=priced(answer.row, found.prices))


def parse_cut(text: str) -> PowerCut:
    """``LINE`` keeps that line, ``LINE:BYTE`` its first BYTE bytes (contract.md, recover).

    Raises:
        WrongUse: it is neither.
    """
    match = _CUT.fullmatch(text.strip())
    if match is None:
        raise WrongUse(f"{text!r} is no place to cut", "Write LINE or LINE:BYTE, lines counted from 1.")
    return PowerCut(int(match[1]), None if match[2] is None else int(match[2]))
