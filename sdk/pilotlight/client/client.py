"""A client of one platform: its connections, made on first use, and what is asked over them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pilotlight.client.batches import Batches
from pilotlight.client.calls import Calls
from pilotlight.client.config import load_config, make_config
from pilotlight.client.connection import Connection
from pilotlight.client.errands import Errands
from pilotlight.client.face import face
from pilotlight.client.jobs import Jobs
from pilotlight.client.platform import Platform
from pilotlight.client.tenancy import Tenancy
from pilotlight.client.webhooks import Webhooks
from pilotlight_core.model.ids import token

if TYPE_CHECKING:
    from pilotlight.function import Function


class Client:
    """Another platform or key than the configured one: `function.options(client=Client(url=…, api_key=…))`.

    Its coroutines belong to the background loop (`face()`); the verbs of a Function bring them there.
    """

    def __init__(self, *, url: str, api_key: str) -> None:
        self.config = make_config(url, api_key)
        self._connection = Connection(self.config)
        self.calls = Calls(self._connection)
        self.platform = Platform(self._connection)
        self.tenancy = Tenancy(self.platform)
        self.webhooks = Webhooks(self.platform)
        self.batches = Batches(self._connection, self.platform)
        self.jobs = Jobs(self._connection, self.calls, self.platform)
        self.face = face()

    def errands(self, function: Function[..., Any], kwargs: dict[str, Any]) -> Errands:
        """The inputs of a map of `function`, which all get `kwargs`, as durable jobs."""
        return Errands(self._connection, self.calls, self.jobs, self.platform, function, kwargs)

    @classmethod
    def configured(cls) -> Client:
        """The client of PILOTLIGHT_URL and PILOTLIGHT_API_KEY, or of the file that `pilotlight up` leaves.

        Raises:
            NotConfigured: if there is neither.
        """
        config = load_config()
        return cls(url=config.url, api_key=config.api_key)

    def close(self) -> None:
        """Close its connections."""
        if self.face.is_alive:
            self.face.run(self._connection.aclose())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client(url={self.config.url!r})"


_default: Client | None = None
_lock = threading.Lock()


def default_client() -> Client:
    """The configured client, made by its first use; made anew after a fork or when the configuration changed."""
    global _default
    with _lock:
        if _default is not None and _default.face.is_alive:
            if _default.config == load_config():
                return _default
            _default.close()
        _default = Client.configured()
        return _default


def call_id() -> str:
    """A fresh id for `function.options(id=…)`."""
    return f"cid_{token()}"


class _Cancel:
    """`pilotlight.cancel(id)` and `await pilotlight.cancel.aio(id)`."""

    def __call__(self, id: str) -> bool:  # noqa: A002 - what the wire calls it
        """Cancel a call by its id, or by the one it was given with `options(id=…)`; whether it was still alive.

        A call that waits is removed, one in a batch is dropped from it, and a generator is closed at its next yield.

        Raises:
            UnknownCall: if there is no such call.
        """
        return face().run(default_client().platform.cancel(id))

    async def aio(self, id: str) -> bool:  # noqa: A002
        """As the blocking call."""
        return await face().arun(default_client().platform.cancel(id))


cancel = _Cancel()
