"""The errors of the bus.

BusError (Unavailable, 503)      BusDown, BusTimeout, NoResponders, StoreRefused, BusIncomplete
MessageTooLarge (BadInput)
KeyConflict (Conflict)           KeyExists, WrongRevision
"""

from __future__ import annotations

from typing import ClassVar

from pilotlight_core.model.errors import BadInput, Conflict, Unavailable


class BusError(Unavailable):
    """The base of the errors for which trying again later may help."""

    code: ClassVar[str] = "starting"


class BusDown(BusError):
    """There is no connection to the bus: nothing was sent, or the reply cannot arrive any more."""


class BusTimeout(BusError):
    """No reply arrived in time."""


class NoResponders(BusError):
    """The subject has no listener: the message was certainly not received."""


class StoreRefused(BusError):
    """JetStream replied with an error."""

    def __init__(self, detail: str, *, number: int = 0) -> None:
        super().__init__(detail)
        self.number = number
        """JetStream's own error number, such as 10071."""


class BusIncomplete(BusError):
    """The bus has a part of a platform: a restore into it has begun, and did not come to its end."""


class MessageTooLarge(BadInput):
    """A message beyond the server's limit; sending it would cost the connection."""

    code: ClassVar[str] = "too_large"


class KeyConflict(Conflict):
    """A compare-and-set failed."""


class KeyExists(KeyConflict):
    """The key to create exists."""


class WrongRevision(KeyConflict):
    """The key to update has another revision than the one that was read."""
