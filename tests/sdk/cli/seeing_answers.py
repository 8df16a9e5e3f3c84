"""What a platform answers that is asked what calls were."""

from __future__ import annotations

import time
from typing import Any

NOW = time.time()
JOB = "call_local_12_imh71kb2qszd0b60ua3n"
STATS = {
    "function": "hello.greet", "since": "2026-11-27T06:00:00.000Z", "until": "2026-11-27T06:10:12.000Z",
    "window_s": 612.0, "calls": 1200, "per_s": 1.96, "succeeded": 1190, "failed": {"no_capacity": 10},
    "availability": 0.9917, "durations": {"count": 1190, "p50": 21.0, "p95": 80.5, "p99": 1200.0, "max": 2400.0},
    "stages": {"execute": {"count": 1190, "p50": 18.0, "p95": 40.0, "p99": 55.0, "max": 70.0}},
    "cold_calls": 2, "cold_steps": {"load": 1800.0}, "gpu_ms": 5200.0, "batch_size": 3.4, "units": {"images": 12},
    "home": {"seen_s": 610.0, "queued": 0.2, "ready": 2.0, "busy": 1.1, "most_queued": 7, "oldest_ms": 900.0},
    "series": [{"at": "2026-11-27T06:00:00.000Z", "seconds": 60.0, "calls": 120, "p50_ms": 21.0, "p95_ms": 80.0}],
}  # fmt: skip
STATS_LIST = {
    "since": STATS["since"], "until": STATS["until"], "window_s": 612.0, "total": 2, "silent": ["a gateway"],
    "functions": [{"function": "hello.greet", "calls": 1200, "per_s": 1.96, "failed": 10, "p50_ms": 21.0}],
}  # fmt: skip
EVENTS: dict[str, Any] = {
    "events": [
        {"id": 7, "at": NOW, "kind": "function.scaled", "tenant": "acme", "function": "acme:hello.greet",
         "says": "hello.greet should have 2 containers, and has 1: calls wait.", "facts": {"wanted": 2, "there": 1}},
    ]
}  # fmt: skip
KEPT_CALLS: dict[str, Any] = {
    "calls": [
        {"id": JOB, "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
         "function": "paraphrase-search.paraphrase_multilingual",
         "version": "paraphrase-search.paraphrase_multilingual@v17", "kept": "error", "code": "container_died",
         "arrived_at": NOW, "total_ms": 41_234.5, "longest": "start", "longest_ms": 39_000.0, "cold_start": True,
         "attempts": 2, "gateway": "gateway-1"}
    ],
    "unanswered": ["gateway-2"],
}  # fmt: skip
EXPLAINED_CALL: dict[str, Any] = {
    "id": JOB, "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "function": "hello.greet", "version": "hello.greet@v17",
    "method": "", "kept": "slow", "code": "", "arrived_at": NOW, "total_ms": 1_000.0, "cold_start": {"import": 400.0},
    "batch_size": 1, "sentences": ["hello.greet@v17 took 1.00 s and ended well."],
    "rows": [
        {"name": "start", "begin_ms": 0.0, "ms": 700.0},
        {"name": "import", "begin_ms": 300.0, "ms": 400.0, "step_of": "start"},
        {"name": "execute", "begin_ms": 700.0, "ms": 300.0, "attempt": 2},
    ],
    "attempts": [], "gateway": "gateway-1",
}  # fmt: skip
DIAGNOSED: dict[str, Any] = {
    "function": "hello.greet@v1", "window_s": 600.0, "calls": 5_000, "name": "gpu", "confidence": 0.93,
    "sentence": "GPU-bound: calls to hello.greet@v1 need 104% of its slices even in full batches (32.0 of 32 now).",
    "evidence": ["1850/s x 2.26 ms = 4.17 slices of 4, busy 100%"], "metrics": {"p95_ms": 1_290.0},
    "cures": [{"cost": "gpu_time", "what": "max_containers=6", "command": "pilotlight scale hello.greet --max 6"}],
    "promises": [{"metric": "p95_ms", "value": 84.0, "tolerance": 0.6, "at_most": True}],
}  # fmt: skip
