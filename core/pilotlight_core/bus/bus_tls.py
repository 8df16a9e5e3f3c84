"""TLS between a process and the bus: whom it believes, and what it says when it does not."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import partial
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import structlog

from pilotlight_core.authorities import certificate_problem, trust_authorities
from pilotlight_core.model.errors import BadInput
from pilotlight_core.trusted_context import TrustedContext

SETTING = "--ca-file"

log = structlog.get_logger(__name__)


class PlainBus(ConnectionError):
    """The server would go on without TLS."""


def bus_context(url: str, ca_file: str) -> ssl.SSLContext | None:
    """What connections to the servers at `url` (several by commas) are made with; None: they need none. Those that are
    made later go by what is in `ca_file` then.

    Raises:
        BadInput: there are no authorities in `ca_file`, or some of the servers have TLS and some have not.
    """
    secure = [each.startswith("tls://") for each in url.split(",")]
    if any(secure) and not all(secure):
        raise BadInput("Servers of one bus are all at tls://, or none of them is.")
    if ca_file and (hosts := plain_hosts(url)):
        log.warning(
            "the bus is at nats://, though there is a file of authorities: whoever stands between may get its password "
            "in clear; tls:// insists on TLS",
            hosts=hosts,
        )
    if ca_file:
        return TrustedContext(partial(trust_authorities, ca_file, SETTING), ca_file)
    return ssl.create_default_context() if any(secure) else None


def is_in_clear(url: str, ca_file: str) -> bool:
    """Whether connections to the servers at `url` have no TLS; where they may have some (nats:// with a file of
    authorities, if the server asks for it), they are not."""
    return not ca_file and all(each.startswith("nats://") for each in url.split(","))


def plain_hosts(url: str) -> list[str]:
    """The servers that are on other hosts, and to which it does not insist on TLS."""
    parts = [urlsplit(each.strip()) for each in url.split(",")]
    return [each.hostname or "" for each in parts if each.scheme != "tls" and not _is_loopback(each.hostname or "")]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_tls_offer(info: Mapping[str, Any]) -> None:
    """Whether the greeting of a server at `tls://` asks for TLS; who took that out of it would get the password.

    Raises:
        PlainBus.
    """
    if not info.get("tls_required"):
        raise PlainBus("the server does not insist on TLS, and this process was told tls://")


def tls_problem(error: BaseException, ca_file: str) -> str:
    """What keeps TLS from coming about, as a sentence; "": nothing of it."""
    if isinstance(error, PlainBus):
        return str(error)
    return certificate_problem(error, ca_file)
