"""What functions use of an API outside."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pilotlight.definitions.errors import OptionError
from pilotlight.upstream.capacity_limit import CapacityLimit
from pilotlight.upstream.upstream_calls import BatchFields, UpstreamCalls
from pilotlight.upstream.upstream_port import UpstreamAddress, UpstreamTransport
from pilotlight.upstream.waiting_items import WaitingItems
from pilotlight_core.model.messages.engine_report import EngineReport, report_engine
from pilotlight_core.model.networks.network_targets import parse_target

KEY_VARIABLE = "UPSTREAM_KEY"
AUTHORITY_FILE = "/run/secrets/upstream-authority.pem"
HTTPS_PORT = 443
MOST_CONCURRENCY, MOST_BATCH = 1_000, 1_000


class UpstreamBatch:
    """Several calls in one request."""

    def __init__(self, inputs: str, outputs: str, *, size: int = 32, wait_ms: float = 5.0) -> None:
        """
        Args:
            inputs: the field of a request that has the list of inputs.
            outputs: the field of an answer that has the list of outputs, in the same order.
            size: the most calls of one request.
            wait_ms: how long a first call waits for others.
        """
        if not inputs or not outputs:
            raise OptionError("UpstreamBatch: inputs and outputs are names of fields.", field="upstream")
        if not 1 <= size <= MOST_BATCH or not 0 <= wait_ms <= 1_000:
            raise OptionError(
                f"UpstreamBatch: expected size=1 to {MOST_BATCH} and wait_ms=0 to 1000.", field="upstream"
            )
        self.inputs = inputs
        self.outputs = outputs
        self.size = size
        self.wait_ms = wait_ms


class Upstream:
    """An HTTP API outside that functions call, as many at a time as it takes.

    `@app.gpu_function(upstream=api)` lets an asynchronous function reach it, and nothing else, and gives it the key.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        header: str = "Authorization",
        prefix: str = "Bearer ",
        authority: str = "",
        batch: UpstreamBatch | None = None,
        concurrency: int = 64,
        timeout: float = 30.0,
    ) -> None:
        """
        Args:
            url: https://HOST/PATH, to which each request is posted as JSON.
            key: the secret that has the API's key; "": it needs none.
            header: the header with the key.
            prefix: what stands before the key there.
            authority: the secret with certificates (PEM) that are believed besides the system's.
            batch: how several calls go in one request; None: each has a request of its own.
            concurrency: the most requests of one container at a time; how many it is then, the API's answers show.
            timeout: the seconds of one call, with all its tries.

        Raises:
            OptionError: naming what is wrong.
        """
        self.target = _target_of(url)
        if not 1 <= concurrency <= MOST_CONCURRENCY:
            raise OptionError(f"Upstream: expected concurrency=1 to {MOST_CONCURRENCY}.", field="upstream")
        if not timeout > 0:
            raise OptionError("Upstream: expected timeout= of more than 0 seconds.", field="upstream")
        self.url = url
        self.secrets = {place: name for place, name in ((KEY_VARIABLE, key), (AUTHORITY_FILE, authority)) if name}
        self.most_calls = 2 * concurrency * (batch.size if batch else 1)
        """Of one container: those that run, and as many that wait for them."""
        self._address = UpstreamAddress(
            url, header, prefix, KEY_VARIABLE if key else "", AUTHORITY_FILE if authority else ""
        )
        self._batch = batch
        self._concurrency = concurrency
        self._timeout_s = timeout
        self._calls: UpstreamCalls | None = None

    async def call(self, input: Any) -> Any:  # noqa: A002 - its name on the wire
        """What the API answers for `input`, which is sent as JSON. For asynchronous functions in containers.

        A call is sent again if it has provably not run: no connection was made, or the API refused it (429).

        Raises:
            UpstreamError: the API did not answer as it should.
        """
        if self._calls is None:
            from pilotlight.upstream.upstream_client import HttpTransport  # here: a deploy needs no aiohttp

            self._calls = self.open(HttpTransport(self._address, self._concurrency))
        return await self._calls.call(input)

    def open(self, transport: UpstreamTransport) -> UpstreamCalls:
        """Calls over a transport, on the running loop."""
        batch = self._batch
        return UpstreamCalls(
            transport,
            CapacityLimit(self._concurrency),
            WaitingItems(batch.size if batch else 1, batch.wait_ms / 1000 if batch else 0.0),
            BatchFields(batch.inputs, batch.outputs) if batch else BatchFields(),
            timeout_s=self._timeout_s,
            report_full=_report_full,
        )

    def __repr__(self) -> str:
        return f"Upstream({self.url!r})"


def _report_full(waiting: int) -> None:
    report_engine(EngineReport(waiting=waiting))


def _target_of(url: str) -> str:
    """What `network=` has to name."""
    try:
        parts = urlsplit(url)
        port = parts.port or HTTPS_PORT
    except ValueError:
        parts, port = urlsplit(""), HTTPS_PORT
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.fragment:
        raise OptionError(f"Upstream({url!r:.200}): expected https://HOST/PATH, by name.", field="upstream")
    target = f"{parts.hostname}:{port}"
    try:
        parse_target(target)
    except ValueError as error:
        raise OptionError(f"Upstream: {error}.", field="upstream") from error
    return target
