"""Which JSON Schemas of tenants are compiled: those whose validation provably costs little.

A schema is code that the gateway runs for every call, in a process that all tenants share. References reach only into
the same schema, patterns go to a linear engine and are small, and the work per value is bounded by two rules.

A schema is a graph. From one of its nodes, *beside* edges lead to the schemas that judge the same value (`$ref`,
`allOf`, `anyOf`, ...), *below* edges to those that judge its members (`properties`, `items`, ...).

1. Without cycles, a value is judged by as many nodes as the graph unfolds into: the unfolded size has a bound.
2. On a cycle the unfolding never ends, but as long as every value is reached by only one way round, the work stays
   proportional to the value. So a node on a cycle may lead back to it by one beside edge, or by below edges to
   different members, and not by both. Trees and lists are like that; a recursive union of two is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.values import depth_within

MAX_DEPTH = 48
MAX_NODES = 4_000
"""Subschemas written down; with 64 KiB of text there is hardly room for more."""
MAX_UNFOLDED = 10_000
MAX_PATTERNS = 64
MAX_PATTERN_LENGTH = 256
NESTED_WORD = 25
"""What comparing with a list or an object in `enum` or `const` takes, in parts."""
FRACTION_WORDS = 2_500
"""What dividing by a fraction takes, in parts: `multipleOf` computes exactly, whatever the sizes."""

ONE = {
    "not": "beside", "if": "beside", "then": "beside", "else": "beside", "items": "below", "contains": "below",
    "additionalProperties": "below", "propertyNames": "below",
}  # fmt: skip
MANY = {"allOf": "beside", "anyOf": "beside", "oneOf": "beside", "prefixItems": "below"}
NAMED = {"properties": "below", "patternProperties": "below", "$defs": "aside"}
"""Where subschemas stand, by the shape of the keyword's value."""
REFUSED = (
    "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary",
    "unevaluatedItems", "unevaluatedProperties", "dependentSchemas", "dependencies",
)  # fmt: skip
"""Keywords that make references or the judged part depend on more than the place; type hints need none of them."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass
class Subschema:
    """A subschema: the pointers of those beside and below it."""

    beside: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    words: int = 1
    """Itself, and the values and names that it lists: a value is compared with each of them."""
    overlapping: bool = False
    """Whether two of its below edges can meet in one member: `contains` judges what `items` judges, and a name may
    match a pattern as well as a property or another pattern."""


SchemaGraph = dict[str, Subschema]


@dataclass(frozen=True, kw_only=True)
class SchemaCost:
    """What a schema can cost."""

    parts: int
    """By which one value can be judged."""
    patterns: int


def check_schema(schema: Any, field_name: str) -> SchemaCost:
    """The weight of a schema; one that could cost much whatever it judges is refused.

    Raises:
        BadInput: naming `field_name` and what is wrong.
    """
    if not depth_within(schema, MAX_DEPTH):
        raise BadInput(f"The schema is nested deeper than {MAX_DEPTH}.", field=field_name)
    try:
        graph, patterns = _graph_of(schema)
        return SchemaCost(parts=_check_cost(graph), patterns=patterns)
    except _TooMuch as problem:
        raise BadInput(f"The schema cannot be used: {problem}.", field=field_name) from None


class _TooMuch(Exception):
    """Why a schema is refused."""


def _graph_of(schema: Any) -> tuple[SchemaGraph, int]:
    graph: SchemaGraph = {}
    patterns = 0
    open_nodes: list[tuple[str, Any]] = [("#", schema)]
    while open_nodes:
        pointer, part = open_nodes.pop()
        if len(graph) >= MAX_NODES:
            raise _TooMuch(f"it has more than {MAX_NODES} parts")
        graph[pointer] = node = Subschema()
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict):
            raise _TooMuch(f"{pointer} is neither an object nor true or false")
        _check_keywords(pointer, part)
        patterns += _check_patterns(pointer, part)
        if patterns > MAX_PATTERNS:
            raise _TooMuch(f"it has more than {MAX_PATTERNS} patterns")
        node.words += _words(part)
        node.overlapping = "contains" in part or "patternProperties" in part
        node.beside += [part["$ref"]] if "$ref" in part else []
        for where, place, inner in _places(pointer, part):
            open_nodes.append((place, inner))
            if where != "aside":
                getattr(node, where).append(place)
    for pointer, node in graph.items():
        for target in (*node.beside, *node.below):
            if target not in graph:
                raise _TooMuch(f"{pointer} refers to {target}, where there is no schema")
    return graph, patterns


def _check_keywords(pointer: str, part: dict[str, Any]) -> None:
    for word in REFUSED:
        if word in part:
            raise _TooMuch(f"{word} (at {pointer}) is not supported")
    if part.get("$schema", DRAFT) not in (DRAFT, f"{DRAFT}#"):
        raise _TooMuch("$schema must be the 2020-12 draft")
    ref = part.get("$ref", "#")
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        raise _TooMuch(f"$ref {ref!r} (at {pointer}) leads out of it: only '#/...' is allowed")


def _check_patterns(pointer: str, part: dict[str, Any]) -> int:
    named = part.get("patternProperties")
    found = [*(named if isinstance(named, dict) else ()), *([part["pattern"]] if "pattern" in part else ())]
    for pattern in found:
        if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN_LENGTH:
            raise _TooMuch(f"a pattern at {pointer} is longer than {MAX_PATTERN_LENGTH} characters")
    return len(found)


def _words(part: dict[str, Any]) -> int:
    named = part.get("dependentRequired")
    lists = [part.get("required"), *(named.values() if isinstance(named, dict) else ())]
    values = [*(word for word in (part.get("enum"),) if isinstance(word, list)), [part.get("const")]]
    names = sum(len(names) for names in lists if isinstance(names, list))
    names += FRACTION_WORDS if isinstance(part.get("multipleOf"), float) else 0
    return names + sum(NESTED_WORD * _size(word) if _size(word) else 1 for listed in values for word in listed)


def _size(word: Any) -> int:
    """0 for a scalar, else how many values there are in a list or an object."""
    inner = word.values() if isinstance(word, dict) else word if isinstance(word, list) else None
    return 0 if inner is None else 1 + sum(1 + _size(item) for item in inner)


def _places(pointer: str, part: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The subschemas written in `part`: beside, below or aside of it, their pointers, and themselves."""
    for word, where in ONE.items():
        if word in part:
            yield where, f"{pointer}/{word}", part[word]
    for word, where in MANY.items():
        for index, inner in _items(part.get(word)):
            yield where, f"{pointer}/{word}/{index}", inner
    for word, where in NAMED.items():
        for name, inner in _members(part.get(word)):
            yield where, f"{pointer}/{word}/{_escape(name)}", inner


