"""What a function may name as its artifacts."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import App, Artifact, method
from pilotlight.definitions.artifact_options import KINDS, artifacts_of
from pilotlight.definitions.errors import OptionError


@pytest.mark.parametrize(
    "wrong", [("music", "a", "b"), ("weights", "../a", "b"), ("weights", "a", ""), ("sbom", "", "b")]
)
def test_a_wrong_artifact_is_refused(wrong: tuple[Any, ...]) -> None:
    """When it is made, so that a container refuses it too; what is there is not looked at."""
    with pytest.raises(OptionError) as caught:
        Artifact(*wrong)

    assert caught.value.more["field"] == "artifacts"


@pytest.mark.parametrize("wrong", ["models/tiny", ["models/tiny"], Artifact("weights", "a", "b")])
def test_artifacts_are_a_list_of_them(wrong: Any) -> None:
    """The error shows one, and names the function's place."""
    with pytest.raises(
        OptionError, match=r"plain \(test_artifact_options\.py:\d+\): artifacts=.*Artifact\(\"weights\", "
    ):

        @App("hello").gpu_function(artifacts=wrong)
        def plain() -> None: ...


def test_two_of_one_name_are_refused() -> None:
    """They would have the same folder."""
    with pytest.raises(OptionError, match="two are called 'a'"):
        artifacts_of({"artifacts": [Artifact("weights", "a", "b"), Artifact("config", "a", "c")]})


def test_functions_and_classes_have_what_they_name() -> None:
    """Of every kind, or none."""
    every = [Artifact(kind, kind, "there") for kind in KINDS]  # type: ignore[arg-type]

    class Model:
        @method()
        def answer(self) -> int:
            return 42

    def plain() -> None: ...

    app = App("hello")
    assert app.gpu_function(artifacts=every)(Model).artifacts == tuple(every)
    assert app.gpu_function(artifacts=every)(plain).artifacts == tuple(every)
    assert App("none").gpu_function(plain).artifacts == ()
