"""Weights of a tenant: pushed once, read by many functions."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from pilotlight.client.resources.platform import PlatformClient
from pilotlight_core.model.api.weights_api import (
    PushResponse,
    RemovedWeights,
    WeightsDetail,
    WeightsInfo,
    WeightsRequest,
)
from pilotlight_core.model.versions.pushed_weights import WeightsRef

PUSH_SILENCE_S = 300.0
"""A push says nothing while ten thousand parts are looked for in an object store."""


class WeightsList(msgspec.Struct, frozen=True):
    """The answer of /v1/weights."""

    weights: tuple[WeightsInfo, ...]


class WeightsClient:
    def __init__(self, platform: PlatformClient) -> None:
        self.platform = platform

    async def list_weights(self) -> tuple[WeightsInfo, ...]:
        """Return the tenant's weights by name."""
        return (await self.platform.request("GET", "/v1/weights", answer_type=WeightsList)).weights

    async def show(self, ref: WeightsRef) -> WeightsDetail:
        """Return the files of weights; without a digest those of the newest."""
        return await self.platform.request("GET", _path(ref.name), params=_params(ref), answer_type=WeightsDetail)

    async def push(self, name: str, request: WeightsRequest) -> PushResponse:
        """Store weights under a name, unless parts are `missing` and must be uploaded first."""
        return await self.platform.request(
            "PUT", _path(name), body=request, answer_type=PushResponse, timeout=PUSH_SILENCE_S
        )

    async def remove(self, ref: WeightsRef) -> RemovedWeights:
        """Remove weights that no function in service uses; without a digest all of the name."""
        return await self.platform.request("DELETE", _path(ref.name), params=_params(ref), answer_type=RemovedWeights)


def _path(name: str) -> str:
    return f"/v1/weights/{quote(name, safe='')}"


def _params(ref: WeightsRef) -> dict[str, str]:
    return {"digest": ref.digest} if ref.digest else {}
