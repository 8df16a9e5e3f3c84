"""Files of versions, for nodes without access to the store of blobs: an agent asks, a gateway answers."""

from __future__ import annotations

from pilotlight_core.model.messages.message import Message


class BlobWanted(Message, frozen=True, kw_only=True):
    """A container that is bound on the agent's node needs a blob of its version."""

    container: str
    sha256: str


class BlobLink(Message, frozen=True, kw_only=True):
    """Where the blob can be read for a few minutes, or why it cannot be."""

    url: str = ""
    reason: str = ""
    """"not_bound": no such container is bound there; "not_its": its version does not have this blob; "missing",
    "down": the store says so; "no_links": the store gives none; "busy": ask later."""
