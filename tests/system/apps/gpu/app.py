"""What a function sees of GPUs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pilotlight import App

app = App("gpu")


@app.gpu_function(gpu="any", memory="8GiB", scaledown_window=2.0, forecast=False)
def looks() -> dict[str, Any]:
    """Its devices, and the answer of a matrix product that was computed on one."""
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError(f"torch {torch.__version__} sees no GPU")
    ones = torch.ones(512, 512, device="cuda")
    return {
        "count": torch.cuda.device_count(),
        "name": torch.cuda.get_device_name(0),
        "uuid": f"GPU-{torch.cuda.get_device_properties(0).uuid}",
        "product": float((ones @ ones).sum()),
        "nodes": sorted(path.name for path in Path("/dev").iterdir() if path.name.startswith("nvidia")),
        "visible": os.environ["CUDA_VISIBLE_DEVICES"],
    }
