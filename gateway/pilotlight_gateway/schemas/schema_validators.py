"""Validates inputs and outputs against their function's schemas."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pilotlight_core.model.errors import BadInput, BadOutput, PilotlightError
from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_core.model.values import TooManyValues, for_schema
from pilotlight_gateway.schemas.schema_guard import SchemaCost, check_schema

if TYPE_CHECKING:
    import jsonschema_rs

COMPILED_AT_MOST = 2_048
PATTERN_BYTES = 256 * 1024
"""Limit of one compiled pattern; `(a{1000}){1000}` exceeds it."""
LONGEST_SAYING = 400
LONG = frozenset((str, list, dict))
MOST_WORK = 10**8
"""Parts in one check, about 10 ns each."""
PATTERN_WORK = 100
"""The cost of matching a character with a pattern, in parts."""
TOLD_WORK = 30_000
"""Above it errors are not described: that costs a hundred times as much as the check, and memory."""


def compile_schema(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """A validator that fetches no references, with patterns that run in linear time.

    Raises:
        ValueError: it is not a valid schema.
    """
    import jsonschema_rs  # here, since it takes 3 MB

    return jsonschema_rs.Draft202012Validator(
        schema,
        offline=True,
        validate_formats=False,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES),
    )


def check_schemas(spec: FunctionSpec) -> None:
    """Refuse invalid or too expensive schemas.

    Raises:
        BadInput: names the method and the schema.
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
    """Checks values, with an LRU cache of compiled schemas. Thread-safe."""

    def __init__(self, most: int = COMPILED_AT_MOST) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._compiled: dict[tuple[str, str, str], tuple[Any, SchemaCost]] = {}
        """The one that was used last is the last, once half of the room is taken."""

    def check_input(
        self,
        version: str,
        method: MethodSpec,
        arguments: dict[str, Any],
        given: dict[str, str],
        *,
        at_once: int = MOST_WORK,
    ) -> None:
        """Check the arguments of a method. `given` maps arguments to the part of the request they are from (else
        "input").

        Raises:
            BadInput: names the argument.
            TooManyValues: the check would take more than `at_once` parts.
        """
        if not method.input_schema:
            return
        error = self._first_error((version, method.name, "input"), method.input_schema, arguments, at_once)
        if error is not None:
            path = _path_of(error)
            where = given.get(path[0], "input") if path else "input"
            field = ".".join((where, *path))
            raise BadInput(f"{field}: {_saying(error, method.input_schema)}.", field=field)

    def check_output(self, version: str, method: MethodSpec, value: Any, *, at_once: int = MOST_WORK) -> None:
        """Check an answer, or a chunk of a stream.

        Raises:
            BadOutput: names the wrong part.
            TooManyValues: the check would take more than `at_once` parts.
        """
        if not method.output_schema:
            return
        error = self._first_error((version, method.name, "output"), method.output_schema, value, at_once)
        if error is not None:
            field = ".".join(("output", *_path_of(error)))
            raise BadOutput(f"{field}: {_brief(error.message)}.", field=field)

    def _first_error(self, key: tuple[str, str, str], schema: dict[str, Any], value: Any, at_once: int) -> Any:
        validator, weight = self._validator(key, schema)
        work = work_of(weight, value)
        if work > MOST_WORK:
            raise _refusal(key[2], "checking it against its schema would take too long")
        if work > at_once:
            raise TooManyValues
        try:
            if validator.is_valid(value):
                return None
        except ValueError:  # bytes or arrays, which the validator does not support
            pass
        value = for_schema(value)
        if validator.is_valid(value):
            return None
        if work > TOLD_WORK:
            raise _refusal(key[2], "it does not match its schema, and is too large to say where")
        import jsonschema_rs

        try:
            # Not `iter_errors`, which collects all errors first: a body of a kilobyte can have a million.
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return error
        return None

    def _validator(self, key: tuple[str, str, str], schema: dict[str, Any]) -> tuple[Any, SchemaCost]:
        known = self._compiled.get(key)
        if known is not None and len(self._compiled) * 2 <= self._most:
            return known  # nothing has to go soon, so that nobody needs to know when it was used
        if known is None:
            known = (compile_schema(schema), check_schema(schema, key[2]))
        with self._lock:
            self._compiled.pop(key, None)
            self._compiled[key] = known
            if len(self._compiled) > self._most:
                del self._compiled[next(iter(self._compiled))]
        return known


def work_of(weight: SchemaCost, value: Any) -> int:
    """An upper bound of the cost of judging `value`, in parts."""
    values, chars = 1, 0
    open_values: list[Any] = [value] if type(value) in LONG else []
    while open_values:
        part = open_values.pop()
        if type(part) is str:
            chars += len(part)
            continue
        values += len(part)
        if type(part) is dict:
            chars += sum(map(len, map(str, part))) if weight.patterns else 0
            part = part.values()
        open_values += [item for item in part if type(item) in LONG]
    return weight.parts * values + PATTERN_WORK * weight.patterns * chars


def _refusal(which: str, why: str) -> PilotlightError:
    kind = BadInput if which == "input" else BadOutput
    return kind(f"{which}: {why}.", field=which)


def _path_of(error: Any) -> tuple[str, ...]:
    path = [str(step) for step in error.instance_path]
    if error.kind.name == "required":
        path.append(str(error.kind.property))
    if error.kind.name == "additionalProperties":
        path.append(str(error.kind.unexpected[0]))
    return tuple(path)


def _saying(error: Any, schema: dict[str, Any]) -> str:
    """The error as one of function arguments if it concerns the whole input, else JSON Schema's message."""
    if not error.instance_path and error.kind.name == "required":
        return "this argument is missing"
    if not error.instance_path and error.kind.name == "additionalProperties":
        known = ", ".join(schema.get("properties", ())) or "none"
        return _brief(f"there is no such argument; the function takes {known}")
    return _brief(str(error.message))


def _brief(text: str) -> str:
    line = text.strip().split("\n\n")[0].removesuffix(".")
    return line if len(line) <= LONGEST_SAYING else line[:LONGEST_SAYING] + "…"
