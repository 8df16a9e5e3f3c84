"""What a deploy makes of the hooks of a class."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.pipelines.pipeline import CallHook, HookKind, Pipeline
from pilotlight_core.model.placing import Placing, Purchase
from pilotlight_core.model.spec import FunctionSpec, Manifest, SignedManifest
from pilotlight_core.model.units import GpuAsk
from pilotlight_core.model.versions.manifest_codec import PIPELINE
from pilotlight_gateway.deploys.app_records import app_info, deploy_lines
from pilotlight_gateway.deploys.companions import companion_spec, with_companions, with_versions
from pilotlight_gateway.tenancy.auth import Principal
from tests.builders.specs import manifest, method
from tests.gateway.world import World, entry, function

ACME = Principal(tenant="acme", key_id="key1", scopes=frozenset({"deploy"}))
FIRST = CallHook(attribute="read", enter=("open",), cpu=0.5, memory=2**28, max_containers=3, max_inputs=4)
LAST = CallHook(attribute="write", takes="answer", is_async=True)
PIPELINE_OF_BOTH = Pipeline(preprocess=FIRST, postprocess=LAST, takes={"add": "numbers"})
ASKS, ANSWERS = {"type": "object", "properties": {"text": {}}}, {"type": "string"}


def words(pipeline: Pipeline = PIPELINE_OF_BOTH, **options: object) -> FunctionSpec:
    added = method("add", "add", input_schema=ASKS, output_schema=ANSWERS)
    return function("Words", added, is_class=True, pipeline=pipeline, enter=("load",), **options)


def test_a_companion_has_its_classes_environment_and_none_of_its_device() -> None:
    """Nor what is said of its containers: those of a hook are its own to say."""
    placing = Placing(regions=("eu",), zones=("a",), purchase=Purchase.ON_DEMAND, weights="w", media=True)
    spec = words(
        gpu=(GpuAsk("H100", 1),), vram=2**30, memory=2**34, min_containers=2, timeout=7.0, retries=1, env={"A": "b"},
        secrets={"T": "t"}, network=("example.com:443",), tags={"team": "x"}, max_units={"images": 3}, placing=placing,
        idempotent=True, park=("p",), unpark=("u",), drain=("d",), exit=("e",), shm=2**33,
    )  # fmt: skip
    first = companion_spec(spec, HookKind.PREPROCESS, FIRST)

    assert (first.name, first.module, first.qualname, first.is_class) == ("Words~pre", "main", "Words", True)
    assert (first.enter, first.exit, first.gpu, first.vram, first.min_containers) == (("open",), (), (), None, 0)
    assert (first.cpu, first.memory, first.max_containers, first.max_inputs) == (0.5, 2**28, 3, 4)
    assert (first.timeout, first.retries, first.idempotent) == (7.0, 1, True)
    assert (first.env, first.secrets, first.network) == ({"A": "b"}, {"T": "t"}, ("example.com:443",))
    assert (first.tags, first.max_units, first.shm, first.drain, first.park) == ({"team": "x"}, *[UNSET] * 4)
    assert first.placing == Placing(regions=("eu",), zones=("a",), purchase=Purchase.ON_DEMAND)
    assert (first.hook, first.pipeline) == (HookKind.PREPROCESS, UNSET)
    (read,) = first.methods
    assert (read.name, read.attribute, read.input_schema, read.output_schema) == ("add", "read", ASKS, {})
    (write,) = companion_spec(spec, HookKind.POSTPROCESS, LAST).methods
    assert (write.attribute, write.is_async, write.input_schema, write.output_schema) == ("write", True, {}, ANSWERS)


def test_companions_come_before_their_class_and_have_its_artifacts() -> None:
    """Not its weights, which may be larger than a node of CPU slots; a function without hooks stays alone."""
    asked = DeployRequest(
        functions=(DeployFunction(spec=function()), DeployFunction(spec=words(), artifacts=("t",), weights=("w",))),
        files=(),
    )
    made = with_companions(asked).functions
    assert [one.spec.name for one in made] == ["hello", "Words~pre", "Words~post", "Words"]
    assert [(one.artifacts, one.weights) for one in made[1:]] == [(("t",), ()), (("t",), ()), (("t",), ("w",))]


def test_a_class_names_the_versions_of_its_companions() -> None:
    """So that a change of one is a change of the other."""
    plain = manifest(function())
    assert with_versions(plain, {}) is plain
    named = with_versions(manifest(words()), {"Words~pre": "ver_a", "Words~post": "ver_b"}).spec.pipeline
    assert named is not UNSET
    assert [hook.version for hook in named.hooks.values()] == ["ver_a", "ver_b"]


async def test_a_deploy_stores_signed_versions_of_companions_that_no_list_shows(world: World) -> None:
    """They come with their class, and go with it, without a word of the deployer's."""
    await world.blobs.put("acme", entry(b"one").sha256, b"one")
    deployer, files = world.services.deployer, (entry(b"one"),)
    answer = await deployer.deploy(ACME, "shop", DeployRequest(functions=(DeployFunction(spec=words()),), files=files))
    record = world.registry.apps["acme", "shop"]

    assert [one.name for one in answer.functions] == ["Words"]
    assert sorted(record.functions) == ["Words", "Words~post", "Words~pre"]
    versions = {name: world.registry.versions[id_] for name, id_ in record.functions.items()}
    assert all(PIPELINE in version.needs for version in versions.values())
    pipeline = versions["Words"].spec.pipeline
    assert pipeline is not UNSET
    assert pipeline.preprocess is not None
    assert pipeline.preprocess.version == record.functions["Words~pre"]
    blob = await world.blobs.read("acme", versions["Words~pre"].manifest_sha256)
    signed = msgspec.msgpack.decode(blob, type=SignedManifest)
    assert msgspec.json.decode(signed.manifest, type=Manifest).spec.hook is HookKind.PREPROCESS

    running: list[dict[str, object]] = [
        {"version": record.functions["Words~pre"]},
        {"version": record.functions["Words"]},
    ]
    (shown,) = app_info(record, world.registry, running, 0.0).functions
    assert (shown.name, shown.containers) == ("Words", 1)
    assert [(hook.stage, hook.containers) for hook in shown.hooks] == [("preprocess", 1), ("postprocess", 0)]
    (line,) = deploy_lines(record)
    assert (list(line.functions), list(line.versions)) == (["Words"], ["Words"])

    plain = msgspec.structs.replace(words(), pipeline=UNSET)
    after = await deployer.deploy(ACME, "shop", DeployRequest(functions=(DeployFunction(spec=plain),), files=files))
    assert after.removed == ()
    assert list(world.registry.apps["acme", "shop"].functions) == ["Words"]
