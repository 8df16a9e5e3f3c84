"""The version of the SDK and of Python."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.shell import run


def test_the_versions_are_printed() -> None:
    """The output has the version of the SDK and that of Python."""
    assert run("version").startswith("pilotlight 0.")
    assert msgspec.json.decode(run("version", "--json")).keys() == {"pilotlight", "python"}
