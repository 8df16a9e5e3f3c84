"""What a deploy may be."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_gateway.bodies.deploy_requests import check_deploy, read_deploy
from tests.gateway.world import HELLO, entry, function


def request(*specs: FunctionSpec, **more: object) -> DeployRequest:
    functions = tuple(DeployFunction(spec=spec) for spec in specs or (function(),))
    made = DeployRequest(functions=functions, files=(entry(b"b", "b.py"), entry(b"a", "a.py")))
    return msgspec.structs.replace(made, **more)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (request(base="../x"), "base"),
        (request(message="x" * 501), "message"),
        (request(message="a\x1b[31m"), "message"),
        (request(functions=()), "functions"),
        (request(function("a"), function("a")), "functions"),
        (request(function("a.b")), "function"),
        (request(function("a", module="os; rm")), "module"),
        (request(function("a", HELLO, HELLO)), "methods"),
        (request(function("a", cpu=0.0)), "cpu"),
        (request(function("a", MethodSpec(name="", attribute="x", input_schema={"$ref": "#"}))), "a.x.input_schema"),
        (request(files=()), "files"),
        (request(files=(entry(b"x", "../x"),)), "files.0.path"),
    ],
)
def test_a_deploy_that_must_not_become_versions_is_refused(wrong: DeployRequest, field: str) -> None:
    """Each rule names its field."""
    with pytest.raises(BadInput) as caught:
        check_deploy("shop", wrong)

    assert caught.value.more["field"] == field


def test_the_body_of_a_deploy_is_read_and_checked() -> None:
    """A whole number may be written as 3.0; what is not allowed is refused, whatever its size."""
    made = request(function("a", timeout=3.0))
    body = msgspec.json.encode(made)
    assert b'"max_inputs":1,' in body

    assert read_deploy(body.replace(b'"max_inputs":1,', b'"max_inputs":1.0,'), "shop") == made
    many = request(files=tuple(entry(b"x", f"f{number}") for number in range(10_001)))
    with pytest.raises(BadInput, match="expected 1 to 10000 files, got 10001"):
        read_deploy(msgspec.json.encode(many), "shop")
