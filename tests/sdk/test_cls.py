"""Decorated classes: how instances are made and methods found, and how misuse is answered."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import App, Cls, Obj, OptionError, batched, enter, method


@App("classes").gpu_function
class Model:
    size = 3

    @enter()
    def load(self) -> None:
        self.loads = 1

    @method()
    def predict(self, text: str) -> str:
        return f"{text} {self.loads}"

    @batched(max_batch_size=4)
    def embed(self, texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    def helper(self) -> None: ...


wrapped: Any = Model


@pytest.mark.parametrize(
    ("attribute", "example"), [("predict", r"Model\(\)\.predict"), ("remote", r"Model\(\)\.predict\.remote")]
)
def test_a_class_without_an_instance_names_how_to_make_one(attribute: str, example: str) -> None:
    """A method, or a verb, of the class itself is refused with the call that was meant."""
    with pytest.raises(AttributeError, match=f"make an instance first, {example}"):
        getattr(wrapped, attribute)


def test_an_instance_names_the_methods_it_has() -> None:
    """A method that is not marked cannot be called through Pilotlight."""
    with pytest.raises(AttributeError, match=r"it has predict, embed\. The class itself is Model\.__wrapped__"):
        wrapped().helper()


def test_a_class_takes_no_arguments() -> None:
    """Parameters of classes are refused, not dropped."""
    with pytest.raises(OptionError, match="takes no arguments yet"):
        wrapped(3)


def test_a_class_is_still_the_class_that_was_written() -> None:
    """Its attributes, its instances' methods and its subclasses are those of the class."""
    assert isinstance(wrapped, Cls)
    assert isinstance(wrapped(), Obj)
    assert (wrapped.size, wrapped.name, str(wrapped.ref)) == (3, "Model", "classes.Model")
    assert {"predict", "embed"} <= {*dir(wrapped())}
    assert (repr(wrapped), repr(wrapped()), repr(wrapped().predict)) == (
        "Cls('classes.Model')", "Model()", "Function('classes.Model.predict')",
    )  # fmt: skip

    class Larger(wrapped):  # type: ignore[misc]
        size = 4

    assert Larger.__mro__[1] is wrapped.__wrapped__


def test_instances_are_loaded_apart() -> None:
    """Two Objs of a class share no object."""
    first, second = wrapped(), wrapped()
    assert first.predict.local("a") == "a 1"
    assert first.predict.target.instance is not second.predict.target.instance
