"""What bounds a function is named on a platform of real processes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.system.support.platform import Platform
from tests.waiting import wait_until

APP = """
from pilotlight import App

app = App("bound")


@app.gpu_function
def greet(name: str) -> str:
    return name
"""
CALLS = 90


def test_a_limit_that_refuses_calls_is_named_with_what_to_do(platform: Platform, tmp_path: Path) -> None:
    """And so it is by the command line, with the command that raises it."""
    (tmp_path / "app.py").write_text(APP)
    platform.deploy(tmp_path / "app.py")
    platform.output("bound.greet", name="Ada")
    platform.cli("quota", "set", "default", "requests_per_s=1", f"burst={CALLS // 2}", "--function", "bound.greet")
    try:
        wait_until(
            lambda: "requests_per_s" in platform.http.get("/v1/tenants/default/limits").text, "the limit is known"
        )
        statuses = Counter(platform.call("bound.greet", name="Ada").status_code for _ in range(CALLS))

        def told() -> dict[str, Any] | None:
            found: dict[str, Any] = platform.http.get("/v1/functions/bound.greet/diagnosis").json()
            return found if found["calls"] >= statuses[200] else None

        found = wait_until(told, "all calls are counted")
        assert statuses[429] > 10
        assert found["name"] == "quota", found
        assert found["cures"][0]["command"].startswith("pilotlight quota set default requests_per_s=")
        assert {promise["metric"] for promise in found["promises"]} == {"limited_part", "rate"}
        assert "Quota-bound: " in platform.cli("diagnose", "bound.greet").stdout
    finally:
        platform.cli("quota", "clear", "default", "--function", "bound.greet")
        platform.http.delete("/v1/apps/bound")
