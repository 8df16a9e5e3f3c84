"""Of the double."""

from __future__ import annotations

from typing import Any


class AsyncEngineArgs:
    """Whatever it is given."""

    def __init__(self, **named: Any) -> None:
        self.named = named
