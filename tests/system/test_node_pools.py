"""A local pool of nodes: what has no place gets a node, which goes when it is empty; its limit is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

SOURCE = """\
import time

import pilotlight

app = pilotlight.App("pooled")


@app.gpu_function(gpu="T4", memory="128MiB", scaledown_window=1)
def first(seconds: float = 0.0) -> str:
    time.sleep(seconds)
    return "first"


@app.gpu_function(gpu="T4", memory="128MiB", scaledown_window=1)
def second() -> str:
    return "second"

"""


ELSEWHERE = SOURCE.replace("T4", "L4").replace("pooled", "elsewhere")


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One with a node without GPUs, whose pools may start two agents."""
    folder = tmp_path_factory.mktemp("pooled")
    with run_platform(folder, "--cpu-slots", "1", "--blanks", "0", "--pool-agents", "2") as running:
        yield running


def machines(platform: Platform) -> list[dict[str, Any]]:
    """Of its pools."""
    pools = json.loads(platform.cli("pool", "list", "--json").stdout)
    return [machine for pool in pools for machine in pool["machines"]]


def test_what_has_no_place_gets_a_node_which_goes_when_it_is_empty(pooled: Platform, tmp_path: Path) -> None:
    """A deploy takes what a pool could hold, and nothing else; a call waits for the node, and is answered there.

    A second one hears of the limit, and has its turn. A controller that is killed meanwhile finds the node again.
    """
    here, elsewhere = tmp_path / "pooled.py", tmp_path / "elsewhere.py"
    here.write_text(SOURCE)
    elsewhere.write_text(ELSEWHERE)
    pooled.cli("pool", "set", "spare", "--gpus", "1xT4", "--most-nodes", "1", "--consolidate-after", "2s")
    assert "first can never run here" in pooled.refusal(elsewhere)
    pooled.deploy(here)

    with ThreadPoolExecutor(2) as callers:
        busy = callers.submit(pooled.output, "pooled.first", seconds=8.0)
        wait_until(lambda: [each["state"] for each in machines(pooled)] == ["up"], "the node is up")
        pooled.kill("controller")
        waiting = callers.submit(pooled.output, "pooled.second")
        told = wait_until(lambda: explained(pooled, "limit of 1 node"), "the limit is told")
        assert "the pool spare is at its limit of 1 node" in told
        assert [busy.result(60.0), waiting.result(60.0)] == ["first", "second"]

    nodes = {node["node"]: node for node in pooled.http.get("/v1/nodes").json()["nodes"]}
    assert nodes["local-pool-1"]["pool"] == "spare"
    wait_until(lambda: not machines(pooled), "the empty node goes")
    assert "local-pool-1" not in pooled.pids
    pooled.cli("pool", "drain", "spare")
    pooled.cli("pool", "rm", "spare")
    assert json.loads(pooled.cli("pool", "list", "--json").stdout) == []


def explained(platform: Platform, words: str) -> str:
    """What is said of the function that waits, once it has these words."""
    told = platform.cli("placement", "explain", "pooled.second", check=False).stdout
    return told if words in told else ""
