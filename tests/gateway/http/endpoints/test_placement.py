"""Placement over HTTP: explanations, the fleet, and the arithmetic of a function's memory."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.api.placement_api import DecisionInfo
from pilotlight_core.model.api.scaling_api import ScalingExplanation
from pilotlight_core.model.messages.controller_questions import ExplainPlacement, PlacementReply
from pilotlight_core.model.placing import Model, Placing
from pilotlight_core.model.spec import MethodSpec
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.fleet.placement_explainer import MemoryExplainer
from pilotlight_gateway.http.endpoints.placement import ADVICE
from tests.builders.nodes import container, gpu_node
from tests.gateway.deploys.test_deployer import upload
from tests.gateway.world import Clock, World, entry, function

DECISION = DecisionInfo(container="ctr_1", function="acme:shop.hello", revision=3, considered=2, refused={"room": 1})
TOLD = PlacementReply(found=True, lines=("ctr_1 runs on a CPU slot on n1.",), decisions=msgspec.json.encode([DECISION]))
LLAMA = Model(parameters=8e9, layers=32, kv_heads=8, head_size=128, hidden=4096, context_tokens=8192)


@pytest.fixture
def explainer(world: World) -> MemoryExplainer:
    made = world.services.explainer = MemoryExplainer(reply=TOLD)
    return made


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("container=ctr_1", ExplainPlacement(container="ctr_1")),
        ("function=shop.hello", ExplainPlacement(function="platform:shop.hello")),
        ("function=acme:shop.hello&why_not=n2", ExplainPlacement(function="acme:shop.hello", node="n2")),
        ("", ExplainPlacement()),
    ],
)
async def test_questions_reach_whoever_decides(
    world: World, explainer: MemoryExplainer, query: str, asked: ExplainPlacement
) -> None:
    """And the answer comes in sentences and as data."""
    for tenant in ("platform", "acme"):
        world.deploy(function("hello"), tenant=tenant)
    async with world.client(world.operator) as client:
        answer = await client.get(f"/v1/placement/explain?{query}")

    assert answer.status_code == 200, answer.text
    assert explainer.asked == [asked]
    assert answer.json()["lines"] == ["ctr_1 runs on a CPU slot on n1."]
    assert answer.json()["decisions"][0]["refused"] == {"room": 1}


@pytest.mark.parametrize(
    ("query", "field"), [("container=a%20b", "container"), ("function=hello", "function"), ("why_not=-x", "why_not")]
)
async def test_a_wrong_question_names_its_parameter(
    world: World, explainer: MemoryExplainer, query: str, field: str
) -> None:
    """422, and nobody is asked."""
    async with world.client(world.operator) as client:
        answer = await client.get(f"/v1/placement/explain?{query}")

    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert explainer.asked == []


async def test_what_nobody_remembers_is_not_found_and_without_a_leader_it_is_asked_again(
    world: World, explainer: MemoryExplainer
) -> None:
    """404 with the sentence, 503 with when to come back."""
    async with world.client(world.operator) as client:
        explainer.reply = PlacementReply(found=False, lines=("Nothing is remembered of a container ctr_0.",))
        absent = await client.get("/v1/placement/explain?container=ctr_0")
        explainer.reply = None
        leaderless = await client.get("/v1/placement/explain?container=ctr_0")

    assert (absent.status_code, absent.json()["detail"]) == (404, "Nothing is remembered of a container ctr_0.")
    assert leaderless.status_code == 503
    assert "retry-after" in leaderless.headers


@pytest.mark.parametrize(
    ("query", "detail", "suggestion"),
    [
        ("function=lab.nope", "There is no function lab.nope: lab has lab.echo and lab.slow.", None),
        ("function=lab.ecko", "There is no function lab.ecko. Did you mean lab.echo?", "lab.echo"),
        ("function=acme:shop.x", "There is no function acme:shop.x: acme:shop has acme:shop.hello.", None),
        ("function=nobody:shop.x", "There is no function nobody:shop.x.", None),
        ("function=acme:shop", "acme:shop is an app, not a function: acme:shop has acme:shop.hello.", None),
        ("function=acme:sho", "There is no app acme:sho.", None),
        ("container=lab", "lab is an app, not a container: lab has lab.echo and lab.slow.", None),
        ("container=slow", "There is no container slow. Did you mean lab.slow?", "lab.slow"),
        ("container=ctr_ecko_1_2", "There is no container ctr_ecko_1_2. Did you mean ctr_echo_1_2?", "ctr_echo_1_2"),
        ("container=ctr_echo_1_2", "Nothing is remembered of it.", None),
        ("container=elsewhere", "Nothing is remembered of it.", None),
    ],
)
async def test_whoever_misspells_is_told_what_there_is(
    world: World, explainer: MemoryExplainer, query: str, detail: str, suggestion: str | None
) -> None:
    """Functions of any tenant, since operators may see them; apps are no containers; what runs is not doubted."""
    world.deploy(function("echo"), function("slow"), app="lab", tenant="platform")
    world.deploy(function("hello"))
    explainer.reply = PlacementReply(found=False, lines=("Nothing is remembered of it.",))
    running = container("ctr_echo_1_2", tenant="platform", app="lab", function="echo")
    view = FleetView()
    view.on_report(gpu_node(containers=(running,)), 0.0)
    world.services.placements = FleetPlacements(view, Clock(1.0))
    async with world.client(world.operator) as client:
        answer = await client.get(f"/v1/placement/explain?{query}")

    assert (answer.status_code, answer.json()["detail"]) == (404, detail)
    assert answer.json().get("suggestion") == suggestion


async def test_the_fleet_is_the_operators(world: World, fleet: FleetPlacements) -> None:
    """A tenant's admin sees none of it."""
    async with world.client(world.operator) as client:
        told = (await client.get("/v1/fleet")).json()
    async with world.client() as tenant:
        refused = [(await tenant.get(path)).status_code for path in ("/v1/fleet", "/v1/placement/explain")]

    assert [row["id"] for row in told["devices"]] == ["GPU-1", "cpu-0"]
    assert refused == [403, 403]


