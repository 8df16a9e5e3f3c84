"""What may be asked for of an index, and what a requirements.txt says."""

from __future__ import annotations

import pytest

from pilotlight_core.model.packages.requirement_texts import (
    MOST_REQUIREMENTS,
    normal_name,
    requirement_fault,
    requirements_fault,
    requirements_of_file,
)


@pytest.mark.parametrize(
    "text",
    [
        "duckdb", "duckdb==1.3.0", "duckdb >= 1, < 2", "pydantic[email]>=2", "a[b, c]~=1.4.2", "x!=1.*", "x==1.0+cpu",
        'tomli>=2; python_version < "3.11"', "uvloop; sys_platform != 'win32' and python_version >= '3.8'",
        "ruamel.yaml==0.18", "x==1!2.0", "A_b-C.d",
    ],
)  # fmt: skip
def test_names_with_versions_and_markers_are_requirements(text: str) -> None:
    """As PEP 508 writes them."""
    assert requirement_fault(text) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("--index-url http://e", "options of installers"),
        ("-e .", "options of installers"),
        ("-r other.txt", "options of installers"),
        ("x --hash=sha256:00", "options of installers"),
        ("x; a --pre", "options of installers"),
        ("x @ http://e/x.whl", "addresses and version control"),
        ("x@git", "addresses and version control"),
        ("http://e/x.whl", "addresses and version control"),
        ("git+ssh://e/x", "addresses and version control"),
        ("./x", "paths are not taken"),
        ("/x", "paths are not taken"),
        ("~x", "paths are not taken"),
        ("..", "paths are not taken"),
        ("x\\y", "paths are not taken"),
        ("x-1.0-py3-none-any.whl", "paths are not taken"),
        ("x-1.0.TAR.GZ", "paths are not taken"),
        ("x==${VERSION}", "variables are not replaced"),
        ("x\n-e .", "expected a package"),
        ("x\rabc", "expected a package"),
        ("x # why", "expected a package"),
        ("", "expected a package"),
        (" x", "expected a package"),
        ("x==", "expected a package"),
        ("x 1.0", "expected a package"),
        ("ключ", "expected a package"),
        ("x" * 301, "more than 300 characters"),
        (7, "expected a package"),
    ],
)
def test_what_an_installer_would_take_otherwise_is_refused_by_name(text: object, why: str) -> None:
    """Each with what it is, so that a deployer knows what to write instead."""
    assert why in requirement_fault(text)


def test_a_list_of_requirements_has_bounds() -> None:
    """And no two that are the same."""
    assert requirements_fault(["a", "b>1"]) == ""
    assert "in a list" in requirements_fault("a")
    assert "at most 200" in requirements_fault([f"p{number}" for number in range(MOST_REQUIREMENTS + 1)])
    assert "twice" in requirements_fault(("a", "a"))
    assert "'-e'" in requirements_fault(("a", "-e"))


def test_a_refusal_takes_no_longer_than_its_text() -> None:
    """Expressions with several parts that fit the same letters could."""
    assert requirement_fault("a" * 150 + "[" + "b, " * 49 + "!")
    assert requirement_fault("a" + "==1," * 74 + "!")


def test_a_package_has_one_name() -> None:
    """However it is written (PEP 503)."""
    assert normal_name("Ruamel.Yaml_Clib") == "ruamel-yaml-clib"


def test_a_file_says_one_requirement_a_line() -> None:
    """Comments, empty lines and continued ones are as installers read them; what is there twice counts once."""
    text = "\ufeff# packages\nduckdb==1.3.0  # fast\n\nnumpy>=1, \\\n  <3\nduckdb==1.3.0\nx#y\n".replace(
        "x#y\n", "polars\\"
    )

    assert requirements_of_file(text) == ("duckdb==1.3.0", "numpy>=1,   <3", "polars")


def test_a_file_is_refused_by_the_line() -> None:
    """Options among them, such as those of other indexes."""
    with pytest.raises(ValueError, match=r"^line 2: '--index-url http://e': options of installers"):
        requirements_of_file("a\n--index-url http://e\n")
    with pytest.raises(ValueError, match=r"^line 1: .*options"):
        requirements_of_file("a==1 \\\n  --hash=sha256:00\n")
