"""A durable call as its caller holds it: `.spawn()` makes one, and from its id anybody with the key has it again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from pilotlight.errors import OptionError

if TYPE_CHECKING:
    from pilotlight.client import Client
    from pilotlight.function import Function

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
T = TypeVar("T")


class Asked(Generic[Q, T]):
    """A question to the platform: call it to block, use its `.aio` in an event loop."""

    def __init__(self, work: Callable[Q, Coroutine[Any, Any, T]]) -> None:
        self._work = work

    def __call__(self, *args: Q.args, **kwargs: Q.kwargs) -> T:
        from pilotlight.client import face

        return face().run(self._work(*args, **kwargs))

    async def aio(self, *args: Q.args, **kwargs: Q.kwargs) -> T:
        """As the blocking call."""
        from pilotlight.client import face

        return await face().arun(self._work(*args, **kwargs))


class FunctionCall(Generic[R]):
    """A call that the platform has stored: it is carried out whether or not anybody holds this."""

    def __init__(self, id: str, client: Client | None = None) -> None:  # noqa: A002 - what the wire calls it
        self.id = id
        self._client = client

    @classmethod
    def from_id(cls, id: str, *, client: Client | None = None) -> FunctionCall[Any]:  # noqa: A002
        """The call with this id; nothing is asked of the platform until something is wanted of it."""
        return FunctionCall(id, client)

    @property
    def get(self) -> Asked[..., R]:
        """`get(timeout=None)`: what it returned, waited for.

        Raises:
            DeadlineExceeded: if it has not ended within `timeout` seconds; it goes on.
            FunctionRaised, PilotlightError: as `.remote()`.
        """
        return Asked(self._get)

    @property
    def cancel(self) -> Asked[[], bool]:
        """`cancel()`: end it; whether it was still alive."""
        return Asked(lambda: self._jobs.cancel(self.id))

    @property
    def status(self) -> Asked[[], dict[str, Any]]:
        """`status()`: its state, attempts, times, place in the queue, and how it failed or what it returned."""
        return Asked(lambda: self._jobs.status(self.id))

    @staticmethod
    def gather(*calls: FunctionCall[Any], timeout: float | None = None, return_exceptions: bool = False) -> list[Any]:
        """What all of them returned, in order.

        The first failure is raised, and the others go on; with `return_exceptions` failures stand in place of answers.
        """
        from pilotlight.client import face

        return face().run(_gather(calls, timeout=timeout, keep=return_exceptions))

    async def _get(self, timeout: float | None = None) -> R:
        answer: R = await self._jobs.result(self.id, timeout)
        return answer

    @property
    def _jobs(self) -> Any:
        from pilotlight.client import default_client

        return (self._client or default_client()).jobs

    def __repr__(self) -> str:
        return f"FunctionCall({self.id!r})"


async def _gather(calls: tuple[FunctionCall[Any], ...], *, timeout: float | None, keep: bool) -> list[Any]:
    if not calls:
        return []
    if wrong := next((call for call in calls if not isinstance(call, FunctionCall)), None):
        raise TypeError(f"gather() takes calls one by one, not a {type(wrong).__name__}: gather(*calls).")
    jobs = calls[0]._jobs  # noqa: SLF001 - its own class
    answers: list[Any] = await jobs.gather([call.id for call in calls], timeout=timeout, keep_exceptions=keep)
    return answers


class Spawn(Generic[P, R]):
    """`.spawn()`: store a call on the platform, and come back for its answer later, or never."""

    def __init__(self, function: Function[P, R]) -> None:
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> FunctionCall[R]:
        """The call, once it is stored. A generator's answer is the list of what it yields.

        Raises:
            PilotlightError: if it was not taken.
        """
        from pilotlight.client import face

        return face().run(self._spawn(args, kwargs))

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> FunctionCall[R]:
        """As the blocking call."""
        from pilotlight.client import face

        return await face().arun(self._spawn(args, kwargs))

    async def _spawn(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionCall[R]:
        from pilotlight.client import default_client

        settings = self._function.settings
        if settings.on_stage is not None:
            raise OptionError("on_stage: a spawned call tells no stages; ask for its status().")
        client = settings.client or default_client()
        return FunctionCall(await client.jobs.spawn(self._function, args, kwargs), settings.client)
