"""A codec for tests whose bodies are small: it starts no worker."""

from __future__ import annotations

from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.worker_pool import BodyWorkers
from pilotlight_gateway.schemas.schema_validators import Validators


def small_codec(budget: ByteBudget | None = None) -> BodyCodec:
    return BodyCodec(Validators(), BodyWorkers(), budget or ByteBudget(limit=10**9))