async def test_a_functions_memory_is_told_to_its_owner(world: World, fleet: FleetPlacements) -> None:
    """Line by line, with the verdict."""
    world.deploy(function("talk", gpu=(GpuAsk("H100"),), placing=Placing(model=LLAMA)))
    async with world.client() as client:
        told = (await client.get("/v1/functions/shop.talk/placement")).json()

    assert told["fits"]
    assert told["version"] == "shop.talk@v1"
    assert [row["what"] for row in told["plans"][0]["rows"]] == ["weights", "KV cache", "activations", "context"]
    assert told["plans"][0]["largest"] == "a whole H100-80GB"


async def test_of_a_method_the_container_of_its_class_is_told(
    world: World, fleet: FleetPlacements, explainer: MemoryExplainer
) -> None:
    """That is said; a method that there is not is refused with those that there are."""
    talker = function("Talker", *(MethodSpec(name=name, attribute=name) for name in ("say", "sing")), is_class=True)
    world.deploy(talker)
    world.deploy(talker, tenant="platform")
    said = "say is a method of the class Talker: a container of it runs all of its methods."
    body = {"spec": msgspec.to_builtins(talker), "method": "say"}
    async with world.client() as client:
        deployed = (await client.get("/v1/functions/shop.Talker/placement?method=say")).json()
        planned = (await client.post("/v1/placement/plan", json=body)).json()
        absent = await client.get("/v1/functions/shop.Talker/placement?method=shout")
    async with world.client(world.operator) as client:
        told = [
            (await client.get(f"/v1/placement/explain?function={name}&method=say")).json()
            for name in ("shop.Talker", "acme:shop.Talker")
        ]

    assert [each["lines"][0] for each in (deployed, planned, *told)] == [said] * 4
    assert (absent.status_code, absent.json()["field"]) == (422, "method")
    assert "its methods: say, sing" in absent.json()["detail"]


async def test_a_deploy_of_what_can_never_fit_is_refused_and_leaves_nothing(
    world: World, fleet: FleetPlacements
) -> None:
    """422 by the option, before anything is uploaded."""
    await upload(world, b"x")
    large = function("talk", gpu=(GpuAsk("H100"),), vram=100 * 2**30)
    body = {"functions": [{"spec": msgspec.to_builtins(large)}], "files": [msgspec.to_builtins(entry(b"x"))]}
    async with world.client() as client:
        answer = await client.post("/v1/apps/shop/deploys", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, "vram")
    assert "20.0 GiB are missing" in answer.json()["detail"]
    assert not world.registry.apps


