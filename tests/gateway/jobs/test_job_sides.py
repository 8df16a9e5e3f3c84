"""Jobs of an app whose traffic is split: what one version fails the other one runs."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import error_from_code
from pilotlight_core.model.records.jobs import JobState
from pilotlight_core.model.rollouts.rollout_moves import rolled_back
from pilotlight_core.model.rollouts.rollout_record import WHOLE, Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.spec import VersionRecord
from tests.gateway.jobs.test_job_runner import Bench
from tests.gateway.world import World


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world=world)


def canary_of(bench: Bench, old: VersionRecord) -> RolloutRecord:
    """A second version, to which a rollout sends everything."""
    new = msgspec.structs.replace(old, id="ver_" + "2" * 32, number=2)
    bench.world.registry.versions[new.id] = new
    rollout = Rollout(
        id="rol_1", number=1, control={"hello": old.id}, canary={"hello": new.id}, salt=b"s" * 32,
        state=RolloutState.RAMP, share=WHOLE, since=0.0, started_at=0.0, by="k",
    )  # fmt: skip
    record = RolloutRecord(tenant="acme", app="shop", revision=3, rollout=rollout)
    bench.world.registry.rollout_records["acme", "shop"] = record
    return record


@pytest.mark.parametrize("code", ["load_failed", "no_capacity", "function_raised"])
async def test_what_the_new_version_of_a_rollout_fails_the_old_one_runs(bench: Bench, code: str) -> None:
    """Whoever waits for the job sees no error, and its record says what ran it."""
    stored = await bench.put(floats=True, retries=1)
    (old,) = bench.world.registry.versions.values()
    new = bench.world.registry.versions[stored.version] = msgspec.structs.replace(
        old, spec=msgspec.structs.replace(old.spec, retries=1)
    )
    canary_of(bench, new)
    bench.calls.error, bench.calls.grants = error_from_code(code, "no"), int(code != "no_capacity")
    first = await bench.run()
    waiting = await bench.now()
    bench.calls.error, bench.calls.grants, bench.wall = None, 1, first or 0.0
    await bench.run()

    assert (waiting.state, waiting.version, waiting.stays) == (JobState.QUEUED, "ver_" + "2" * 32, True)
    assert [call.version.id for call in bench.calls.seen] == ["ver_" + "2" * 32, stored.version]
    done = await bench.now()
    assert (done.state, done.version, done.ref) == (JobState.SUCCEEDED, stored.version, "shop.hello@v1")


async def test_a_job_that_was_split_by_an_older_record_is_chosen_for_again(bench: Bench) -> None:
    """It has not begun, so it counts as no try, and is held to no side."""
    stored = await bench.put(floats=True)
    record = canary_of(bench, bench.world.registry.versions[stored.version])
    bench.calls.grants = 0
    bench.calls.error = error_from_code("stale_split", "split anew")
    until = await bench.run()
    waiting = await bench.now()
    bench.world.registry.rollout_records["acme", "shop"] = rolled_back(record, 1.0, "slower")
    bench.calls.error, bench.calls.grants, bench.wall = None, 1, until or 0.0
    await bench.run()

    assert (waiting.state, waiting.attempts, waiting.stays) == (JobState.QUEUED, 0, False)
    done = await bench.now()
    assert (done.state, done.version, done.attempts) == (JobState.SUCCEEDED, stored.version, 1)
