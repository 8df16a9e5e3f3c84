"""Durable calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from pilotlight.client import Client
    from pilotlight.definitions.call_target import CallTarget

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class AioCallable(Generic[P, T]):
    """A request to the platform: blocking when called, for event loops with `.aio`."""

    def __init__(self, work: Callable[P, Coroutine[Any, Any, T]]) -> None:
        self._work = work

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        from pilotlight.client import shared_portal

        return shared_portal().run(self._work(*args, **kwargs))

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same in an event loop."""
        from pilotlight.client import shared_portal

        return await shared_portal().run_async(self._work(*args, **kwargs))


class FunctionCall(Generic[R]):
    """A call that the platform stored, and carries out whether or not this process goes on."""

    def __init__(
        self,
        id: str,  # noqa: A002 - what the wire calls it
        client: Client | None = None,
        *,
        target: CallTarget | None = None,
    ) -> None:
        """`target`: the function, for the type of its answer."""
        self.id = id
        self._client = client
        self._target = target

    @classmethod
    def from_id(cls, id: str, *, client: Client | None = None) -> FunctionCall[Any]:  # noqa: A002
        """Return the call with this id, without a request."""
        return FunctionCall(id, client)

    @property
    def get(self) -> AioCallable[..., R]:
        """`get(timeout=None)`: return its answer, after at most `timeout` seconds.

        A call found by its id has the answer as JSON types: without the function, its hints are not known.

        Raises:
            DeadlineExceeded: if it has not ended by then; it goes on.
            FunctionRaised, PilotlightError: as `.remote()`.
        """
        return AioCallable(self._get)

    @property
    def cancel(self) -> AioCallable[[], bool]:
        """`cancel()`: end it; return whether it was alive.

        Raises:
            UnknownCall: if there is no such call.
        """
        return AioCallable(lambda: self._jobs.cancel(self.id))

    @property
    def status(self) -> AioCallable[[], dict[str, Any]]:
        """`status()`: its state, attempts, times, place in the queue, and its answer or error."""
        return AioCallable(lambda: self._jobs.get_status(self.id))

    @staticmethod
    def gather(*calls: FunctionCall[Any], timeout: float | None = None, return_exceptions: bool = False) -> list[Any]:
        """Return the answers of all, in order.

        Args:
            calls: of one client.
            timeout: seconds to wait; default: until they have ended.
            return_exceptions: return failures in place of answers, instead of raising the first.

        Raises:
            TypeError: for a list of calls.
            DeadlineExceeded, FunctionRaised, PilotlightError: as `get()`.
        """
        from pilotlight.client import shared_portal

        return shared_portal().run(_gather(calls, timeout=timeout, keep=return_exceptions))

    async def _get(self, timeout: float | None = None) -> R:
        answer: R = self.as_hinted(await self._jobs.wait_result(self.id, timeout))
        return answer

    def as_hinted(self, answer: Any) -> Any:
        """Return a stored answer as the function's return hint says, where the function is known."""
        return answer if self._target is None else self._target.as_stored(answer)

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
    return [
        answer if isinstance(answer, BaseException) else call.as_hinted(answer)
        for call, answer in zip(calls, answers, strict=True)
    ]
