"""The examples of a function, which its containers run themselves, are calls that a caller could make."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.spec import FunctionSpec, MethodSpec, Mode
from pilotlight_core.model.values import TooManyValues, decode_opaque, depth_within
from pilotlight_gateway.schemas.schema_validators import Validators

MOST_WORK = 10**7
"""Parts (as `schema_validators` counts them) of the checks of all examples of a function: a tenth of a second."""


def check_examples(spec: FunctionSpec) -> None:
    """Refuse examples whose inputs, or expected answer, do not match the schemas of their method.

    The specification itself is checked before (`check_spec`).

    Raises:
        BadInput: naming the option and the argument.
    """
    if spec.rehearsal is UNSET:
        return
    validators = Validators(most=len(spec.methods) * 2)
    at_once = MOST_WORK // (2 + sum(len(example.inputs) for example in spec.rehearsal.warmup))
    for example in spec.rehearsal.warmup:
        for data in example.inputs:
            _check_input(validators, spec, _own_method(spec, example.method), data, "warmup", at_once)
    if (known := spec.rehearsal.example) is not None:
        method = _own_method(spec, known.method)
        _check_input(validators, spec, method, known.input, "check", at_once)
        _check_output(validators, spec, method, known.output, at_once)


def _own_method(spec: FunctionSpec, name: str) -> MethodSpec:
    """A method without the schemas that are those of its hooks: a container calls it without them."""
    method, pipeline = spec.method(name), spec.pipeline
    if pipeline is UNSET:
        return method
    return msgspec.structs.replace(
        method,
        input_schema=method.input_schema if pipeline.preprocess is None else {},
        output_schema=method.output_schema if pipeline.postprocess is None else {},
    )


def _check_input(
    validators: Validators, spec: FunctionSpec, method: MethodSpec, data: bytes, option: str, at_once: int
) -> None:
    arguments = _decoded(spec, data, option)
    if not isinstance(arguments, dict) or not all(isinstance(name, str) for name in arguments):
        raise BadInput(f"{spec.name}: {option}: an input is no object of named arguments.", field=option)
    try:
        validators.check_input(spec.name, method, arguments, {}, at_once=at_once)
    except BadInput as error:
        raise BadInput(f"{spec.name}: {option}: {method.attribute}: {error.detail}", field=option) from None
    except TooManyValues:
        raise BadInput(f"{spec.name}: {option}: an input has too many parts.", field=option) from None


def _check_output(validators: Validators, spec: FunctionSpec, method: MethodSpec, data: bytes, at_once: int) -> None:
    answer = _decoded(spec, data, "check")
    streams = method.mode is Mode.GENERATOR
    if streams and not isinstance(answer, list):
        raise BadInput(f"{spec.name}: check: the output of a generator is the list of its chunks.", field="check")
    try:
        for part in answer if streams else (answer,):
            validators.check_output(spec.name, method, part, at_once=at_once)
    except BadOutput as error:
        raise BadInput(f"{spec.name}: check: {method.attribute}: {error.detail}", field="check") from None
    except TooManyValues:
        raise BadInput(f"{spec.name}: check: the output has too many parts.", field="check") from None


def _decoded(spec: FunctionSpec, data: bytes, option: str) -> Any:
    try:
        value = decode_opaque(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{spec.name}: {option}: an example cannot be read: {error}.", field=option) from None
    if not depth_within(value):
        raise BadInput(f"{spec.name}: {option}: an example is nested too deeply.", field=option)
    return value
