"""What a base environment is said to be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pilotlight_runtime.environments.base_facts import NoFacts, base_facts, merged_mounts
from pilotlight_runtime.sandbox.sandbox_spec import Mount
from tests.builders.base_venv import base_venv


def distribution(venv: Path, name: str, version: str) -> None:
    """Install a package without files."""
    folder = next(venv.glob("lib/*/site-packages")) / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_an_environment_is_its_packages(tmp_path: Path) -> None:
    """Two with the same are the same, wherever they are; one with another version is another."""
    one, same, other = (base_venv(tmp_path / name) for name in ("one", "same", "other"))
    for venv, version in ((one, "1.0"), (same, "1.0"), (other, "1.1")):
        distribution(venv, "tiny", version)
    distribution(same, "pilotlight", "9.9")  # of another release of the platform, which changes nothing

    facts = [base_facts(venv / "bin" / "python") for venv in (one, same, other)]

    assert facts[0] == facts[1]
    assert facts[0].digest != facts[2].digest
    assert facts[0].python == f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert facts[0].platform.startswith("linux_")


def test_an_interpreter_that_does_not_run_has_no_facts(tmp_path: Path) -> None:
    """The reason is its own."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    broken.chmod(0o755)

    with pytest.raises(NoFacts, match="broken"):
        base_facts(broken)
    with pytest.raises(NoFacts, match="No such file"):
        base_facts(tmp_path / "missing")


def test_a_target_is_mounted_once() -> None:
    """Base environments may have an interpreter in common."""
    a, b = (Mount(source=Path(f"/{name}"), target=Path(f"/{name}")) for name in "ab")

    assert merged_mounts((a, b), (b,)) == (a, b)
