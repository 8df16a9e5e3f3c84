"""Curves that are known of a version, and the spec of a trial that measures another."""

from __future__ import annotations

from pilotlight_core.model.api.curve_api import CurvePoint, CurveRequest, CurveSource, TrialRequest
from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.placing import Measured, Placing
from pilotlight_core.model.spec import Batching, FunctionSpec
from pilotlight_gateway.fleet.curve_trials import CurveService, declared, loads_of, pinned
from tests.builders.specs import method
from tests.gateway.world import World, function

PLACING = Placing(measured=(Measured(gpu="H100-80GB", slice="4g", batch=8, throughput=70.0, p95_ms=80.0),))


def spec(**more: object) -> FunctionSpec:
    return function("hello", placing=PLACING, **more)


def test_what_a_function_declares_is_a_curve() -> None:
    """Of a kind of slice, with the points that it names."""
    (curve,) = declared(spec())

    assert (curve.gpu, curve.slice, curve.source) == ("H100-80GB", "4g", CurveSource.DECLARED)
    assert [(point.batch, point.throughput, point.p95_ms) for point in curve.points] == [(8, 70.0, 80.0)]
    assert declared(function("hello")) == ()


async def test_what_was_measured_stands_before_what_is_declared(world: World) -> None:
    """With the instant of its measurement; measured again it is replaced."""
    (version,) = world.deploy(spec())
    service = CurveService(world.registry)
    for at, throughput in ((5.0, 50.0), (6.0, 60.0)):
        point = CurvePoint(batch=8, throughput=throughput, p50_ms=1.0, p95_ms=2.0, samples=9)
        given = CurveRequest(gpu="H100-80GB", slice="4g", points=(point,))
        await service.keep(version, given, software=True, at=at)
    measured, stated = service.known(version)

    assert (measured.source, stated.source) == (CurveSource.MEASURED, CurveSource.DECLARED)
    assert [(point.at, point.throughput) for point in measured.points] == [(6.0, 60.0)]
    assert measured.software


def test_a_container_works_on_as_much_as_its_methods_say() -> None:
    """On a batch, or on so many inputs."""
    batched = method(attribute="hello", batching=Batching(max_batch_size=8, wait_ms=1.0))
    assert [(load.most, load.batches) for load in loads_of(function("hello", batched, max_inputs=3))] == [(8, True)]
    assert [(load.most, load.batches) for load in loads_of(function("hello", max_inputs=3))] == [(3, False)]
    engine = function("hello", max_inputs=20, engine=EngineSpec(kind=EngineKind.SIM, max_sequences=16))
    assert [(load.most, load.batches) for load in loads_of(engine)] == [(16, False)]  # others wait in it


def test_a_trial_is_one_container_on_one_kind_of_slice() -> None:
    """Nothing hurries it, spreads it, or keeps it running."""
    trial = pinned(spec(min_containers=2, max_containers=9), TrialRequest(gpu="H100-80GB", slice="4g"))

    assert (trial.min_containers, trial.max_containers, trial.buffer_containers) == (0, 1, 0)
    assert trial.placing.slice
    assert trial.placing.measured == ()
