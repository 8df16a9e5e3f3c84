"""The FunctionSpec of a decorated function or class, and what cannot have one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from pilotlight import (  # `exit` is the hook's name
    App,
    Cls,
    OptionError,
    batched,
    concurrent,
    drain,
    enter,
    exit,  # noqa: A004
    method,
    park,
    unpark,
)
from pilotlight.definitions.specs import module_name
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.running_code import NestedPort, open_nested_port
from pilotlight_core.model.spec import Mode


def embed(text: str) -> list[float]:
    return [float(len(text))]


def test_an_option_error_is_a_type_error_with_a_place() -> None:
    """It names the file and line of the function, and is BadInput, too."""
    assert issubclass(OptionError, TypeError)
    assert issubclass(OptionError, BadInput)
    with pytest.raises(OptionError, match=rf"embed \({Path(__file__).name}:\d+\): embed: retries=11 is out of range"):
        App("tests").gpu_function(retries=11)(embed)


def test_each_kind_of_function_is_recognised() -> None:
    """Async functions and generators have their modes."""
    app = App("tests")

    @app.gpu_function
    def plain() -> None: ...

    @app.gpu_function
    async def coroutine() -> None: ...

    @app.gpu_function
    def generator() -> Iterator[int]:
        yield 1

    @app.gpu_function
    async def async_generator() -> AsyncIterator[int]:
        yield 1

    modes = [
        (f.spec.methods[0].mode, f.spec.methods[0].is_async) for f in (plain, coroutine, generator, async_generator)
    ]
    assert modes == [(Mode.UNARY, False), (Mode.UNARY, True), (Mode.GENERATOR, False), (Mode.GENERATOR, True)]
    assert list(app.functions) == ["plain", "coroutine", "generator", "async_generator"]


def test_a_class_becomes_its_methods_and_hooks() -> None:
    """Those of base classes come first, and unmarked methods are left out."""
    app = App("tests")

    class Base:
        @enter()
        def open(self) -> None: ...

        @method()
        def ping(self) -> str:
            return "pong"

    @app.gpu_function(gpu="any")
    @concurrent(max_inputs=8)
    class Model(Base):
        @enter()
        async def load(self) -> None: ...

        @batched(max_batch_size=4, cost=len)
        def embed(self, texts: list[str]) -> list[int]:
            return [len(text) for text in texts]

        @method()
        def words(self, text: str) -> Iterator[str]:
            yield from text.split()

        def helper(self) -> None: ...

        @drain
        def save(self) -> None: ...

        @exit()
        def close(self) -> None: ...

        @park
        def leave(self) -> None: ...

        @unpark()
        async def back(self) -> None: ...

    wrapped: Any = Model
    assert isinstance(wrapped, Cls)
    spec = wrapped.spec
    assert spec.is_class
    assert [(m.name, m.mode.value) for m in spec.methods] == [
        ("ping", "unary"), ("embed", "unary"), ("words", "generator"),
    ]  # fmt: skip
    assert (spec.enter, spec.exit, spec.max_inputs) == (("open", "load"), ("close",), 8)
    assert spec.drain == ("save",)
    assert (spec.park, spec.unpark) == (("leave",), ("back",))
    assert spec.slots == 8


def test_a_target_that_cannot_be_decorated_is_refused() -> None:
    """The error has the alternative."""
    app = App("tests")
    with pytest.raises(OptionError, match="decorates a function or a class"):
        app.gpu_function(3)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="not a name"):
        app.gpu_function(lambda: 0)

    class Holder:
        def plain(self) -> None: ...

        @method()
        def marked(self) -> None: ...

    Holder.plain.__qualname__ = "Holder.plain"  # as a method of a class at the top of a module is called
    with pytest.raises(OptionError, match="decorate the class"):
        app.gpu_function(Holder.plain)

    @method()
    def loose(self: object) -> None: ...

    with pytest.raises(OptionError, match="a function needs none"):
        app.gpu_function(loose)


def test_a_class_that_cannot_run_is_refused() -> None:
    """It lacks methods, needs parameters, or has hooks that cannot be hooks."""
    app = App("tests")

    class Empty:
        def predict(self) -> None: ...

    class Parametrised:
        def __init__(self, size: int) -> None: ...

        @method()
        def predict(self) -> None: ...

    class Yielding:
        @enter()
        def load(self) -> Iterator[None]:
            yield

        @method()
        def predict(self) -> None: ...

    class Asking:
        @exit()
        def close(self, why: str) -> None: ...

        @method()
        def predict(self) -> None: ...

    for cls, message in (
        (Empty, "at least one method"),
        (Parametrised, "__init__ needs size"),
        (Yielding, "split it"),
        (Asking, "nothing but self"),
    ):
        with pytest.raises(OptionError, match=message):
            app.gpu_function(cls)


def test_what_leaves_the_device_has_to_come_back() -> None:
    """One hook without the other is refused."""

    class Leaving:
        @park()
        def leave(self) -> None: ...

        @method()
        def predict(self) -> None: ...

    class Returning:
        @unpark()
        def back(self) -> None: ...

        @method()
        def predict(self) -> None: ...

    for cls, missing in ((Leaving, "@unpark"), (Returning, "@park")):
        with pytest.raises(OptionError, match=f"needs {missing}"):
            App("tests").gpu_function(cls)


def test_a_module_that_was_started_is_named_after_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container imports `python path/app.py` as `app`; without a file the module stays `__main__`."""

    def started() -> None: ...

    started.__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "C:\\code\\app.py", raising=False)
    assert module_name(started) == "app"
    monkeypatch.delattr(sys.modules["__main__"], "__file__")
    assert module_name(started) == "__main__"
    assert module_name(embed) == __name__


def test_in_a_container_a_function_is_not_described_again() -> None:
    """Its deploy has done so, and a cold start does not wait for schemas: what is called is known by name."""
    outside = App("tests").gpu_function(embed)
    open_nested_port(cast("NestedPort", object()))
    try:
        inside = App("tests").gpu_function(embed)
    finally:
        open_nested_port(None)

    (described,), (named,) = outside.spec.methods, inside.spec.methods
    assert described.input_schema
    assert msgspec.structs.replace(described, input_schema={}, output_schema={}) == named
    assert msgspec.structs.replace(inside.spec, methods=outside.spec.methods) == outside.spec
