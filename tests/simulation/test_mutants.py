"""The simulation can fail: parts that are broken on purpose break the promise that they serve."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.agent_messages import Credit, Ended, Grant, Reconcile, Refusal, Run
from pilotlight_gateway.calls.effects import Effect, SendRun
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.home.home import Home
from pilotlight_runtime.calls.accepted_call import AcceptedCall
from pilotlight_runtime.calls.slot_table import Reconciled, SlotTable
from tests.simulation.agent import SimAgent
from tests.simulation.promises import Broken
from tests.simulation.scenario import Parts, simulate

ENOUGH = 400
"""Seeds within which a mutant must be caught."""


class Forgetful(SlotTable):
    """Does not remember which grants it has answered."""

    def _highest(self, call_id: str) -> int:
        return 0


class Boundless(SlotTable):
    """Takes more calls than a container has slots."""

    def _refusal(self, run: Run) -> Refusal | None:
        refusal = super()._refusal(run)
        return None if refusal is Refusal.NO_SLOT else refusal


class Greedy(Home):
    """Grants without looking at the room that is left."""

    def credit(self, credit: Credit, at: float) -> None:
        super().credit(msgspec.structs.replace(credit, slots=credit.slots + 3), at)


class Leaky(SlotTable):
    """Loses a slot now and then."""

    def release(self, call_id: str, grant_number: int) -> bool:
        return len(call_id + str(grant_number)) % 2 == 0 and super().release(call_id, grant_number)


class Deaf(SlotTable):
    """Starts what was cancelled."""

    def cancel(self, call_id: str) -> tuple[AcceptedCall, ...]:
        return ()


class Amnesiac(SlotTable):
    """A new incarnation swears that what it does not know has never run."""

    def reconcile(self, message: Reconcile, at: float) -> Reconciled:
        return super().reconcile(msgspec.structs.replace(message, instance=self._instance), at)


class Careless(Home):
    """Believes that a container which was lost still runs its calls."""

    def node_gone(self, node: str, instance: str, at: float) -> None:
        pass

    def _sweep(self, at: float) -> None:
        pass


class Optimist(Origin):
    """Takes silence for proof that nothing started."""

    def _lost(self, reason: str, at: float) -> list[Effect]:
        assert self._grant is not None
        return self._elsewhere(self._grant, Refusal.GONE, at)


class Pessimist(Origin):
    """Takes every death for a death in the middle of the call."""

    def _ended(self, grant: Grant, ended: Ended, at: float) -> list[Effect]:
        return super()._ended(grant, msgspec.structs.replace(ended, started=True), at)


class Patient(Origin):
    """Never looks at the clock."""

    @property
    def wake_at(self) -> float:
        return math.inf


class Promiscuous(Origin):
    """Uses every grant that it gets."""

    def granted(self, grant: Grant, at: float) -> list[Effect]:
        said = super().granted(grant, at)
        sends = any(isinstance(action, SendRun) for action in said)
        return (
            said
            if sends or self.state is OriginState.DONE
            else [SendRun(grant.node, grant.instance, self.plan.run(grant, at))]
        )


class Stubborn(Origin):
    """Runs idempotent calls again for ever."""

    def _again_or_died(self, reason: str, at: float) -> list[Effect]:
        self._reruns = 0
        return super()._again_or_died(reason, at)


class Fickle(Origin):
    """Gives up when its home does."""

    def home_changed(self, epoch: int, at: float) -> list[Effect]:
        return self._fail(Unavailable("The home is gone.", code="draining")) if self._epoch else []


class Repeating(Origin):
    """Runs a stream again although a part of it was relayed."""

    def _again_or_died(self, reason: str, at: float) -> list[Effect]:
        self._seq = 0
        return super()._again_or_died(reason, at)


class Late(SimAgent):
    """Takes its notes back only when a call has ended."""

    def has_note(self, run: Run) -> bool:
        return True


class Secretive(SimAgent):
    """Leaves no notes."""

    def has_note(self, run: Run) -> bool:
        return False


MUTANTS: list[tuple[dict[str, Any], str]] = [
    ({"slots": Forgetful}, "P1 P2 P9"),
    ({"slots": Boundless, "home": Greedy}, "P5"),
    ({"home": Greedy}, "P4"),
    ({"slots": Leaky}, "P6 P4"),
    ({"slots": Deaf}, "P9"),
    ({"slots": Amnesiac}, "P1 P2"),
    ({"home": Careless}, "P6 P4"),
    ({"origin": Optimist}, "P2"),
    ({"origin": Pessimist}, "P4"),
    ({"origin": Patient}, "P3"),
    ({"origin": Promiscuous}, "P1 P2"),
    ({"origin": Stubborn}, "P1"),
    ({"origin": Fickle}, "P7 P4"),
    ({"origin": Repeating}, "P1"),
    ({"agent": Late}, "P1 P2"),
    ({"agent": Secretive}, "P4 P7"),
]


@pytest.mark.parametrize(
    ("mutant", "promises"),
    MUTANTS,
    ids=[" and ".join(part.__name__ for part in mutant.values()) for mutant, _ in MUTANTS],
)
def test_a_broken_part_breaks_its_promise(mutant: dict[str, Any], promises: str) -> None:
    """Within a few hundred seeds, and it is this promise that is reported."""
    for seed in range(ENOUGH):
        try:
            simulate(seed, Parts(**mutant))
        except Broken as broken:
            assert broken.promise in promises.split()  # noqa: PT017 - most seeds do not raise
            return
    pytest.fail(f"{ENOUGH} seeds and nothing was noticed")
