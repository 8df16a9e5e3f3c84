"""`warmup=`, `check=`, `check_every=` and `check_timeout=`, and methods marked `@check()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

import pilotlight
from pilotlight import Example, OptionError, batched, check, enter, gpu_function, method
from pilotlight_core.model import values
from pilotlight_core.model.rehearsals.rehearsal import CheckExample, Rehearsal, WarmupExample


def rehearsal(**options: Any) -> Any:
    @gpu_function(app="rehearsals", **options)
    def embed(text: str, size: int = 3) -> list[float]:
        return [float(len(text))] * size

    return embed.spec.rehearsal


def class_of(**options: Any) -> Any:
    @gpu_function(app="rehearsals", **options)
    class Model:
        @enter()
        def load(self) -> None: ...

        @method()
        def count(self, upto: int) -> Iterator[int]:
            yield from range(upto)

        @batched(max_batch_size=4)
        def embed(self, text: list[str]) -> list[int]:
            return [len(one) for one in text]

        @check()
        def healthy(self) -> None: ...

    spec: Any = Model.spec  # type: ignore[attr-defined]  # a type checker sees the class itself
    return spec.rehearsal


def test_a_function_that_says_nothing_has_none() -> None:
    """Its version is as it was before there was any."""
    assert rehearsal() is UNSET
    assert rehearsal(warmup=None, check=None) is UNSET


def test_a_function_names_inputs_and_a_call_with_its_answer() -> None:
    """A check comes again every five minutes, unless it says otherwise."""
    found = rehearsal(
        warmup=[{"text": "a"}, Example({"text": "b", "size": 2})], check=Example({"text": "ab"}, [2.0] * 3)
    )

    assert found == Rehearsal(
        warmup=tuple(
            WarmupExample(inputs=(values.encode(each),)) for each in ({"text": "a"}, {"text": "b", "size": 2})
        ),
        example=CheckExample(input=values.encode({"text": "ab"}), output=values.encode([2.0] * 3)),
        check_every=300.0,
    )
    assert rehearsal(check=Example({"text": ""}, None), check_every=0).check_every == 0.0
    assert rehearsal(warmup=[{"text": "a"}]).check_every == 0.0


def test_a_class_names_methods_and_batches_and_marks_its_checks() -> None:
    """A list of inputs is one batch."""
    found = class_of(
        warmup=[Example({"upto": 2}, method="count"), Example([{"text": "a"}, {"text": "b"}], method="embed")],
        check=Example({"upto": 2}, [0, 1], method="count", tolerance=0),
        check_every=60,
        check_timeout=2,
    )

    assert found.checks == ("healthy",)
    assert [(one.method, len(one.inputs)) for one in found.warmup] == [("count", 1), ("embed", 2)]
    assert found.example == CheckExample(
        method="count", input=values.encode({"upto": 2}), output=values.encode([0, 1]), tolerance=0.0
    )
    assert (found.check_every, found.check_timeout) == (60.0, 2.0)


def test_a_class_with_a_check_of_the_old_name_is_checked_again_only_if_it_says_so() -> None:
    """Nothing that it did not ask for runs while it serves."""

    class Old:
        @method()
        def run(self) -> None: ...

        def __check__(self) -> bool:
            return True

    assert gpu_function(app="rehearsals")(Old).spec.rehearsal is UNSET
    assert gpu_function(app="rehearsals", check_every=30)(Old).spec.rehearsal == Rehearsal(check_every=30.0)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"warmup": {"text": "a"}}, "warmup= expects a list of inputs"),
        ({"warmup": ["a"]}, "an input is a dict of arguments by name, not 'a'"),
        ({"warmup": [{"test": "a"}]}, "warmup=: .*embed: "),
        ({"warmup": [{}]}, "missing a required argument: 'text'"),
        ({"warmup": [[{"text": "a"}, {"text": "b"}]]}, "an example has 2 inputs, and the method takes one input"),
        ({"warmup": [Example({"text": "a"}, method="gone")]}, "there is no method 'gone'"),
        ({"warmup": [{"text": object()}]}, "its input cannot be sent: a object cannot travel"),
        ({"check": {"text": "a"}}, "check= expects Example"),
        ({"check": Example({"text": "a"})}, "check= expects Example"),
        ({"check": Example([{"text": "a"}] * 2, 1)}, "check= expects one input"),
        ({"check": Example({"text": "a"}, 1, tolerance="1")}, "tolerance='1': expected a number"),  # type: ignore[arg-type]
        ({"check": Example({"text": "a"}, 1), "check_every": 1}, "check_every: 1 is out of range"),
        ({"check": Example({"text": "a"}, 1), "check_every": "1"}, "check_every='1': expected seconds"),
        ({"check": Example({"text": "a"}, 1), "check_timeout": 0}, "check_timeout: expected more than 0"),
        ({"check_every": 60}, "check_every= needs a check"),
        ({"check_timeout": 60}, "check_timeout= needs a check"),
    ],
)
def test_others_are_refused_by_name(options: dict[str, Any], why: str) -> None:
    """Where they were written."""
    with pytest.raises(OptionError, match=why):
        rehearsal(**options)


def test_a_function_marks_no_check() -> None:
    """It has no object that could be unfit."""
    with pytest.raises(OptionError, match="mark methods of a class"):
        gpu_function(app="rehearsals")(check(lambda: None))


def test_a_check_takes_nothing_and_yields_nothing() -> None:
    """As every hook."""
    with pytest.raises(OptionError, match="@check\\(\\) takes no options"):
        pilotlight.check(every=3)  # type: ignore[call-overload]

    class Yields:
        @method()
        def run(self) -> None: ...

        @check()
        def healthy(self) -> Iterator[None]:
            yield

    with pytest.raises(OptionError, match="healthy is an @check"):
        gpu_function(app="rehearsals")(Yields)


def test_it_travels() -> None:
    """As a part of the specification."""
    found = rehearsal(warmup=[{"text": "a"}])

    assert msgspec.json.decode(msgspec.json.encode(found), type=Rehearsal) == found
