"""Other processes under this gateway's name: one that is gone is succeeded, beside one that lives nobody begins.

A gateway's name outlives its process, so that a restart need not wait for a lease to expire. So whoever finds a lease
under its own name asks the process that holds it. If nobody listens there, it is gone. If it answers, two gateways
were given one name, and would take the lease from each other for ever: the one that has it keeps it. If it is silent -
frozen, or cut off - its lease is waited for.
"""

from __future__ import annotations

import re

from pilotlight_core.bus import Bus, BusError, LeaseHolder, NoResponders
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.messages.scheduling import AskCall

ANSWER_S = 1.0
PROCESS = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
"""What subjects can name."""


class NameTaken(Conflict):
    """A living gateway has this one's name."""


class IdentityGuard:
    """Asks whoever holds the lease of our name."""

    def __init__(self, bus: Bus, *, region: str, name: str) -> None:
        self._bus = bus
        self._region = region
        self._name = name

    async def is_gone(self, holder: LeaseHolder) -> bool:
        """Whether a holder of our name is gone; False while nobody can say.

        Raises:
            NameTaken: it lives.
        """
        process = holder.data.decode(errors="replace")
        if not PROCESS.fullmatch(process):
            return True  # no gateway that anybody could speak to
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
