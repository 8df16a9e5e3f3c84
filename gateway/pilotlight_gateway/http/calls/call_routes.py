"""Where refs lead, for their callers, in memory."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.records.sessions import SESSION_KEYS
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.http.calls.call_limits import CALL_BODY, CallLimits, at_most, function_of
from pilotlight_gateway.http.calls.call_reader import is_plain
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.limits.token_asks import embeds, generates
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import SchedulingClass, scheduling_class_of

KNOWN_AT_MOST = 4_096
"""Pairs of a tenant and a ref, about 1 KiB each."""
KEYS = ("key.", SESSION_KEYS)
"""Where records begin that decide nothing about routes."""


class CallRoute:
    """Where a ref leads for a tenant: what does not change until a record of the registry does."""

    __slots__ = ("body", "function", "policy", "scheduling", "version")

    def __init__(self, version: VersionRecord, scheduling: SchedulingClass, policy: LimitPolicy) -> None:
        self.version = version
        self.function = function_of(version)
        self.scheduling = scheduling
        self.policy = policy
        self.body: BodyLimits = CALL_BODY if policy.payload is None else at_most(CALL_BODY, policy.payload)


class CallRoutes:
    """The routes of calls for which nobody has to be asked. All are found anew when the registry changes."""

    def __init__(self, registry: RegistryPort, resolver: Resolver, limits: CallLimits) -> None:
        self._registry = registry
        self._resolver = resolver
        self._limits = limits
        self._known: dict[tuple[str, str], CallRoute] = {}
        registry.on_change.append(self._changed)

    def find(self, tenant: str, ref: str) -> CallRoute | None:
        """The route of a unary call; None: it is not all in memory, or there is more to it."""
        route = self._known.get((tenant, ref))
        return route if route is not None else self._find_in_memory(tenant, ref)

    def _find_in_memory(self, tenant: str, ref: str) -> CallRoute | None:
        try:
            version = self._resolver.resolve_nowait(tenant, ref)
        except PilotlightError:
            return None
        if version is None or not is_plain(version):
            return None
        app = self._registry.app_nowait(version.tenant, version.app)
        policy = self._limits.policy(tenant, version)
        if app is None or app.ends_at or policy.most_tokens:
            return None  # a run ends by itself; tokens are counted once more, when the body was read
        if policy.bounds_tokens and any(generates(one) or embeds(one) for one in version.spec.methods):
            return None
        route = CallRoute(version, scheduling_class_of(self._registry, tenant, function_of(version)), policy)
        if len(self._known) >= KNOWN_AT_MOST:
            self._known.clear()
        self._known[tenant, ref] = route
        return route

    def _changed(self, key: str, _record: Any) -> None:
        if not key.startswith(KEYS):
            self._known.clear()
