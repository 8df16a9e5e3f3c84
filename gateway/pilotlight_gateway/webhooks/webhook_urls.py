"""Which URLs deliveries can be sent to at all. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from pilotlight_core.host.outbound.address_policy import Network, literal, why_refused
from pilotlight_core.model.api.webhook_api import URL_PATTERN
from pilotlight_core.model.errors import BadInput

URL = re.compile(URL_PATTERN)
ALLOW = " Operators allow plain http and addresses of their own network: --webhook-allow NETWORK."


def check_url(url: str, allowed: Sequence[Network]) -> None:
    """Refuse URLs that could never be sent to. Names are vetted when a delivery is sent.

    Raises:
        BadInput: names what is wrong.
    """
    if not URL.fullmatch(url):
        raise BadInput("url: expected https://HOST/PATH, percent-encoded.", field="url")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadInput(f"url: {error}.", field="url") from None
    if port == 0:
        raise BadInput("url: there is no port 0.", field="url")
    if parts.scheme != "https" and not allowed:
        raise BadInput(f"url: expected https://…{ALLOW}", field="url")
    address = literal(host)
    if address is None and (host.rsplit(".", 1)[-1].isdigit() or "." not in host) and not allowed:
        # 2130706433, 127.1 and plain names have a meaning only within the platform's network.
        raise BadInput(f"url: expected a full host name.{ALLOW}", field="url")
    if address is not None and (why := why_refused(address, allowed)):
        raise BadInput(f"url: refused address {address}: {why}.{ALLOW}", field="url")
