"""Requests to the platform as a whole: which are sent again, and how answers are read."""

from __future__ import annotations

from urllib.parse import parse_qs

import msgspec
import pytest

from pilotlight import App
from pilotlight.client.resources.platform import MAX_LINE_BYTES, PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.errors import BadOutput, UnknownCall, Unreachable
from pilotlight_core.model.api.call_api import DeployRequest
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem


@pytest.fixture
def client(connection: PlatformConnection) -> PlatformClient:
    return PlatformClient(connection)


@pytest.mark.parametrize("body", [b"<html>", b'{"apps": 3}', b"[]"])
async def test_an_answer_of_another_shape_names_the_request(
    platform: ScriptedPlatform, client: PlatformClient, body: bytes
) -> None:
    """Another server may answer at the platform's address."""
    platform.will("GET", "/v1/apps", Answer(pieces=[body]))
    with pytest.raises(BadOutput, match=r"The platform's answer to GET /v1/apps cannot be read"):
        await client.list_apps()


async def test_a_read_is_sent_again_and_a_change_is_not(platform: ScriptedPlatform, client: PlatformClient) -> None:
    """After a broken connection a change may have been made."""
    platform.will("GET", "/v1/fleet", Answer(cut=True), answer({"devices": []}))
    platform.will("POST", "/v1/apps/a/stop", Answer(cut=True), answer({}))
    assert await client.get_fleet() == {"devices": []}
    with pytest.raises(UnknownCall, match="may have been carried out"):
        await client.stop_app("a")
    assert len(platform.asked("/v1/apps/a/stop")) == 1


async def test_a_change_that_was_refused_is_sent_again(platform: ScriptedPlatform, client: PlatformClient) -> None:
    """A refused change was not made."""
    platform.will("POST", "/v1/apps/a/stop", problem("draining", headers={"retry-after": "0"}), answer({"app": "a"}))
    assert await client.stop_app("a") == {"app": "a"}


async def test_an_upload_reads_its_content_anew(platform: ScriptedPlatform, client: PlatformClient) -> None:
    """A failed attempt has used up its content; the size is known before."""
    platform.will("PUT", "/v1/blobs/abc", Answer(cut=True), answer({}))
    reads: list[bytes] = []

    def read() -> bytes:
        reads.append(b"12345")
        return reads[-1]

    await client.upload_blob("abc", 5, read)
    assert len(reads) == 2
    assert [request.body for request in platform.requests] == [b"12345"] * 2
    assert platform.requests[1].headers["content-length"] == "5"


async def test_a_log_line_may_come_in_parts(platform: ScriptedPlatform, client: PlatformClient) -> None:
    """Empty lines keep a connection alive, and the last line needs no end."""
    platform.will("GET", "/v1/apps/a/logs", Answer(pieces=[b'{"text": "o', b'ne"}\n\n{"text"', b': "two"}']))
    lines = [line async for line in client.read_logs("a", function="f", since="10m", tail=0, follow=True)]
    assert lines == [{"text": "one"}, {"text": "two"}]
    assert parse_qs(platform.requests[0].query) == {
        "function": ["f"], "since": ["10m"], "tail": ["0"], "follow": ["true"],
    }  # fmt: skip


async def test_a_log_line_without_an_end_is_an_error(platform: ScriptedPlatform, client: PlatformClient) -> None:
    """The line would fill the memory."""
    platform.will("GET", "/v1/apps/a/logs", Answer(pieces=[b"x" * (MAX_LINE_BYTES + 1)], hold=True))
    with pytest.raises(BadOutput, match=f"longer than {MAX_LINE_BYTES} bytes"):
        [line async for line in client.read_logs("a")]


@pytest.mark.parametrize(
    ("asked", "query"),
    [
        (("ctr_1", "", ""), {"container": ["ctr_1"]}),
        (("search.embed", "n1", ""), {"function": ["search.embed"], "why_not": ["n1"]}),
        (("zoo:llm", "", "predict"), {"function": ["zoo:llm"], "method": ["predict"]}),
        (("", "", ""), {}),
    ],
)
async def test_a_placement_is_explained_of_a_container_or_a_function(
    platform: ScriptedPlatform, client: PlatformClient, asked: tuple[str, str, str], query: dict[str, list[str]]
) -> None:
    """A subject with a dot or a colon is a function."""
    platform.will("GET", "/v1/placement/explain", answer({"lines": []}))
    assert await client.explain_placement(*asked) == {"lines": []}
    assert parse_qs(platform.requests[0].query) == query


async def test_a_functions_scaling_is_explained_of_now_or_then(
    platform: ScriptedPlatform, client: PlatformClient
) -> None:
    """By its ref."""
    platform.will("GET", "/v1/functions/plans.embed/explanation", answer({"lines": []}))
    assert await client.explain_function("plans.embed") == {"lines": []}
    assert await client.explain_function("plans.embed", "2026-05-04T08:00:00Z") == {"lines": []}
    assert await client.explain_function("plans.embed", advised=True) == {"lines": []}
    asked = [parse_qs(each.query) for each in platform.requests]
    assert asked == [{}, {"at": ["2026-05-04T08:00:00Z"]}, {"advised": ["true"]}]


async def test_a_plan_of_what_is_not_deployed_carries_the_spec(
    platform: ScriptedPlatform, client: PlatformClient
) -> None:
    """A deployed function is named instead, with its load."""

    def embed(text: str) -> str:
        return text

    spec = App("plans").gpu_function(gpu="any")(embed).spec
    platform.will("POST", "/v1/placement/plan", answer({"fits": True}))
    platform.will("GET", "/v1/functions/plans.embed/placement", answer({"fits": False}))
    assert await client.plan_undeployed(spec, "", base="torch") == {"fits": True}
    assert platform.requests[0].json["spec"]["name"] == "embed"
    assert platform.requests[0].json["base"] == "torch"
    assert await client.plan_deployed("plans.embed", rps=2.5, method="go") == {"fits": False}
    assert parse_qs(platform.requests[1].query) == {"rps": ["2.5"], "method": ["go"]}


async def test_a_deploy_learns_which_blobs_are_missing(platform: ScriptedPlatform, client: PlatformClient) -> None:
    """The answer is a struct, not JSON."""
    platform.will("POST", "/v1/apps/a/deploys", answer({"app": "a", "revision": 3, "functions": [], "missing": ["ab"]}))
    found = await client.deploy_app("a", DeployRequest(functions=(), files=(), message="why"))
    assert (found.revision, found.missing) == (3, ("ab",))
    assert msgspec.json.decode(platform.requests[0].body)["message"] == "why"


async def test_commands_give_up_soon_on_an_unreachable_platform(
    client: PlatformClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command tries for less time than a program."""
    client._connection.config = msgspec.structs.replace(client._connection.config, url="http://127.0.0.1:9")
    monkeypatch.setattr("pilotlight.client.resources.platform.QUICK_CONNECT_S", 0.05)
    with pytest.raises(Unreachable, match="Nothing answers"):
        await client.list_containers()
