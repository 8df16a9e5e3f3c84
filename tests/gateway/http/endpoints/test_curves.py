"""Curves over HTTP: what is known, what is kept, and trials that calls can measure."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.api.curve_api import Curve, CurvePoint, CurveSource, CurvesRecord
from pilotlight_core.model.placing import Measured, Placing
from pilotlight_core.model.spec import Batching, Manifest, SignedManifest, VersionRecord
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.deploys.deploy_plan import signed_blob
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from tests.gateway.world import HELLO, World, entry, function

GIB = 2**30
POINT = {"batch": 4, "throughput": 40.0, "p50_ms": 90.0, "p95_ms": 99.0, "samples": 30}
GIVEN = {"gpu": "H100-80GB", "slice": "3g", "points": [POINT]}
BATCHED = msgspec.structs.replace(HELLO, batching=Batching(max_batch_size=8))


@pytest.fixture
async def version(world: World, fleet: FleetPlacements) -> VersionRecord:
    """A batched function that needs 20 GiB of an H100, deployed with its manifest."""
    placing = Placing(measured=(Measured(gpu="H100-80GB", slice="4g", batch=8, throughput=70.0, p95_ms=80.0),))
    spec = function("hello", BATCHED, gpu=(GpuAsk("H100"),), vram=20 * GIB, placing=placing, max_containers=7)
    (record,) = world.deploy(spec)
    manifest = Manifest(tenant="acme", app="shop", function="hello", spec=spec, files=(entry(b"x"),))
    digest, data = signed_blob(world.signer.sign(manifest))
    await world.blobs.put("acme", digest, data)
    world.registry.versions[record.id] = record = msgspec.structs.replace(record, manifest_sha256=digest)
    return record


async def test_what_is_known_and_where_it_could_be_measured(world: World, version: VersionRecord) -> None:
    """Each curve with its source; slices of both MIG modes, where switching needs no reset."""
    point = CurvePoint(batch=1, throughput=5.0, p50_ms=9.0, p95_ms=9.0, samples=40, at=1.0)
    learnt = Curve(gpu="H100-80GB", slice="3g", source=CurveSource.LEARNT, points=(point,))
    world.registry.curve_records[version.id] = CurvesRecord(version=version.id, curves=(learnt,))
    async with world.client() as client:
        told = (await client.get("/v1/functions/shop.hello/curves")).json()

    assert told["version"] == "shop.hello@v1"
    assert [(c["gpu"], c["slice"], c["source"]) for c in told["curves"]] == [
        ("H100-80GB", "3g", "learnt"),
        ("H100-80GB", "4g", "declared"),
    ]
    assert [each["slice"] for each in told["slices"]] == ["3g", "4g", "7g", "whole"]
    assert told["slices"][0]["what"] == "3g.40gb of H100-80GB"
    assert told["methods"] == [{"method": "", "most": 8, "batches": True}]


async def test_what_was_measured_is_kept_and_decides(world: World, version: VersionRecord) -> None:
    """Batch sizes that were measured before stay; `placement plan` shows where its figures come from."""
    async with world.client() as client:
        first = await client.put("/v1/functions/shop.hello/curves", json=GIVEN)
        more = GIVEN | {"points": [POINT | {"batch": 8, "throughput": 64.0}]}
        second = await client.put("/v1/functions/shop.hello@v1/curves", json=more)
        plan = (await client.get("/v1/functions/shop.hello/placement")).json()
        rated = (await client.get("/v1/functions/shop.hello/placement?rps=200")).json()
        wrong = await client.get("/v1/functions/shop.hello/placement?rps=many")

    assert (first.status_code, second.status_code) == (200, 200), second.text
    measured = [c for c in second.json()["curves"] if c["source"] == "measured"]
    assert [point["batch"] for point in measured[0]["points"]] == [4, 8]
    assert measured[0]["points"][0]["at"] > 0
    assert "on 3g of H100-80GB: 64 per second at batch 8, p95 99 ms (measured, 30 batches)" in plan["lines"]
    carried = "; 200 per second / (64 x 80%) = 3.91 -> 4 containers"
    assert any(line.startswith("on 3g of H100-80GB: 64 per") and line.endswith(carried) for line in rated["lines"])
    assert (wrong.status_code, wrong.json()["field"]) == (422, "rps")
    assert "on 4g of H100-80GB: 70 per second at batch 8, p95 80 ms (declared)" in plan["lines"]


async def test_a_trial_is_a_version_on_one_kind_of_slice(world: World, version: VersionRecord) -> None:
    """Signed anew; one container; the same again for the same question; callable by its owner alone."""
    async with world.client() as client:
        begun = await client.post("/v1/functions/shop.hello/trials", json={"gpu": "H100-80GB", "slice": "3g"})
        again = await client.post("/v1/functions/shop.hello/trials", json={"gpu": "H100-80GB", "slice": "3g"})
        shown = await client.get(f"/v1/functions/{begun.json()['ref']}/openapi.json")
        curves = await client.get(f"/v1/functions/{begun.json()['ref']}/curves")

    assert begun.status_code == 201, begun.text
    assert begun.json() == again.json()
    trial = world.registry.versions[begun.json()["version_id"]]
    assert begun.json()["ref"] == f"shop.hello@{trial.id}"
    assert (trial.spec.placing.slice, trial.spec.max_containers, trial.spec.min_containers) == ("H100-80GB/3g", 1, 0)
    assert trial.id not in world.registry.apps["acme", "shop"].versions["hello"]
    signed = msgspec.msgpack.decode(await world.blobs.read("acme", trial.manifest_sha256), type=SignedManifest)
    assert msgspec.json.decode(signed.manifest, type=Manifest).spec == trial.spec
    assert shown.status_code == 200
    assert (curves.status_code, curves.json()["field"]) == (422, "ref")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (GIVEN | {"slice": "1g"}, "slice"),
        (GIVEN | {"gpu": "T4"}, "slice"),
        (GIVEN | {"gpu": "no such"}, "gpu"),
        (GIVEN | {"points": []}, "points"),
        (GIVEN | {"points": [POINT, POINT]}, "points"),
        (GIVEN | {"points": [POINT | {"throughput": 0.0}]}, "points"),
        (GIVEN | {"points": [POINT | {"p50_ms": 100.0}]}, "points"),
        (GIVEN | {"points": [POINT | {"batch": 0}]}, "points"),
    ],
)
async def test_what_no_measurement_gives_is_refused(
    world: World, version: VersionRecord, body: dict[str, Any], field: str
) -> None:
    """By the field; and nothing is kept."""
    async with world.client() as client:
        answer = await client.put("/v1/functions/shop.hello/curves", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert world.registry.curve_records == {}


async def test_a_version_that_is_no_trial_and_not_of_the_function_is_no_pin(
    world: World, version: VersionRecord
) -> None:
    """An id of another function's version, or of one that was never deployed, is unknown."""
    (other,) = world.deploy(function("else"), app="other")
    stray = msgspec.structs.replace(version, id="ver_" + "0" * 32)
    world.registry.versions[stray.id] = stray
    async with world.client() as client:
        answers = [
            await client.get(f"/v1/functions/shop.hello@{pin}/curves")
            for pin in (other.id, stray.id, "ver_" + "1" * 32)
        ]
        mine = await client.get(f"/v1/functions/shop.hello@{version.id}/curves")

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert mine.json()["version"] == "shop.hello@v1"
