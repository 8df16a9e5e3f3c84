"""What a platform answers of kept calls."""

from __future__ import annotations

import time
from typing import Any

NOW = time.time()
JOB = "call_local_12_imh71kb2qszd0b60ua3n"
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
