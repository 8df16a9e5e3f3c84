"""Pilotlight: GPU functions that start at once and cost nothing while they are not called.

    from pilotlight import App, gpu_function, SLO

    app = App("search")

    @app.gpu_function(gpu="any", slo=SLO(p95_ms=300))
    def embed(text: str) -> list[float]: ...

    embed.local("hi")       # in this process
    embed.remote("hi")      # on the platform, after `pilotlight deploy`

Names are loaded on first use: `import pilotlight` stays cheap, and only calls load an HTTP client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotlight.definitions.version import VERSION

if TYPE_CHECKING:
    from pilotlight.app import App
    from pilotlight.client import Client, call_id, cancel
    from pilotlight.cls import Cls, Obj
    from pilotlight.decorate import gpu_function
    from pilotlight.definitions.artifact_options import Artifact
    from pilotlight.definitions.call_units import count_units
    from pilotlight.definitions.engine_options import VLLM, Sim, Torch
    from pilotlight.definitions.errors import (
        BadInput,
        BadOutput,
        CallFailed,
        Cancelled,
        Conflict,
        ContainerDied,
        DeadlineExceeded,
        ExecutionTimeout,
        Forbidden,
        FunctionRaised,
        LoadFailed,
        Misuse,
        NestedRefused,
        NotFound,
        OptionError,
        PilotlightError,
        Preempted,
        TooMuch,
        Unauthenticated,
        Unavailable,
        UnknownCall,
        UnknownFunction,
    )
    from pilotlight.definitions.rehearsal_options import Example
    from pilotlight.definitions.running_calls import current_call, current_calls
    from pilotlight.definitions.schedules import Cron, Period
    from pilotlight.definitions.stream_states import checkpoint, resume
    from pilotlight.engine_model import EngineModel
    from pilotlight.function import Function
    from pilotlight.function_call import FunctionCall
    from pilotlight.markers import (  # `exit` is the hook's name
        batched,
        check,
        concurrent,
        drain,
        enter,
        exit,  # noqa: A004
        method,
        park,
        postprocess,
        preprocess,
        unpark,
    )
    from pilotlight.upstream.upstream import Upstream, UpstreamBatch
    from pilotlight.weights_folder import weights
    from pilotlight_core.model.calendar.warm_windows import Warm
    from pilotlight_core.model.fallbacks.fallback import Fallback
    from pilotlight_core.model.placing import Measured, Model, Spread
    from pilotlight_core.model.spec import SLO
    from pilotlight_core.model.streams.resuming import Resumable

__version__ = VERSION

_HOMES = {
    "pilotlight.app": ("App",),
    "pilotlight.client": ("Client", "call_id", "cancel"),
    "pilotlight.cls": ("Cls", "Obj"),
    "pilotlight.decorate": ("gpu_function",),
    "pilotlight.definitions.artifact_options": ("Artifact",),
    "pilotlight.definitions.call_units": ("count_units",),
    "pilotlight.definitions.engine_options": ("Sim", "Torch", "VLLM"),
    "pilotlight.definitions.errors": (
        "BadInput", "BadOutput", "CallFailed", "Cancelled", "Conflict", "ContainerDied", "DeadlineExceeded",
        "ExecutionTimeout", "Forbidden", "FunctionRaised", "LoadFailed", "Misuse", "NestedRefused", "NotFound",
        "OptionError", "PilotlightError", "Preempted", "TooMuch", "Unauthenticated", "Unavailable", "UnknownCall",
        "UnknownFunction",
    ),
    "pilotlight.definitions.rehearsal_options": ("Example",),
    "pilotlight.definitions.running_calls": ("current_call", "current_calls"),
    "pilotlight.definitions.schedules": ("Cron", "Period"),
    "pilotlight.definitions.stream_states": ("checkpoint", "resume"),
    "pilotlight.engine_model": ("EngineModel",),
    "pilotlight.function": ("Function",),
    "pilotlight.function_call": ("FunctionCall",),
    "pilotlight.markers": (
        "batched", "check", "concurrent", "drain", "enter", "exit", "method", "park", "postprocess", "preprocess",
        "unpark",
    ),
    "pilotlight.upstream.upstream": ("Upstream", "UpstreamBatch"),
    "pilotlight.weights_folder": ("weights",),
    "pilotlight_core.model.calendar.warm_windows": ("Warm",),
    "pilotlight_core.model.placing": ("Measured", "Model", "Spread"),
    "pilotlight_core.model.streams.resuming": ("Resumable",),
    "pilotlight_core.model.spec": ("SLO",),
    "pilotlight_core.model.fallbacks.fallback": ("Fallback",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "SLO",
    "VLLM",
    "App",
    "Artifact",
    "BadInput",
    "BadOutput",
    "CallFailed",
    "Cancelled",
    "Client",
    "Cls",
    "Conflict",
    "ContainerDied",
    "Cron",
    "DeadlineExceeded",
    "EngineModel",
    "Example",
    "ExecutionTimeout",
    "Fallback",
    "Forbidden",
    "Function",
    "FunctionCall",
    "FunctionRaised",
    "LoadFailed",
    "Measured",
    "Misuse",
    "Model",
    "NestedRefused",
    "NotFound",
    "Obj",
    "OptionError",
    "Period",
    "PilotlightError",
    "Preempted",
    "Resumable",
    "Sim",
    "Spread",
    "TooMuch",
    "Torch",
    "Unauthenticated",
    "Unavailable",
    "UnknownCall",
    "UnknownFunction",
    "Upstream",
    "UpstreamBatch",
    "Warm",
    "batched",
    "call_id",
    "cancel",
    "check",
    "checkpoint",
    "concurrent",
    "count_units",
    "current_call",
    "current_calls",
    "drain",
    "enter",
    "exit",
    "gpu_function",
    "method",
    "park",
    "postprocess",
    "preprocess",
    "resume",
    "unpark",
    "weights",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise _unknown(name)
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def _unknown(name: str) -> Exception:
    """An ImportError for another platform's name: `from pilotlight import Image` drops what an AttributeError says."""
    from pilotlight.definitions.hints.peer_names import MODULE_NAMES

    if name in MODULE_NAMES:
        return ImportError(f"there is no pilotlight.{name}: {MODULE_NAMES[name]}.", name="pilotlight")
    return AttributeError(f"module 'pilotlight' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
