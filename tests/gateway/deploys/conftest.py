"""What tests of deploys have in common."""

from __future__ import annotations

from tests.gateway.deploys.deploying import deploying as deploying
