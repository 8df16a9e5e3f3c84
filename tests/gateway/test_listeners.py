"""What a gateway listens on."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from pilotlight_core.host.config import parse
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.listeners import open_listeners
from pilotlight_gateway.settings import ServeSettings
from tests.builders.certificates import a_server, an_authority


def settings(*flags: str) -> ServeSettings:
    return parse(ServeSettings, "", ["--port", "0", *flags], {})


def test_each_listener_has_a_certificate_of_its_own_or_none(tmp_path: Path) -> None:
    """And is https:// then."""
    an_authority(tmp_path)
    a_server(tmp_path, "api")
    a_server(tmp_path, "bodies")
    api = ("--tls-cert", f"{tmp_path}/api.pem", "--tls-key", f"{tmp_path}/api.key")
    bodies = ("--internal-tls-cert", f"{tmp_path}/bodies.pem", "--internal-tls-key", f"{tmp_path}/bodies.key")

    found = []
    for flags in ((), api, bodies, (*api, *bodies)):
        with open_listeners(settings(*flags)) as (public, internal):
            found.append((public.url.partition("//")[0], internal.url.partition("//")[0]))

    assert found == [("http:", "http:"), ("https:", "http:"), ("http:", "https:"), ("https:", "https:")]


def test_a_certificate_that_cannot_be_used_is_told_before_anything_listens(tmp_path: Path) -> None:
    """With the flag that names it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        flags = ("--port", port, "--internal-tls-cert", f"{tmp_path}/x", "--internal-tls-key", f"{tmp_path}/y")
        with (
            pytest.raises(BadInput, match=r"--internal-tls-cert: .*x cannot be read"),
            open_listeners(settings(*flags)),
        ):
            pass
