"""Where agents exchange large bodies with a gateway, and whether others on the way could read them. Pure."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

PLAIN = (
    "or a certificate (--internal-tls-cert, --internal-tls-key), or --internal-plain beside it, which says that nobody "
    "else reads or reaches the network between gateways and agents: inputs and answers go over it in clear"
)


def check_internal(host: str, port: int, url: str, *, plain: bool, tls: bool = False) -> None:
    """Whether the listener for large bodies may be at `host` and `port`, and be told to agents as `url` ("": as it is).

    `tls`: it has a certificate.

    Raises:
        ValueError: it may not; the message ends with the setting's name, as those of msgspec do.
    """
    address = _address(host)
    if not (address.is_loopback or plain or tls):
        raise _wrong("internal_host", f"expected a loopback address, {PLAIN}")
    if not url:
        if address.is_unspecified:
            raise _wrong("internal_url", f"expected the URL by which agents reach this host, since {host} names none")
        return
    scheme, target = _parts(url)
    if tls and scheme == "http":
        raise _wrong("internal_url", "expected https://, since the listener has a certificate")
    if scheme == "http" and not (_is_loopback(target) or plain):
        raise _wrong(
            "internal_url", f"expected https://, for a certificate of the listener's or a proxy on this host, {PLAIN}"
        )
    if not port:
        raise _wrong("internal_port", "expected the port to which --internal-url leads")


def link_url(url: str, *, plain: bool) -> str:
    """Where links are offered, by the listener's URL; "": they are not. `plain`: as the bus is in clear, they may be.

    Nobody on another host reaches a loopback address, and what the bus keeps secret links do not say in clear.
    """
    scheme, host = _parts(url)
    return "" if _is_loopback(host) or (scheme == "http" and not plain) else url


def _address(host: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(host)
    except ValueError:
        raise _wrong("internal_host", "expected an address, such as 127.0.0.1 or 10.0.0.5") from None


def _parts(url: str) -> tuple[str, str]:
    """The scheme and the host."""
    with suppress(ValueError):  # a port beyond all ports, or half an IPv6 address
        parts = urlsplit(url)
        is_bare = url == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc
        if is_bare and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts.scheme, parts.hostname
    raise _wrong("internal_url", "expected http://HOST:PORT or https://HOST:PORT, with nothing behind it")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wrong(setting: str, sentence: str) -> ValueError:
    return ValueError(f"{sentence} - at `$.{setting}`")
