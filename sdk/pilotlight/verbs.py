"""The verbs of a Function. Each is an object: blocking when called, for event loops with `.aio`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

import msgspec

from pilotlight.definitions.call_hooks import call_through
from pilotlight.definitions.call_target import CallTarget
from pilotlight.definitions.errors import Misuse, OptionError
from pilotlight.definitions.local_calls import call_locally
from pilotlight.definitions.signature import Callee
from pilotlight.function_call import FunctionCall

if TYPE_CHECKING:
    from pilotlight.client import Client
    from pilotlight.client.nested_client import NestedClient
    from pilotlight_core.model.api.autoscaler_api import AutoscalerInfo, AutoscalerRequest

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Local(Generic[P, R]):
    """`.local()`: run a function in this process, as its container would."""

    def __init__(self, target: CallTarget) -> None:
        self._target = target

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return its value, an async function's coroutine, or a generator.

        Raises:
            Misuse: if it was found by name.
            ValueError: if a batched function does not return one value per item.
        """
        instance = self._target.instance
        return cast("R", self._run(None if instance is None else instance.get(), args, kwargs))

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Return a coroutine for its value; of a generator, an async iterator."""
        if self._target.is_generator:
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
        instance = self._target.instance
        return self._run(None if instance is None else await instance.get_async(), args, kwargs)

    def _run(self, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        callee = _callee(self._target)
        method = _bound(instance, callee)
        if callee.first is None and callee.last is None:
            return call_locally(callee, method, args, kwargs)
        first = None if callee.first is None else _bound(instance, callee.first)
        last = None if callee.last is None else _bound(instance, callee.last)
        return call_through(
            callee, first, lambda *some, **named: call_locally(callee, method, some, named), last, args, kwargs
        )


class _PlatformVerb:
    """A verb that calls a platform: the configured one, or that of a client."""

    def __init__(self, target: CallTarget, client: Client | None) -> None:
        self._target = target
        self._own_client = client

    @property
    def _client(self) -> Client:
        from pilotlight.client import default_client

        return self._own_client or default_client()

    @property
    def _nested(self) -> NestedClient | None:
        """What calls from within a function of the platform; None: this code runs outside."""
        from pilotlight_core.model.messages.running_code import nested_port

        if (port := nested_port()) is None:
            return None
        from pilotlight.client.nested_client import NestedClient

        return NestedClient(port, self._target, has_client=self._own_client is not None)


class Remote(_PlatformVerb, Generic[P, R]):
    """`.remote()`: run a function on the platform and return its answer."""

    @overload
    def __call__(self: Remote[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Return the answer. An interrupt cancels the call.

        Raises:
            TypeError: if the arguments do not fit.
            FunctionRaised: if the function raised; of a builtin type, `except ValueError` catches it too.
            PilotlightError: for any other failure.
        """
        from pilotlight.client import shared_portal

        if (nested := self._nested) is not None:
            return nested.call(args, kwargs)
        self._check()
        return shared_portal().run(self._client.calls.call(self._target, args, kwargs))

    @overload
    async def aio(self: Remote[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Do the same in an event loop; cancelling the task cancels the call."""
        from pilotlight.client import shared_portal

        if (nested := self._nested) is not None:
            return await nested.call_async(args, kwargs)
        self._check()
        return await shared_portal().run_async(self._client.calls.call(self._target, args, kwargs))

    def _check(self) -> None:
        if self._target.is_generator:
            raise OptionError(
                f"{self._target.label} is a generator: iterate over .remote_gen(…) instead of .remote(…)."
            )


class RemoteGen(_PlatformVerb, Generic[P]):
    """`.remote_gen()`: run a generator on the platform and iterate over what it yields."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        """Iterate over the chunks as they come; leaving the loop cancels the call.

        Raises:
            PilotlightError: as `.remote()`, also between chunks.
        """
        from pilotlight.client import shared_portal

        self._check()
        return shared_portal().iterate(self._client.calls.stream(self._target, args, kwargs))

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Any]:
        """Do the same in an event loop."""
        from pilotlight.client import shared_portal

        self._check()
        return shared_portal().iterate_async(self._client.calls.stream(self._target, args, kwargs))

    def _check(self) -> None:
        if (nested := self._nested) is not None:
            raise nested.refusal("remote_gen")
        if self._target.is_generator is False:
            raise OptionError(f"{self._target.label} is no generator: call .remote(…) instead of .remote_gen(…).")


class Spawn(_PlatformVerb, Generic[P, R]):
    """`.spawn()`: store a call on the platform; its answer is fetched later."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> FunctionCall[R]:
        """Store a call. A generator's answer is the list of its chunks.

        Raises:
            PilotlightError: if the platform refused it.
        """
        from pilotlight.client import shared_portal

        return shared_portal().run(self._spawn(args, kwargs))

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> FunctionCall[R]:
        """Do the same in an event loop."""
        from pilotlight.client import shared_portal

        return await shared_portal().run_async(self._spawn(args, kwargs))

    async def _spawn(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionCall[R]:
        if (nested := self._nested) is not None:
            raise nested.refusal("spawn")
        if self._target.settings.on_stage is not None:
            raise OptionError("on_stage: a spawned call tells no stages; ask for its status().")
        job = await self._client.jobs.spawn(self._target, args, kwargs)
        return FunctionCall(job, self._own_client, target=self._target)


class UpdateAutoscaler(_PlatformVerb):
    """`.update_autoscaler()`: say another size of a function, without a deploy."""

    def __call__(
        self,
        *,
        min_containers: int | None = None,
        max_containers: int | None = None,
        buffer_containers: int | None = None,
        scaledown_window: float | None = None,
        zero_window: float | None = None,
        forecast: bool | None = None,
        until: datetime | float | None = None,
    ) -> AutoscalerInfo:
        """Let these go before what was deployed, within a second; what is not given stays. Return what holds now.

        A method's are those of its class. `pilotlight scale APP.FUNCTION --reset` ends all of them.

        Args:
            until: when they end by themselves: a datetime (without a zone: of this machine's) or a unix second.
                Default: they stay, also over deploys.

        Raises:
            BadInput: if they contradict each other or the rest, or a limit of the tenant, or their end is past.
        """
        from pilotlight.client import shared_portal

        given = _bounds(
            until, min_containers=min_containers, max_containers=max_containers, buffer_containers=buffer_containers,
            scaledown_window=scaledown_window, zero_window=zero_window, forecast=forecast,
        )  # fmt: skip
        return shared_portal().run(self._client.autoscaler.change_bounds(str(self._target.ref), given))

    async def aio(
        self,
        *,
        min_containers: int | None = None,
        max_containers: int | None = None,
        buffer_containers: int | None = None,
        scaledown_window: float | None = None,
        zero_window: float | None = None,
        forecast: bool | None = None,
        until: datetime | float | None = None,
    ) -> AutoscalerInfo:
        """Do the same in an event loop."""
        from pilotlight.client import shared_portal

        given = _bounds(
            until, min_containers=min_containers, max_containers=max_containers, buffer_containers=buffer_containers,
            scaledown_window=scaledown_window, zero_window=zero_window, forecast=forecast,
        )  # fmt: skip
        return await shared_portal().run_async(self._client.autoscaler.change_bounds(str(self._target.ref), given))


def _bounds(until: datetime | float | None, **given: float | bool | None) -> AutoscalerRequest:
    """Return the request for what is given."""
    from pilotlight_core.model.api.autoscaler_api import AutoscalerRequest

    ends_at = until.timestamp() if isinstance(until, datetime) else until
    said = {field: value for field, value in given.items() if value is not None}
    return msgspec.structs.replace(AutoscalerRequest(ends_at=ends_at), **said)


class StarMap(_PlatformVerb):
    """`.starmap()`: call a function for each tuple of arguments, many at a time.

    Each call is a durable job, which survives its gateway and connection. Within a function of the platform they are
    live calls, which end with the call that makes them.
    """

    verb = "starmap"

    def __call__(
        self,
        arguments: Iterable[Iterable[Any]],
        *,
        kwargs: dict[str, Any] | None = None,
        order_outputs: bool = True,
        return_exceptions: bool = False,
        durable: bool = True,
    ) -> Iterator[Any]:
        """Iterate over the answers.

        The iterable is read as needed and may be endless; leaving the loop cancels the calls in flight.

        Args:
            arguments: the positional arguments of each call.
            kwargs: named arguments of every call.
            order_outputs: in the order of the inputs; False: as they come.
            return_exceptions: yield exceptions in place of answers, instead of raising the first.
            durable: False: make live calls, which start sooner, wait no longer than the queue allows, and are lost with
                their gateway.

        Raises:
            OptionError, Misuse: if the function or its options do not suit many calls.
            PilotlightError: as `.remote()`.
        """
        from pilotlight.client import shared_portal

        run = self._prepare(kwargs or {}, durable=durable)
        return shared_portal().iterate(run(arguments, ordered=order_outputs, keep_exceptions=return_exceptions))

    def aio(
        self,
        arguments: Iterable[Iterable[Any]],
        *,
        kwargs: dict[str, Any] | None = None,
        order_outputs: bool = True,
        return_exceptions: bool = False,
        durable: bool = True,
    ) -> AsyncIterator[Any]:
        """Do the same in an event loop."""
        from pilotlight.client import shared_portal

        run = self._prepare(kwargs or {}, durable=durable)
        return shared_portal().iterate_async(run(arguments, ordered=order_outputs, keep_exceptions=return_exceptions))

    def _prepare(self, kwargs: dict[str, Any], *, durable: bool) -> Callable[..., AsyncGenerator[Any, None]]:
        """Return `map_calls`, bound to the call and its window."""
        from pilotlight.client.concurrent_map import map_calls, window_of

        nested = self._nested
        self._check(durable=durable and nested is None)
        if nested is not None:
            return partial(map_calls, nested.mapped(kwargs), window=nested.window)
        client, target = self._client, self._target
        live = partial(client.calls.call, target, kwargs=kwargs)
        return partial(
            map_calls, client.durable_map(target, kwargs) if durable else live, window=window_of(target.batch_size)
        )

    def _check(self, *, durable: bool) -> None:
        target, settings = self._target, self._target.settings
        if target.is_generator:
            raise OptionError(f"{target.label} is a generator: .{self.verb}() is for functions that return.")
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
    """`.map()`: call a function for each item, many at a time."""

    verb = "map"

    def __call__(self, *iterables: Iterable[Any], **how: Any) -> Iterator[Any]:
        """Iterate over the answers; each iterable is one parameter. Else as `starmap`."""
        return super().__call__(_zipped(iterables), **how)

    def aio(self, *iterables: Iterable[Any], **how: Any) -> AsyncIterator[Any]:
        """Do the same in an event loop."""
        return super().aio(_zipped(iterables), **how)


def _zipped(iterables: tuple[Iterable[Any], ...]) -> Iterable[tuple[Any, ...]]:
    if not iterables:
        raise TypeError("map() needs at least one iterable.")
    return zip(*iterables, strict=False)  # the shortest ends it, as for the builtin


def _bound(instance: Any, callee: Callee) -> Callable[..., Any]:
    method: Callable[..., Any] = getattr(instance, callee.attribute) if instance is not None else callee.function
    return method


def _callee(target: CallTarget) -> Callee:
    if target.callee is None:
        raise Misuse(
            f"{target.ref} was found by name: its code is not here to run. Call .remote(…), "
            "of a class .remote(…) of Function.from_name(…, method=…)."
        )
    return target.callee
