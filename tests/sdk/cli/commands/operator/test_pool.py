"""Commands about pools: what they send, and what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pilotlight_core.model.api.pools.pool_terms import MachineType, PoolTerms
from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

TERMS = msgspec.json.decode(
    msgspec.json.encode(PoolTerms(types=(MachineType(name="local", gpus="1xT4"),), most_nodes=2))
)
MACHINE = {
    "node": "local-pool-1", "launch": "x", "type": "local", "zone": "a", "state": "up", "since": 1.0,
    "usd_per_hour": 0.5, "reason": "",
}  # fmt: skip
HERE: dict[str, Any] = {"pool": "here", "state": "open", "terms": TERMS, "machines": [MACHINE], "usd_per_hour": 0.5}


def sent(platform: ScriptedPlatform) -> PoolTerms:
    """What was set last."""
    return msgspec.json.decode(platform.asked("/v1/pools/here")[-1].body, type=PoolTerms)


def test_pools_are_a_table(platform: ScriptedPlatform) -> None:
    """With --wide their machines too."""
    platform.will("GET", "/v1/pools", answer({"pools": [HERE]}))
    assert cells(run("pool", "list")) == [
        ["pool", "provider", "types", "purchase", "nodes", "up", "USD per hour", "state"],
        ["here", "local", "local", "on-demand", "1 of 2", "1", "0.50", "open"],
    ]
    assert "local-pool-1" in run("pool", "list", "--wide")
    assert msgspec.json.decode(run("pool", "list", "--json")) == [HERE]


def test_a_new_pool_is_local(platform: ScriptedPlatform) -> None:
    """Of what is said, over what a pool has by itself."""
    platform.will("GET", "/v1/pools", answer({"pools": []}))
    platform.will("PUT", "/v1/pools/here", answer(HERE))
    run("pool", "set", "here", "--gpus", "2xT4", "--most-nodes", "3", "--consolidate-after", "30s")
    terms = sent(platform)
    assert (terms.provider, terms.most_nodes, terms.consolidate_after_s) == ("local", 3, 30.0)
    assert terms.types == (MachineType(name="local", gpus="2xT4"),)


def test_a_pool_is_changed_where_something_is_said(platform: ScriptedPlatform) -> None:
    """The rest stays."""
    platform.will("GET", "/v1/pools", answer({"pools": [HERE]}))
    platform.will("PUT", "/v1/pools/here", answer(HERE))
    run("pool", "set", "here", "--most-usd", "2.5", "--cores", "4", "--json")
    terms = sent(platform)
    assert (terms.most_nodes, terms.most_usd_per_hour) == (2, 2.5)
    assert terms.types == (MachineType(name="local", gpus="1xT4", cores=4.0),)


def test_a_file_says_all_of_a_pool(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """What is wrong in it is named, and nothing is sent."""
    platform.will("PUT", "/v1/pools/here", answer(HERE))
    good, bad, two = tmp_path / "good.toml", tmp_path / "bad.toml", tmp_path / "two.toml"
    good.write_text('most_nodes = 4\n[[types]]\nname = "local"\n[[budgets]]\nnodes = "0"\n')
    bad.write_text('[[types]]\nname = "local"\ncolour = "red"\n')
    two.write_text('[[types]]\nname = "a"\n[[types]]\nname = "b"\n')
    run("pool", "set", "here", "--file", str(good))
    assert (sent(platform).most_nodes, sent(platform).budgets[0].nodes) == (4, "0")

    for words, said in (
        (("--file", str(bad)), "colour"), (("--file", str(tmp_path / "none")), "cannot be read"),
        (("--file", str(two), "--gpus", "1xT4"), "one type"),
    ):  # fmt: skip
        done = invoke("pool", "set", "here", *words)
        assert done.exit_code != 0
        assert said in done.stderr
    assert len(platform.asked("/v1/pools/here")) == 1


def test_a_pool_is_drained_and_removed(platform: ScriptedPlatform) -> None:
    """In words, or as JSON."""
    platform.will("POST", "/v1/pools/here/drain", answer(HERE | {"state": "draining"}))
    platform.will("DELETE", "/v1/pools/here", Answer(status=204))
    assert "The pool here drains." in invoke("pool", "drain", "here").stderr
    assert "removed" in invoke("pool", "rm", "here").stderr
    assert msgspec.json.decode(run("pool", "rm", "here", "--json")) == {"pool": "here", "removed": True}
