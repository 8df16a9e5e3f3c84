"""A function is the sum of its versions."""

from __future__ import annotations

from pilotlight_autoscaler.policy.function_view import FunctionView
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from tests.autoscaler.builders import demand
from tests.builders.nodes import container
from tests.builders.specs import function_spec


def test_calls_of_all_versions_count_and_the_deployed_one_gives_the_window() -> None:
    """Each within its own ceiling."""
    old = VersionView(
        spec=function_spec(max_containers=2), deployed=False, demand=demand(queued=9, service_ms=9e3), containers=()
    )
    new = VersionView(
        spec=function_spec(scaledown_window=7.0), deployed=True, demand=None, containers=(container(),), pending=1
    )
    both = FunctionView(name="acme:shop.greet", versions={"ver_1": old, "ver_2": new})

    assert (both.current, both.needed, both.size, both.window_s) == ("ver_2", 2, 2, 7.0)
    assert FunctionView(name="acme:shop.greet", versions={"ver_1": old}).current == ""
