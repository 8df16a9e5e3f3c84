"""Admits only JSON Schemas whose validation is provably cheap.

The gateway validates every call in a process that all tenants share. So references stay within the schema, patterns are
short and run on a linear engine, and two rules bound the work per value.

A schema is a graph. From each node, *beside* edges lead to the schemas that judge the same value (`$ref`, `allOf`,
`anyOf`, ...), and *below* edges to those that judge its members (`properties`, `items`, ...).

1. Without cycles, the nodes that judge a value are as many as the unfolded graph has, whose size has a limit.
2. With a cycle the unfolding is infinite, but the work is proportional to the value if each value is reached by one
   path around the cycle. So a node on a cycle may lead back to itself by one beside edge, or by below edges to
   different members, but not by both. Trees and lists satisfy this; a recursive union of two does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.values import depth_within

MAX_DEPTH = 48
MAX_NODES = 4_000
MAX_UNFOLDED = 10_000
MAX_PATTERNS = 64
MAX_PATTERN_LENGTH = 256
NESTED_WORD = 25
"""The cost of a comparison with a list or object of `enum` or `const`, in parts."""
FRACTION_WORDS = 2_500
"""The cost of a fractional `multipleOf`, in parts: it is computed exactly."""

ONE = {
    "not": "beside", "if": "beside", "then": "beside", "else": "beside", "items": "below", "contains": "below",
    "additionalProperties": "below", "propertyNames": "below",
}  # fmt: skip
MANY = {"allOf": "beside", "anyOf": "beside", "oneOf": "beside", "prefixItems": "below"}
NAMED = {"properties": "below", "patternProperties": "below", "$defs": "aside"}
"""Keywords with subschemas, by the shape of their value."""
REFUSED = (
    "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary",
    "unevaluatedItems", "unevaluatedProperties", "dependentSchemas", "dependencies",
)  # fmt: skip
"""Keywords that make references or judged members depend on context; type hints need none of them."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass
class Subschema:
    """Pointers to the schemas beside and below a subschema."""

    beside: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    words: int = 1
    """Itself, and the values and names that it lists: a value is compared with each."""
    overlapping: bool = False
    """Whether two below edges may reach one member, as `contains` and `items` may."""


SchemaGraph = dict[str, Subschema]


@dataclass(frozen=True, kw_only=True)
class SchemaCost:
    """An upper bound of a schema's cost."""

    parts: int
    """Parts that judge one value."""
    patterns: int


def check_schema(schema: Any, field_name: str) -> SchemaCost:
    """The cost of a schema.

    Raises:
        BadInput: it is invalid or too expensive; names `field_name` and the reason.
    """
    if not depth_within(schema, MAX_DEPTH):
        raise BadInput(f"The schema is nested deeper than {MAX_DEPTH}.", field=field_name)
    try:
        graph, patterns = _graph_of(schema)
        return SchemaCost(parts=_check_cost(graph), patterns=patterns)
    except _TooMuch as problem:
        raise BadInput(f"The schema cannot be used: {problem}.", field=field_name) from None


class _TooMuch(Exception):
    """The reason for which a schema is refused."""


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
    inner = word.values() if isinstance(word, dict) else word if isinstance(word, list) else None
    return 0 if inner is None else 1 + sum(1 + _size(item) for item in inner)


def _places(pointer: str, part: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Relation (beside, below or aside), pointer and value of the subschemas in `part`."""
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
    """The words of all parts, as often as they judge a value."""
    rings: dict[str, list[str]] = {}
    for pointer in _leaves_first(graph):
        # Moved to the end, so that a ring takes the place of its last node, behind all that it leads to.
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
    """Refuse cycles of beside edges, which would judge one value forever."""
    only_beside = {pointer: Subschema(beside=node.beside) for pointer, node in graph.items()}
    ring = _rings(only_beside)
    for pointer, node in only_beside.items():
        for target in node.beside:
            if ring[target] == ring[pointer]:
                raise _TooMuch(f"{pointer} refers to itself without going deeper into the value")


def _leaves_first(graph: SchemaGraph) -> list[str]:
    """All nodes, each after those that it leads to, cycles aside."""
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
    """The strongly connected component of each node, named by one of its nodes (Kosaraju)."""
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