def _items(value: Any) -> list[tuple[int, Any]]:
    return list(enumerate(value)) if isinstance(value, list) else []


def _members(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _check_cost(graph: SchemaGraph) -> int:
    ring = _rings(graph)
    for pointer, node in graph.items():
        beside = [target for target in node.beside if ring[target] == ring[pointer]]
        below = [target for target in node.below if ring[target] == ring[pointer]]
        if len(beside) + bool(below) > 1 or (node.overlapping and below):
            raise _TooMuch(f"{pointer} leads back to itself in more than one way")
    _check_beside_cycles(graph)
    return _check_unfolded(graph, ring)


def _check_unfolded(graph: SchemaGraph, ring: dict[str, str]) -> int:
    """The words of all parts, as often as they judge."""
    rings: dict[str, list[str]] = {}
    for pointer in _leaves_first(graph):
        # Taken out and put back, so that a ring stands where its last node does: behind all that it leads to.
        rings[ring[pointer]] = [*rings.pop(ring[pointer], []), pointer]
    sizes: dict[str, int] = {}
    words: dict[str, int] = {}
    for name, pointers in rings.items():
        targets = [target for pointer in pointers for target in (*graph[pointer].beside, *graph[pointer].below)]
        sizes[name] = len(pointers) + sum(sizes[ring[target]] for target in targets if ring[target] != name)
        if sizes[name] > MAX_UNFOLDED:
            raise _TooMuch(f"with its references unfolded it has more than {MAX_UNFOLDED} parts")
        listed = sum(graph[pointer].words for pointer in pointers)
        words[name] = listed + sum(words[ring[target]] for target in targets if ring[target] != name)
    return words[ring["#"]]


def _check_beside_cycles(graph: SchemaGraph) -> None:
    """A cycle of beside edges alone judges the same value for ever."""
    only_beside = {pointer: Subschema(beside=node.beside) for pointer, node in graph.items()}
    ring = _rings(only_beside)
    for pointer, node in only_beside.items():
        for target in node.beside:
            if ring[target] == ring[pointer]:
                raise _TooMuch(f"{pointer} refers to itself without going deeper into the value")


def _leaves_first(graph: SchemaGraph) -> list[str]:
    """All nodes, each behind those that it leads to (cycles aside)."""
    order: list[str] = []
    seen: set[str] = set()
    for root in graph:
        stack: list[tuple[str, Iterator[str]]] = []
        if root not in seen:
            seen.add(root)
            stack.append((root, iter((*graph[root].beside, *graph[root].below))))
        while stack:
            pointer, targets = stack[-1]
            fresh = next((target for target in targets if target not in seen), None)
            if fresh is None:
                order.append(pointer)
                stack.pop()
            else:
                seen.add(fresh)
                stack.append((fresh, iter((*graph[fresh].beside, *graph[fresh].below))))
    return order


def _rings(graph: SchemaGraph) -> dict[str, str]:
    """Each node's strongly connected component, named by one of its nodes (Kosaraju's two passes)."""
    sources: dict[str, list[str]] = {pointer: [] for pointer in graph}
    for pointer, node in graph.items():
        for target in (*node.beside, *node.below):
            sources[target].append(pointer)
    ring: dict[str, str] = {}
    for root in reversed(_leaves_first(graph)):
        stack = [root]
        while stack:
            pointer = stack.pop()
            if pointer not in ring:
                ring[pointer] = root
                stack += sources[pointer]
    return ring
