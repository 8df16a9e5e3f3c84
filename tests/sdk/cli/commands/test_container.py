"""Containers: how they are listed, and how their state is shown."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight.cli.commands.container import _state
from tests.sdk.cli.shell import ESCAPE, cells, invoke, on_terminal, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem


@pytest.mark.parametrize(
    ("container", "shown"),
    [
        ({"state": "ready"}, "ready"),
        ({"state": "ready", "breaker": "closed", "version_breaker": "closed"}, "ready"),
        ({"state": "ready", "breaker": "half_open"}, "ready, breaker half open"),
        ({"state": "draining", "reason": "its check failed: A: b"}, "draining: its check failed: A: b"),
        ({"state": "draining", "reason": "x" * 61}, f"draining: {'x' * 60}…"),
        (
            {"state": "ready", "breaker": "open", "version_breaker": "open"},
            "ready, breaker open, version's breaker open",
        ),
    ],
)
def test_breakers_are_part_of_the_state(container: dict[str, str], shown: str) -> None:
    """The state shows the open breakers, which explain a container without calls."""
    assert _state(container) == shown


CONTAINER = {
    "id": "ctr_1", "app": "search", "function": "embed", "state": "ready", "calls": 5, "running": 1, "slots": 4,
    "age_s": 65.0, "idle_s": 0.0, "memory_bytes": 2_500_000, "node": "n1", "slice": "cpu-0", "sandbox": "bubblewrap",
}  # fmt: skip
ROW = ["ctr_1", "search.embed", "ready", "5", "1/4", "1m", "0s", "2.5 MB", "n1", "cpu-0", "bubblewrap"]


def test_containers_are_listed(platform: ScriptedPlatform) -> None:
    """Without containers stdout is empty and stderr has a sentence."""
    platform.will("GET", "/v1/containers", *[answer({"containers": [CONTAINER]})] * 2, answer({"containers": []}))
    assert cells(run("container", "list"))[1] == ROW
    assert msgspec.json.decode(run("container", "list", "--json")) == [CONTAINER]
    done = invoke("container", "list")
    assert (done.stdout, done.stderr) == ("", "No containers.\n")
    assert msgspec.json.decode(run("container", "list", "--json")) == []


def test_on_which_node_is_a_column_for_operators(platform: ScriptedPlatform) -> None:
    """To others the platform does not tell it."""
    own = {name: value for name, value in CONTAINER.items() if name != "node"}
    platform.will("GET", "/v1/containers", answer({"containers": [own]}), answer({"containers": [CONTAINER]}))
    assert "node" not in cells(run("container", "list"))[0]
    assert "node" in cells(run("container", "list"))[0]
    path = "/v1/containers/ctr_1/stop"
    platform.will("POST", path, answer({"id": "ctr_1", "node": "", "grace_s": 30.0}, status=202))
    assert run("container", "stop", "ctr_1") == "ctr_1 ends within 30 s.\n"


def test_a_cell_is_never_broken(platform: ScriptedPlatform) -> None:
    """Names stay whole on a narrow terminal, so that they can be copied."""
    platform.will("GET", "/v1/containers", answer({"containers": [CONTAINER]}))
    shown = ESCAPE.sub("", on_terminal("container", "list", columns=40))
    assert cells(shown)[1] == ["ctr_1", "search.embed", "ready", "1/4"]
    assert "Left out: calls, age, idle, memory, node, slice, sandbox" in shown


def test_a_container_is_ended(platform: ScriptedPlatform) -> None:
    """With the platform's grace unless another is given."""
    told = {"id": "ctr_1", "node": "n1", "grace_s": 30.0}
    path = "/v1/containers/ctr_1/stop"
    platform.will("POST", path, *[answer(told, status=202)] * 2, answer(told | {"grace_s": 0.0}, status=202))

    assert run("container", "stop", "ctr_1") == "ctr_1 on n1 ends within 30 s.\n"
    assert msgspec.json.decode(run("container", "stop", "ctr_1", "--json")) == told
    assert run("container", "stop", "ctr_1", "--grace", "0") == "ctr_1 on n1 is killed.\n"
    assert [asked.json for asked in platform.asked(path)] == [{"grace_s": None}, {"grace_s": None}, {"grace_s": 0.0}]


def test_a_container_that_is_not_there_is_said_to_be_found_in_the_list(platform: ScriptedPlatform) -> None:
    """The error names the command that lists them."""
    platform.will("POST", "/v1/containers/ctr_9/stop", problem("not_found", detail="There is no container ctr_9."))

    done = invoke("container", "stop", "ctr_9")

    assert done.exit_code != 0
    assert "pilotlight container list" in done.stderr
