"""`requirements=` of an App: what it takes, and where a file is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight import App, gpu_function
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.requirement_options import read_requirements, requirements_of


def test_packages_are_listed_or_stand_in_a_file() -> None:
    """Which is read when the app is deployed: a container has it not."""
    assert requirements_of(["duckdb==1.3.0", "polars"]) == ("duckdb==1.3.0", "polars")
    assert requirements_of("requirements.txt") == "requirements.txt"
    assert App("shop", requirements=("polars",)).requirements == ("polars",)
    assert App("shop").requirements == ()


@pytest.mark.parametrize(
    "value", ["polars", "polars\nduckdb.txt", ["--index-url=http://e"], ["a", "a"], 7, [7], {"a": 1}]
)
def test_what_is_neither_is_refused(value: object) -> None:
    """With an example."""
    with pytest.raises(OptionError, match=r"requirements=") as refused:
        requirements_of(value)

    assert refused.value.more["field"] == "requirements"


def test_a_function_has_those_of_its_app() -> None:
    """They share their files too."""
    with pytest.raises(OptionError, match=r"requirements= is an option of the app, .*App\(NAME, requirements="):

        @gpu_function(requirements=["polars"])  # type: ignore[call-overload, untyped-decorator, unused-ignore]
        def load() -> None: ...


def test_a_file_is_below_the_folder_that_is_deployed(tmp_path: Path) -> None:
    """A line that is no requirement is named."""
    (tmp_path / "requirements.txt").write_text("polars  # fast\n")
    assert read_requirements("requirements.txt", tmp_path) == ("polars",)
    assert read_requirements(("polars",), tmp_path) == ("polars",)
    (tmp_path / "requirements.txt").write_text("polars\n-r more.txt\n")
    with pytest.raises(OptionError, match=r"line 2: '-r more.txt': options of installers"):
        read_requirements("requirements.txt", tmp_path)
    with pytest.raises(OptionError, match="cannot be read"):
        read_requirements("missing.txt", tmp_path)
    (tmp_path / "large.txt").write_bytes(b"#" * 300_000)
    with pytest.raises(OptionError, match="256 KiB"):
        read_requirements("large.txt", tmp_path)
    (tmp_path / "many.txt").write_text("".join(f"p{n}\n" for n in range(201)))
    with pytest.raises(OptionError, match="at most 200"):
        read_requirements("many.txt", tmp_path)
