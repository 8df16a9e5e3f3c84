"""What requirements were resolved to at a deploy: each package with its version, and the digests of its files.

The lock stands in the signed manifest: a node installs these files and no others, whatever its index says by then. It
has only what the base environment lacks.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.packages.requirement_texts import NAME, requirements_fault

MOST_PACKAGES = 500
MOST_HASHES = 400
"""Of one version: a package with binary code has a file for each interpreter and platform."""
MOST_LOCK_BYTES = 512 * 1024
"""Of its text; a manifest is read whole."""
PackageName = Annotated[str, Meta(max_length=128)]
PackageVersion = Annotated[str, Meta(max_length=64)]
FileHash = Annotated[str, Meta(max_length=64)]
_VERSION = r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,63}"
_HASH = r"[0-9a-f]{64}"
_TAG = r"[a-z0-9_.-]{1,64}"


class LockedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a package."""

    name: PackageName
    version: PackageVersion
    hashes: Annotated[tuple[FileHash, ...], Meta(max_length=MOST_HASHES)]
    """The sha256 of each of its files, any of which may be installed."""


class PackageLock(msgspec.Struct, frozen=True, kw_only=True):
    """All packages of an environment, and what it was resolved for."""

    requirements: Annotated[tuple[Annotated[str, Meta(max_length=300)], ...], Meta(max_length=200)]
    """As the tenant has written them, sorted."""
    packages: Annotated[tuple[LockedPackage, ...], Meta(max_length=MOST_PACKAGES)]
    base_digest: Annotated[str, Meta(max_length=64)]
    """Of the packages of the base environment."""
    python: Annotated[str, Meta(max_length=64)]
    """The interpreter's tag, such as "cp311"."""
    platform: Annotated[str, Meta(max_length=64)]
    """Of the node, such as "linux_x86_64"."""


def lock_fault(lock: PackageLock) -> str:
    """Why a lock cannot be, as the rest of a sentence; "" if it can."""
    if why := requirements_fault(lock.requirements):
        return why
    if len(lock.packages) > MOST_PACKAGES:
        return f"it has more than {MOST_PACKAGES} packages"
    if not all(re.fullmatch(_TAG, tag) for tag in (lock.python, lock.platform)) or not _is_hash(lock.base_digest):
        return "it does not say what it is for"
    for each in lock.packages:
        if not re.fullmatch(NAME, each.name) or not re.fullmatch(_VERSION, each.version):
            return f"{each.name!r} {each.version!r} is no package"
        if not each.hashes or not all(map(_is_hash, each.hashes)):
            return f"{each.name} has no digest: the index names none"
        if len(each.hashes) > MOST_HASHES:
            return f"{each.name} has more than {MOST_HASHES} files"
    return "" if len(lock_text(lock.packages)) <= MOST_LOCK_BYTES else "its text is too large"


def _is_hash(text: str) -> bool:
    return re.fullmatch(_HASH, text) is not None


def lock_text(packages: tuple[LockedPackage, ...]) -> str:
    """The packages as installers read them."""
    return "".join(
        f"{each.name}=={each.version}{''.join(f' --hash=sha256:{digest}' for digest in each.hashes)}\n"
        for each in packages
    )


def locked_packages(text: str) -> tuple[LockedPackage, ...]:
    """The packages of what `uv pip compile` prints, by name.

    Raises:
        ValueError: it cannot be read.
    """
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, equals, version = words[0].partition("==")
        hashes = tuple(sorted(word.removeprefix("--hash=sha256:") for word in words[1:] if word.startswith("--hash")))
        if (
            not equals
            or not re.fullmatch(NAME, name)
            or not all(word.startswith("--hash=sha256:") for word in words[1:])
        ):
            raise ValueError(f"the resolver's answer cannot be read: {line[:200]!r}")
        found.append(LockedPackage(name=name, version=version, hashes=hashes))
    return tuple(sorted(found, key=lambda each: each.name))


def environment_id(tenant: str, lock: PackageLock) -> str:
    """The name of what a node builds of a lock, for one tenant."""
    import hashlib  # here, since OpenSSL takes longer to load than all of this module, which every guest imports

    # The base too: the same packages over another one are another environment.
    text = "\n".join((tenant, lock.base_digest, lock.python, lock.platform, lock_text(lock.packages)))
    return f"env_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
