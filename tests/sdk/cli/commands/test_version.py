"""The version of the SDK and of Python."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.shell import run


def test_version() -> None:
    """Of the SDK and of Python."""
    assert run("version").startswith("pilotlight 0.")
    assert msgspec.json.decode(run("version", "--json")).keys() == {"pilotlight", "python"}
