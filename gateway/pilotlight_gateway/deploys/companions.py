"""The companions that a deploy makes of the hooks of classes: functions of the same bundle, on CPU slots. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import UNSET

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.pipelines.pipeline import CallHook, HookKind, companion_name
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.spec import SLO, FunctionSpec, Isolation, Manifest, MethodSpec


def with_companions(request: DeployRequest) -> DeployRequest:
    """The deploy with the companions of its classes, each before the class that names its version."""
    functions = tuple(each for function in request.functions for each in (*_companions(function), function))
    return msgspec.structs.replace(request, functions=functions)


def _companions(function: DeployFunction) -> Iterator[DeployFunction]:
    spec = function.spec
    if spec.pipeline is not UNSET:
        for kind, hook in spec.pipeline.hooks.items():
            # Weights may be larger than what a node of CPU slots has room for: a hook has the artifacts alone.
            yield DeployFunction(spec=companion_spec(spec, kind, hook), artifacts=function.artifacts)


def companion_spec(spec: FunctionSpec, kind: HookKind, hook: CallHook) -> FunctionSpec:
    """The specification of a hook's companion: what its class says of the environment, and nothing of its device."""
    placing = spec.placing
    return FunctionSpec(
        name=companion_name(spec.name, kind),
        module=spec.module,
        qualname=spec.qualname,
        is_class=True,
        methods=tuple(_method(method, kind, hook) for method in spec.methods),
        enter=hook.enter,
        cpu=hook.cpu,
        memory=hook.memory,
        timeout=spec.timeout,
        startup_timeout=spec.startup_timeout,
        retries=spec.retries,
        max_containers=hook.max_containers,
        scaledown_window=spec.scaledown_window,
        max_inputs=hook.max_inputs,
        env=spec.env,
        isolation=Isolation.SHARED,
        idempotent=spec.idempotent,
        slo=SLO(),
        priority=spec.priority,
        # Where it may run is no matter of its device.
        placing=Placing(regions=placing.regions, zones=placing.zones, purchase=placing.purchase, avoid=placing.avoid),
        pids=spec.pids,
        tags=spec.tags,
        forecast=spec.forecast,
        zero_window=spec.zero_window,
        network=spec.network,
        secrets=spec.secrets,
        hook=kind,
    )


def _method(method: MethodSpec, kind: HookKind, hook: CallHook) -> MethodSpec:
    """The hook, by the name of the method whose calls it is for."""
    is_first = kind is HookKind.PREPROCESS
    return MethodSpec(
        name=method.name,
        attribute=hook.attribute,
        is_async=hook.is_async,
        input_schema=method.input_schema if is_first else {},
        output_schema={} if is_first else method.output_schema,
    )


def with_versions(manifest: Manifest, versions: Mapping[str, str]) -> Manifest:
    """The manifest of a class with the versions of its companions; `versions`: function -> id."""
    pipeline = manifest.spec.pipeline
    if pipeline is UNSET:
        return manifest
    hooks = {
        kind.value: msgspec.structs.replace(hook, version=versions[companion_name(manifest.function, kind)])
        for kind, hook in pipeline.hooks.items()
    }
    spec = msgspec.structs.replace(manifest.spec, pipeline=msgspec.structs.replace(pipeline, **hooks))
    return msgspec.structs.replace(manifest, spec=spec)
