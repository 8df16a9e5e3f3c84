"""The client of a platform."""

from __future__ import annotations

from pilotlight.client.client import Client, call_id, cancel, default_client
from pilotlight.client.portal import shared_portal

__all__ = ["Client", "call_id", "cancel", "default_client", "shared_portal"]
