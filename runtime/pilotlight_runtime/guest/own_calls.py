"""Calls that a guest makes of its function itself, before those of others reach it: warm-up examples, and the check.

They run as calls do, but for what only calls have: nothing is billed, and they cannot call other functions. The check
is kept as a method of its own, so that the agent can have it run again between calls.
"""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import UNSET

from pilotlight_core.model import values
from pilotlight_core.model.messages.running_code import COUNTING
from pilotlight_core.model.rehearsals.rehearsal import CheckExample, Rehearsal
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.guest.basics.arguments import Parameters
from pilotlight_runtime.guest.frames import CHECK_METHOD
from pilotlight_runtime.guest.guest_target import GuestTarget, TargetMethod
from pilotlight_runtime.guest.rehearsals.same_values import difference

RunHook = Callable[[Awaitable[Any]], Any]


class OwnCounts:
    """Takes the units that such a call counts, which nobody pays for."""

    counted: list[dict[str, int]] | None = None

    def __init__(self, items: int) -> None:
        self.items = items


class OwnCalls:
    """What one guest runs of itself; `wait` runs what is asynchronous to its end, where no event loop runs."""

    def __init__(self, spec: FunctionSpec, target: GuestTarget, wait: RunHook | None = None) -> None:
        self._spec = spec
        self._target = target
        self._wait = wait
        self._rehearsal = Rehearsal() if spec.rehearsal is UNSET else spec.rehearsal

    @property
    def has_warmup(self) -> bool:
        return bool(self._rehearsal.warmup)

    @property
    def has_check(self) -> bool:
        return bool(self._target.checks) or self._rehearsal.example is not None

    def warm_up(self) -> None:
        """Run each example; raises what the function does, and BadArguments."""
        for example in self._rehearsal.warmup:
            self._run_apart(example.method, example.inputs)

    async def warm_up_async(self) -> None:
        for example in self._rehearsal.warmup:
            await self._run_apart_async(example.method, example.inputs)

    def check(self) -> None:
        """Raises what a check does, RuntimeError if one says False, and AssertionError for another answer."""
        for hook in self._target.checks:
            answer = hook()
            verify(hook, self._wait(answer) if self._wait and inspect.isawaitable(answer) else answer)
        if (example := self._rehearsal.example) is not None:
            check_answer(example, self._run_apart(example.method, (example.input,)))

    async def check_async(self) -> None:
        for hook in self._target.checks:
            answer = hook()
            verify(hook, await answer if inspect.isawaitable(answer) else answer)
        if (example := self._rehearsal.example) is not None:
            check_answer(example, await self._run_apart_async(example.method, (example.input,)))

    def keep_check(self, *, is_async: bool) -> None:
        """Make the check a method that the agent can call; one of nothing goes well."""
        if self._spec.rehearsal is UNSET:
            return
        function = self.check_async if is_async else self.check
        self._target.methods[CHECK_METHOD] = TargetMethod(
            function=function, parameters=Parameters(function), streams=False, is_async=is_async
        )

    def _call(self, name: str, inputs: tuple[bytes, ...]) -> tuple[TargetMethod, partial[Any], int]:
        """A method, ready to run, and the number of items of its batch; 0: it takes none."""
        method = self._target.methods[name]
        rows = [method.parameters.read(data) for data in inputs]
        items = len(rows) if self._spec.method(name).batching is not None else 0
        first, named = method.parameters.place(method.parameters.columns(rows) if items else rows[0])
        return method, partial(method.function, *first, **named), items

    def _run_apart(self, method: str, inputs: tuple[bytes, ...]) -> Any:
        """Run a call whose context variables the next one does not see."""
        return contextvars.copy_context().run(self._run, *self._call(method, inputs))

    async def _run_apart_async(self, method: str, inputs: tuple[bytes, ...]) -> Any:
        return await running_loop().create_task(self._run_async(*self._call(method, inputs)))

    def _run(self, method: TargetMethod, ready: partial[Any], items: int) -> Any:
        COUNTING.set(OwnCounts(items))
        return only(list(ready()) if method.streams else ready(), items)

    async def _run_async(self, method: TargetMethod, ready: partial[Any], items: int) -> Any:
        if not method.is_async:
            return await running_loop().run_in_executor(
                None, partial(contextvars.copy_context().run, self._run, method, ready, items)
            )
        COUNTING.set(OwnCounts(items))
        answer = [chunk async for chunk in ready()] if method.streams else await ready()
        return only(answer, items)


def running_loop() -> Any:
    import asyncio  # late: guests without asynchronous methods need not import it

    return asyncio.get_running_loop()


def only(answer: Any, items: int) -> Any:
    """The answer, of a batch that of its first item; raises what is in an item's place, and TypeError."""
    if not items:
        return answer
    if type(answer) is not list or len(answer) != items:
        raise TypeError(f"a batched method must return a list as long as its arguments, of {items} here")
    for item in answer:
        if isinstance(item, BaseException):
            raise item
    return answer[0]


def verify(hook: Callable[[], Any], healthy: Any) -> None:
    if healthy is False:
        raise RuntimeError(f"{getattr(hook, '__name__', 'the check')} answered False")


def check_answer(example: CheckExample, answer: Any) -> None:
    """Raises AssertionError unless the answer is the expected one."""
    # As a caller gets it: a tuple is a list, a tensor may be on another device.
    why = difference(values.decode(values.encode(answer)), values.decode(example.output), example.tolerance)
    if why:
        raise AssertionError(f"the check's example: {why}")
