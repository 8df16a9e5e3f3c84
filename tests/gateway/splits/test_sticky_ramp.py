"""Twenty thousand sticky users over a ramp: gateways start anew, one is behind, and nobody goes back."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.rollouts.rollout_record import (
    WHOLE,
    Arm,
    Rollout,
    RolloutRecord,
    RolloutState,
    RolloutTerms,
    Sticky,
)
from pilotlight_core.model.rollouts.split_units import SplitAsker
from pilotlight_gateway.home.split_revisions import SplitRevisions
from pilotlight_gateway.splits.splits import Chosen, Splits
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.calls import call
from tests.gateway.world import World, function

USERS = 20_000
GATEWAYS = 4
STEPS = (100, 500, 1_000, 2_500, 5_000, WHOLE)
NEW = "ver_" + "2" * 32


class Ramp:
    """The record, what each gateway knows of it, and the home of the function."""

    def __init__(self, world: World, chance: random.Random) -> None:
        (self.old,) = world.deploy(function("hello"))
        self.chance = chance
        self.registries = [MemoryRegistry() for _ in range(GATEWAYS)]
        for registry in self.registries:
            registry.versions |= {self.old.id: self.old, NEW: replace(self.old, id=NEW, number=2)}
        self.splits = [Splits(registry) for registry in self.registries]
        self.home = SplitRevisions()
        self.at, self.refused = 0.0, 0
        rollout = Rollout(
            id="rol_1", number=1, control={"hello": self.old.id}, canary={"hello": NEW}, salt=chance.randbytes(32),
            terms=RolloutTerms(sticky=Sticky.HEADER, twin=False), state=RolloutState.RAMP, since=0.0, started_at=0.0,
            by="k",
        )  # fmt: skip
        self.record = RolloutRecord(tenant="acme", app="shop", revision=1, rollout=rollout)

    def raise_to(self, share: int, behind: int) -> None:
        """All but one gateway hear of it; the home does later than they."""
        assert self.record.rollout is not None
        rollout = replace(self.record.rollout, share=share)
        self.record = replace(self.record, revision=self.record.revision + 1, rollout=rollout)
        for number in range(GATEWAYS):
            if number != behind:
                self.hear(number)

    def hear(self, gateway: int) -> None:
        self.registries[gateway].rollout_records["acme", "shop"] = self.record

    def ask(self, user: str, gateway: int) -> Arm:
        """On which side the call of a user is, as its home lets it in."""
        self.at += 0.0001
        chosen = self._choose(self.splits[gateway].record_of(self.old), gateway, user)
        for _ in range(3):
            try:
                asked = call("a", function="acme:shop.hello", split=chosen.split)
                self.home.check(asked, self.at, waits=lambda _: False)
            except Conflict:
                self.refused += 1
                chosen = self._choose(self.record, gateway, user)  # as the bus has it
                continue
            assert chosen.side is not None
            return chosen.side.arm
        raise AssertionError("no gateway asks more often")

    def _choose(self, record: RolloutRecord | None, gateway: int, user: str) -> Chosen:
        assert record is not None
        return self.splits[gateway].choose(record, self.old, SplitAsker("acme", "k", "c", sticky=user))


def walk(ramp: Ramp, seen: dict[str, Arm], asks: int) -> int:
    """How many users were on the old side after the new one, over calls of any users at any gateways."""
    back = 0
    for _ in range(asks):
        user = f"user-{ramp.chance.randrange(USERS)}"
        arm = ramp.ask(user, ramp.chance.randrange(GATEWAYS))
        back += seen.get(user) is Arm.CANARY and arm is not Arm.CANARY
        seen[user] = arm
    return back


def test_nobody_goes_back_while_shares_rise(world: World) -> None:
    """Though at each step a gateway is behind, the home hears last, and a gateway starts anew."""
    ramp, seen, back = Ramp(world, random.Random(7)), dict[str, Arm](), 0
    for gateway in range(GATEWAYS):
        ramp.hear(gateway)
    ramp.home.changed("rollout.acme.shop", ramp.record)
    for step, share in enumerate(STEPS):
        behind = step % GATEWAYS
        ramp.raise_to(share, behind)
        back += walk(ramp, seen, 3_000)
        ramp.home.changed("rollout.acme.shop", ramp.record)
        back += walk(ramp, seen, 3_000)
        anew: Any = Splits(ramp.registries[(step + 1) % GATEWAYS])  # it knows nothing but the record
        ramp.splits[(step + 1) % GATEWAYS] = anew
        ramp.hear(behind)
        back += walk(ramp, seen, 1_000)

    assert back == 0
    assert ramp.refused > 1_000
    assert {ramp.ask(f"user-{number}", number % GATEWAYS) for number in range(USERS)} == {Arm.CANARY}


@pytest.mark.variant
def test_without_a_home_that_refuses_users_go_back(world: World) -> None:
    """So the test above would see it."""
    ramp, seen = Ramp(world, random.Random(7)), dict[str, Arm]()
    for gateway in range(GATEWAYS):
        ramp.hear(gateway)
    ramp.raise_to(5_000, behind=2)

    assert walk(ramp, seen, 40_000) > 0
