"""What a CallTarget knows of its function, and what it does not know of one that was found by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
