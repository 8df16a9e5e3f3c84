"""Functions: how a tenant's own do."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.dashboard.pages.functions_page import functions_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, container, queue, queues, table_of

USAGE: dict[str, Any] = {"lines": [], "total": {"currency": "USD"}}


def apps(*names: str, stopped: bool = False) -> dict[str, Any]:
    functions = [{"name": name, "version": f"shop.{name}@v7", "containers": 0} for name in names]
    return {"apps": [{"app": "shop", "revision": 2, "deployed_at": 60.0, "stopped": stopped, "functions": functions}]}


def test_a_function_is_told_with_its_containers_its_queue_and_its_cost() -> None:
    """Of all states of use together; another tenant's function of the same name is another one."""
    lines = [
        {"app": "shop", "function": "hello", "calls": 3, "cost": cost, "state": state}
        for cost, state in (("1.25", "busy"), ("0.75", "idle"))
    ]
    stats = {"functions": [{"function": "shop.hello", "per_s": 2.0, "calls": 1200, "p50_ms": 5.0,
                            "p95_ms": 50.0, "failed": 2, "cold_calls": 1}]}  # fmt: skip
    blocks = functions_blocks(
        apps("hello", "idle"), {"containers": [container(), container(state="loading")]},
        queues(queue("full", queued=4), queue("crash_loop", tenant="rival", function="rival:shop.idle")),
        {"lines": lines, "total": {"currency": "USD"}}, stats, "acme",
    )  # fmt: skip
    hello, idle = table_of(blocks, "functions")
    assert hello == (
        "shop.hello", "v7", "2", "5.0 ms", "50 ms", "2", "1", "2", "1", "4", "all slots are taken", "6", "2.00 USD",
    )  # fmt: skip
    assert idle == ("shop.idle", "v7", "", "", "", "", "", "0", "0", "0", "no container", "0", "0.00 USD")
    assert answer_of(blocks)[0] == "2 functions in 1 app; nothing is wrong with them."


def test_what_is_wrong_with_one_is_the_answer() -> None:
    """A stopped app's functions have no trouble."""
    blocks = functions_blocks(apps("hello"), {"containers": []}, queues(queue("crash_loop")), USAGE, None, "acme")
    assert answer_of(blocks) == ("shop.hello: its containers cannot be loaded: see its logs.", "bad")
    stopped = functions_blocks(apps("hello", stopped=True), {"containers": []}, queues(), USAGE, None, "acme")
    assert table_of(stopped, "functions")[0][10] == "stopped"
    assert answer_of(functions_blocks({"apps": []}, {"containers": []}, queues(), USAGE, None, "acme"))[0] == (
        "Nothing is deployed."
    )
