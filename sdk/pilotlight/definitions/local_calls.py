"""Calls in this process, as a container makes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pilotlight.definitions.signature import Callee


class LocalInstance:
    """The object of an Obj: its first use makes it and runs its @enter() hooks."""

    def __init__(self, cls: type, enter: tuple[str, ...]) -> None:
        self._cls = cls
        self._enter = enter
        self._object: Any = None
        from threading import Lock

        self._lock = Lock()

    def get(self) -> Any:
        """Return the object; its hooks, async ones too, have run.

        Raises:
            RuntimeError: if a hook is async and an event loop runs in this thread.
        """
        with self._lock:
            if self._object is None:
                made = self._cls()
                for hook in self._enter:
                    pending = getattr(made, hook)()
                    if inspect.iscoroutine(pending):
                        _finish(pending)
                self._object = made
            return self._object

    async def get_async(self) -> Any:
        """Do the same in a thread, without blocking the event loop."""
        import asyncio

        return self._object or await asyncio.to_thread(self.get)


def _finish(pending: Any) -> None:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(pending)
        return
    pending.close()
    raise RuntimeError("an @enter() hook is async and an event loop runs here: await .local.aio(…) instead.")


def call_locally(callee: Callee, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `function`, that of `callee`, bound or not; return a value, a coroutine, or a generator.

    Raises:
        ValueError: if a batched function does not return one value.
    """
    if callee.batched is None:
        return function(*args, **kwargs)
    answer = function(**{name: [value] for name, value in callee.bind_arguments(args, kwargs).items()})
    return _await_only(callee, answer) if inspect.isawaitable(answer) else _only(callee, answer)


async def _await_only(callee: Callee, answer: Any) -> Any:
    return _only(callee, await answer)


def _only(callee: Callee, answers: Any) -> Any:
    """Return the answer of a batch of one, or raise the exception in its place."""
    if len(answers) != 1:
        raise ValueError(f"{callee.label} got a batch of 1 and answered {len(answers)}: return one value per item.")
    answer = answers[0]
    if isinstance(answer, Exception):
        raise answer
    return answer
