"""The client of a platform. Names are imported at their first use: a function that calls another needs no HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilotlight.client.client import Client, call_id, cancel, default_client
    from pilotlight.client.portal import shared_portal

__all__ = ["Client", "call_id", "cancel", "default_client", "shared_portal"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    value = getattr(import_module(f"{__name__}.{'portal' if name == 'shared_portal' else 'client'}"), name)
    globals()[name] = value
    return value
