"""Inputs and outputs against the schemas of their function, compiled once per version."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import jsonschema_rs

from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_core.model.values import for_schema
from pilotlight_gateway.schema_guard import check_schema

COMPILED_AT_MOST = 2_048
PATTERN_BYTES = 256 * 1024
"""The most that one compiled pattern takes; `(a{1000}){1000}` does not fit."""
LONGEST_SAYING = 400


def compile_schema(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """A validator that fetches nothing and whose patterns run in linear time.

    Raises:
        ValueError: if the schema is none.
    """
    return jsonschema_rs.Draft202012Validator(
        schema,
        offline=True,
        validate_formats=False,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES),
    )


def check_schemas(spec: FunctionSpec) -> None:
    """Refuse schemas that are not valid, or that could cost the gateway much.

    Raises:
        BadInput: naming the method and the schema.
    """
    for method in spec.methods:
        for name in ("input_schema", "output_schema"):
            schema = getattr(method, name)
            field = f"{spec.name}.{method.attribute}.{name}"
            check_schema(schema, field)
            try:
                compile_schema(schema)
            except ValueError as error:
                raise BadInput(f"{field} is not a JSON Schema: {_brief(str(error))}", field=field) from None


class Validators:
    """The compiled schemas of the versions in use; those not used for longest go first."""

    def __init__(self, most: int = COMPILED_AT_MOST) -> None:
        self._most = most
        self._lock = threading.Lock()  # large bodies are read in threads
        self._compiled: OrderedDict[tuple[str, str, str], Any] = OrderedDict()

    def check_input(self, version: str, method: MethodSpec, arguments: dict[str, Any], given: dict[str, str]) -> None:
        """Refuse arguments that the method does not take. `given` tells where an argument stood, else "input".

        Raises:
            BadInput: naming the argument.
        """
        if not method.input_schema:
            return
        error = self._first_error((version, method.name, "input"), method.input_schema, arguments)
        if error is not None:
            path = _path_of(error)
            where = given.get(path[0], "input") if path else "input"
            field = ".".join((where, *path))
            raise BadInput(f"{field}: {_saying(error, method.input_schema)}.", field=field)

    def check_output(self, version: str, method: MethodSpec, value: Any) -> None:
        """Refuse an answer (or one chunk) that the method's own type hints exclude.

        Raises:
            BadOutput: naming the place.
        """
        if not method.output_schema:
            return
        error = self._first_error((version, method.name, "output"), method.output_schema, value)
        if error is not None:
            field = ".".join(("output", *_path_of(error)))
            raise BadOutput(f"{field}: {_brief(error.message)}.", field=field)

    def _first_error(self, key: tuple[str, str, str], schema: dict[str, Any], value: Any) -> Any:
        validator = self._validator(key, schema)
        try:
            if validator.is_valid(value):
                return None
        except ValueError:  # bytes or arrays, which it does not know
            pass
        try:
            # Not `iter_errors`: it collects them all first, and a body of a kilobyte can be wrong in a million ways.
            validator.validate(for_schema(value))
        except jsonschema_rs.ValidationError as error:
            return error
        return None

    def _validator(self, key: tuple[str, str, str], schema: dict[str, Any]) -> Any:
        with self._lock:
            validator = self._compiled.get(key)
            if validator is not None:
                self._compiled.move_to_end(key)
                return validator
        validator = compile_schema(schema)
        with self._lock:
            self._compiled[key] = validator
            if len(self._compiled) > self._most:
                self._compiled.popitem(last=False)
        return validator


def _path_of(error: Any) -> tuple[str, ...]:
    path = [str(step) for step in error.instance_path]
    if error.kind.name == "required":
        path.append(str(error.kind.property))
    if error.kind.name == "additionalProperties":
        path.append(str(error.kind.unexpected[0]))
    return tuple(path)


def _saying(error: Any, schema: dict[str, Any]) -> str:
    """What is wrong with arguments; of the whole object in the words of a function, not of JSON Schema."""
    if not error.instance_path and error.kind.name == "required":
        return "this argument is missing"
    if not error.instance_path and error.kind.name == "additionalProperties":
        known = ", ".join(schema.get("properties", ())) or "none"
        return _brief(f"there is no such argument; the function takes {known}")
    return _brief(str(error.message))


def _brief(text: str) -> str:
    line = text.strip().split("\n\n")[0].removesuffix(".")
    return line if len(line) <= LONGEST_SAYING else line[:LONGEST_SAYING] + "…"
