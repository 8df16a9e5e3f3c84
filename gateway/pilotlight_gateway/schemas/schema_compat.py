"""Whether callers of one version can call another one: inputs of the old are inputs of the new, and answers of the new
are answers of the old.

Schemas are their tenants', and the library that compares them is native: it runs in a process of its own, which has
little time and memory. What it cannot prove is said to be unproven; a refusal shows a value that proves it, if one is
found.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from pilotlight_core.model.spec import MethodSpec
from pilotlight_gateway.schemas.plain_schemas import plain_schema, unjudged_words

WITHIN_S = 10.0
MEMORY = 512 * 2**20
LARGEST = 256 * 1024
"""Characters of a schema that is compared."""
AT_ONCE = 2
"""Processes that compare."""
SAMPLES = 2_000
DEEPEST = 6
WITNESS = 500


_running = asyncio.Semaphore(AT_ONCE)


class SchemaChange(msgspec.Struct, frozen=True, kw_only=True):
    """Why a new version breaks callers of the old one, or may."""

    method: str
    part: str
    """`input` or `output`."""
    says: str
    witness: str = ""
    """A value that one takes and the other does not, as JSON; "": none was found."""
    is_proven: bool = False


async def breaking_changes(old: Sequence[MethodSpec], new: Sequence[MethodSpec]) -> list[SchemaChange]:
    """What breaks, or is not known not to, of methods that the old version has. Empty: nothing."""
    known = {method.name: method for method in new}
    found: list[SchemaChange] = []
    asked: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = []
    for method in old:
        name, other = method.name, known.get(method.name)
        if other is None:
            found.append(SchemaChange(method=name, part="input", says="the new version lacks it", is_proven=True))
        elif other.mode is not method.mode:
            found.append(
                SchemaChange(method=name, part="output", says="one of both streams its answer", is_proven=True)
            )
        else:
            asked.append((name, "input", method.input_schema, other.input_schema))
            asked.append((name, "output", method.output_schema, other.output_schema))
    differing = [one for one in asked if one[2] != one[3]]
    questions = [_question(*one) for one in differing]
    answers = await _answers([one for one in questions if one is not None])
    for (name, part, before, after), question in zip(differing, questions, strict=True):
        answer = next(answers) if question is not None else TOO_LARGE
        if (change := _change(name, part, before, after, answer)) is not None:
            found.append(change)
    return found


TOO_LARGE: dict[str, Any] = {"why": "its schema is too large to be compared"}
FAILED: dict[str, Any] = {"why": "comparing its schemas took too long, or failed"}


def _question(_name: str, part: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any] | None:
    """What is asked about two schemas; None: they are too large."""
    question = {"part": part, "old": old, "new": new}
    return question if len(json.dumps(question)) <= LARGEST else None


def _change(
    name: str, part: str, old: dict[str, Any], new: dict[str, Any], answer: dict[str, Any]
) -> SchemaChange | None:
    if why := answer.get("why"):
        return SchemaChange(method=name, part=part, says=f"unproven: {why}")
    if answer["fits"] and (changed := unjudged_words(old, new)):
        says = f"unproven: {' and '.join(changed)} changed, or cannot be judged"
        return SchemaChange(method=name, part=part, says=says)
    if answer["fits"]:
        return None
    what = "the new version refuses" if part == "input" else "the old version never answered"
    witness = str(answer["witness"])
    says = f"{what} such a value" if witness else f"unproven: {what} some value, perhaps; none was found"
    return SchemaChange(method=name, part=part, says=says, witness=witness, is_proven=bool(witness))


async def _answers(questions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the library says, in the order of the questions, by one process with nothing of this one's environment."""
    if not questions:
        return iter(())
    async with _running:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-m", "pilotlight_gateway.schemas.schema_compat", env={},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            async with asyncio.timeout(WITHIN_S):
                out, _ = await process.communicate(json.dumps(questions).encode())
        except TimeoutError:
            out = b""
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    said = out.splitlines()
    answers = [_read(said[place]) if place < len(said) else FAILED for place in range(len(questions))]
    return iter(answers)


