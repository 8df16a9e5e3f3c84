"""What Terraform's provider for AWS takes, of the types that infra/terraform uses: `python -m tools.aws_schema WHEEL`.

No registry of providers is needed: the wheel `cdktf-cdktf-provider-aws` has the provider's schema as Python classes,
which are read, not imported. The result is tests/infra/aws_schema.json, made anew when a type comes to be used.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import hcl2

ROOT = Path(__file__).parents[1]
TERRAFORM = ROOT / "infra" / "terraform"
SCHEMA = ROOT / "tests" / "infra" / "aws_schema.json"
#: Of all types, and Terraform's own: a block inside may have its own of such a name.
META = {"connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioners"}
NO_ATTRIBUTES = {"TF_RESOURCE_TYPE", "internal_value", "fqn"}
KINDS = (
    ("typing.Sequence[builtins.str]", "list"),
    ("typing.Mapping[builtins.str", "map"),
    ("StringMap", "map"),
    ("List", "list"),
    ("jsii.Number", "number"),
    ("builtins.bool", "bool"),
    ("IResolvable", "bool"),
)
"""By what an annotation has in it, the first that fits; all else is text."""
Block = dict[str, Any]


def configuration(folder: Path = TERRAFORM) -> list[dict[str, Any]]:
    """All files of a configuration, as their parser reads them."""
    return [_parsed(path.read_text()) for path in sorted(folder.glob("*.tf"))]


def declared(kind: str, folder: Path = TERRAFORM) -> Iterator[tuple[str, str, Block]]:
    """Type, name and body of each `resource` or `data`."""
    for file in configuration(folder):
        for each in file.get(kind, ()):
            for type_name, inside in each.items():
                for name, body in inside.items():
                    yield type_name.strip('"'), name.strip('"'), body


def read_schema(wheel: Path, folder: Path = TERRAFORM) -> dict[str, Any]:
    """Of the types that a configuration uses."""
    with ZipFile(wheel) as archive:
        (about,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        found = re.search(r"hashicorp/aws provider version ([\d.]+)", archive.read(about).decode())
        made: dict[str, Any] = {"provider": found[1] if found else "", "resource": {}, "data": {}}
        for kind, prefix in (("resource", ""), ("data", "data_aws_")):
            for type_name in sorted({each for each, _, _ in declared(kind, folder)}):
                module = prefix + type_name.removeprefix("aws_")
                source = archive.read(f"cdktf_cdktf_provider_aws/{module}/__init__.py").decode()
                made[kind][type_name] = _type_schema(ast.parse(source))
    return made


def _type_schema(module: ast.Module) -> Block:
    classes = {each.name: each for each in module.body if isinstance(each, ast.ClassDef)}
    (whole,) = [each for each in classes.values() if re.search("TerraformResource|TerraformDataSource", _bases(each))]
    return _block(whole, whole, classes)


def _bases(each: ast.ClassDef) -> str:
    return " ".join(ast.unparse(base) for base in each.bases)


def _block(owner: ast.ClassDef, reference: ast.ClassDef | None, classes: dict[str, ast.ClassDef]) -> Block:
    """Arguments by name, each with its kind, or as a block of its own; those that must be; and what can be read."""
    made: Block = {"arguments": {}, "required": []}
    for name, annotation, is_required in _arguments(owner):
        nested = next((each for each in re.findall(r"'(\w+)'", annotation) if each in classes), None)
        if nested is None:
            made["arguments"][name] = _kind(annotation)
        else:
            is_many = "typing.Sequence" in annotation
            inside = _block(classes[nested], classes.get(f"{nested}OutputReference"), classes)
            made["arguments"][name] = {**inside, "many": is_many}
        if is_required:
            made["required"].append(name)
    made["attributes"] = {
        name: _kind(annotation)
        for name, annotation in (_properties(reference) if reference is not None else ())
        if name not in made["arguments"] and not name.endswith("_input") and name not in NO_ATTRIBUTES
    }
    return made


def _arguments(owner: ast.ClassDef) -> Iterator[tuple[str, str, bool]]:
    for each in owner.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            for argument, default in zip(each.args.kwonlyargs, each.args.kw_defaults, strict=True):
                is_meta = argument.arg in META and owner.bases
                if argument.annotation is not None and not is_meta:
                    yield argument.arg.rstrip("_"), ast.unparse(argument.annotation), default is None


def _properties(owner: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for each in owner.body:
        if isinstance(each, ast.FunctionDef) and any("property" in ast.unparse(mark) for mark in each.decorator_list):
            yield each.name.rstrip("_"), ast.unparse(each.returns) if each.returns else ""


def _kind(annotation: str) -> str:
    return next((kind for part, kind in KINDS if part in annotation), "text")


@cache
def _parsed(text: str) -> dict[str, Any]:
    """Read by a grammar, which takes seconds."""
    return hcl2.loads(text)


def main() -> None:
    SCHEMA.write_text(json.dumps(read_schema(Path(sys.argv[1])), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
