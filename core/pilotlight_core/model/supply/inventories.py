"""Packages of a base environment, and of what is locked over it, as a node tells them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.packages.requirement_texts import normal_name
from pilotlight_core.model.supply.licences import LICENCE_LENGTH

MOST_DESCRIBED = 5_000
"""Packages of one environment."""


class PackageFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An installed package."""

    name: Annotated[str, Meta(max_length=128)]
    version: Annotated[str, Meta(max_length=64)]
    licence: Annotated[str, Meta(max_length=LICENCE_LENGTH)] = ""
    """An SPDX expression; "": its metadata says none."""

    @property
    def purl(self) -> str:
        return purl_of(self.name, self.version)


class BaseInventory(msgspec.Struct, frozen=True, kw_only=True):
    """A base environment."""

    digest: Annotated[str, Meta(max_length=64)]
    """Of the names and versions of its packages."""
    python: Annotated[str, Meta(max_length=64)]
    """The interpreter's tag."""
    platform: Annotated[str, Meta(max_length=64)]
    packages: Annotated[tuple[PackageFact, ...], Meta(max_length=MOST_DESCRIBED)]


def purl_of(name: str, version: str) -> str:
    """The package URL of a version in an index of Python packages."""
    return f"pkg:pypi/{normal_name(name)}@{version.replace('+', '%2B').replace('!', '%21')}"
