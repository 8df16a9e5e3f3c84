"""A lock of one package, unless a test says otherwise."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.packages.package_locks import LockedPackage, PackageLock

FILE_HASH = "1" * 64
BASE_DIGEST = "b" * 64


def package_lock(*requirements: str, **changes: Any) -> PackageLock:
    """What `tiny` comes to."""
    fields: dict[str, Any] = {
        "requirements": requirements or ("tiny",),
        "packages": (LockedPackage(name="tiny", version="1.0", hashes=(FILE_HASH,)),),
        "base_digest": BASE_DIGEST, "python": "cp311", "platform": "linux_x86_64",
    }  # fmt: skip
    return PackageLock(**fields | changes)
