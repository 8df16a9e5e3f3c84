"""Of httpcore the poster uses public names only, and gives it a backend of the shape that it asks for."""

from __future__ import annotations

import ast
import inspect

import httpcore
import pytest

from pilotlight_gateway.webhooks import http_sender
from pilotlight_gateway.webhooks.http_sender import VettedBackend


def test_only_public_names_of_httpcore_are_used() -> None:
    """So a release that moves what is behind them moves nothing here."""
    tree = ast.parse(inspect.getsource(http_sender))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "httpcore"
    }

    assert used
    assert used <= set(httpcore.__all__)


@pytest.mark.parametrize("verb", ["connect_tcp", "connect_unix_socket", "sleep"])
def test_the_backend_takes_what_httpcore_passes(verb: str) -> None:
    """Each verb by the same names, and there is no other that would go past the vetting."""
    base, ours = getattr(httpcore.AsyncNetworkBackend, verb), getattr(VettedBackend, verb)

    assert list(inspect.signature(ours).parameters) == list(inspect.signature(base).parameters)
    assert {name for name in vars(httpcore.AsyncNetworkBackend) if not name.startswith("_")} == {
        "connect_tcp",
        "connect_unix_socket",
        "sleep",
    }
