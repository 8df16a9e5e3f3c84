"""What sends requests to an API, and what is known of one that fails: it is repeated only if it has not run."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class UpstreamError(RuntimeError):
    """The API did not answer as it should; the message says what it did."""


class NotRun(Exception):
    """The request has provably not run. `is_refusal`: the API said that it has no capacity."""

    def __init__(self, why: str, *, is_refusal: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.is_refusal = is_refusal
        self.retry_after_s = retry_after_s


class Overloaded(Exception):
    """The request may have run, and the API had no capacity for it."""

    def __init__(self, why: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class UpstreamTransport(Protocol):
    """Sends requests."""

    async def post(self, body: str, timeout_s: float) -> Any:
        """What the answer's JSON says; `body` is JSON.

        Raises:
            NotRun, Overloaded: see there. UpstreamError: any other failure.
        """
        ...

    async def close(self) -> None: ...


class UpstreamAddress(NamedTuple):
    """Where the API is, and what it is shown."""

    url: str
    header: str
    """Of the key."""
    prefix: str
    """What stands before the key."""
    key_variable: str
    """Where the environment has the key; "": there is none."""
    authority_file: str
    """PEM: whose certificates are believed besides; "": the system's alone."""
