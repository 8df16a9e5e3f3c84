"""Locks: how they are read, written, checked and named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.packages.package_locks import (
    MOST_PACKAGES,
    LockedPackage,
    PackageLock,
    environment_id,
    lock_fault,
    lock_text,
    locked_packages,
)

ONE, TWO = "1" * 64, "2" * 64
PRINTED = f"""\
zeta==2.0.post1 \\
    --hash=sha256:{TWO} \\
    --hash=sha256:{ONE}
alpha==1.0+cpu --hash=sha256:{ONE}  # via zeta
"""


def lock(**changes: Any) -> PackageLock:
    fields: dict[str, Any] = {
        "requirements": ("zeta",), "packages": locked_packages(PRINTED), "base_digest": ONE, "python": "cp311",
        "platform": "linux_x86_64",
    }  # fmt: skip
    return PackageLock(**fields | changes)


def package(**changes: Any) -> LockedPackage:
    return LockedPackage(**{"name": "a", "version": "1", "hashes": (ONE,)} | changes)


def test_what_the_resolver_prints_is_read_and_written() -> None:
    """By name, each with all digests."""
    found = locked_packages(PRINTED)

    assert [(each.name, each.version, each.hashes) for each in found] == [
        ("alpha", "1.0+cpu", (ONE,)), ("zeta", "2.0.post1", (ONE, TWO)),
    ]  # fmt: skip
    assert lock_text(found) == (
        f"alpha==1.0+cpu --hash=sha256:{ONE}\nzeta==2.0.post1 --hash=sha256:{ONE} --hash=sha256:{TWO}\n"
    )
    assert locked_packages(lock_text(found)) == found
    assert locked_packages("") == ()


@pytest.mark.parametrize("text", ["-e .", "x @ http://e", "x==1 --no-binary x", "x>1", "../x==1"])
def test_what_no_resolver_prints_is_not_read(text: str) -> None:
    """It goes into a file that an installer reads."""
    with pytest.raises(ValueError, match="cannot be read"):
        locked_packages(text)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"requirements": ("-e .",)}, "options of installers"),
        ({"packages": (package(),) * (MOST_PACKAGES + 1)}, "more than 500"),
        ({"packages": (package(name="a b"),)}, "is no package"),
        ({"packages": (package(name="--pre"),)}, "is no package"),
        ({"packages": (package(version="1 --pre"),)}, "is no package"),
        ({"packages": (package(hashes=()),)}, "no digest"),
        ({"packages": (package(hashes=("0" * 63,)),)}, "no digest"),
        ({"packages": (package(hashes=("Z" * 64,)),)}, "no digest"),
        ({"packages": (package(hashes=(ONE,) * 401),)}, "more than 400"),
        ({"packages": tuple(package(name=f"p{n}", hashes=(ONE,) * 40) for n in range(200))}, "too large"),
        ({"python": "../x"}, "what it is for"),
        ({"base_digest": "x"}, "what it is for"),
    ],
)
def test_a_lock_that_cannot_be_is_refused(changes: dict[str, Any], why: str) -> None:
    """It comes from a node, and is signed."""
    assert lock_fault(lock()) == ""
    assert why in lock_fault(lock(**changes))


def test_an_environment_is_named_by_what_is_in_it() -> None:
    """And by whose it is, over what, and where it runs; not by how it was asked for."""
    name = environment_id("acme", lock())

    assert name == environment_id("acme", lock(requirements=("zeta>=1",)))
    others = {
        environment_id("rival", lock()), environment_id("acme", lock(base_digest=TWO)),
        environment_id("acme", lock(python="cp312")), environment_id("acme", lock(platform="linux_aarch64")),
        environment_id("acme", lock(packages=(package(),))),
    }  # fmt: skip
    assert len(others) == 5
    assert name not in others


def test_a_lock_has_bounds_where_it_is_read() -> None:
    """Of a node's message nothing is read that is longer."""
    data = msgspec.msgpack.encode(lock(packages=(package(name="x" * 200),)))

    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(data, type=PackageLock)
