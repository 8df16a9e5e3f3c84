"""Which version runs a job's next start."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import NotFound
from pilotlight_core.model.records.jobs import FailurePoint
from pilotlight_core.model.rollouts.rollout_record import WHOLE, Arm, Rollout, RolloutRecord, RolloutState, Sticky
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.jobs.job_versions import JobVersions, bound_to, point_beside
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.splits.splits import NAMED, UNKNOWN, Chosen, Splits
from tests.builders.jobs import job
from tests.gateway.world import World, function

NEW, NEWER = "ver_" + "2" * 32, "ver_" + "3" * 32
CANARY, CONTROL = Side("rol_1", Arm.CANARY, 0.5, ""), Side("rol_1", Arm.CONTROL, 0.0, "")


class Bench:
    """An app whose function has an old and a new version."""

    def __init__(self, world: World) -> None:
        (self.old,) = world.deploy(function("hello"))
        self.registry = world.registry
        self.new = replace(self.old, id=NEW, number=2)
        self.registry.versions[NEW] = self.new
        self.versions = JobVersions(
            registry=self.registry, schemas=VersionSchemas(world.blobs), splits=Splits(self.registry)
        )

    def deploy(self, version: VersionRecord) -> None:
        record = self.registry.apps["acme", "shop"]
        self.registry.versions[version.id] = version
        self.registry.apps["acme", "shop"] = replace(record, functions={"hello": version.id})

    def split(self, share: int, sticky: Sticky = Sticky.CALL) -> None:
        rollout = Rollout(
            id="rol_1", number=1, control={"hello": self.old.id}, canary={"hello": NEW}, salt=b"s" * 32,
            state=RolloutState.RAMP, share=share, since=0.0, started_at=0.0, by="k",
        )  # fmt: skip
        rollout = replace(rollout, terms=replace(rollout.terms, sticky=sticky))
        record = RolloutRecord(tenant="acme", app="shop", revision=4, rollout=rollout)
        self.registry.rollout_records["acme", "shop"] = record

    async def choose(self, **more: Any) -> Chosen:
        wanted = {"version": self.old.id, "function": "acme:shop.hello", "floats": True, **more}
        return await self.versions.choose(job(**wanted))


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world)


async def test_a_job_that_named_its_version_keeps_it(bench: Bench) -> None:
    """Whatever was deployed since."""
    bench.deploy(bench.new)
    chosen = await bench.choose(floats=False)

    assert (chosen.version, chosen.side, chosen.split) == (bench.old, None, NAMED)


async def test_any_other_runs_what_is_deployed_when_it_starts(bench: Bench) -> None:
    """A queue of hours holds no version that was rolled back."""
    bench.deploy(bench.new)
    chosen = await bench.choose()

    assert (chosen.version, chosen.side, chosen.split) == (bench.new, None, UNKNOWN)


async def test_it_stays_where_its_arguments_are_others(bench: Bench) -> None:
    """They were read for the version that it was accepted for."""
    method = replace(bench.new.spec.methods[0], input_schema={"type": "object", "required": ["other"]})
    other = replace(bench.new, id=NEWER, spec=replace(bench.new.spec, methods=(method,)))
    renamed = replace(bench.new.spec.methods[0], name="renamed")
    without = replace(bench.new, spec=replace(bench.new.spec, methods=(renamed, renamed)))
    bench.deploy(other)
    first = await bench.choose()
    bench.deploy(without)
    second = await bench.choose(method="predict")

    assert first == second == Chosen(bench.old, None, NAMED)


async def test_it_stays_while_its_app_is_stopped(bench: Bench) -> None:
    """It was accepted, so it runs."""
    record = bench.registry.apps["acme", "shop"]
    bench.registry.apps["acme", "shop"] = replace(record, stopped=True)

    assert (await bench.choose()).version == bench.old


async def test_a_version_may_be_gone(bench: Bench) -> None:
    """One that named none runs what is deployed; any other cannot run."""
    bench.deploy(bench.new)
    gone = "ver_" + "9" * 32

    assert (await bench.choose(version=gone)).version == bench.new
    with pytest.raises(NotFound):
        await bench.choose(version=gone, floats=False)


async def test_each_start_is_drawn_as_calls_are(bench: Bench) -> None:
    """By its own id, so every start of it is on one side."""
    bench.split(WHOLE)
    chosen = await bench.choose()
    assert chosen.side is not None
    assert (chosen.version.id, chosen.side.arm, chosen.split) == (NEW, Arm.CANARY, 4)

    bench.split(WHOLE // 2)
    sides = [
        {(await bench.choose(id=f"call_local_1_{number:020}")).version.id for _ in range(3)} for number in range(40)
    ]
    assert all(len(side) == 1 for side in sides)
    assert {one for side in sides for one in side} == {bench.old.id, NEW}


async def test_it_is_on_the_side_of_whoever_stored_it(bench: Bench) -> None:
    """By what its request said."""
    bench.split(WHOLE // 2, Sticky.HEADER)
    for user in ("ann", "bob", "eve", "joe"):
        sides = {(await bench.choose(id=f"call_local_1_{n:020}", sticky=user)).version.id for n in range(10)}
        assert len(sides) == 1


async def test_what_the_new_version_has_failed_the_old_one_runs(bench: Bench) -> None:
    """Its next start is no second chance."""
    bench.split(WHOLE)
    chosen = await bench.choose(stays=True)

    assert (chosen.version, chosen.side, chosen.split) == (bench.old, None, 4)


def test_a_job_is_retried_by_what_its_version_says(bench: Bench) -> None:
    """And its record shows which it is."""
    other = replace(bench.new, spec=replace(bench.new.spec, retries=7, timeout=9.0))
    bound = bound_to(job(), other)

    assert (bound.version, bound.ref, bound.retries, bound.timeout) == (NEW, "shop.hello@v2", 7, 9.0)


@pytest.mark.parametrize(
    ("code", "side", "idempotent", "expected"),
    [
        ("load_failed", CANARY, False, FailurePoint.NOT_STARTED),
        ("load_failed", CONTROL, False, FailurePoint.FINAL),
        ("load_failed", None, False, FailurePoint.FINAL),
        ("bad_output", CANARY, True, FailurePoint.INTERRUPTED),
        ("bad_output", CANARY, False, FailurePoint.FINAL),
        ("bad_input", CANARY, True, FailurePoint.FINAL),
    ],
)
def test_what_would_fail_again_may_go_well_on_the_other_side(
    code: str, side: Side | None, idempotent: bool, expected: FailurePoint
) -> None:
    """Unless it must not run twice."""
    assert point_beside(FailurePoint.FINAL, code, job(idempotent=idempotent), side) is expected
    assert point_beside(FailurePoint.RAISED, code, job(), side) is FailurePoint.RAISED
