"""Reads and checks the body of a deploy."""

from __future__ import annotations

from pilotlight_core.model.api.call_api import DeployRequest
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.schedules.schedule_checks import check_schedules
from pilotlight_core.model.secrets.secret_uses import check_secrets
from pilotlight_core.model.spec import MAX_FUNCTIONS
from pilotlight_core.model.versions.spec_checks import check_spec
from pilotlight_gateway.bodies.artifact_rules import check_artifacts
from pilotlight_gateway.bodies.bundles import check_files
from pilotlight_gateway.bodies.json_structs import read_json
from pilotlight_gateway.schemas.example_calls import check_examples
from pilotlight_gateway.schemas.schema_validators import check_schemas

LONGEST_MESSAGE = 500


def read_deploy(body: bytes, app: str) -> DeployRequest:
    """The request in a body, which is allowed.

    Raises:
        BadInput: `bad_request`, or naming the field.
    """
    request = read_json(body, DeployRequest, patient=True)
    check_deploy(app, request)
    return request


def check_deploy(app: str, request: DeployRequest) -> None:
    """Refuse a deploy that is not allowed.

    Raises:
        BadInput: naming the field.
    """
    check_name(app, "app")
    check_name(request.base, "base")
    if len(request.message) > LONGEST_MESSAGE or not request.message.isprintable():
        raise BadInput(f"message: expected at most {LONGEST_MESSAGE} printable characters.", field="message")
    names = [function.spec.name for function in request.functions]
    if not 0 < len(names) <= MAX_FUNCTIONS:
        raise BadInput(f"functions: expected 1 to {MAX_FUNCTIONS}, got {len(names)}.", field="functions")
    if len(set(names)) != len(names):
        raise BadInput("functions: two have the same name.", field="functions")
    for function in request.functions:
        spec = function.spec
        check_spec(spec)
        methods = [method.name for method in spec.methods]
        if len(set(methods)) != len(methods):
            raise BadInput(f"{spec.name}: two methods have the same name.", field="methods")
        if not all(part.isidentifier() for part in spec.module.split(".")):
            raise BadInput(f"{spec.name}: module {spec.module!r} is not a module's name.", field="module")
        check_schemas(spec)
        check_examples(spec)
        check_schedules(spec)
        check_secrets(spec)
    check_files(request.files)
    check_artifacts(request)
