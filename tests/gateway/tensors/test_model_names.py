"""Names of models."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.tensors.model_names import ModelName, read_model


@pytest.mark.parametrize(
    ("name", "version", "found"),
    [
        ("shop.embed", "", ModelName("shop.embed")),
        ("shop.embed", "3", ModelName("shop.embed@v3")),
        ("shop.embed@v3", "", ModelName("shop.embed@v3")),
        ("shop.embed", "ver_0", ModelName("shop.embed@ver_0")),
        ("other:shop.embed", "2", ModelName("other:shop.embed@v2")),
        ("shop.Models.embed", "", ModelName("shop.Models", "embed")),
        ("shop.Models.embed@v2", "", ModelName("shop.Models@v2", "embed")),
        ("nothing", "", ModelName("nothing")),
        ("", "", ModelName("")),
    ],
)
def test_a_name_is_a_function_and_a_version(name: str, version: str, found: ModelName) -> None:
    """The version of the protocol is the number behind @v, and a third part is a class's method."""
    assert read_model(name, version) == found


def test_a_version_is_named_once() -> None:
    """And names are of bounded length."""
    with pytest.raises(BadInput, match="name it once"):
        read_model("shop.embed@v1", "1")
    with pytest.raises(BadInput, match="at most 512"):
        read_model("x" * 600)
