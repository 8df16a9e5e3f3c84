"""What is guaranteed of the fleet to all tenants together: never more than there is."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import NO_LIMITS, Limits
from pilotlight_gateway.tenancy.registry_port import RegistryPort

NOTHING_CHANGES: Mapping[str, Limits] = {}
NOBODY_MOVES: Mapping[str, str] = {}
ROUNDING = 1e-9


def check_guarantees(
    registry: RegistryPort,
    *,
    own: Mapping[str, Limits] = NOTHING_CHANGES,
    tiers: Mapping[str, Limits] = NOTHING_CHANGES,
    moves: Mapping[str, str] = NOBODY_MOVES,
) -> None:
    """Check that the fleet can keep all guarantees after a change, and that nobody is left without any share.

    The change is of tenants' `own` limits, those of `tiers`, or the tiers of tenants (`moves`), who may be new. Two
    changes at once may pass each other; the controller then lowers all guarantees by the same part.

    Raises:
        BadInput: more than the whole fleet would be guaranteed, or a tenant might have nothing of it.
    """
    before = after = others = 0.0
    for name in {*(record.name for record in registry.tenants()), *own, *moves}:
        limits, now = _limits_after(registry, name, own, tiers, moves), _limits_now(registry, name)
        before += now.guarantee or 0.0
        after += limits.guarantee or 0.0
        if limits == now:
            others += limits.guarantee or 0.0
        elif limits.borrow == 0 and not limits.guarantee:
            raise BadInput(
                f"borrow: {name} has no guarantee and would borrow nothing, so none of its functions could run; "
                f"give it a guarantee, or a larger borrow.",
                field="borrow",
            )
    if after > 1.0 + ROUNDING and after > before + ROUNDING:
        raise BadInput(
            f"guarantee: this would guarantee {_percent(after)} of the fleet to all tenants together; "
            f"{_percent(others)} are guaranteed to others, so {_percent(max(0.0, 1.0 - others))} are left.",
            field="guarantee",
        )


def _limits_after(
    registry: RegistryPort,
    name: str,
    own: Mapping[str, Limits],
    tiers: Mapping[str, Limits],
    moves: Mapping[str, str],
) -> Limits:
    tier = registry.tier(moves[name]) if name in moves else registry.tier_of(name)
    of_tier = NO_LIMITS if tier is None else tiers.get(tier.name, tier.limits)
    return (own[name] if name in own else registry.own_limits(name)).over(of_tier)


def _limits_now(registry: RegistryPort, name: str) -> Limits:
    return registry.limits(name, "").tenant if registry.tenant_nowait(name) is not None else NO_LIMITS


def _percent(part: float) -> str:
    return f"{part * 100:.4g} %"
