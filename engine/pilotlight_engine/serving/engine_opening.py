"""Makes the engine that a function names, of the weights that its container finds."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_engine.engine_port import AdapterSource, Engine
from pilotlight_engine.serving.engine_limits import TORCH_NAMES, limits_of
from pilotlight_engine.sim.sim_engine import SimEngine, SimModel
from pilotlight_engine.sim.step_costs import StepCosts
from pilotlight_engine.text.text_tokenizer import BYTES, END, TextTokenizer

MODELS_VARIABLE = "PILOTLIGHT_MODELS"
"""In containers: the folder of all weights of the function."""
SIM_SEQUENCE = 4096
"""Tokens of a call of a simulated engine, unless it says so."""
SIM_KV_TOKEN = 1024
"""Bytes of keys and values of a simulated token."""


def weights_folder(name: str) -> Path | None:
    """The folder of weights of that name; None for "".

    Raises:
        ValueError: they are not there.
    """
    if not name:
        return None
    root = os.environ.get(MODELS_VARIABLE)
    if not root:
        raise ValueError(f"the weights {name!r} are in containers only: {MODELS_VARIABLE} is not set")
    folder = Path(root) / name
    if not folder.is_dir():
        raise ValueError(f"there are no weights {name!r} in {root}")
    return folder


def adapter_sources(spec: EngineSpec) -> tuple[AdapterSource, ...]:
    """The adapters of an engine. Raises ValueError if one is not there."""
    folders = ((name, weights_folder(name)) for name in spec.adapters)
    return tuple(AdapterSource(name=name, folder=folder) for name, folder in folders if folder is not None)


def open_engine(spec: EngineSpec, tokenizer: TextTokenizer) -> Engine:
    """The engine, with its weights loaded. Raises ValueError, and what its libraries raise."""
    if spec.kind is EngineKind.SIM:
        return _open_sim(spec, tokenizer)
    folder = weights_folder(spec.weights)
    if spec.kind is EngineKind.TORCH and folder is not None:
        try:
            from pilotlight_engine.serving.torch_opening import open_torch
        except ImportError as error:
            raise ValueError(f"the base environment lacks {error.name}: install 'pilotlight[engine]' in it") from error
        return open_torch(spec, folder, adapter_sources(spec))
    if spec.kind is EngineKind.VLLM and folder is not None:
        return _open_vllm(spec, folder)
    raise ValueError(f"the engine {spec.kind.value} has no weights")


def _open_vllm(spec: EngineSpec, folder: Path) -> Engine:
    """vLLM in a child process of this one's interpreter: that of the function's base environment."""
    from pilotlight_engine.vllm.vllm_engine import VLLMEngine, VLLMSettings

    return VLLMEngine(
        VLLMSettings(
            weights=folder,
            python=Path(sys.executable),
            dtype=TORCH_NAMES.get(spec.dtype, spec.dtype),
            quantization=spec.quantization,
            tensor_parallel=spec.tensor_parallel,
            kv_bytes=spec.kv_bytes or None,
            max_sequence=spec.max_sequence or None,
            max_running=spec.max_sequences,
            spare=spec.spare_calls,
            token_budget=spec.max_tokens_per_step,
            prefix_cache=spec.prefix_cache,
            adapters=adapter_sources(spec),
        )
    )


def _open_sim(spec: EngineSpec, tokenizer: TextTokenizer) -> SimEngine:
    most = spec.max_sequence or SIM_SEQUENCE
    model = SimModel(
        vocabulary=tokenizer.vocabulary,
        max_sequence=most,
        kv_tokens=spec.kv_bytes // SIM_KV_TOKEN if spec.kv_bytes else most * spec.max_sequences,
        eos_ids=frozenset({END}) if tokenizer.vocabulary == BYTES + 1 else frozenset(),
    )
    costs = StepCosts(step_ms=spec.step_ms, prefill_token_ms=0.0, decode_token_ms=0.0, stored_token_ms=0.0)
    return SimEngine(
        model, limits_of(spec), costs, adapters=adapter_sources(spec), wait=time.sleep if spec.step_ms else None
    )
