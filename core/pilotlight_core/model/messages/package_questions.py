"""Gateways have nodes lock requirements at a deploy: those have the base environments, and the way to the index."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pilotlight_core.model.bounded import ShortText
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.packages.package_locks import PackageLock

LongText = Annotated[str, Meta(max_length=16_384)]


class LockPackages(Message, frozen=True, kw_only=True):
    """Lock a tenant's requirements over one of the node's base environments; the answer goes to `gateway`."""

    question: str
    """Unique; the answer names it."""
    gateway: str
    tenant: str
    base: str
    requirements: tuple[str, ...]
    known_base: str = ""
    """The digest of the base environment, and the interpreter's tag, of a lock of the same requirements that there is.
    """
    known_python: str = ""


class PackagesLocked(Message, frozen=True, kw_only=True):
    """The lock, or why there is none."""

    question: ShortText
    lock: PackageLock | None = None
    reason: Literal["", "unchanged", "refused", "busy", "failed"] = ""
    """"unchanged": the known lock is for this base; "refused": the deployer can mend it; "busy", "failed": another node
    may do it."""
    words: LongText = ""
    """The resolver's."""
