"""Every command of the command line once, on a platform that answers it with what a real one would."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import typer

from pilotlight import App
from pilotlight.cli.main import COMMANDS, module_of
from pilotlight.packing.folder_signing import FolderSigner
from pilotlight_core.host.signing import Signer
from tests.sdk.cli.command_words import WORDS as WORDS
from tests.sdk.cli.identity_answers import CALLER, ISSUER
from tests.sdk.cli.rollout_answers import ROLLOUT_ROUTES
from tests.sdk.cli.seeing_answers import (
    DIAGNOSED,
    EVENTS,
    EXPLAINED_CALL,
    JOB,
    KEPT_CALLS,
    NOW,
    STATS,
    STATS_LIST,
)  # fmt: skip
from tests.sdk.cli.supply_commands import SUPPLY_ANSWERS
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, chunk, result, stream

CODE = """
from pilotlight import App
app = App("hello")
@app.gpu_function
def greet(name: str = "world") -> str: return name
"""
DEMAND = "function,rps,slo_ms,gpu,batch,latency_ms\nclassify,1000,,A100-80GB,32,75\n"
CONTAINER = "ctr_paraphrase_multilingual_1z_4k"


def embed(text: str) -> str:
    return text


SPEC = msgspec.json.decode(msgspec.json.encode(App("search").gpu_function(gpu=["H100", "A100-80GB"])(embed).spec))
APP = {
    "app": "paraphrase-search", "revision": 3, "deployed_at": NOW - 7_200, "stopped": False,
    "functions": [
        {"name": "paraphrase_multilingual", "version": "paraphrase-search.paraphrase_multilingual@v17",
         "version_id": "ver_1", "containers": 2, "spec": SPEC}
    ],
}  # fmt: skip
DEPLOY = {
    "revision": 2, "at": NOW - 10_800, "by": "8c1f0eXYabcd", "functions": {"paraphrase_multilingual": "ver_1"},
    "message": "a larger model, since the small one mistook questions for answers",
}  # fmt: skip
RUNNING = {
    "id": CONTAINER, "app": "paraphrase-search", "function": "paraphrase_multilingual", "state": "ready", "calls": 5123,
    "running": 1, "slots": 4, "age_s": 6500.0, "idle_s": 0.0, "memory_bytes": 2_500_000_000, "node": "gpu-node-17",
    "slice": "GPU-8f2e9d1c-aa11-4c51-9c0f-3f1b7a1d2e4f:3g@4", "sandbox": "bubblewrap",
}  # fmt: skip
STORED = {
    "id": JOB, "version": "paraphrase-search.paraphrase_multilingual@v17", "state": "failed", "attempts": 3,
    "reason": "raised", "created_at": NOW - 60, "started_at": NOW - 50, "ended_at": NOW - 40,
    "error": {"code": "function_raised", "detail": "ValueError: no", "traceback": "Traceback …"},
}  # fmt: skip
COUNTS = {"succeeded": 2, "failed": 0, "cancelled": 0, "expired": 0}
BATCH = {
    "id": "batch_local_imh71kb2qszd0b60ua3n", "state": "completed", "method": None, "label": "the night of the 3rd",
    "function": "paraphrase-search.paraphrase_multilingual@v17", "total": 2, "submitted": 2, "counts": COUNTS,
    "created_at": NOW - 300, "expires_at": 4e9, "ended_at": NOW, "reason": None,
}  # fmt: skip
HOOK = {
    "id": "wh_imh71kb2qszd0b60", "url": "https://hooks.example.com/pilotlight/jobs", "label": "operations",
    "events": ["job.succeeded", "job.failed", "job.cancelled", "job.expired"], "created_at": NOW, "disabled": False,
    "disabled_because": "", "failing_since": NOW - 7_300, "secret": "whsec_x",
}  # fmt: skip
DELIVERY = {
    "id": "msg_imh71kb2qszd0b60ua3n", "event": "job.succeeded", "about": JOB, "state": "failed", "created_at": NOW,
    "next_at": None, "attempts": [{"at": NOW, "ms": 12.0, "status": 0, "error": "connection refused"}],
}  # fmt: skip
SECRET = {
    "name": "hugging-face-token", "number": 12, "created_at": NOW - 7_300, "changed_at": NOW - 60,
    "changed_by": "k1f9a2bc", "functions": ["embeddings.Embedder", "hello.greet"],
}  # fmt: skip
WEIGHTS: dict[str, Any] = {
    "name": "m",
    "revisions": [{
        "digest": "a" * 64, "files": 1, "size": 12_000_000_000, "pushed_at": NOW - 7_300, "pushed_by": "k1f9a2bc",
        "pickles": ["model.bin"], "functions": ["embeddings.Embedder", "hello.greet"],
    }],
}  # fmt: skip
FLEET = {
    "devices": [
        {"node": "n1", "region": "local", "zone": "a", "id": "GPU-1", "type": "T4", "mig": False, "spot": False,
         "draining": False, "withdrawn": "", "software": False, "width": 64,
         "segments": [{"use": "free", "width": 64, "label": "", "tenant": "", "container": ""}]}
    ],
    "totals": {"T4": {"devices": 1.0, "used": 0.0, "free": 1.0, "stranded": 0.0, "out": 0.0}},
}  # fmt: skip
POINT = {"batch": 32, "throughput": 1250.0, "p50_ms": 8.0, "p95_ms": 8.9, "samples": 300, "at": 1.0}
CURVES = {
    "version": "shop.f@v3", "version_id": "ver_3", "methods": [{"method": "", "most": 1, "batches": False}],
    "curves": [{"gpu": "RTX-PRO-6000-BLACKWELL", "slice": "2g.48gb+gfx", "source": "measured", "points": [POINT],
                "software": True}],
    "slices": [{"gpu": "CPU", "slice": "slot", "what": "a CPU slot"}],
}  # fmt: skip
RECEIPT = {
    "id": "call_b", "lines": [], "cost": "0", "gpu_seconds": 0.0, "vram_gib_seconds": 0.0, "parent": "call_a"
}  # fmt: skip
PRICE = {
    "price": "h100", "of": "device", "usd_per_hour": "3.9492", "source": "standard",
    "past": [{"from": None, "usd_per_hour": "3.9492"}],
    "to_come": [{"from": "2027-01-01T00:00:00Z", "usd_per_hour": "3"}],
}  # fmt: skip
BOUND = {"value": 2, "because": "by 'pilotlight scale' with the key 8c1f0eXYabcd", "deployed": 0, "ends_at": NOW}
BOUNDS = {
    "function": "hello.greet", "version": "hello.greet@v17", "at": NOW, "changes_at": None, "min_containers": BOUND,
    "max_containers": BOUND, "buffer_containers": BOUND, "scaledown_window": BOUND, "zero_window": BOUND,
    "forecast": BOUND,
    "warm": [{"when": "Mon-Fri 08:00-18:00", "tz": "Europe/Berlin", "containers": 2, "open": True, "changes_at": NOW}],
}  # fmt: skip
USAGE = {
    "lines": [
        {"day": "2026-11-20", "app": "paraphrase-search", "function": "paraphrase_multilingual", "state": "busy",
         "version": "paraphrase-search.paraphrase_multilingual@v17", "price": "H100-80GB", "ppm": 500_000,
         "calls": 20_017, "ns": 5, "gpu_seconds": 12_345.678, "cost": "0.010000000001", "currency": "USD"}
    ],
    "total": {"calls": 2, "ns": 5, "gpu_seconds": 1.23456, "cost": "0.01", "currency": "USD"},
}  # fmt: skip
FORECAST = {
    "month": "2026-11", "so_far": "105.609233515653", "expected": "124.624473780450", "low": "122.589209336574",
    "high": "126.659738224326", "error": 0.107, "method": "same weekdays", "days": 24, "currency": "USD",
}  # fmt: skip
FLEET_COSTS = {
    "tenants": [{"tenant": "acme", "cost": "54.851397569080", "idle_cost": "12.979906451543", "calls": 1_871,
                 "gpu_seconds": 138_854.17655}],
    "operator": [{"cause": "fragmentation", "cost": "677.005037280000", "gpu_seconds": 596_570.832}],
    "devices": [{"node": "node-eu-1", "device": "h100-embed", "gpu": "H100", "hours": 197.4736, "sold": 0.1599,
                 "revenue": "79.570367319348", "list_value": "718.647644773662", "cost": "375.199881739577"}],
    "currency": "USD",
}  # fmt: skip
INVOICE = {
    "number": "acme-2026-11", "tenant": "acme", "month": "2026-11", "state": "grace", "final_from": "2026-12-06",
    "lines": [{"function": "search.embed", "state": "busy", "price": "h100", "usd_per_hour": "3.9492",
               "hours": "4.678814744714", "calls": 1_094, "cost": "18.477575189824", "discount": "0"}],
    "of_before": [{"day": "2026-10-31", "why": "platform_fault", "cost": "-0.120404477400"}],
    "total": "54.851397569080", "amount": "54.85", "calls": 1_871, "discount": "0", "currency": "USD",
}  # fmt: skip
INVOICES = {
    "invoices": [{"number": "acme-2026-11", "month": "2026-11", "state": "grace", "amount": "54.85"}],
    "currency": "USD",
}  # fmt: skip
BUDGET = {
    "id": "month", "usd": "250", "period": "month", "tz": "UTC", "function": None, "key": None, "mode": "hard",
    "thresholds": [50, 80], "by_operator": True, "begins": "2026-11-01T00:00:00Z",
    "resets_at": "2026-12-01T00:00:00Z", "spent_usd": "130.123456789", "left_usd": "119.876543211",
    "is_exhausted": False, "reached": [50], "prepaid": False,
}  # fmt: skip
CREDITS = {
    "balance_usd": "8", "owed_usd": "0", "currency": "USD",
    "grants": [{"id": "grant_1", "usd": "10", "left_usd": "8", "begins": "2026-11-26", "ends": None, "priority": 0,
                "note": "to begin with"}],
    "history": [{"day": "2026-11-26", "change": "granted", "grant": "grant_1", "usd": "10", "balance_usd": "10"}],
}  # fmt: skip
ERASURE = {
    "tenant": "acme", "state": "planned", "blob_bytes": 4_120_331_002, "containers": 2, "confirmation": "6bq0tyh2k1",
    "found": {"API keys": 3, "apps": 12, "blobs": 1_041, "pieces of logs": 20_112}, "why": "",
    "keeps": ["its lines in the ledger", "the audit log"],
}  # fmt: skip
TENANT = {"name": "a-tenant-with-a-long-name", "tier": "enterprise", "weight": 2.0, "created_at": NOW, "disabled": True}
KEY = {
    "id": "8c1f0eXYabcd", "label": "the continuous integration of search", "scopes": ["deploy", "invoke", "read"],
    "created_at": NOW, "expires_at": 4e9, "revoked": False, "key": "pl_live_x", "replaced_until": NOW,
}  # fmt: skip
LIMITS = {
    "tenant": "acme", "tier": "free", "limits": {"concurrency": 3}, "function": "zoo:llm.chat",
    "functions": {"a-tenant-with-a-long-name:paraphrase-search.paraphrase_multilingual": {"requests_per_s": 2.5}},
    "effective": {"requests_per_s": 10.0, "concurrency": 3},
}  # fmt: skip
TIER = {
    "name": "trial", "rank": -1, "weight": 0.5, "priority_ceiling": "batch", "reserved_share": 0.0, "source": "set",
    "limits": {"requests_per_s": 2.0, "burst": 10.0, "concurrency": 3, "queue_calls": 10, "queue_seconds": 30.0},
}  # fmt: skip
CHANGES = {
    "entries": [
        {"id": "req_1", "at": NOW, "tenant": "acme", "by": "default", "key": "8c1f0eXYabcd", "address": "10.0.0.7",
         "operation": "setLimits", "target": {"tenant": "acme"}, "told": {"concurrency": 3}, "status": 200, "code": ""},
        {"id": "req_2", "at": NOW, "tenant": "acme", "by": "acme", "key": "8c1f0eXYabcd", "address": "10.0.0.7",
         "operation": "revokeKey", "target": {"id": "8c1f0eXYabcd"}, "told": {}, "status": 409, "code": "conflict"},
    ],
    "more": True,
}  # fmt: skip
EXPLAINED = {"lines": ["ctr_1 runs on n1."], "decisions": [], "version": "a.f@v1", "plans": [], "fits": True}
LINE = {"at": 1_000.0, "stream": "stderr", "text": "a line", "function": "greet", "call": JOB}
CALLED = "/v1/functions/hello.greet/calls"
NODE: dict[str, Any] = {
    "node": "n1", "status": "up", "state": "open", "joined": True, "region": "eu", "zone": "eu-1", "pool": "h100",
    "purchase": "spot", "expires_at": NOW, "containers": 3, "clock_s": -2.5, "bases": ["default"],
    "guarantees": {
        "sandbox": "bubblewrap", "isolated": True, "host": {"cores": 32.0, "memory": 2**38}, "features": ["shm"],
        "devices": [{"id": f"GPU-{n}", "type": "H100", "mig": "on", "shares": False} for n in (1, 2)],
    },
}  # fmt: skip
POOL: dict[str, Any] = {
    "pool": "l4-spot", "state": "open", "usd_per_hour": 0.8,
    "terms": {
        "provider": "ec2", "types": [{"name": "g6.xlarge", "gpus": "1xL4"}], "zones": ["eu-1"], "purchase": "spot",
        "most_nodes": 10,
    },
    "machines": [
        {"node": "l4-spot-8f2e9d1c", "launch": "x", "type": "g6.xlarge", "zone": "eu-1", "state": "draining",
         "since": NOW, "usd_per_hour": 0.8, "reason": "EC2 takes the spot machine back"},
    ],
}  # fmt: skip
ROUTES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/sessions"): {
        "tenant": "acme",
        "key": "k",
        "scopes": ["read"],
        "expires_at": NOW + 900,
        "code": f"pl_login_{43 * 'x'}",
        "url": f"https://dashboard.example.com/ui/login?code=pl_login_{43 * 'x'}",
    },
    ("GET", "/v1/apps"): {"apps": [APP]},
    ("GET", "/v1/apps/hello/history"): {"app": "hello", "history": [DEPLOY]},
    ("POST", "/v1/apps/hello/stop"): {"app": "hello", "revision": 2, "stopped": True},
    **ROLLOUT_ROUTES,
    ("DELETE", "/v1/apps/hello"): {"app": "hello", "revision": 2, "deleted": True},
    ("POST", "/v1/apps/hello/deploys"): {"app": "hello", "revision": 3, "functions": []},
    ("POST", "/v1/apps/hello-run-abc123/deploys"): {"app": "hello-run-abc123", "revision": 1, "functions": []},
    ("DELETE", "/v1/apps/hello-run-abc123"): {"app": "hello-run-abc123", "revision": 1, "deleted": True},
    ("GET", "/v1/apps/hello/shares"): {"shares": [{"grantee": "*", "functions": ["paraphrase_multilingual"] * 4}]},
    ("PUT", "/v1/apps/hello/shares/acme"): {"tenant": "acme", "functions": []},
    ("DELETE", "/v1/apps/hello/shares/acme"): None,
    ("GET", "/v1/shared"): {"shared": [{"ref": "zoo:llm.chat", "owner": "zoo"}]},
    ("GET", "/v1/containers"): {"containers": [RUNNING]},
    ("POST", "/v1/containers/ctr_1/stop"): {"id": "ctr_1", "node": "n1", "grace_s": 30.0},
    ("GET", "/v1/nodes"): {"nodes": [NODE]},
    ("GET", "/v1/nodes/n1"): NODE,
    ("POST", "/v1/nodes/tokens"): {"id": "t", "token": f"pl_join_{8 * 't'}_{40 * 'x'}", "expires_at": NOW},
    **{("POST", f"/v1/nodes/n1/{verb}"): NODE for verb in ("cordon", "uncordon", "drain", "revoke")},
    ("GET", "/v1/pools"): {"pools": [POOL]},
    ("PUT", "/v1/pools/l4-spot"): POOL,
    ("POST", "/v1/pools/l4-spot/drain"): POOL | {"state": "draining"},
    ("DELETE", "/v1/pools/l4-spot"): None,
    ("GET", "/v1/usage/quarantine"): {
        "items": [{"at": NOW, "node": "n1", "reason": "wall", "text": "{}"}],
        "counts": [{"node": "n1", "reason": "wall", "events": 3}],
    },
    ("GET", "/v1/fleet"): FLEET,
    ("GET", "/v1/jobs"): {"jobs": [STORED], "next": None},
    ("GET", f"/v1/calls/{JOB}"): STORED,
    ("GET", "/v1/calls"): KEPT_CALLS,
    ("GET", "/v1/events"): EVENTS,
    ("GET", f"/v1/calls/{JOB}/explanation"): EXPLAINED_CALL,
    ("DELETE", f"/v1/calls/{JOB}"): {"id": JOB, "cancelled": True},
    ("POST", f"/v1/jobs/{JOB}/redrive"): STORED,
    ("POST", "/v1/batches"): BATCH,
    ("GET", "/v1/batches"): {"batches": [BATCH]},
    ("GET", "/v1/batches/b"): BATCH,
    ("POST", "/v1/batches/b/cancel"): BATCH,
    ("POST", "/v1/batches/b/resume"): BATCH,
    ("GET", "/v1/webhooks"): {"webhooks": [HOOK]},
    ("POST", "/v1/webhooks"): HOOK,
    ("PATCH", "/v1/webhooks/w"): HOOK,
    ("DELETE", "/v1/webhooks/w"): None,
    ("GET", "/v1/secrets"): {"secrets": [SECRET]},
    ("PUT", "/v1/secrets/s"): SECRET,
    ("DELETE", "/v1/secrets/s"): None,
    ("GET", "/v1/weights"): {"weights": [WEIGHTS]},
    ("GET", "/v1/models"): {
        "data": [
            {"id": "acme/tiny", "object": "model", "created": 0, "owned_by": "acme", "function": "shop.tells"},
        ]
    },
    ("PUT", "/v1/weights/m"): {"name": "m", "digest": "a" * 64, "size": 12, "missing": [], "unchanged": False},
    ("GET", "/v1/weights/m"): {
        "name": "m",
        "revision": WEIGHTS["revisions"][0],
        "contents": [{"path": "m.json", "size": 12, "parts": 1}],
    },
    ("DELETE", "/v1/weights/m"): {"name": "m", "digests": ["a" * 64]},
    ("POST", "/v1/webhooks/w/rotate"): HOOK,
    ("POST", "/v1/webhooks/w/ping"): DELIVERY,
    ("GET", "/v1/webhooks/w/deliveries"): {"deliveries": [DELIVERY]},
    ("POST", "/v1/webhooks/w/deliveries/m/resend"): DELIVERY,
    ("GET", "/v1/placement/explain"): EXPLAINED,
    ("GET", "/v1/functions/hello.greet/explanation"): EXPLAINED,
    ("GET", "/v1/functions/hello.greet/diagnosis"): DIAGNOSED,
    ("GET", "/v1/functions/hello.greet/placement"): EXPLAINED,
    ("GET", "/v1/functions/hello.greet/curves"): CURVES,
    ("GET", "/v1/functions/hello.greet/autoscaler"): BOUNDS,
    ("GET", "/v1/functions/hello.greet/stats"): STATS,
    ("GET", "/v1/stats"): STATS_LIST,
    ("GET", "/v1/usage"): USAGE,
    ("GET", "/v1/usage/forecast"): FORECAST,
    ("GET", "/v1/usage/fleet"): FLEET_COSTS,
    ("GET", "/v1/billing/invoices"): INVOICES,
    ("GET", "/v1/billing/invoices/2026-11"): INVOICE,
    ("GET", "/v1/tenants/acme/budgets"): {"budgets": [BUDGET], "currency": "USD"},
    ("PUT", "/v1/tenants/acme/budgets"): BUDGET,
    ("DELETE", "/v1/tenants/acme/budgets/month"): {},
    ("GET", "/v1/tenants/acme/credits"): CREDITS,
    ("POST", "/v1/tenants/acme/credits"): CREDITS,
    ("DELETE", "/v1/tenants/acme/credits/grant_1"): CREDITS,
    ("GET", "/v1/calls/call_b/receipt"): RECEIPT,
    ("GET", "/v1/prices"): {"prices": [PRICE], "currency": "USD"},
    ("PUT", "/v1/prices/h100"): PRICE,
    ("DELETE", "/v1/prices/h100/changes"): PRICE,
    ("GET", "/v1/tenants"): {"tenants": [TENANT]},
    ("POST", "/v1/tenants"): TENANT,
    ("GET", "/v1/tenants/acme"): TENANT,
    ("PATCH", "/v1/tenants/acme"): TENANT,
    ("POST", "/v1/tenants/acme/erasure"): ERASURE,
    ("GET", "/v1/tenants/acme/limits"): LIMITS,
    ("PUT", "/v1/tenants/acme/limits"): LIMITS,
    ("DELETE", "/v1/tenants/acme/limits"): None,
    ("GET", "/v1/tiers"): {"tiers": [TIER]},
    ("PUT", "/v1/tiers/trial"): TIER,
    ("DELETE", "/v1/tiers/trial"): None,
    ("GET", "/v1/audit"): CHANGES,
    ("GET", "/v1/logins"): {"logins": []},
    ("GET", "/v1/whoami"): CALLER,
    ("GET", "/v1/issuers"): {"issuers": [ISSUER]},
    ("PUT", "/v1/issuers/corp"): ISSUER,
    ("DELETE", "/v1/issuers/corp"): None,
    **SUPPLY_ANSWERS,
    ("GET", "/v1/keys"): {"keys": [KEY]},
    ("POST", "/v1/keys"): KEY,
    ("POST", "/v1/keys/k/rotate"): KEY,
    ("DELETE", "/v1/keys/k"): {"id": "k", "revoked": True, "already": False},
}
HERE = (
    "up", "backup", "restore", "key show", "logout", "doctor", "node check", "node join",
    "ledger verify", "ca init", "ca issue", "plan", "simulate", "version", "trust new", "trust sign",
    "keyset new", "keyset vouch",
)  # fmt: skip
"""Commands that ask no platform."""
STREAMS = ("logs", "batch results")
"""Commands whose JSON is a line for each part."""
FAILS = ("up", "backup", "restore", "login", "doctor", "node check", "node join")
"""Commands whose words are wrong, since doing it would take a machine of its own."""


def commands() -> Iterator[str]:
    """Yield every command there is, as `noun verb`, or `noun noun verb`."""
    for name in COMMANDS:
        yield from _below(name, typer.main.get_command(import_module(module_of(name)).app))


def _below(name: str, command: Any) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield name
        return
    for verb, found in command.commands.items():
        yield from _below(f"{name} {verb}", found)


def script(platform: ScriptedPlatform) -> None:
    """Let the platform answer every command."""
    for (method, path), body in ROUTES.items():
        platform.will(method, path, Answer(status=204) if body is None else answer(body))
    for app in ("hello", "hello-run-abc123"):
        platform.will("GET", f"/v1/apps/{app}/logs", Answer(pieces=[msgspec.json.encode(LINE) + b"\n"] * 2))
    platform.will("GET", "/v1/batches/b/results", Answer(pieces=[b'{"custom_id": "row-1"}\n'] * 2))
    for path in (CALLED, CALLED.replace("hello", "hello-run-abc123")):
        platform.will("POST", path, stream(chunk(1, "a"), result(None)))


def make_folder(place: Path) -> Path:
    """A folder with the files that the commands name."""
    place.mkdir()
    (place / "app.py").write_text(CODE)
    (place / "demand.csv").write_text(DEMAND)
    (place / "set.json").write_text('{"root": "", "key_set": "", "signature": ""}')
    (place / "release.pub").write_text(FolderSigner.create(place / "release.key").pem)
    Signer.load_or_create(place / "keys")
    (place / "inputs.jsonl").write_text('{"input": {"name": "Ada"}}\n')
    (place / "value.txt").write_text("a value that nobody sees\n")
    (place / "model").mkdir()
    (place / "model" / "m.json").write_text("{}")
    return place
