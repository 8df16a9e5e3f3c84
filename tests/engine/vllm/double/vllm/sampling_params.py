"""Of the double."""

from __future__ import annotations

from enum import Enum


class RequestOutputKind(Enum):
    """What each output has."""

    DELTA = 1
