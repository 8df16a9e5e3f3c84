"""Going back to what was deployed before, and what runs where then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.rollouts.rollback_api import RollbackRequest, RollbackResponse, WaitingJobs
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.deploys.app_records import deployed, version_name
from pilotlight_gateway.deploys.moves.app_moves import AppMoves, WentBack
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, json_answer, principal_of, read_struct
from pilotlight_gateway.jobs.job_service import JobService

JOBS_COUNTED = 1_000
"""Of one tenant, the last that were changed."""


@dataclass(frozen=True, kw_only=True)
class RollbackServices:
    """The ports of these endpoints."""

    moves: AppMoves
    jobs: JobService
    budget: ByteBudget


async def roll_back_app(request: Request, services: RollbackServices) -> Response:
    """`POST /v1/apps/{app}/rollback`."""
    app = check_name(request.path_params["app"], "app")
    asked = await read_struct(request, services.budget, RollbackRequest, default=RollbackRequest())
    principal = principal_of(request)
    went = await services.moves.roll_back(principal, app, asked.to, asked.reason)
    jobs = tuple(await _waiting_jobs(services.jobs, principal.tenant, went.after))
    answer = RollbackResponse(
        app=app,
        revision=went.after.revision,
        back_to=went.back_to,
        aborted=went.aborted.id if went.aborted is not None else "",
        functions=deployed(went.after, went.before),
        jobs=jobs,
        sentences=tuple(sentences_of(went, jobs)),
    )
    return json_answer(answer)


async def _waiting_jobs(jobs: JobService, tenant: str, app: AppRecord) -> list[WaitingJobs]:
    """A tenant's jobs of the functions of its app that have not ended, by the version that runs them next."""

    def wanted(job: JobRecord) -> bool:
        return not job.state.terminal and job.function.startswith(f"{tenant}:{app.app}.")

    page = await jobs.page(tenant, limit=JOBS_COUNTED, wanted=wanted)
    counted = Counter((job.function.rpartition(".")[2], next_version(job, app)) for job in page.jobs)
    more = bool(page.before)
    return [
        WaitingJobs(function=name, jobs=count, more=more, runs=ref) for (name, ref), count in sorted(counted.items())
    ]


def next_version(job: JobRecord, app: AppRecord) -> str:
    """The version of a job's next start, as `app.function@v7`."""
    function = job.function.rpartition(".")[2]
    deployed_now = app.functions.get(function)
    if job.floats and job.state is JobState.QUEUED and deployed_now is not None:
        return version_name(app, function, deployed_now)
    return job.ref


def sentences_of(went: WentBack, jobs: tuple[WaitingJobs, ...]) -> Iterator[str]:
    """What runs where from now on, for people."""
    before, after = went.before, went.after
    if went.aborted is not None:
        names = sorted(went.aborted.canary)
        yield (
            f"The rollout of {', '.join(names)} is aborted: all calls go to the old version, also those that waited; "
            "what the new one runs ends there."
        )
    for name in sorted(before.named_functions.keys() | after.named_functions.keys()):
        old, new = before.functions.get(name), after.functions.get(name)
        if old == new:
            continue
        if new is None:
            yield f"{after.app}.{name} is not deployed any more."
        else:
            left = f", and calls that {version_name(before, name, old)} runs end there" if old is not None else ""
            yield f"Calls go to {version_name(after, name, new)}, also those that waited{left}."
    for waiting in jobs:
        count = f"{waiting.jobs}{' or more' if waiting.more else ''}"
        yield f"{count} job{'s' * (waiting.jobs != 1)} of {waiting.function}: {waiting.runs} runs them next."


ROLLBACKS = (
    Operation(
        method="POST", path="/v1/apps/{app}/rollback", name="rollBackApp", endpoint=roll_back_app,
        about="Go back: abort the rollout that is under way, or put what was deployed before into service.",
        scopes=("deploy",), tells=("to", "reason"), request=RollbackRequest, body_required=False,
        answer=RollbackResponse, errors=(*BODY, "not_found", "conflict", "quota_exceeded"),
    ),
)  # fmt: skip
