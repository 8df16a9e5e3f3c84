"""What a CallTarget knows of its function, and what it does not know of one that was found by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pilotlight import App, Function, batched, method
from pilotlight.definitions.call_target import CallTarget

app = App("targets")


@app.gpu_function(idempotent=True)
@batched(max_batch_size=8)
def lengths(texts: list[str]) -> list[int]:
    return [len(text) for text in texts]


@app.gpu_function
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


@app.gpu_function
class Model:
    @method()
    def predict(self, text: str) -> str:
        return text


@dataclass
class Match:
    text: str
    score: float


@app.gpu_function
def best(text: str) -> Match | None:
    return Match(text, 1.0)


@app.gpu_function
def every(text: str) -> Iterator[Match]:
    yield Match(text, 1.0)


@app.gpu_function
@batched(max_batch_size=8)
def matched(texts: list[str]) -> list[Match]:
    return [Match(text, 1.0) for text in texts]


@app.gpu_function
def untold(text: str):  # type: ignore[no-untyped-def]
    return text


MATCH = {"text": "a", "score": 1}


@pytest.mark.parametrize("function", [best, every, matched])
def test_an_answer_is_what_the_hint_says(function: Any) -> None:
    """Of a generator each chunk, of a batched function each item."""
    assert function.target.as_hinted(MATCH) == Match("a", 1.0)


def test_an_answer_that_does_not_fit_its_hint_is_as_it_came() -> None:
    """It is there, and a hint is no promise of Python's."""
    assert best.target.as_hinted({"text": 3}) == {"text": 3}
    assert best.target.as_hinted(None) is None
    assert untold.target.as_hinted(MATCH) == MATCH
    assert Function.from_name("targets", "best").target.as_hinted(MATCH) == MATCH


def test_the_stored_answer_of_a_generator_is_a_list_of_chunks() -> None:
    """Each of them is what the hint says."""
    assert every.target.as_stored([MATCH, MATCH]) == [Match("a", 1.0)] * 2
    assert best.target.as_stored(MATCH) == Match("a", 1.0)


def known(target: CallTarget) -> tuple[Any, ...]:
    return target.label, target.batch_size, target.is_generator, target.is_idempotent


def test_a_function_found_by_name_is_not_known_here() -> None:
    """Its batches and what it returns are unknown, and it counts as not safe to repeat."""
    found = Function.from_name("zoo:llm", "chat", version=7).target
    assert known(found) == ("zoo:llm.chat@v7", None, None, False)
    assert (found.spec, found.callee, found.instance) == (None, None, None)


def test_a_decorated_function_is_known() -> None:
    """From its decorators and its code."""
    assert known(lengths.target) == ("targets.lengths", 8, False, True)
    assert known(count.target) == ("targets.count", None, True, False)


def test_a_method_is_named_after_its_class() -> None:
    """Its label is what messages call it; the ref is that of the class."""
    target = Model().predict.target
    assert known(target) == ("targets.Model.predict", None, False, False)
    assert str(target.ref) == "targets.Model"
    assert target.instance is not None
