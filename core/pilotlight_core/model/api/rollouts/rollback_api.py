"""What the API says and is told of going back to what was deployed before."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import DeployedFunction, Request

Reason = Annotated[str, Meta(max_length=500)]


class RollbackRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/apps/{app}/rollback`."""

    to: Annotated[int, Meta(ge=1)] | None = None
    """The revision to go back to; None: the rollout that is under way is aborted, or else the deploy before."""
    reason: Reason = ""


class WaitingJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of a function that had not started when its app went back."""

    function: str
    jobs: int
    more: bool = False
    """Whether there may be more than were counted."""
    runs: str
    """The version that runs them, as `app.function@v7`."""


class RollbackResponse(msgspec.Struct, frozen=True, kw_only=True):
    app: str
    revision: int
    """The app's, after it."""
    back_to: int = 0
    """The revision whose versions are in service again; 0: they never left it, a rollout was aborted."""
    aborted: str = ""
    """The id of the rollout that was aborted; "": none was."""
    functions: tuple[DeployedFunction, ...] = ()
    """What is deployed now; `changed`: it was not before."""
    jobs: tuple[WaitingJobs, ...] = ()
    sentences: tuple[str, ...] = ()
    """What runs where from now on."""
