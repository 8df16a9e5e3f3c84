"""What bounds functions: one whole diagnosis, or a sentence for each."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.seeing.diagnosis_api import DiagnosisList, FunctionDiagnosis
from pilotlight_core.model.errors import UnknownFunction
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.diagnosis.diagnosis_answers import diagnosis_info, diagnosis_line
from pilotlight_gateway.diagnosis.function_diagnoses import FunctionDiagnoses
from pilotlight_gateway.http.protocol.api_operations import (
    Operation,
    Parameter,
    json_answer,
    minutes_of,
    principal_of,
    rate_of,
)

MOST_MINUTES = 60
MINUTES = 10
"""By default."""
UNKNOWN = ("bad_input", "unknown_function", "unknown_version", "overloaded")
WINDOW = Parameter(
    name="window",
    about="How long the window is that ends now, 1m to 1h; default 10m.",
    schema={"type": "string", "pattern": "^(([1-9]|[1-5][0-9]|60)m|1h)$"},
)


@dataclass(frozen=True, kw_only=True)
class DiagnosisServices:
    """The ports of these endpoints."""

    resolver: Resolver
    diagnoses: FunctionDiagnoses


async def show_diagnosis(request: Request, services: DiagnosisServices) -> Response:
    """`GET /v1/functions/{ref}/diagnosis`: of own functions; an operator reads neighbours' names in it."""
    principal, ref = principal_of(request), request.path_params["ref"]
    version = await services.resolver.resolve(principal.tenant, ref)
    if version.tenant != principal.tenant and not principal.operator:
        raise UnknownFunction(f"There is no function {ref} of yours.")
    minutes, wanted = minutes_of(request, "window", MOST_MINUTES) or MINUTES, rate_of(request, "rate")
    found = await services.diagnoses.of(version, minutes, wanted)
    return json_answer(diagnosis_info(found.found, found.window, operator=principal.operator, silent=found.silent))


async def list_diagnoses(request: Request, services: DiagnosisServices) -> Response:
    """`GET /v1/diagnoses`."""
    principal, minutes = principal_of(request), minutes_of(request, "window", MOST_MINUTES) or MINUTES
    found, left = await services.diagnoses.of_tenant(principal.tenant, minutes)
    lines = [diagnosis_line(each.found, each.window, operator=principal.operator) for each in found]
    bound = {each.window.function: each.found.is_bottleneck for each in found}
    lines.sort(key=lambda line: (not bound[line.function], -line.calls, line.function))
    return json_answer(DiagnosisList(window_s=60.0 * minutes, functions=tuple(lines), left=left))


DIAGNOSIS = (
    Operation(
        method="GET", path="/v1/functions/{ref}/diagnosis", name="diagnoseFunction", endpoint=show_diagnosis,
        about="What bounds a function, with evidence, what to do about it, and what will be different then.",
        scopes=("read", "deploy"), answer=FunctionDiagnosis, errors=UNKNOWN,
        parameters=(WINDOW, Parameter(name="rate", about="Calls per second that are wanted, if more than there are.")),
    ),
    Operation(
        method="GET", path="/v1/diagnoses", name="listDiagnoses", endpoint=list_diagnoses,
        about="A sentence for each function that had calls: what bounds it, or that nothing does.",
        scopes=("read", "deploy"), answer=DiagnosisList, errors=("bad_input", "overloaded"), parameters=(WINDOW,),
    ),
)  # fmt: skip
