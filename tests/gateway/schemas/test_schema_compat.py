"""Whether callers of one version can call another one."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
import pytest

from pilotlight_core.model.spec import Mode
from pilotlight_gateway.schemas import schema_compat
from pilotlight_gateway.schemas.schema_compat import SchemaChange, breaking_changes, compare
from tests.builders.specs import method
from tests.gateway.schemas.schema_pairs import schema_pair

ONE = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
MORE = {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"],
    "additionalProperties": False,
}  # fmt: skip
NEEDED = MORE | {"required": ["a", "b"]}


@pytest.mark.parametrize(
    ("part", "old", "new", "fits"),
    [
        ("input", ONE, MORE, True),
        ("input", ONE, NEEDED, False),
        ("input", MORE, ONE, False),
        ("output", {"type": "integer"}, {"type": "integer", "minimum": 0}, True),
        ("output", {"type": "integer"}, {"type": "string"}, False),
        ("output", {"enum": ["a", "b"]}, {"enum": ["a", "b", "c"]}, False),
    ],
)
def test_old_inputs_are_to_be_new_ones_and_new_answers_old_ones(
    part: str, old: dict[str, Any], new: dict[str, Any], fits: bool
) -> None:
    answer = compare(part, old, new)
    assert answer["fits"] is fits
    if not fits:
        json.loads(answer["witness"])


async def test_a_refusal_shows_a_value_that_proves_it() -> None:
    (change,) = await breaking_changes([method(input_schema=ONE)], [method(input_schema=NEEDED)])
    assert (change.part, change.is_proven) == ("input", True)
    assert "b" not in json.loads(change.witness)
    assert "refuses" in change.says


async def test_what_is_the_same_is_not_even_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncio.create_subprocess_exec", None)
    assert await breaking_changes([method(input_schema=ONE)], [method(input_schema=ONE)]) == []


@pytest.mark.parametrize("keyword", ["pattern", "format"])
async def test_a_changed_pattern_is_unproven(keyword: str) -> None:
    old, new = {"type": "string", keyword: "date"}, {"type": "string", keyword: "time"}
    (change,) = await breaking_changes([method(output_schema=old)], [method(output_schema=new)])
    assert not change.is_proven
    assert "unproven" in change.says


async def test_methods_that_go_or_begin_to_stream_break() -> None:
    gone, streams = await breaking_changes([method("a"), method("b")], [method("b", mode=Mode.GENERATOR)])
    assert (gone.method, gone.says) == ("a", "the new version lacks it")
    assert (streams.method, streams.part) == ("b", "output")


async def test_what_cannot_be_compared_is_unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_compat, "WITHIN_S", 0.0)
    (slow,) = await breaking_changes([method(input_schema=ONE)], [method(input_schema=NEEDED)])
    assert "took too long" in slow.says
    monkeypatch.setattr(schema_compat, "LARGEST", 10)
    (large,) = await breaking_changes([method(input_schema=ONE)], [method(input_schema=NEEDED)])
    assert "too large" in large.says


PAIRS = 500


@pytest.mark.parametrize("part", ["input", "output"])
async def test_of_five_hundred_pairs_none_that_breaks_is_let_through(part: str) -> None:
    """Three of a hundred that fit may be refused at most; each refusal has a value that shows it, or is unproven."""
    chance = random.Random(7)
    pairs = [schema_pair(chance) for _ in range(PAIRS)]
    let_through, refused, fitting = [], [], 0
    for pair in pairs:
        old, new = (pair.old, pair.new) if part == "input" else (pair.new, pair.old)
        change = judged(part, old, new)
        fitting += pair.fits
        if pair.fits and change is not None:
            refused.append((pair.how, change.says))
        elif not pair.fits and change is None:
            let_through.append(pair)
        if change is not None and change.witness.endswith("…"):
            assert len(change.witness) == schema_compat.WITNESS  # too long to be shown whole
        elif change is not None and change.witness:
            takes, refuses = (old, new) if part == "input" else (new, old)
            assert is_valid(change.witness, takes)
            assert not is_valid(change.witness, refuses)
        elif change is not None:
            assert "unproven" in change.says

    assert let_through == []
    assert 200 < fitting < 300
    assert len(refused) <= 0.03 * fitting, refused


def judged(part: str, old: dict[str, Any], new: dict[str, Any]) -> SchemaChange | None:
    return schema_compat._change("", part, old, new, compare(part, old, new))


def is_valid(text: str, schema: dict[str, Any]) -> bool:
    return jsonschema_rs.validator_for(schema).is_valid(json.loads(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"enum": [1, 7]}, {"enum": [1, 7], "minimum": 5}),
        (
            {"$defs": {"t": {"type": "integer"}}, "$ref": "#/$defs/t"},
            {"$defs": {"t": {"type": "integer"}}, "$ref": "#/$defs/t", "minimum": 5},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}, "b": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "pattern": "x"}}},
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "unevaluatedItems": False},
            {"type": "array", "unevaluatedItems": False},
        ),
    ],
)
def test_what_the_library_does_not_heed_is_not_let_through(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert judged("input", old, new) is not None
