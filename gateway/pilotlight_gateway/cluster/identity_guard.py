"""Refuses to start a gateway while another process lives under its name.

A gateway's name outlives its process, so that a restart need not wait for a lease to expire. A gateway that finds a
lease under its name asks the holder. Without a listener there, it is gone. If it answers, it keeps the name. If it is
silent (frozen, or cut off), its lease has to expire.
"""

from __future__ import annotations

import re

from pilotlight_core.bus import Bus, BusError, LeaseHolder, NoResponders
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.messages.scheduling import AskCall

ANSWER_S = 1.0
PROCESS = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
"""The names that subjects can hold."""


class NameTaken(Conflict):
    """A living gateway has this name."""


class IdentityGuard:
    """Asks the holder of our name's lease."""

    def __init__(self, bus: Bus, *, region: str, name: str) -> None:
        self._bus = bus
        self._region = region
        self._name = name

    async def is_gone(self, holder: LeaseHolder) -> bool:
        """Whether a holder of our name is gone; False while that is unknown.

        Raises:
            NameTaken: it lives.
        """
        process = holder.data.decode(errors="replace")
        if not PROCESS.fullmatch(process):
            return True  # a lease without an address
        try:
            await self._bus.request(
                subjects.ask(self._region, process), AskCall(tenant="", call_id=""), timeout=ANSWER_S
            )
        except NoResponders:
            return True
        except BusError:
            return False
        raise NameTaken(
            f"Another gateway named {self._name!r} runs (process {process}). Give each gateway a name of its own "
            "(--name or PILOTLIGHT_NAME), or stop that one first."
        )
