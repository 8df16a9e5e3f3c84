"""Talking to a platform over HTTP."""

from __future__ import annotations

from pilotlight.client.client import Client, call_id, cancel, default_client
from pilotlight.client.face import face
from pilotlight.client.mapping import map_calls

__all__ = ["Client", "call_id", "cancel", "default_client", "face", "map_calls"]
