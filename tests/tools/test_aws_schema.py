"""The provider's schema is read out of classes: arguments, blocks inside, what is needed, and what can be read."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from tools.aws_schema import read_schema

CLASSES = """
class Thing(_cdktf.TerraformResource):
    TF_RESOURCE_TYPE = "aws_thing"
    def __init__(self, scope, id_, *, name: builtins.str, size: typing.Optional[jsii.Number] = None,
                 part: typing.Optional[typing.Union["ThingPart", typing.Dict[str, str]]] = None,
                 rows: typing.Optional[typing.Union[typing.Sequence[typing.Union["ThingPart", str]]]] = None,
                 provider: typing.Optional[_cdktf.TerraformProvider] = None) -> None: ...
    @builtins.property
    def name_input(self) -> builtins.str: ...
    @builtins.property
    def arn(self) -> builtins.str: ...
class ThingPart:
    def __init__(self, *, key: builtins.str, provider: typing.Sequence[builtins.str]) -> None: ...
class ThingPartOutputReference(_cdktf.ComplexObject):
    @builtins.property
    def key(self) -> builtins.str: ...
    @builtins.property
    def made_at(self) -> builtins.str: ...
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "provider.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr("provider.dist-info/METADATA", "# bindings for hashicorp/aws provider version 6.25.0\n")
        archive.writestr("cdktf_cdktf_provider_aws/thing/__init__.py", CLASSES)
    return path


def test_a_type_is_read(wheel: Path, tmp_path: Path) -> None:
    """Of those that the configuration uses; what all types have is Terraform's own, but not inside of blocks."""
    (tmp_path / "main.tf").write_text('resource "aws_thing" "one" {\n  name = "x"\n}\n')
    part = {
        "arguments": {"key": "text", "provider": "list"},
        "required": ["key", "provider"],
        "attributes": {"made_at": "text"},
    }

    assert read_schema(wheel, tmp_path) == {
        "provider": "6.25.0",
        "resource": {
            "aws_thing": {
                "arguments": {
                    "name": "text",
                    "size": "number",
                    "part": {**part, "many": False},
                    "rows": {**part, "many": True},
                },
                "required": ["name"],
                "attributes": {"arn": "text"},
            }
        },
        "data": {},
    }
