"""What may be pushed: no name is trusted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.versions.pushed_weights import WEIGHTS_PART_BYTES
from pilotlight_gateway.deploys.rules.weights_rules import read_push

DIGEST = "a" * 64


def body(*parts: tuple[str, str, int], **more: Any) -> bytes:
    listed = [{"path": path, "sha256": sha256, "size": size} for path, sha256, size in parts]
    return msgspec.json.encode({"parts": listed} | more)


def test_a_push_is_read_with_its_pickles() -> None:
    """Those are told by name, where they are allowed."""
    sent = body(("a.bin", DIGEST, 1), ("b.json", "b" * 64, 2), allow_pickles=True, signature="{}")
    pushed, pickles, signature = read_push(sent, "m")
    assert (pushed.name, len(pushed.parts), pickles, signature) == ("m", 2, ("a.bin",), b"{}")
    with pytest.raises(BadInput, match=r"'a\.bin' is a pickle by its name"):
        read_push(body(("a.bin", DIGEST, 1)), "m")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a\\b", "", "a/", "x\n.json", "\u202ename.json", "a" * 600],
)
def test_paths_that_leave_the_folder_are_refused(path: str) -> None:
    """Agents create them."""
    with pytest.raises(BadInput, match="parts"):
        read_push(body((path, DIGEST, 1)), "m")


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [("a", "z" * 64, 1)],
        [("a", "A" * 64, 1)],
        [("a", "a" * 63, 1)],
        [("a", DIGEST, -1)],
        [("a", DIGEST, WEIGHTS_PART_BYTES + 1)],
        [("a", DIGEST, 1), ("b", DIGEST, 2)],
        [("a", DIGEST, 1), ("A", "b" * 64, 1)],
        [("a", DIGEST, 1), ("a/b", "b" * 64, 1)],
        [("a", DIGEST, 1), ("b", "b" * 64, 1), ("a", "c" * 64, 1)],
    ],
)
def test_parts_that_contradict_each_other_are_refused(parts: list[tuple[str, str, int]]) -> None:
    """And digests that are none, and sizes beyond what a part may have."""
    with pytest.raises(BadInput, match="parts"):
        read_push(body(*parts), "m")


def test_what_is_no_request_is_refused() -> None:
    """Unknown fields are slips."""
    with pytest.raises(BadInput):
        read_push(body(("a", DIGEST, 1), more=1), "m")
    with pytest.raises(BadInput):
        read_push(b"{", "m")
