"""What can go wrong on the bus.

BusError (Unavailable, 503)
├── BusDown            not connected: nothing was sent, or the answer cannot come any more
├── BusTimeout         no answer in time
├── NoResponders       nobody listens there: it was certainly not received
└── StoreRefused       JetStream answered with an error
MessageTooLarge        (BadInput) it does not fit the server's limit
KeyConflict (Conflict)
├── KeyExists          create: the key is there
└── WrongRevision      update: somebody else was first
"""

from __future__ import annotations

from typing import ClassVar

from pilotlight_core.model.errors import BadInput, Conflict, Unavailable


class BusError(Unavailable):
    """The bus did not do it."""

    code: ClassVar[str] = "starting"


class BusDown(BusError):
    """There is no connection to the bus: nothing was sent, or the answer cannot come any more."""


class BusTimeout(BusError):
    """No answer came in time."""


class NoResponders(BusError):
    """Nobody listens on the subject: the message was certainly not received."""


class StoreRefused(BusError):
    """JetStream answered with an error."""

    def __init__(self, detail: str, *, number: int = 0) -> None:
        super().__init__(detail)
        self.number = number
        """JetStream's own error number, such as 10071."""


class MessageTooLarge(BadInput):
    """A message beyond the server's limit; sending it would cost the connection."""

    code: ClassVar[str] = "too_large"


class KeyConflict(Conflict):
    """A compare-and-set lost."""


class KeyExists(KeyConflict):
    """The key to create is there already."""


class WrongRevision(KeyConflict):
    """The key to update has another revision than the one that was read."""
