"""The alert rules speak of metrics that processes show, and a noisy neighbour is one that it shows and names."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from pilotlight_core.host.metrics.process_metrics import ProcessMetrics
from pilotlight_gateway.dashboard.dashboard_counts import DashboardCounts
from tests.system.support.platform import Platform, make_tenant
from tests.system.support.sample_apps import deployed
from tests.waiting import wait_until
from tools.monitoring import GRAFANA, PROMETHEUS
from tools.monitoring.expressions import expressions_of, missing, records_of, shown_by
from tools.monitoring.monitoring_files import RULES


def test_all_that_alerts_and_dashboards_ask_for_is_shown(platform: Platform) -> None:
    """By some process, with these labels: an alert on a metric that was renamed would never come, a panel be empty."""
    platform.http.get("/healthz")
    wait_until(lambda: all_answer(platform), "every process has started")
    rules = [PROMETHEUS / "alerts.yaml", PROMETHEUS / RULES]
    expressions = [
        each for path in (*rules, *sorted((GRAFANA / "dashboards").iterdir())) for each in expressions_of(path)
    ]
    recorded = records_of(PROMETHEUS / RULES)

    def lacking() -> list[str]:
        shown = shown_by([*platform.metrics_by_process().values(), dashboard_metrics()])
        return missing(expressions, shown, recorded)

    assert len(expressions) >= 90
    with contextlib.suppress(AssertionError):  # what lacks says more
        wait_until(lambda: not lacking(), "the duties have begun, and each is shown", 20.0)
    assert not lacking(), "\n".join(lacking())


def test_every_process_shows_its_metrics_and_how_late_its_loop_is(platform: Platform) -> None:
    """Gateways, duties, the controller and agents, each on a port of its own; one controller leads."""
    wait_until(lambda: all_answer(platform), "every process has started")
    wait_until(lambda: "pilotlight_controller_leads 1.0" in platform.metrics_by_process()["controller"], "it leads")
    shown = {name: names_in(exposed) for name, exposed in platform.metrics_by_process().items()}

    assert shown.keys() == platform.pids.keys() - {name for name in platform.pids if name.startswith("nats")}
    for name in shown:
        assert {"pilotlight_loop_lag_seconds_bucket", "pilotlight_bus_connected"} <= shown[name]
    assert "pilotlight_agent_slices" in shown["agent"]
    assert "pilotlight_duty_holds" in shown["duties"]


def dashboard_metrics() -> str:
    """What the dashboard's process shows, which this platform has not."""
    counts = DashboardCounts()
    return ProcessMetrics(lambda: counts.collect(lambda: 0, lambda: 0)).exposition().decode()


def all_answer(platform: Platform) -> bool:
    """Whether all show their metrics: the platform is up as soon as its gateways serve."""
    with contextlib.suppress(httpx.ConnectError):
        return bool(platform.metrics_by_process())
    return False


def all_shown(platform: Platform) -> set[str]:
    """The families and samples of all processes."""
    return {name for exposed in platform.metrics_by_process().values() for name in names_in(exposed)}


def names_in(exposed: str) -> set[str]:
    """The families and the samples of a scrape."""
    families = re.findall(r"^# HELP (\w+) ", exposed, re.MULTILINE)
    return {*families, *re.findall(r"^(\w+)[{ ]", exposed, re.MULTILINE)}


NOISY = """
import time

import pilotlight

app = pilotlight.App("street")


@app.gpu_function(max_containers=1, scaledown_window=60.0)
def sing(seconds: float) -> None:
    time.sleep(seconds)
"""


def test_a_noisy_neighbour_is_shown_and_named(platform: Platform, tmp_path: Path) -> None:
    """A tenant whose short calls wait for another's long ones: counted in the metric of the rule, named in the log."""
    source = tmp_path / "street" / "app.py"
    source.parent.mkdir()
    source.write_text(NOISY)
    with deployed(platform, source):
        quiet, loud = (make_tenant(platform, name) for name in ("quiet", "loud"))
        for name in ("quiet", "loud"):
            platform.cli("app", "share", "street", name)
        with singing(platform, loud, 0.15, 6), singing(platform, quiet, 0.001, 1):
            wait_until(lambda: slow_flows(platform) > 0, "the flow is counted", 60.0)
            wait_until(lambda: ("quiet", "loud") in named(platform), "the neighbour is named", 60.0)
            wait_until(lambda: "loud" in slowed_by(platform, platform.key), "operators are told by an event")
        assert slowed_by(platform, quiet) == {""}, "the tenant is told, and not by whom"
        assert "function.scaled" in {event["kind"] for event in events(platform, platform.key, "function")}


def slowed_by(platform: Platform, key: str) -> set[str]:
    """Who slows others down, by the events that the holder of a key is told."""
    return {event["facts"].get("neighbour", "") for event in events(platform, key, "flow.slowed")}


def events(platform: Platform, key: str, kind: str) -> list[dict[str, Any]]:
    """Those of a kind: all for an operator, else a tenant's own."""
    with platform.as_holder_of(key) as http:
        answer = http.get("/v1/events", params={"kind": kind, "all": str(key == platform.key).lower()})
    found: list[dict[str, Any]] = answer.raise_for_status().json()["events"]
    return found


def named(platform: Platform) -> set[tuple[str, str]]:
    """The tenants that are slowed down, each with its neighbour, as the gateway's log says."""
    log = (platform.state / "logs" / "gateway.log").read_text()
    lines = [json.loads(line) for line in log.splitlines() if "a flow is slowed down" in line and line.endswith("}")]
    return {(line["tenant"], line["neighbour"]) for line in lines}


@contextmanager
def singing(platform: Platform, key: str, seconds: float, callers: int) -> Iterator[None]:
    """So many callers make one call after the other until the block ends."""
    over = threading.Event()

    def sing() -> None:
        with platform.as_holder_of(key) as http:
            while not over.is_set():
                with contextlib.suppress(httpx.TransportError):
                    http.post("/v1/functions/default:street.sing/calls", json={"input": {"seconds": seconds}})

    threads = [threading.Thread(target=sing) for _ in range(callers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def slow_flows(platform: Platform) -> float:
    """What the rule sums up."""
    (exposed,) = platform.metrics()
    return sum(float(value) for value in re.findall(r"^pilotlight_slow_flows(?:{.*})? (\S+)$", exposed, re.MULTILINE))
