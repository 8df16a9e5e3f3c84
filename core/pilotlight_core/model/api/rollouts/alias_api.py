"""What the API says and is told of aliases."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.ids import END


class AliasRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/apps/{app}/aliases/{name}/{alias}`."""

    version: Annotated[str, Meta(pattern=f"^(v[1-9][0-9]{{0,8}}|ver_[0-9a-f]{{32}}){END}")]
    """`v7`, or a version's id."""


class AliasInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A name for a version of a function: `app.function@prod`."""

    function: str
    alias: str
    ref: str
    """`app.function@prod`: what callers write."""
    version: str
    """`app.function@v7`."""
    version_id: str
    withdrawn: bool = False
    """Whether a rollout of that version was rolled back."""