async def test_a_floor_that_never_fits_is_deployed_with_a_warning(world: World, fleet: FleetPlacements) -> None:
    """The answer names how many the fleet could hold."""
    await upload(world, b"x")
    floor = function("talk", gpu=(GpuAsk("H100"),), min_containers=3)
    body = {"functions": [{"spec": msgspec.to_builtins(floor)}], "files": [msgspec.to_builtins(entry(b"x"))]}
    async with world.client() as client:
        answer = await client.post("/v1/apps/shop/deploys", json=body)
        told = (await client.get("/v1/functions/shop.talk/placement")).json()

    assert answer.status_code == 200
    assert answer.json()["warnings"][0].startswith("talk: of min_containers=3 only 1 can ever run here: ")
    assert told["floor"] == {"wanted": 3, "there": 0, "room": 1, "most": 1}
    assert told["fits"]


async def test_what_is_not_deployed_can_be_asked_about(world: World, fleet: FleetPlacements) -> None:
    """The same arithmetic; a spec that contradicts itself is refused by its field, and nothing is deployed."""
    large = function("talk", gpu=(GpuAsk("H100"),), placing=Placing(model=LLAMA), max_inputs=80)
    wrong = function("talk", gpu=(GpuAsk("H100"),), vram=1, placing=Placing(model=LLAMA))
    async with world.client(world.add_key("acme", "deploy")) as client:
        told = await client.post("/v1/placement/plan", json={"spec": msgspec.to_builtins(large)})
        refused = await client.post("/v1/placement/plan", json={"spec": msgspec.to_builtins(wrong)})

    assert (told.status_code, told.json()["fits"], told.json()["version"]) == (200, False, "talk")
    assert "are missing" in told.json()["reason"]
    assert (refused.status_code, refused.json()["field"]) == (422, "model")
    assert not world.registry.apps


async def test_a_functions_scaling_is_told_to_its_owner(world: World, explainer: MemoryExplainer) -> None:
    """Where its containers are is the operators'; a function of others is none."""
    (version,) = world.deploy(function("hello"))
    told = ScalingExplanation(lines=("It wants 1 container.",), more_needs="a call")
    where = PlacementReply(found=True, lines=("ctr_1 runs on n1.",), scaling=msgspec.json.encode(told))
    explainer.reply = where
    ref = f"{version.app}.{version.function}"

    async with world.client() as client:
        own = await client.get(f"/v1/functions/{ref}/explanation")
        then = await client.get(f"/v1/functions/{ref}/explanation", params={"at": "2026-05-04T08:00:00Z"})
        wrong = await client.get(f"/v1/functions/{ref}/explanation", params={"at": "yesterday"})
        unknown = await client.get("/v1/functions/shop.nope/explanation")
        explainer.reply = PlacementReply(found=True)
        older = await client.get(f"/v1/functions/{ref}/explanation")

    assert own.json()["lines"] == ["It wants 1 container."]
    assert then.status_code == 200
    name = f"{version.tenant}:{ref}"
    assert explainer.asked[:2] == [
        ExplainPlacement(function=name, scaling=True),
        ExplainPlacement(function=name, scaling=True, at=1_777_881_600.0),
    ]
    assert (wrong.status_code, wrong.json()["field"]) == (422, "at")
    assert unknown.status_code == 404
    assert older.status_code == 503


async def test_operators_read_where_a_functions_containers_are(world: World, explainer: MemoryExplainer) -> None:
    """Of their own functions, behind the sentences on scaling."""
    world.deploy(function("echo"), app="lab", tenant="platform")
    told = ScalingExplanation(lines=("It wants 1 container.",))
    explainer.reply = PlacementReply(found=True, lines=("ctr_1 runs on n1.",), scaling=msgspec.json.encode(told))

    async with world.client(world.operator) as client:
        answer = await client.get("/v1/functions/lab.echo/explanation")

    assert answer.json()["lines"] == ["It wants 1 container.", "ctr_1 runs on n1."]


async def test_advice_is_told_as_such(world: World, explainer: MemoryExplainer) -> None:
    """By a controller that does nothing itself; where none is there, it says how to start one."""
    (version,) = world.deploy(function("hello"))
    path = f"/v1/functions/{version.app}.{version.function}/explanation?advised="
    told = ScalingExplanation(lines=("It wants 3 containers.",))

    async with world.client() as client:
        nobody = await client.get(path + "true")
        explainer.advice = PlacementReply(found=True, scaling=msgspec.json.encode(told))
        advised = await client.get(path + "true")
        wrong = await client.get(path + "maybe")

    assert (nobody.status_code, "--advise" in nobody.json()["detail"]) == (404, True)
    assert advised.json()["lines"] == [ADVICE, "It wants 3 containers."]
    assert (wrong.status_code, wrong.json()["field"]) == (422, "advised")
