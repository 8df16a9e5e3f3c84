"""The FunctionSpec of an engine function, whose code is the platform's."""

# ruff: noqa: ARG002 - what callers see of its methods has arguments, and no code

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping
from typing import Any

from msgspec import UNSET

from pilotlight.definitions.artifact_options import artifacts_of
from pilotlight.definitions.engine_options import engine_of, engine_spec, engine_weights
from pilotlight.definitions.errors import Misuse, OptionError
from pilotlight.definitions.options import function_name, spec_fields
from pilotlight.definitions.rehearsal_options import rehearsal_of
from pilotlight.definitions.signature import Callee
from pilotlight_core.model.engines.engine_spec import EMBED, ENGINE_CLASS, ENGINE_MODULE, GENERATE
from pilotlight_core.model.engines.generation import EMBED_INPUT, EMBED_OUTPUT, GENERATE_INPUT
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.secrets.secret_uses import check_secrets
from pilotlight_core.model.spec import FunctionSpec, MethodSpec, Mode
from pilotlight_core.model.streams.resuming import Resumable
from pilotlight_core.model.versions.spec_checks import check_spec

CODE_OPTIONS = {
    "schedule": "it runs when it is called",
    "model": "the platform computes the memory of the model from its files",
    "weights": "its engine names its weights, and adapters= those of its adapters",
}
"""Options of functions with code -> why an engine function has none."""
ENGINE_METHODS = (
    MethodSpec(name=GENERATE, attribute=GENERATE, mode=Mode.GENERATOR, is_async=True, input_schema=GENERATE_INPUT),
    MethodSpec(name=EMBED, attribute=EMBED, is_async=True, input_schema=EMBED_INPUT, output_schema=EMBED_OUTPUT),
)


class EngineMethods:
    """The methods of an engine function, as its callers name their arguments. What runs is in its containers."""

    async def generate(
        self,
        prompt: str | None = None,
        prompt_ids: list[int] | None = None,
        messages: list[dict[str, Any]] | None = None,
        max_tokens: int | None = None,
        min_tokens: int = 0,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 0,
        seed: int | None = None,
        stop: list[str] | None = None,
        ignore_eos: bool = False,
        logprobs: int | None = None,
        adapter: str = "",
        tools: list[dict[str, Any]] | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Go on from exactly one of `prompt`, `prompt_ids` and `messages`; yields documents with `text`."""
        check_place()
        yield {}  # an asynchronous generator, as in its containers

    async def embed(self, input: list[str]) -> dict[str, Any]:  # noqa: A002 - its name on the wire
        """The vectors of texts."""
        check_place()
        return {}


def check_place() -> None:
    """Refuse to run an engine here.

    Raises:
        Misuse: always.
    """
    raise Misuse("an engine runs in containers of the platform only: call it by .remote() or .remote_gen().")


ENGINE_CALLEES = (
    Callee(function=EngineMethods.generate, name=GENERATE, attribute=GENERATE, is_method=True),
    Callee(function=EngineMethods.embed, name=EMBED, attribute=EMBED, is_method=True),
)


def build_engine_spec(options: Mapping[str, Any], own_name: str) -> FunctionSpec:
    """Return the FunctionSpec of an engine function; `own_name` is its name unless `name=` says another one.

    Raises:
        OptionError: naming the function and the option.
    """
    try:
        spec = _build(options, own_name)
        check_spec(spec)
        check_secrets(spec)
    except BadInput as error:
        detail = error.detail
        named = detail if detail.startswith(f"{own_name}:") else f"{own_name}: {detail}"
        raise OptionError(named, field=error.more.get("field", "")) from error
    return spec


def _build(options: Mapping[str, Any], own_name: str) -> FunctionSpec:
    engine = engine_of(options)
    if engine is None:
        raise OptionError("engine= is missing: expected Torch(…), VLLM(…) or Sim().", field="engine")
    for option, why in CODE_OPTIONS.items():
        if options.get(option):
            raise OptionError(f"{option}= is not for a function with engine=: {why}.", field=option)
    artifacts_of(options)
    names = engine_weights(options)
    adapters = names[1:] if engine.weights else names
    described = engine_spec(engine, adapters)
    # A client that has left wants no more tokens, unless the function says how long to wait for it.
    fields: dict[str, Any] = {"resumable": Resumable(resume_s=0.0), "idempotent": True} | spec_fields(options)
    takes_gpu = any(choice.type != "CPU" for choice in fields.get("gpu", ()))
    return FunctionSpec(
        name=function_name(options, own_name),
        module=ENGINE_MODULE,
        qualname=ENGINE_CLASS,
        is_class=True,
        methods=ENGINE_METHODS,
        enter=("load",),
        exit=("close",),
        park=("park",) if takes_gpu else UNSET,
        unpark=("unpark",) if takes_gpu else UNSET,
        max_inputs=described.max_sequences + described.spare_calls,
        rehearsal=rehearsal_of(options, ENGINE_CALLEES, (), has_own_check=False),
        engine=described,
        **fields,
    )


def check_stub(stub: Any) -> None:
    """Refuse a function or class below `@gpu_function(engine=…)` that has code, which would never run.

    Raises:
        OptionError: naming it.
    """
    if isinstance(stub, type):
        own = [name for name, member in vars(stub).items() if inspect.isfunction(member)]
        what = f"the method {own[0]}" if own else ""
    elif inspect.isfunction(stub):
        what = "parameters" if inspect.signature(stub).parameters else ""
    else:
        raise OptionError("@gpu_function(engine=…) stands above an empty function or class, which gives it its name.")
    if what:
        raise OptionError(
            f"{stub.__qualname__} has {what}, and engine=: an engine function has no code of its own, so write only "
            f"'def {stub.__name__}() -> None: ...' below it, or app.engine(\"{stub.__name__}\", …) without a function.",
            field="engine",
        )
