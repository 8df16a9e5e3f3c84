"""Learnt curves are stored beside their versions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from pilotlight_autoscaler.curve_store import CurveStore
from pilotlight_autoscaler.observations.curve_learning import CurveLearner
from pilotlight_core.bus import connect
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.ran import BatchesRan
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.spec import VersionRecord
from tests.autoscaler.builders import record
from tests.waiting import until


@pytest.fixture
async def registry(server_url: str) -> AsyncIterator[Registry]:
    async with connect(server_url, name="curve-store-test") as bus, Registry(bus) as registry:
        yield registry


def learner(*versions: VersionRecord) -> CurveLearner:
    """One that has seen batches of each."""
    found = CurveLearner()
    for version in versions:
        batches = BatchesRan(container="c1", version=version.id, slice="cpu-0", batch=2, count=50, ms=(10.0,))
        found.observe(batches, ("CPU", "slot", False), 1.0)
    return found


async def test_what_was_learnt_is_stored_but_for_trials(registry: Registry) -> None:
    """Calls of a trial are measured by its caller."""
    plain, trial, unknown = (record(f"ver_{token()}") for _ in range(3))
    placing = Placing(slice="1g")
    trial = msgspec.structs.replace(trial, spec=msgspec.structs.replace(trial.spec, placing=placing))
    for version in (plain, trial):
        await registry.put_version(version)

    await CurveStore(registry).write(learner(unknown, trial, plain), 100.0, 1_000.0)

    await until(lambda: registry.curves(plain.id))
    known = registry.curves(plain.id)
    assert known is not None
    assert [(curve.gpu, curve.slice) for curve in known.curves] == [("CPU", "slot")]
    assert (registry.curves(trial.id), registry.curves(unknown.id)) == (None, None)
