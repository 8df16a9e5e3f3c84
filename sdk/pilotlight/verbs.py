"""The ways to call a Function. Each is an object: call it to block, use its `.aio` in an event loop."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

from pilotlight.errors import Misuse, OptionError
from pilotlight.local import call_here
from pilotlight.signature import Callee

if TYPE_CHECKING:
    from pilotlight.client import Client
    from pilotlight.function import Function

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Local(Generic[P, R]):
    """`.local()`: run it in this process, as its container would."""

    def __init__(self, function: Function[P, R]) -> None:
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Its value; of an async function a coroutine, of a generator the generator."""
        bound = self._bound(None if self._function.receiver is None else self._function.receiver.get())
        return cast("R", call_here(_callee(self._function), bound, args, kwargs))

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """A coroutine for its value; of a generator, an async iterator."""
        if self._function.is_generator:
            return self._iterate(args, kwargs)
        return self._await(args, kwargs)

    async def _await(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = await self._start(args, kwargs)
        return await answer if inspect.isawaitable(answer) else answer

    async def _iterate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncIterator[Any]:
        chunks = await self._start(args, kwargs)
        if inspect.isasyncgen(chunks):
            async for chunk in chunks:
                yield chunk
        else:
            for chunk in chunks:
                yield chunk

    async def _start(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        receiver = self._function.receiver
        bound = self._bound(None if receiver is None else await receiver.aget())
        return call_here(_callee(self._function), bound, args, kwargs)

    def _bound(self, receiver: Any) -> Callable[..., Any]:
        callee = _callee(self._function)
        method: Callable[..., Any] = getattr(receiver, callee.attribute) if receiver is not None else callee.function
        return method


class Remote(Generic[P, R]):
    """`.remote()`: run it on the platform and wait for its answer."""

    def __init__(self, function: Function[P, R]) -> None:
        self._function = function

    @overload
    def __call__(self: Remote[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The answer.

        Raises:
            FunctionRaised: if it raised; where the exception's type is a builtin, `except ValueError` catches it too.
            PilotlightError: any other of the tree.
        """
        from pilotlight.client import face

        self._check()
        return face().run(_client(self._function).calls.call(self._function, args, kwargs))

    @overload
    async def aio(self: Remote[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """As the blocking call; cancelling the task cancels the call."""
        from pilotlight.client import face

        self._check()
        return await face().arun(_client(self._function).calls.call(self._function, args, kwargs))

    def _check(self) -> None:
        if self._function.is_generator:
            raise OptionError(
                f"{self._function.label} is a generator: iterate over .remote_gen(…) instead of .remote(…)."
            )


class RemoteGen(Generic[P]):
    """`.remote_gen()`: run a generator on the platform and iterate over what it yields."""

    def __init__(self, function: Function[P, Any]) -> None:
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        """The chunks, as they come; leaving the loop early cancels the call.

        Raises:
            PilotlightError: as `.remote()`, also between chunks.
        """
        from pilotlight.client import face

        self._check()
        return face().iterate(_client(self._function).calls.stream(self._function, args, kwargs))

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Any]:
        """The chunks as an async iterator."""
        from pilotlight.client import face

        self._check()
        return face().aiterate(_client(self._function).calls.stream(self._function, args, kwargs))

    def _check(self) -> None:
        if self._function.is_generator is False:
            raise OptionError(f"{self._function.label} is no generator: call .remote(…) instead of .remote_gen(…).")


class StarMap:
    """`.starmap()`: a call for each tuple of arguments, many at a time.

    Each is a durable job: stored before it runs, and not lost with a gateway or a connection.
    """

    verb = "starmap"

    def __init__(self, function: Function[..., Any]) -> None:
        self._function = function

    def __call__(
        self,
        arguments: Iterable[Iterable[Any]],
        *,
        kwargs: dict[str, Any] | None = None,
        order_outputs: bool = True,
        return_exceptions: bool = False,
        durable: bool = True,
    ) -> Iterator[Any]:
        """The answers.

        The iterable is read as room appears, so it may be endless; leaving the loop early cancels what is under way.

        Args:
            arguments: the positional arguments of each call.
            kwargs: named arguments that every call gets.
            order_outputs: in the order of the inputs; False: as they come.
            return_exceptions: give exceptions in place of answers instead of raising the first.
            durable: False: as live calls, which start a little sooner, may wait no longer than the function's queue
                allows, and are lost with the gateway that carries them.
        """
        from pilotlight.client import face

        how = self._how(kwargs or {}, durable=durable)
        return face().iterate(how(arguments, ordered=order_outputs, keep_exceptions=return_exceptions))

    def aio(
        self,
        arguments: Iterable[Iterable[Any]],
        *,
        kwargs: dict[str, Any] | None = None,
        order_outputs: bool = True,
        return_exceptions: bool = False,
        durable: bool = True,
    ) -> AsyncIterator[Any]:
        """The answers as an async iterator."""
        from pilotlight.client import face

        how = self._how(kwargs or {}, durable=durable)
        return face().aiterate(how(arguments, ordered=order_outputs, keep_exceptions=return_exceptions))

    def _how(self, kwargs: dict[str, Any], *, durable: bool) -> Callable[..., AsyncIterator[Any]]:
        """`map_calls`, but for the arguments and what is done with the answers."""
        from pilotlight.client import map_calls
        from pilotlight.client.mapping import in_flight

        self._check(durable=durable)
        function = self._function
        client = _client(function)
        live = partial(client.calls.call, function, kwargs=kwargs)
        return partial(
            map_calls, client.errands(function, kwargs) if durable else live, window=in_flight(function.batch_size)
        )

    def _check(self, *, durable: bool) -> None:
        function, settings = self._function, self._function.settings
        if function.is_generator:
            raise OptionError(f"{function.label} is a generator: .{self.verb}() is for functions that return.")
        if settings.id is not None:
            raise Misuse(f"options(id=…) names one call: it cannot be used with .{self.verb}().", field="id")
        if settings.idempotency_key not in (None, "auto"):
            raise Misuse(
                f"options(idempotency_key=…) names one call: with .{self.verb}() each has a key of its own anyway.",
                field="idempotency_key",
            )
        if durable and settings.on_stage is not None:
            raise OptionError(f"on_stage: only live calls tell their stages: .{self.verb}(…, durable=False).")


class Map(StarMap):
    """`.map()`: a call for each item, many at a time."""

    verb = "map"

    def __call__(self, *iterables: Iterable[Any], **how: Any) -> Iterator[Any]:
        """The answers; several iterables are several parameters, as for the builtin. Options as for `starmap`."""
        return super().__call__(_zipped(iterables), **how)

    def aio(self, *iterables: Iterable[Any], **how: Any) -> AsyncIterator[Any]:
        """The answers as an async iterator."""
        return super().aio(_zipped(iterables), **how)


def _zipped(iterables: tuple[Iterable[Any], ...]) -> Iterable[tuple[Any, ...]]:
    if not iterables:
        raise TypeError("map() needs at least one iterable.")
    return zip(*iterables, strict=False)  # the shortest ends it, as for the builtin


def _callee(function: Function[..., Any]) -> Callee:
    if function.callee is None:
        raise Misuse(
            f"{function.ref} was found by name: its code is not here to run. Call .remote(…), "
            "of a class .remote(…) of Function.from_name(…, method=…)."
        )
    return function.callee


def _client(function: Function[..., Any]) -> Client:
    from pilotlight.client import default_client

    return function.settings.client or default_client()
