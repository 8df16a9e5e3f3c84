"""How long this process has compiled models, as torch counts it."""

from __future__ import annotations

import math
import sys


def compile_s() -> float:
    """Seconds that torch has compiled so far; 0.0 where it has not, or does not say."""
    utils = sys.modules.get("torch._dynamo.utils")  # imported with the first `torch.compile`
    try:
        spent = float(utils.calculate_time_spent()["total_wall_time"]) if utils is not None else 0.0
    except Exception:  # noqa: BLE001 - it is no public function of torch, and a time is not worth a start
        return 0.0
    return spent if math.isfinite(spent) else 0.0
