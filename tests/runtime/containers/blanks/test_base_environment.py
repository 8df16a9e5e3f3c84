"""Base environments: the one that the agent itself runs in, and others."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import pilotlight_runtime
from pilotlight_core.host.config import AgentSettings, agent
from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.containers.blanks.base_environment import other_environments, own_environment
from tests.builders.base_venv import base_venv


def test_everything_that_a_guest_imports_is_visible() -> None:
    """The interpreter, the environment, and our own packages, wherever they are installed."""
    base = own_environment("numpy,torch")
    package = Path(pilotlight_runtime.__file__).parent

    assert base.python == Path(sys.executable)
    for path in (package, Path(sys.executable), Path(sys.executable).resolve()):
        assert path.is_relative_to("/usr") or any(path.is_relative_to(mount.target) for mount in base.read_only)
    assert base.env["PL_PREIMPORT"] == "numpy,torch"


def test_a_blank_may_import_nothing_ahead() -> None:
    """An empty variable would stand for the default: the word `none` does not."""
    settings = [agent([], {"PILOTLIGHT_PREIMPORT": text}) for text in ("none", "")]

    assert [own_environment(one.preimport).env["PL_PREIMPORT"] for one in settings] == ["", AgentSettings().preimport]


def test_what_a_blank_imports_is_compiled() -> None:
    """A sandbox writes no compiled module: what setup left out, each container would compile at its start."""
    for module in AgentSettings().preimport.split(","):
        spec = importlib.util.find_spec(module)
        assert spec is not None
        assert spec.cached is not None
        assert Path(spec.cached).exists(), f"{module} is not compiled: run 'make setup'"


def test_nothing_else_of_the_checkout_is_visible() -> None:
    """Tests, the gateway's code and the repository's folder itself are nobody's business."""
    root = Path(pilotlight_runtime.__file__).parents[2]

    assert all(mount.source not in (root, root / "gateway", root / "tests") for mount in own_environment("").read_only)


def test_another_environment_is_an_interpreter_with_its_own_packages(tmp_path: Path) -> None:
    """Of the agent's own environment it shows the platform's packages, if they are installed there."""
    folder = base_venv(tmp_path / "torch", flavour="")

    (base,) = other_environments([f"torch={folder}"], "none", walled=True)

    assert (base.name, base.python) == ("torch", folder / "bin" / "python")
    assert folder in [mount.target for mount in base.read_only]
    assert not any(str(mount.target).endswith("site-packages") for mount in base.read_only)
    assert base.env == own_environment("none").env


def test_an_environment_that_cannot_run_guests_is_refused_with_its_own_words(tmp_path: Path) -> None:
    """By its name; nothing is found out only when the first function starts."""
    bare = base_venv(tmp_path / "bare", libraries=())

    assert "--base bare: " in refusal(f"bare={bare}")
    assert "cannot run guests: ModuleNotFoundError: No module named 'msgspec'. Install" in refusal(f"bare={bare}")
    assert refusal(f"none={tmp_path}") == f"--base none: there is no interpreter {tmp_path}/bin/python."


def test_an_environment_of_another_release_is_refused(tmp_path: Path) -> None:
    """One whose guest says no version of its frames is of release 0.1."""
    old = base_venv(tmp_path / "old")
    for name, source in {
        "pilotlight/__init__.py": "", "pilotlight_core/__init__.py": "", "pilotlight_runtime/__init__.py": "",
        "pilotlight_runtime/guest/__init__.py": "", "pilotlight_runtime/guest/guest_process.py": "",
        "pilotlight_runtime/guest/async_server.py": "", "pilotlight_runtime/guest/frames.py": "",
    }.items():  # fmt: skip
        path = next(old.glob("lib/*/site-packages")) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)

    assert refusal(f"old={old}") == (
        "--base old: its guest speaks version 0.0 of the frames, this agent 1.6: install the agent's release of "
        "pilotlight in it."
    )


def test_what_no_sandbox_would_see_is_refused(tmp_path: Path) -> None:
    """Libraries outside of the environment; a plain process sees them."""
    leaning = base_venv(tmp_path / "leaning", libraries=())
    own = Path(str(importlib.util.find_spec("msgspec").origin)).parents[1]  # type: ignore[union-attr]
    (next(leaning.glob("lib/*/site-packages")) / "more.pth").write_text(str(own))

    assert f"--base leaning: it imports {own}/msgspec/__init__.py, which lies outside of it" in refusal(
        f"leaning={leaning}"
    )
    assert [base.name for base in other_environments([f"leaning={leaning}"], "", walled=False)] == ["leaning"]


@pytest.mark.parametrize(
    ("bases", "why"),
    [
        (["torch"], "--base torch: expected NAME=PATH"),
        (["a b=/x"], "'a b' is not a name"),
        (["default=/x"], "--base default=/x: 'default' is the environment in which the agent itself runs"),
    ],
)
def test_what_is_no_environment_is_refused(bases: list[str], why: str) -> None:
    """Before anything is run."""
    assert why in refusal(*bases)


def test_a_name_is_given_once(tmp_path: Path) -> None:
    """To one folder."""
    folder = base_venv(tmp_path / "torch")
    assert "there are two of this name" in refusal(f"torch={folder}", f"torch={folder}")


def refusal(*bases: str) -> str:
    with pytest.raises(BadInput) as refused:
        other_environments(bases, "none", walled=True)
    return refused.value.detail
