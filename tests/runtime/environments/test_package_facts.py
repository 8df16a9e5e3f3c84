"""What an environment has is read from the metadata of its packages, within bounds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pilotlight_runtime.environments.base_facts import NoFacts, base_facts
from pilotlight_runtime.environments.package_facts import METADATA_BYTES, base_inventory, facts_below


def installed(folder: Path, name: str, text: str) -> None:
    inside = folder / f"{name}.dist-info"
    inside.mkdir(parents=True)
    (inside / "METADATA").write_text(text)


def test_names_versions_and_licences_are_those_of_the_metadata(tmp_path: Path) -> None:
    """Whatever an author has written there; what has no name is left out."""
    installed(tmp_path, "b", "Name: b\nVersion: 2\nLicense-Expression: MIT OR Apache-2.0\n\nLicense: GPL\n")
    installed(tmp_path, "a", "Name: a\nVersion: 1\nClassifier: License :: OSI Approved :: MIT License\n")
    installed(tmp_path, "c", f"Name: c\nVersion: 3\nSummary: {'x' * METADATA_BYTES}\nLicense: MIT\n")
    installed(tmp_path, "d", "License: MIT\n")
    installed(tmp_path, "e", "Name: e\nVersion: 1\nLicense: \x1b[2J (((\n")

    assert [(each.name, each.version, each.licence) for each in facts_below(tmp_path)] == [
        ("a", "1", "MIT"), ("b", "2", "MIT OR Apache-2.0"), ("c", "3", ""), ("e", "1", ""),
    ]  # fmt: skip


def test_a_base_environment_has_the_digest_by_which_locks_name_it() -> None:
    """And the platform's own package is none of its."""
    python = Path(sys.executable)
    found, facts = base_inventory(python), base_facts(python)

    assert (found.digest, found.python, found.platform) == (facts.digest, facts.python, facts.platform)
    names = {each.name for each in found.packages}
    assert {"msgspec", "pytest"} <= names
    assert "pilotlight" not in names


def test_an_interpreter_that_does_not_run_is_said(tmp_path: Path) -> None:
    """Nothing is made up."""
    with pytest.raises(NoFacts, match="does not say what it has"):
        base_inventory(tmp_path / "nowhere")
