"""What a page of the dashboard costs: `python -m benchmarks.seeing --only page`.

The page of the fleet with 2,000 containers on 294 devices, whose JSON is at hand: reading it, drawing 250 devices, and
the HTML of them. Then a second's changes, of which 200 containers have another state.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from typing import Any

import msgspec

from pilotlight_gateway.dashboard.asset_files import AssetFiles
from pilotlight_gateway.dashboard.dashboard_app import DashboardApp
from pilotlight_gateway.dashboard.page_drawings import PageDrawings
from pilotlight_gateway.dashboard.page_parts.gateway_client import AnswerCache, ApiAnswer
from pilotlight_gateway.dashboard.page_parts.live_changes import changes_between
from pilotlight_gateway.dashboard.pages.fleet_page import fleet_blocks

CONTAINERS, CHANGES, ROUNDS = 2_000, 200, 15
SESSION = f"pl_session_{43 * 'x'}"
STATES = ("ready", "loading", "warming", "draining")


def fleet(containers: int = CONTAINERS, seed: int = 7) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the routes of the fleet and of containers answer."""
    rng = random.Random(seed)
    devices: list[dict[str, Any]] = []
    listed: list[dict[str, Any]] = []
    while len(listed) < containers:
        segments, left = [], 8
        while left and len(listed) < containers:
            width = min(left, rng.choice((1, 1, 1, 1, 2)))
            name, tenant = f"ctr_embed_{len(listed)}_4k", f"tenant-{rng.randrange(8)}"
            segments.append({"use": "used", "width": width, "label": "1g.10gb", "tenant": tenant, "container": name})
            listed.append({
                "id": name, "tenant": tenant, "app": "search", "function": "embed", "state": rng.choice(STATES),
                "node": "n", "slice": f"GPU-{len(devices)}:{left}", "running": 1, "slots": 4, "age_s": 5.0,
                "idle_s": 0.0, "calls": 9, "reason": "", "timeline": {"load": 812.5, "warm": 90.25}, "memory_bytes": 5,
                "version": "ver_0123456789abcdef", "sandbox": "bubblewrap", "engine": None, "breaker": "closed",
                "failures": 0, "version_breaker": "closed", "tenant_breakers": 0,
            })  # fmt: skip
            left -= width
        if left:
            segments.append({"use": "free", "width": left, "label": "", "tenant": "", "container": ""})
        devices.append({
            "node": f"node-{len(devices) // 8}", "region": "local", "zone": "a", "id": f"GPU-{len(devices):08d}",
            "type": "H100-80GB", "mig": True, "spot": False, "draining": False, "width": 8, "segments": segments,
            "withdrawn": "", "software": False,
        })  # fmt: skip
    parts = {"devices": float(len(devices)), "used": float(len(devices)), "free": 0.0, "stranded": 0.0, "out": 0.0}
    return {"devices": devices, "totals": {"H100-80GB": parts}, "hosts": []}, {"containers": listed}


class CannedApi:
    """Answers with what is at hand."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        self._answers = answers

    async def ask(self, method: str, path: str, token: str = "", body: Any = None) -> ApiAnswer:  # noqa: ARG002
        return ApiAnswer(status=200, body=self._answers[path.partition("?")[0]])


async def visit(app: DashboardApp) -> tuple[float, bytes]:
    """How many milliseconds the fleet's page takes, and its HTML."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http", "method": "GET", "path": "/ui/fleet", "raw_path": b"/ui/fleet", "query_string": b"",
        "headers": [(b"cookie", f"__Host-pilotlight={SESSION}".encode()), (b"accept-encoding", b"gzip")],
    }  # fmt: skip
    began = time.process_time()
    await app(scope, receive, send)
    return (time.process_time() - began) * 1e3, sent[1]["body"]


def page_cost(*, quick: bool = False) -> dict[str, float]:
    """Milliseconds of a thread for a page without anything that is kept, and for a second's changes; kilobytes."""
    rounds = 3 if quick else ROUNDS
    page, size = asyncio.run(_pages(rounds))
    changes, told = _changes(rounds)
    return {"page_ms": page, "page_kb": size / 1e3, "page_changes_ms": changes, "page_changes_kb": told / 1e3}


async def _pages(rounds: int) -> tuple[float, int]:
    """The median of some visits, and the bytes of a page, packed, with its style and modules."""
    told, containers = fleet()
    session = {"tenant": "acme", "key": "k", "scopes": ["operator"], "expires_at": 0.0}
    answers = {"/v1/fleet": told, "/v1/containers": containers, "/v1/sessions/current": session}
    api = CannedApi({path: msgspec.json.encode(answer) for path, answer in answers.items()})
    took, body, assets = [], b"", AssetFiles()
    for _ in range(rounds):
        one, body = await visit(DashboardApp(api, PageDrawings(AnswerCache(api)), assets))
        took.append(one)
    files = [file for name in ("look.css", "live.js", "stream.js") if (file := assets.find(name)) is not None]
    return statistics.median(took), len(body) + sum(len(file.packed or file.plain) for file in files)


def _changes(rounds: int) -> tuple[float, int]:
    """The median of drawing anew, and the bytes of what has changed."""
    told, containers = fleet()
    rng, took, size = random.Random(1), [], 0
    before = fleet_blocks(told, containers, {})
    for _ in range(rounds):
        for one in rng.sample(containers["containers"], CHANGES):
            one["state"] = rng.choice(STATES)
        began = time.process_time()
        after = fleet_blocks(told, containers, {})
        changes = msgspec.json.encode(changes_between(before, after))
        took.append((time.process_time() - began) * 1e3)
        before, size = after, len(changes)
    return statistics.median(took), size
