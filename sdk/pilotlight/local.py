"""Running a function here, as its container would: hooks first, a batched one with lists of one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pilotlight.signature import Callee


class Receiver:
    """The local object behind a class's methods: made on first use, its @enter() hooks run once."""

    def __init__(self, cls: type, enter: tuple[str, ...]) -> None:
        self._cls = cls
        self._enter = enter
        self._object: Any = None
        from threading import Lock

        self._lock = Lock()

    def get(self) -> Any:
        """The object, ready. Hooks that are coroutines are run to their end here."""
        with self._lock:
            if self._object is None:
                made = self._cls()
                for hook in self._enter:
                    pending = getattr(made, hook)()
                    if inspect.iscoroutine(pending):
                        _finish(pending)
                self._object = made
            return self._object

    async def aget(self) -> Any:
        """The object, ready; for code that runs in an event loop. Hooks run in a thread of their own."""
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


def call_here(callee: Callee, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call it: a value, a coroutine of an async function, or a generator."""
    if callee.batched is None:
        return function(*args, **kwargs)
    answer = function(**{name: [value] for name, value in callee.named(args, kwargs).items()})
    return _only_later(callee, answer) if inspect.isawaitable(answer) else _only(callee, answer)


async def _only_later(callee: Callee, answer: Any) -> Any:
    return _only(callee, await answer)


def _only(callee: Callee, answers: Any) -> Any:
    """The one answer of a batch of one; an exception in its place is raised."""
    if len(answers) != 1:
        raise ValueError(f"{callee.label} got a batch of 1 and answered {len(answers)}: return one value per item.")
    answer = answers[0]
    if isinstance(answer, Exception):
        raise answer
    return answer
