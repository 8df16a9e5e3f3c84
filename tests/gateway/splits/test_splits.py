"""On which side of a rollout a call is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_record import (
    WHOLE,
    Arm,
    Cohort,
    Rollout,
    RolloutRecord,
    RolloutState,
    RolloutTerms,
    Sticky,
)  # fmt: skip
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.rollouts.split_units import SplitAsker
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.splits.splits import Splits
from tests.gateway.world import World, function

NEW, TWIN = "ver_" + "2" * 32, "ver_" + "3" * 32
ASKER = SplitAsker("acme", "key_1", "call_1")


class Bench:
    def __init__(self, world: World) -> None:
        (self.old,) = world.deploy(function("hello"))
        self.registry = world.registry
        for version_id in (NEW, TWIN):
            world.registry.versions[version_id] = replace(self.old, id=version_id)
        rollout = Rollout(
            id="rol_1", number=1, control={"hello": self.old.id}, canary={"hello": NEW}, twins={"hello": TWIN},
            salt=b"s" * 32, state=RolloutState.RAMP, share=2_500, twin_share=2_500, since=0.0, started_at=0.0, by="k",
        )  # fmt: skip
        self.record = RolloutRecord(tenant="acme", app=self.old.app, revision=4, rollout=rollout)
        self.splits = Splits(world.registry)

    def change(self, **fields: object) -> None:
        assert self.record.rollout is not None
        self.record = replace(self.record, rollout=replace(self.record.rollout, **fields))

    def chosen(
        self, asker: SplitAsker = ASKER, beside: Side | None = None, version: VersionRecord | None = None
    ) -> object:
        return self.splits.choose(self.record, version or self.old, asker, beside)


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world)


def test_calls_are_split_and_say_by_what(bench: Bench) -> None:
    found = [bench.splits.choose(bench.record, bench.old, ASKER._replace(call_id=f"c{n}")) for n in range(400)]
    assert {one.split for one in found} == {4}
    assert {(one.side.arm, one.version.id) for one in found if one.side} == {
        (Arm.CANARY, NEW), (Arm.TWIN, TWIN), (Arm.CONTROL, bench.old.id),
    }  # fmt: skip
    assert {one.side.rho for one in found if one.side and one.side.arm is not Arm.CONTROL} == {0.5}
    assert 60 < bench.splits.counts[Arm.CANARY] < 140


def test_a_sticky_unit_stays_and_who_is_none_is_counted(bench: Bench) -> None:
    bench.change(terms=RolloutTerms(sticky=Sticky.HEADER))
    sides = {
        bench.splits.choose(bench.record, bench.old, ASKER._replace(sticky="me", call_id=f"c{n}")).side
        for n in range(50)
    }
    (side,) = sides
    assert side is not None
    assert side.unit
    bench.chosen()
    assert bench.splits.counts["unkeyed"] == 1


def test_no_app_means_one_lookup(bench: Bench) -> None:
    assert bench.splits.record_of(bench.old) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"state": RolloutState.ROLLED_BACK},
        {"control": {"hello": "ver_other"}},
        {"terms": RolloutTerms(cohort=Cohort(tenants=("rival",)))},
        {"canary": {"other": NEW}},
    ],
)
def test_who_takes_no_part_is_on_no_side(bench: Bench, fields: dict[str, object]) -> None:
    bench.change(share=WHOLE, twin_share=0, **fields)
    assert bench.chosen() == (bench.old, None, 4)


def test_a_version_that_is_not_known_here_yet_gets_no_calls(bench: Bench) -> None:
    bench.change(share=WHOLE, twin_share=0)
    del bench.registry.versions[NEW]
    assert bench.chosen() == (bench.old, None, 4)


@pytest.mark.parametrize(("arm", "version"), [(Arm.CANARY, NEW), (Arm.TWIN, TWIN), (Arm.CONTROL, "")])
def test_calls_within_a_call_are_on_its_side_and_not_compared(bench: Bench, arm: Arm, version: str) -> None:
    found = bench.splits.choose(bench.record, bench.old, ASKER, Side("rol_1", arm, 0.5, "u"))
    assert found.side == ("rol_1", arm, 0.0, "u")
    assert found.version.id == (version or bench.old.id)


def test_calls_within_a_canarys_call_go_back_with_it(bench: Bench) -> None:
    bench.change(share=0)
    found = bench.splits.choose(bench.record, bench.old, ASKER, Side("rol_1", Arm.CANARY, 0.5, "u"))
    assert found.version.id == bench.old.id


async def test_an_app_without_a_record_costs_one_look(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is hashed, and nobody else is asked; a version that is named costs none."""
    world.deploy(function("hello"))
    looks: list[str] = []
    known = world.registry.rollout_nowait

    def look(tenant: str, app: str) -> RolloutRecord | None:
        looks.append(app)
        return known(tenant, app)

    monkeypatch.setattr(world.registry, "rollout_nowait", look)
    monkeypatch.setattr(world.registry, "rollout", None)
    async with world.client() as client:
        for ref in ("shop.hello", "shop.hello@v1"):
            done = await client.post(f"/v1/functions/{ref}/calls", json={"input": {"name": "x"}})
            assert done.status_code == 200, done.text

    assert looks == ["shop"]
