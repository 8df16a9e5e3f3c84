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
ALIAS: dict[str, Any] = {
    "function": "greet", "alias": "prod", "ref": "hello.greet@prod", "version": "hello.greet@v1",
    "version_id": f"ver_{32 * '0'}", "withdrawn": False,
}  # fmt: skip
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
    "tenant": "acme",
    "state": "planned",
    "found": {"API keys": 3, "apps": 12, "blobs": 1_041, "pieces of logs": 20_112},
    "blob_bytes": 4_120_331_002,
    "containers": 2,
    "confirmation": "6bq0tyh2k1",
    "why": "",
    "keeps": ["its lines in the ledger", "the audit log"],
}
TENANT = {"name": "a-tenant-with-a-long-name", "tier": "enterprise", "weight": 2.0, "created_at": NOW, "disabled": True}
KEY = {
    "id": "8c1f0eXYabcd", "label": "the continuous integration of search", "scopes": ["deploy", "invoke", "read"],
    "created_at": NOW, "expires_at": 4e9, "revoked": False, "key": "pl_live_x", "replaced_until": NOW,
}  # fmt: skip
ISSUER = {
    "name": "corp", "url": "https://login.example.com", "audience": "https://gpu.example.com/api", "client_id": "cli",
    "jwks_url": "https://login.example.com/keys", "tenant": "", "tenants": {"acme-corp": "acme"},
    "groups": {"engineers": ["invoke", "deploy"], "*": ["read"]}, "keys": 2, "keys_age_s": 61.0,
    "problem": "https://login.example.com/keys has answered 502",
}  # fmt: skip
CALLER = {
    "tenant": "acme", "key": "oidc-corp-0123456789abcdef", "scopes": ["invoke", "deploy"], "issuer": "corp",
    "subject": "ada@example.com", "expires_at": NOW + 300,
}  # fmt: skip
TRUSTED = {
    "name": "release", "id": "875ab38dfa0d77c1", "pem": "-----BEGIN PUBLIC KEY-----", "added_at": NOW, "added_by": "k",
    "not_before": 0.0, "not_after": 4e9, "revoked_at": 0.0, "reason": "", "counts": True, "why": "",
}  # fmt: skip
SIGNING = {
    "serial": 7, "operator": "0c1f0eXYabcd0123",
    "keys": [
        {"id": "5f0c21aa3b9d7e10", "not_before": 0.0, "not_after": NOW, "revoked_at": 0.0, "reason": "",
         "counts": False, "why": "has expired on 2026-11-27 08:00 UTC", "signs_here": False},
        {"id": "9b1e21aa3b9d7e10", "not_before": 0.0, "not_after": 0.0, "revoked_at": 0.0, "reason": "",
         "counts": True, "why": "", "signs_here": True},
    ],
}  # fmt: skip
POLICY = {
    "policy": {"mode": "enforce", "signed": True, "deny_licences": ["AGPL-*"]}, "revision": 3, "changed_at": NOW,
    "changed_by": "8c1f0eXYabcd",
}  # fmt: skip
VERDICT = {
    "version": "hello.greet@v1", "version_id": "ver_1", "at": NOW, "allowed": True, "more": 0,
    "findings": [{"rule": "licence", "component": "pkg:pypi/paraphrase-multilingual@1.0.0", "of": "operator",
                  "says": "pkg:pypi/paraphrase-multilingual@1.0.0 has the licence AGPL-3.0-only; it is denied.",
                  "enforced": False}],
    "data_published_at": NOW, "data_age_s": 86_400.0, "policies": {"operator": 1}, "warnings": [],
}  # fmt: skip
SBOM = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []}
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
    ("POST", "/v1/apps/hello/rollback"): {
        "app": "hello",
        "revision": 4,
        "back_to": 1,
        "functions": [],
        "jobs": [{"function": "greet", "jobs": 12, "runs": "hello.greet@v1"}],
        "sentences": ["Calls go to hello.greet@v1, also those that waited."],
    },
    ("PUT", "/v1/apps/hello/aliases/greet/prod"): ALIAS,
    ("GET", "/v1/apps/hello/aliases"): {"app": "hello", "aliases": [ALIAS]},
    ("DELETE", "/v1/apps/hello/aliases/greet/prod"): {},
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
    ("GET", "/v1/functions/hello.greet/sbom"): SBOM,
    ("GET", "/v1/functions/hello.greet/verdict"): VERDICT,
    ("GET", "/v1/policy"): POLICY,
    ("PUT", "/v1/policy"): POLICY,
    ("DELETE", "/v1/policy"): None,
    ("GET", "/v1/trusted-keys"): {"keys": [TRUSTED]},
    ("PUT", "/v1/trusted-keys/release"): TRUSTED,
    ("POST", "/v1/trusted-keys/release/revoke"): TRUSTED,
    ("GET", "/v1/signing-keys"): SIGNING,
    ("PUT", "/v1/signing-keys"): SIGNING,
    ("POST", "/v1/signing-keys/resign"): {"looked_at": 2, "signed": 1, "refused": [], "next": ""},
    ("GET", "/v1/keys"): {"keys": [KEY]},
    ("POST", "/v1/keys"): KEY,
    ("POST", "/v1/keys/k/rotate"): KEY,
    ("DELETE", "/v1/keys/k"): {"id": "k", "revoked": True, "already": False},
}
WORDS = {
    "up": "up --sandbox nonsense",
    "backup": "backup copy --state-dir nowhere",
    "restore": "restore copy",
    "deploy": "deploy app.py",
    "run": "run app.py::greet name=Ada",
    "call": "call hello.greet name=Ada",
    "calls": "calls",
    "job list": "job list",
    "job get": f"job get {JOB}",
    "job cancel": f"job cancel {JOB}",
    "job redrive": f"job redrive {JOB}",
    "logs": "logs hello",
    "app list": "app list",
    "app history": "app history hello",
    "app stop": "app stop hello",
    "app rollback": "app rollback hello --to 1",
    "alias set": "alias set hello.greet@prod v1",
    "alias list": "alias list hello",
    "alias delete": "alias delete hello.greet@prod",
    "app delete": "app delete hello --yes",
    "app share": "app share hello acme",
    "app unshare": "app unshare hello acme",
    "app schedules": "app schedules",
    "app shares": "app shares hello",
    "app shared": "app shared",
    "scale": "scale hello.greet",
    "container list": "container list",
    "container stop": "container stop ctr_1",
    "batch submit": "batch submit hello.greet inputs.jsonl --wait",
    "batch list": "batch list",
    "batch status": "batch status b",
    "batch results": "batch results b",
    "batch cancel": "batch cancel b",
    "batch resume": "batch resume b",
    "webhook create": "webhook create https://example.com/",
    "secret set": "secret set s --file value.txt",
    "secret list": "secret list",
    "secret rm": "secret rm s",
    "model list": "model list",
    "weights push": "weights push m model",
    "weights list": "weights list",
    "weights show": "weights show m",
    "weights rm": "weights rm m",
    "webhook list": "webhook list",
    "webhook update": "webhook update w --label x",
    "webhook enable": "webhook enable w",
    "webhook disable": "webhook disable w",
    "webhook delete": "webhook delete w",
    "webhook rotate": "webhook rotate w",
    "webhook ping": "webhook ping w",
    "webhook deliveries": "webhook deliveries w",
    "webhook resend": "webhook resend w m",
    "fleet": "fleet",
    "placement explain": "placement explain ctr_1",
    "placement plan": "placement plan hello.greet",
    "explain": "explain hello.greet",
    "diagnose": "diagnose hello.greet",
    "stats": "stats hello.greet --step 1m",
    "profile": "profile hello.greet --show",
    "usage": "usage",
    "billing invoice": "billing invoice",
    "billing rates": "billing rates",
    "billing receipt": "billing receipt call_b",
    "billing budget list": "billing budget list acme",
    "billing budget set": "billing budget set acme 250",
    "billing budget remove": "billing budget remove acme month",
    "billing credit show": "billing credit show acme",
    "billing credit grant": "billing credit grant acme 10",
    "billing credit end": "billing credit end acme grant_1",
    "ledger verify": "ledger verify",
    "ca init": "ca init",
    "ca issue": "ca issue gw-1 --host gw-1.example.com",
    "price list": "price list",
    "price set": "price set h100 3.5",
    "price drop": "price drop h100",
    "tenant create": "tenant create acme",
    "tenant list": "tenant list",
    "tenant show": "tenant show acme",
    "tenant set": "tenant set acme --tier paid",
    "tenant disable": "tenant disable acme",
    "tenant enable": "tenant enable acme",
    "tenant erase": "tenant erase acme",
    "key create": "key create",
    "key list": "key list",
    "key rotate": "key rotate k",
    "key revoke": "key revoke k",
    "key show": "key show",
    "login": "login",
    "logout": "logout",
    "whoami": "whoami",
    "issuer set": "issuer set corp https://login.example.com --client-id cli --tenant acme --group eng=invoke",
    "issuer list": "issuer list",
    "issuer remove": "issuer remove corp",
    "trust new": "trust new new.key",
    "trust add": "trust add release release.pub",
    "trust list": "trust list",
    "trust revoke": "trust revoke release --reason lost",
    "trust sign": "trust sign model --key release.key",
    "policy show": "policy show",
    "policy set": "policy set --signed",
    "policy remove": "policy remove",
    "policy check": "policy check hello.greet",
    "sbom": "sbom hello.greet",
    "keyset list": "keyset list",
    "keyset new": "keyset new keys",
    "keyset vouch": "keyset vouch operator --key keys",
    "keyset publish": "keyset publish set.json",
    "keyset resign": "keyset resign",
    "quota show": "quota show acme",
    "quota set": "quota set acme concurrency=3",
    "quota clear": "quota clear acme",
    "quota tiers": "quota tiers",
    "quota set-tier": "quota set-tier trial rank=-1",
    "quota drop-tier": "quota drop-tier trial",
    "audit": "audit",
    "events": "events",
    "dashboard": "dashboard",
    "doctor": "doctor --base nonsense",
    "node check": "node check --sandbox nonsense",
    "node token": "node token",
    "node join": "node join http://127.0.0.1:1",
    "node list": "node list --wide",
    "node show": "node show n1",
    "node cordon": "node cordon n1",
    "node uncordon": "node uncordon n1",
    "node drain": "node drain n1",
    "node revoke": "node revoke n1 --yes",
    "node quarantine": "node quarantine",
    "pool list": "pool list --wide",
    "pool set": "pool set l4-spot --most-usd 12.5",
    "pool drain": "pool drain l4-spot",
    "pool rm": "pool rm l4-spot",
    "plan": "plan --demand demand.csv --solver greedy",
    "record": "record --minutes 1 --out record.csv",
    "simulate": "simulate --generate diurnal --count 2 --hours 0.1 --fleet T4:2",
    "version": "version",
}
"""Of each command, words that suit it."""
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
