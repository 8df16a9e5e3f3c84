"""An HTTP client that is made when it is first needed: httpx and its certificates take 4 MB and 60 ms."""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import TYPE_CHECKING, Any

from pilotlight_core.authorities import add_authorities
from pilotlight_core.lean_libraries import without
from pilotlight_core.model.errors import BadInput
from pilotlight_core.trusted_context import TrustedContext

if TYPE_CHECKING:
    import httpx


_loading = threading.Lock()
"""Two that load httpx at once would take what it must not find from each other."""


class NoHttpClient(Exception):
    """It cannot be made: no descriptors are left, or its files are gone."""


class HttpClient:
    """Makes one `httpx.AsyncClient`, of at most `connections`, with `options`.

    It believes the authorities in `ca_file` (PEM), which `ca_setting` names, beside those of certifi; connections that
    are made after the file has changed go by what is in it then.
    """

    def __init__(self, *, connections: int, ca_file: str = "", ca_setting: str = "--ca-file", **options: Any) -> None:
        self._ca_setting = ca_setting
        self._connections = connections
        self._ca_file = ca_file
        self._options = options
        self._client: httpx.AsyncClient | None = None
        self._making = asyncio.Lock()

    async def get(self) -> httpx.AsyncClient:
        """The client; `import httpx` costs nothing from then on. Raises NoHttpClient; the next one may get it."""
        async with self._making:
            if self._client is None:
                try:
                    self._client = await asyncio.to_thread(self._make)
                except (OSError, ImportError, BadInput) as error:
                    raise NoHttpClient(str(error)) from error
            return self._client

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _believed(self) -> ssl.SSLContext:
        import httpx

        context = httpx.create_ssl_context(trust_env=False)
        add_authorities(context, self._ca_file, self._ca_setting)
        return context

    def _make(self) -> httpx.AsyncClient:
        with _loading, without("click", "trio"):
            import httpcore  # noqa: F401 - httpx would import it later, and trio with it
            import httpx
        limits = httpx.Limits(max_connections=self._connections, keepalive_expiry=30.0)
        verify = TrustedContext(self._believed, self._ca_file) if self._ca_file else True
        return httpx.AsyncClient(limits=limits, verify=verify, **self._options)