def _read(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        return FAILED
    known = isinstance(answer, dict) and ("why" in answer or {"fits", "witness"} <= answer.keys())
    return answer if known else FAILED


def compare(part: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Whether what the one takes the other takes too, and a value that it does not."""
    import jsoncompat
    import jsonschema_rs

    before, after = json.dumps(plain_schema(old)), json.dumps(plain_schema(new))
    if jsoncompat.check_compat(before, after, "deserializer" if part == "input" else "serializer"):
        return {"fits": True, "witness": ""}
    source, against = (before, new) if part == "input" else (after, old)
    validator = jsonschema_rs.validator_for(against)
    own = jsonschema_rs.validator_for(json.loads(source))
    root = json.loads(source)
    cut = ""
    for value in (*islice(_candidates(root, root, DEEPEST), SAMPLES), json.loads(jsoncompat.generate_value(source))):
        if own.is_valid(value) and not validator.is_valid(value):
            if len(text := json.dumps(value)) <= WITNESS:
                return {"fits": False, "witness": text}
            cut = cut or f"{text[: WITNESS - 1]}…"
    return {"fits": False, "witness": cut}


def _candidates(schema: Any, root: Any, depth: int) -> Iterator[Any]:
    """Values at the edges of what a schema allows; some may be none of its values."""
    if not isinstance(schema, dict) or depth <= 0:
        yield from (None, 0, "x", [], {}, True)
        return
    if isinstance(reference := schema.get("$ref"), str):
        found = root
        for name in reference.removeprefix("#/").split("/"):
            found = found.get(name, {}) if isinstance(found, dict) else {}
        yield from _candidates(found, root, depth - 1)
        return
    yield from schema.get("enum", ())
    if "const" in schema:
        yield schema["const"]
    for word in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(word, ()):
            yield from islice(_candidates(each, root, depth - 1), 20)
    kinds = schema.get("type", ())
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        yield from _of_type(kind, schema, root, depth)


def _of_type(kind: str, schema: dict[str, Any], root: Any, depth: int) -> Iterator[Any]:
    match kind:
        case "null":
            yield None
        case "boolean":
            yield from (False, True)
        case "integer" | "number":
            edges = [schema[word] for word in ("minimum", "maximum", "multipleOf") if word in schema]
            yield from (*edges, 0, 1, -1, 10**9, *([0.5] if kind == "number" else []))
        case "string":
            least, most = schema.get("minLength", 0), schema.get("maxLength", 40)
            yield from ("x" * min(least, 1_000), "x" * min(most, 1_000), "", "x")
        case "array":
            items = list(islice(_candidates(schema.get("items", {}), root, depth - 1), 8))
            least, most = min(schema.get("minItems", 0), 50), min(schema.get("maxItems", 3), 50)
            for item in items:
                yield from ([item] * least, [item] * most, [item])
            yield []
        case "object":
            yield from _objects(schema, root, depth)


def _objects(schema: dict[str, Any], root: Any, depth: int) -> Iterator[Any]:
    """With what is required alone, with everything, and each property at each of its edges."""
    parts = {
        name: list(islice(_candidates(part, root, depth - 1), 12)) or [None]
        for name, part in schema.get("properties", {}).items()
    }
    required = {name: parts.get(name, [0])[0] for name in schema.get("required", ())}
    whole = required | {name: values[0] for name, values in parts.items()}
    yield from (required, whole)
    for name, values in parts.items():
        for value in values:
            yield required | {name: value}
            yield whole | {name: value}
    if schema.get("additionalProperties", True) is not False:
        yield whole | {"more": 1}


def main() -> None:
    """Answer the question of the standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(WITHIN_S), int(WITHIN_S)))
    for asked in json.loads(sys.stdin.buffer.read()):
        try:
            answer = compare(asked["part"], asked["old"], asked["new"])
        except Exception as error:  # noqa: BLE001 - whatever the library says of a tenant's schema
            answer = {"why": f"its schemas cannot be compared ({type(error).__name__})"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
