"""A client of one platform."""

from __future__ import annotations

import threading
from typing import Any

from pilotlight.client.durable_map import DurableMap
from pilotlight.client.portal import shared_portal
from pilotlight.client.resources.autoscaler import AutoscalerClient
from pilotlight.client.resources.batches import BatchesClient
from pilotlight.client.resources.billing import BillingClient
from pilotlight.client.resources.calls import CallsClient
from pilotlight.client.resources.issuers import IssuersClient
from pilotlight.client.resources.jobs import JobsClient
from pilotlight.client.resources.kept_calls import KeptCallsClient
from pilotlight.client.resources.models import ModelsClient
from pilotlight.client.resources.nodes import NodesClient
from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.platform_events import PlatformEventsClient
from pilotlight.client.resources.pools import PoolsClient
from pilotlight.client.resources.rollouts.aliases import AliasesClient
from pilotlight.client.resources.rollouts.rollouts import RolloutsClient
from pilotlight.client.resources.secrets import SecretsClient
from pilotlight.client.resources.stats import StatsClient
from pilotlight.client.resources.supply import SupplyClient
from pilotlight.client.resources.tenancy import TenancyClient
from pilotlight.client.resources.webhooks import WebhooksClient
from pilotlight.client.resources.weights import WeightsClient
from pilotlight.client.transport.config import ClientConfig, load_config, make_config
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.call_target import CallTarget
from pilotlight_core.model.errors import NestedRefused
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.running_code import nested_port

NO_CLIENT = (
    "client: a function has no key of the platform. It can call functions: .remote(), .remote.aio() and .map(). All "
    "else is done from outside."
)


class Client:
    """A platform and key other than the configured one: `function.options(client=Client(url=…, api_key=…))`.

    Its coroutines run in the SharedPortal of the process. `ca_file` (PEM) has the authorities that may vouch for an
    https:// platform, in place of those that Python knows.

    Raises:
        Misuse: if `url` is not http(s)://host:port.
    """

    def __init__(self, *, url: str, api_key: str, ca_file: str = "") -> None:
        self._connect(make_config(url, api_key, ca_file))

    def _connect(self, config: ClientConfig) -> None:
        self.config = config
        self._connection = PlatformConnection(config)
        self.calls = CallsClient(self._connection)
        self.platform = PlatformClient(self._connection)
        self.billing = BillingClient(self._connection, self.platform)
        self.tenancy = TenancyClient(self.platform)
        self.autoscaler = AutoscalerClient(self.platform)
        self.stats = StatsClient(self.platform)
        self.kept_calls = KeptCallsClient(self.platform)
        self.events = PlatformEventsClient(self._connection, self.platform)
        self.nodes = NodesClient(self.platform)
        self.pools = PoolsClient(self.platform)
        self.issuers = IssuersClient(self.platform)
        self.webhooks = WebhooksClient(self.platform)
        self.secrets = SecretsClient(self.platform)
        self.supply = SupplyClient(self.platform)
        self.weights = WeightsClient(self.platform)
        self.models = ModelsClient(self.platform)
        self.aliases = AliasesClient(self.platform)
        self.rollouts = RolloutsClient(self.platform)
        self.batches = BatchesClient(self._connection, self.platform)
        self.jobs = JobsClient(self._connection, self.calls, self.platform)
        self.portal = shared_portal()

    def durable_map(self, target: CallTarget, kwargs: dict[str, Any]) -> DurableMap:
        """Return a DurableMap that calls `target` with `kwargs`."""
        return DurableMap(self._connection, self.calls, self.jobs, self.platform, target, kwargs)

    @classmethod
    def configured(cls) -> Client:
        """Return the client of the environment, of a login, or of the file that `pilotlight up` writes.

        Raises:
            NotConfigured: if there is neither.
            NestedRefused: within a function of the platform.
        """
        _refuse_within_functions()
        return _ConfiguredClient(load_config())

    def bearer(self) -> str:
        """Return the API key, or the token of a login, that requests are sent with."""
        return self.portal.run(self._connection.bearer())

    def close(self) -> None:
        """Close the connections, which cancels the live calls on them."""
        if self.portal.is_alive:
            self.portal.run(self._connection.aclose())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client(url={self.config.url!r})"


class _ConfiguredClient(Client):
    """A client of a configuration that may have a login in the place of a key."""

    def __init__(self, config: ClientConfig) -> None:
        self._connect(config)


_default: Client | None = None
_lock = threading.Lock()


def default_client() -> Client:
    """Return the configured client: a new one after a fork or a change of the configuration."""
    global _default
    _refuse_within_functions()
    with _lock:
        if _default is not None and _default.portal.is_alive:
            if _default.config == load_config():
                return _default
            _default.close()
        _default = Client.configured()
        return _default


def _refuse_within_functions() -> None:
    if nested_port() is not None:
        raise NestedRefused(NO_CLIENT)


def call_id() -> str:
    """Return a fresh id for `function.options(id=…)`."""
    return f"cid_{token()}"


class _Cancel:
    """`pilotlight.cancel(id)`, and `await pilotlight.cancel.aio(id)` in an event loop."""

    def __call__(self, id: str) -> bool:  # noqa: A002 - what the wire calls it
        """Cancel a call by its id, or by that of `options(id=…)`; return whether it was alive.

        A call that waits is removed, also from a batch; a generator is closed at its next yield.

        Raises:
            UnknownCall: if there is no such call.
        """
        return shared_portal().run(default_client().platform.cancel_call(id))

    async def aio(self, id: str) -> bool:  # noqa: A002
        """Do the same in an event loop."""
        return await shared_portal().run_async(default_client().platform.cancel_call(id))


cancel = _Cancel()
