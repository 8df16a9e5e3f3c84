"""The hooks that calls of a class run through: what is read of them, and what cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import UNSET

from pilotlight import App, Cls, OptionError, batched, enter, method, postprocess, preprocess
from pilotlight.definitions.call_hooks import argument_of, arguments
from pilotlight.definitions.signature import Callee
from pilotlight_core.model.pipelines.pipeline import HOOK_MEMORY, HookKind, Pipeline


class Words:
    """Sums the numbers of a text."""

    @enter(stage="preprocess")
    def open_table(self) -> None:
        self.table = {"one": 1, "two": 2}

    @enter()
    def load(self) -> None:
        self.model = sum

    @preprocess(cpu=0.5, memory="256MiB", max_containers=3, max_inputs=4)
    def read(self, text: str, lower: bool = False) -> list[int]:
        return [self.table[word] for word in (text.lower() if lower else text).split()]

    @postprocess
    async def write(self, answer: int) -> str:
        return f"it is {answer}"

    @method()
    def add(self, numbers: list[int]) -> int:
        """Sum them."""
        return int(self.model(numbers))

    @batched(max_batch_size=4)
    def count(self, numbers: list[list[int]]) -> list[int]:
        return [len(one) for one in numbers]


def decorated(cls: type = Words) -> Cls[Any]:
    return App("tests").gpu_function(gpu="any")(cls)


def pipeline_of(cls: type) -> Pipeline:
    found = decorated(cls).spec.pipeline
    assert found is not UNSET
    return found


def test_a_class_says_how_its_hooks_run_and_what_its_methods_get() -> None:
    """Their own enter hooks are none of the class's, and its schemas are those that callers see."""
    spec, pipeline = decorated().spec, pipeline_of(Words)
    first, last = pipeline.hooks.values()

    assert list(pipeline.hooks) == [HookKind.PREPROCESS, HookKind.POSTPROCESS]
    assert (first.attribute, first.enter, first.is_async, first.takes) == ("read", ("open_table",), False, "")
    assert (first.cpu, first.memory, first.max_containers, first.max_inputs) == (0.5, 256 * 2**20, 3, 4)
    assert (last.attribute, last.is_async, last.takes, last.memory) == ("write", True, "answer", HOOK_MEMORY)
    assert pipeline.takes == {"add": "numbers", "count": "numbers"}
    assert spec.enter == ("load",)
    for added in spec.methods:
        assert list(added.input_schema["properties"]) == ["text", "lower"]
        assert added.input_schema["x-pilotlight-method"] == added.name
        assert added.output_schema == {"type": "string"}
    assert spec.methods[0].input_schema["description"] == "Sum them."
    assert decorated(type("Plain", (), {"run": method()(lambda self, x: x)})).spec.pipeline is UNSET


async def test_a_call_in_this_process_runs_through_the_hooks_too() -> None:
    """One object stands for all containers; with an asynchronous hook the answer is awaited."""
    words = decorated()()
    assert await words.add.local("one TWO".lower()) == "it is 3"
    assert await words.add.local.aio("One two", lower=True) == "it is 3"
    assert await words.count.local(text="one one") == "it is 2"
    with pytest.raises(KeyError, match="four"):
        words.add.local("four")


def test_plain_hooks_answer_at_once_and_streams_yield() -> None:
    """Without a postprocess hook a generator is one; what a hook returns for several arguments is a dict of them."""

    class Letters:
        @preprocess()
        def split(self, text: str) -> dict[str, Any]:
            return {"letters": list(text), "times": 2}

        @method()
        def each(self, letters: list[str], times: int) -> Iterator[str]:
            for letter in letters:
                yield letter * times

    letters = decorated(Letters)
    assert list(letters().each.local("ab")) == ["aa", "bb"]
    assert pipeline_of(Letters).takes == {"each": ""}
    assert letters.spec.methods[0].input_schema["required"] == ["text"]


def test_arguments_travel_as_the_hooks_parameters() -> None:
    """Those of the method itself are between the stages alone."""
    target = decorated()().add.target
    assert target.callee is not None
    assert target.callee.bind_call(("one",), {"lower": True}) == {"text": "one", "lower": True}
    assert target.callee.bind_arguments(([1],), {}) == {"numbers": [1]}
    assert target.as_hinted("it is 3") == "it is 3"


def test_what_a_hook_returns_is_an_argument_or_all_of_them() -> None:
    """As the method's parameters are."""

    def one(self: Any, *, numbers: list[int]) -> None: ...
    def two(self: Any, numbers: list[int], times: int) -> None: ...
    def many(self: Any, **numbers: int) -> None: ...

    one_, two_, many_ = (Callee(function=f, name="f", attribute="f", is_method=True) for f in (one, two, many))
    assert (argument_of(one_), argument_of(two_), argument_of(many_)) == ("numbers", "", "")
    assert arguments(one_, {"a": 1}) == {"numbers": {"a": 1}}
    assert arguments(two_, {"numbers": [1], "times": 2}) == {"numbers": [1], "times": 2}
    with pytest.raises(TypeError, match="returned list: return a dict of them"):
        arguments(two_, [1])


def refused(body: dict[str, Any]) -> str:
    with pytest.raises(OptionError) as failed:
        decorated(type("Wrong", (), body))
    return failed.value.detail


def run(self: Any, x: int) -> int:
    return x


def yields(self: Any, x: int) -> Iterator[int]:
    yield x


def test_what_cannot_be_a_hook_is_refused_with_its_reason() -> None:
    """At the decorator, with the class's place."""
    called = {"run": method()(run)}

    def hook(self: Any, x: int) -> int:
        return x

    def other(self: Any, x: int) -> int:
        return x

    def none(self: Any) -> int:
        return 1

    first, last = preprocess()(hook), postprocess()(other)
    assert "yields, and other is a @postprocess() hook" in refused({"run": method()(yields), "other": last})
    assert "it takes self and the method's answer" in refused({**called, "none": postprocess()(none)})
    assert "are both @preprocess() hooks" in refused({**called, "a": first, "b": preprocess()(lambda self, x: x)})
    assert "has another mark" in refused({**called, "hook": method()(first)})
    assert "needs an @postprocess() hook" in refused({**called, "e": enter(stage="postprocess")(lambda self: None)})
    assert "takes nothing" in refused({"run": method()(lambda self: 1), "h": preprocess()(lambda self, x: x)})

    def stream(self: Any, x: int) -> Iterator[int]:
        yield x

    assert "yields: it returns one value" in refused({**called, "stream": preprocess()(stream)})
    with pytest.raises(OptionError, match="mark methods of a class"):
        App("tests").gpu_function()(preprocess()(lambda x: x))


def test_options_of_hooks_are_checked() -> None:
    """By the same words as a function's."""
    with pytest.raises(OptionError, match=r"@preprocess: memory=1 is 1 MiB"):
        preprocess(memory=1)
    with pytest.raises(OptionError, match=r"@postprocess: max_inputs must be 1 to 10000"):
        postprocess(max_inputs=0)
    with pytest.raises(OptionError, match="gpu"):
        preprocess(gpu="any")  # type: ignore[call-overload]
    with pytest.raises(OptionError, match='expected "preprocess" or "postprocess"'):
        enter(stage="later")  # type: ignore[call-overload]
