"""How many long requests a gateway takes at a time, and of one tenant."""

from __future__ import annotations

from pilotlight_gateway.limits.tenant_slots import TenantSlots


def upload_slots() -> TenantSlots:
    """Uploads of blobs at a time; a deploy makes four."""
    return TenantSlots(32, "uploads are under way", of_tenant=8, retry_after=1.0)


def deploy_slots() -> TenantSlots:
    """Deploys at a time."""
    return TenantSlots(3, "deploys are under way", of_tenant=1, retry_after=1.0)


def file_slots() -> TenantSlots:
    """Uploads of files at a time."""
    return TenantSlots(8, "files are being uploaded", of_tenant=2, retry_after=2.0)


def lock_slots() -> TenantSlots:
    """Locks of requirements at a time."""
    return TenantSlots(16, "deploys with requirements are under way", of_tenant=1, retry_after=2.0)


def follower_slots() -> TenantSlots:
    """Readers of logs at a time."""
    return TenantSlots(256, "log readers are connected", of_tenant=64, retry_after=5.0)
