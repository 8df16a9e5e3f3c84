"""Makes a torch engine of weights. Imported only where one is made: it takes torch and transformers along."""

from __future__ import annotations

from pathlib import Path

from pilotlight_core.model.engines.engine_spec import EngineSpec
from pilotlight_engine.engine_port import AdapterSource, Engine
from pilotlight_engine.serving.engine_limits import TORCH_NAMES, limits_of
from pilotlight_engine.transformer.torch_engine import TorchEngine, TorchSettings


def open_torch(spec: EngineSpec, folder: Path, adapters: tuple[AdapterSource, ...]) -> Engine:
    """The engine of a folder of weights. Raises what reading them does."""
    return TorchEngine(
        TorchSettings(
            weights=folder,
            dtype=TORCH_NAMES.get(spec.dtype, spec.dtype),
            kv_bytes=spec.kv_bytes or None,
            max_sequence=spec.max_sequence or None,
            limits=limits_of(spec),
            adapters=adapters,
        )
    )
