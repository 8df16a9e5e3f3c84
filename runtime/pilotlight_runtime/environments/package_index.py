"""The package index that an operator names: where it is, and what a builder may connect to. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from pilotlight_core.model.errors import BadInput

HIDDEN_INDEX = "<the package index>"
"""In what tenants are told, in the place of where it is: it may be inside the operator's network."""
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_PORTS = {"https": 443, "http": 80}
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


@dataclass(frozen=True, kw_only=True)
class PackageIndex:
    """Where packages come from. `targets` are as `network_targets` reads them, though their hosts may be addresses."""

    url: str
    targets: tuple[str, ...]
    certificates: str = ""
    """File of authorities (PEM) that its certificate may be of, beside or instead of the public ones."""

    def without_address(self, words: str) -> str:
        """What a resolver says, without where the index is and how it is asked."""
        bare = _CREDENTIALS.sub("//", self.url)
        origin = _origin(bare)
        for text in (self.url, self.url.rstrip("/"), bare, bare.rstrip("/"), origin):
            words = words.replace(text, HIDDEN_INDEX)
        words = _CREDENTIALS.sub("//", words)
        for target in self.targets:
            place = target.rpartition("://")[2]
            for text in (f"https://{place}", f"http://{place}", place, place.rpartition(":")[0]):
                words = words.replace(text, HIDDEN_INDEX)
        return words


def read_index(url: str, hosts: str = "", certificates: str = "") -> PackageIndex:
    """The index of --package-index, whose files may be at further hosts (--package-hosts).

    Raises:
        BadInput: naming the setting.
    """
    scheme, _, _ = url.partition("://")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        host, port = "", 0
    if scheme not in _PORTS or not _HOST.fullmatch(host) or not port or re.search(r"[\s\0]", url):
        raise BadInput(
            f"--package-index {_CREDENTIALS.sub('//', url)!r}: expected the URL of an index such as "
            "https://packages.example.com/simple/.",
            field="package_index",
        )
    further = tuple(_target(word) for word in filter(None, (part.strip() for part in hosts.split(","))))
    return PackageIndex(
        url=url, targets=tuple(dict.fromkeys((_text(scheme, host, port), *further))), certificates=certificates
    )


def _target(word: str) -> str:
    scheme, found, rest = word.rpartition("://")
    host, colon, port = rest.partition(":")
    scheme = scheme if found else "https"
    if scheme not in _PORTS or not _HOST.fullmatch(host) or (colon and not re.fullmatch(r"[1-9][0-9]{0,4}", port)):
        raise BadInput(
            f"--package-hosts {word!r}: expected hosts such as files.example.com, or http://files.example.com:8080.",
            field="package_hosts",
        )
    return _text(scheme, host, int(port or _PORTS[scheme]))


def _text(scheme: str, host: str, port: int) -> str:
    return f"{'http://' if scheme == 'http' else ''}{host.lower()}:{port}"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
