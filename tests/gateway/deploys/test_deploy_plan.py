"""The versions that a deploy makes."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_gateway.deploys.deploy_plan import manifests_of
from tests.gateway.world import entry, function


def request(*specs: FunctionSpec, **more: object) -> DeployRequest:
    functions = tuple(DeployFunction(spec=spec) for spec in specs or (function(),))
    made = DeployRequest(functions=functions, files=(entry(b"b", "b.py"), entry(b"a", "a.py")))
    return msgspec.structs.replace(made, **more)


def test_the_same_content_is_the_same_version() -> None:
    """Neither the order of files nor another message makes a new version; another base does."""
    (one,) = manifests_of("acme", "shop", request())
    (same,) = manifests_of("acme", "shop", request(files=tuple(reversed(request().files)), message="again"))
    (other,) = manifests_of("acme", "shop", request(base="torch"))

    assert one.version_id == same.version_id
    assert one.version_id != other.version_id
    assert manifests_of("rival", "shop", request())[0].version_id != one.version_id
