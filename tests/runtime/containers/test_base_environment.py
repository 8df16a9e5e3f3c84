"""The base environment that the agent itself runs in."""

from __future__ import annotations

import sys
from pathlib import Path

import pilotlight_runtime
from pilotlight_runtime.containers.base_environment import own_environment


def test_everything_that_a_guest_imports_is_visible() -> None:
    """The interpreter, the environment, and our own packages, wherever they are installed."""
    base = own_environment("numpy,torch")
    package = Path(pilotlight_runtime.__file__).parent

    assert base.python == Path(sys.executable)
    for path in (package, Path(sys.executable), Path(sys.executable).resolve()):
        assert path.is_relative_to("/usr") or any(path.is_relative_to(mount.target) for mount in base.read_only)
    assert base.env["PL_PREIMPORT"] == "numpy,torch"


def test_nothing_else_of_the_checkout_is_visible() -> None:
    """Tests, the gateway's code and the repository's folder itself are nobody's business."""
    root = Path(pilotlight_runtime.__file__).parents[2]

    assert all(mount.source not in (root, root / "gateway", root / "tests") for mount in own_environment("").read_only)
