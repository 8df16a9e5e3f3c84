"""Between the grant and the container: what has to happen before a call is sent, such as noting a job's start."""

from __future__ import annotations

from typing import Protocol

from pilotlight_core.model.messages import Run


class Go(Protocol):
    """Sends the call, or gives it up."""

    def __call__(self, *, allowed: bool) -> bool:
        """Whether it was sent: by now the grant may have been taken back."""
        ...


class Gate(Protocol):
    """What stands before each sending of a call."""

    def __call__(self, run: Run, go: Go) -> None:
        """`run` is about to be sent. Calls `go` once, now or later."""
        ...
