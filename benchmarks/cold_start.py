"""From zero to the first answer: a plain function from a blank and without one, MiniLM from a blank, what is parked.

Then each tier of warmth for three functions (`benchmarks.warm_tiers`), and how fast weights come from the cache and
from S3 (`benchmarks.weights_loading`); both can be run alone.

MiniLM also as the very first call: after a start of the whole platform and one deploy. Blanks import what they import
by default. Each run waits until nothing of the function is left, then calls, and takes the caller's own stopwatch; the
breakdown is what the answer says of the start (`cold_start`, milliseconds a step).
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.warm_tiers import tiers_measured
from benchmarks.weights_loading import loading_measured
from pilotlight_core.host.config import AgentSettings
from tests.system.support.platform import Platform, platform
from tests.waiting import wait_until

APPS = {"bench": "benchmarks/functions/app.py", "embeddings": "examples/embeddings/app.py"}


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("cold_start", __doc__ or ""))
    runs = 3 if options.quick else 30
    first = [_first_call() for _ in range(max(1, runs // 3))]
    with started("--blanks", "1") as running:
        running.deploy("benchmarks/functions/app.py")
        running.deploy("examples/embeddings/app.py")
        running.output("embeddings.MiniLM", method="embed", text="warm the page cache")
        plain = _several(running, runs, "bench.cold", blank=True, text="hello")
        model = _several(running, runs, "embeddings.MiniLM", blank=True, method="embed", text="hello")
    with started("--blanks", "0") as running:
        running.deploy("benchmarks/functions/app.py")
        bare = _several(running, max(3, runs // 3), "bench.cold", blank=False, text="hello")
    parked = _parked(runs)
    rows = []
    named = (
        ("plain, blank", plain),
        ("plain, no blank", bare),
        ("MiniLM, blank", model),
        ("MiniLM, first call", first),
        ("parked", parked),
    )
    for name, measured in named:
        totals = [total for total, _ in measured]
        rows.append((name, len(totals), report.median(totals), report.percentile(totals, 95), _steps(measured)))
    report.table("zero to first answer", ("function", "runs", "p50 ms", "p95 ms", "steps (median ms)"), rows)
    report.finish(
        "cold_start",
        {
            "plain_blank_p50_ms": rows[0][2],
            "plain_no_blank_p50_ms": rows[1][2],
            "minilm_p50_ms": rows[2][2],
            "minilm_first_p50_ms": rows[3][2],
            "plain_blank_p95_ms": rows[0][3],
            "parked_p50_ms": rows[4][2],
            **tiers_measured(quick=options.quick),
            **loading_measured(quick=options.quick),
        },
    )


@contextmanager
def started(*options: str) -> Iterator[Platform]:
    """A platform whose blanks import what they do by default, which tests spare themselves."""
    env = {"PILOTLIGHT_PREIMPORT": AgentSettings().preimport}
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *options, env=env) as running:
        yield running


def _first_call() -> tuple[float, dict[str, float]]:
    """The first call of a platform that has just come up, right after the deploy of its function."""
    with started() as running:
        running.deploy(APPS["embeddings"])
        return _called(running, "embeddings.MiniLM", method="embed", text="hello")


def _several(
    running: Platform, runs: int, ref: str, *, blank: bool, method: str | None = None, **arguments: Any
) -> list[tuple[float, dict[str, float]]]:
    measured = []
    for _ in range(runs):
        _to_zero(running, blank=blank)
        measured.append(_called(running, ref, method=method, **arguments))
    return measured


def _parked(runs: int) -> list[tuple[float, dict[str, float]]]:
    """Calls of a container that is parked, each once it is again: from the request to the first byte of the answer."""
    env = {"PILOTLIGHT_WARM_MEMORY": "1024"}
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1", env=env) as running:
        running.deploy("benchmarks/functions/app.py")
        running.answer("bench.Parked", "echo", text="hello")
        measured = []
        for _ in range(runs):
            wait_until(lambda: not _is_parked(running), "its node tells that it serves", 60.0)
            wait_until(lambda: _is_parked(running), "the container is parked", 60.0)
            body = {"input": {"text": "hello"}, "method": "echo"}
            start = time.perf_counter()
            with running.http.stream("POST", "/v1/functions/bench.Parked/calls", json=body) as answer:
                parts = answer.iter_bytes()
                data = next(parts)
                total = (time.perf_counter() - start) * 1000.0
                data += b"".join(parts)
            answer.raise_for_status()
            steps = json.loads(data)["cold_start"] or {}
            if list(steps) != ["unpark"]:
                raise AssertionError(f"it was not parked: {steps}")
            measured.append((total, steps))
    return measured


def _is_parked(running: Platform) -> bool:
    return [(each["state"], each["slice"]) for each in running.containers("bench")] == [("parked", "")]


def _called(
    running: Platform, ref: str, *, method: str | None = None, **arguments: Any
) -> tuple[float, dict[str, float]]:
    start = time.perf_counter()
    answer = running.http.post(f"/v1/functions/{ref}/calls", json={"input": arguments, "method": method})
    total = (time.perf_counter() - start) * 1000.0
    answer.raise_for_status()
    return total, answer.json()["cold_start"] or {}


def _to_zero(running: Platform, *, blank: bool) -> None:
    """Stop the apps, wait until no container is left, deploy them again (nothing is uploaded twice), await a blank."""
    for app in APPS:
        running.http.post(f"/v1/apps/{app}/stop")
    wait_until(lambda: not running.containers(), "no containers are left", 60.0)
    for path in APPS.values():
        running.deploy(path)
    if blank:
        wait_until(lambda: running.blanks(), "a blank is ready", 60.0)


def _steps(measured: list[tuple[float, dict[str, float]]]) -> str:
    names = dict.fromkeys(name for _, steps in measured for name in steps)
    return ", ".join(f"{name} {report.median([steps.get(name, 0.0) for _, steps in measured]):.0f}" for name in names)


if __name__ == "__main__":
    main()
