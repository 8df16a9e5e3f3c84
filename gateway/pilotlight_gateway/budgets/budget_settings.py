"""Budgets as they are set, listed and removed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pilotlight_core.model.api.billing_api import ThresholdLine
from pilotlight_core.model.api.budget_api import BudgetInfo, BudgetRequest, nano_usd, usd_text
from pilotlight_core.model.errors import BadInput, Conflict, Forbidden, NotFound, UnknownFunction
from pilotlight_core.model.ids import NAME, parse_ref
from pilotlight_core.model.money.budgets import (
    MOST_BUDGETS,
    MOST_ZONES,
    NEVER_ENDS,
    PREPAID,
    Budget,
    BudgetPeriod,
    BudgetsRecord,
    HomeTranches,
    Tranche,
    budget_id,
    check_budget,
    span_of,
)
from pilotlight_gateway.oidc.token_authenticator import is_holder_of
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.tenant_limits import check_deployed, full_name


async def set_budget(
    registry: RegistryPort, tenant: str, asked: BudgetRequest, *, by_operator: bool, prepaid: int = 0
) -> Budget:
    """Set a tenant's budget of a scope and a period, in place of the one that it has.

    `prepaid` is what may have been spent of its credit, in nano-dollars.

    Raises:
        BadInput: names the field. UnknownFunction: the tenant never had it, and nobody shares it with the tenant.
        Forbidden: an operator has set it. Conflict: there are too many.
    """
    if asked.prepaid:
        budget = _prepaid_budget(asked, prepaid, by_operator=by_operator)
    else:
        budget = await _read_budget(registry, tenant, asked, by_operator=by_operator)

    def changed(before: BudgetsRecord | None) -> BudgetsRecord:
        had = before.budgets if before is not None else ()
        _check_owner(had, budget.id, by_operator=by_operator)
        kept = [budget if one.id == budget.id else one for one in had]
        if budget not in kept:
            kept.append(budget)
        _check_number(tenant, [one for one in kept if one.by_operator is by_operator])
        return BudgetsRecord(tenant=tenant, budgets=tuple(kept))

    await registry.change_budgets(tenant, changed)
    return budget


async def remove_budget(registry: RegistryPort, tenant: str, name: str, *, by_operator: bool) -> None:
    """Remove a budget: what it held back may be spent.

    Raises:
        NotFound: there is none. Forbidden: an operator has set it.
    """

    def changed(before: BudgetsRecord | None) -> BudgetsRecord | None:
        had = before.budgets if before is not None else ()
        kept = tuple(one for one in had if one.id != name)
        if len(kept) == len(had):
            raise NotFound(f"{tenant} has no budget {name[:300]!r}.")
        _check_owner(had, name, by_operator=by_operator)
        return BudgetsRecord(tenant=tenant, budgets=kept) if kept else None

    await registry.change_budgets(tenant, changed)


def budget_info(budget: Budget, tranches: HomeTranches | None, at: float) -> BudgetInfo:
    """A budget at the unix second `at`, with what its home has noted of it."""
    span = span_of(budget.period, budget.tz, int(at))
    noted = tranches.tranches.get(budget.id) if tranches is not None else None
    if noted is None or noted.begins != span.begins:
        noted = Tranche(begins=span.begins)
    return BudgetInfo(
        id=budget.id,
        usd=usd_text(budget.amount),
        period=budget.period,
        tz=budget.tz,
        function=budget.function or None,
        key=budget.key or None,
        mode=budget.mode,
        thresholds=budget.thresholds,
        by_operator=budget.by_operator,
        begins=instant_text(span.begins) if span.begins else None,
        resets_at=None if span.ends == NEVER_ENDS else instant_text(span.ends),
        spent_usd=usd_text(noted.spent),
        left_usd=usd_text(max(0, budget.amount - noted.spent)),
        is_exhausted=noted.spent >= budget.amount,
        reached=noted.told,
        prepaid=budget.prepaid,
    )


def reached_lines(noted: Iterable[HomeTranches], first: str, until: str) -> tuple[ThresholdLine, ...]:
    """The thresholds that were reached in the UTC days from `first` to before `until`, the first first."""
    begin, end = (datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() for day in (first, until))
    found = [(one, record.tenant) for record in noted for one in record.reached if begin <= one.at < end]
    return tuple(
        ThresholdLine(
            at=instant_text(int(one.at)), tenant=tenant, budget=one.budget, percent=one.percent,
            usd=usd_text(one.amount), function=one.function or None, key=one.key or None,
        )
        for one, tenant in sorted(found, key=lambda each: (each[0].at, each[1]))
    )  # fmt: skip


def instant_text(at: float) -> str:
    """A unix second in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _prepaid_budget(asked: BudgetRequest, amount: int, *, by_operator: bool) -> Budget:
    if not by_operator:
        raise Forbidden("Operators say who pays ahead: this needs a key with the scope operator.", scope="operator")
    if asked != BudgetRequest(prepaid=True, thresholds=asked.thresholds):
        raise BadInput("prepaid: such a budget is what credit allows, and has thresholds alone.", field="prepaid")
    budget = Budget(
        id=PREPAID, amount=amount, period=BudgetPeriod.LIFETIME, by_operator=True, thresholds=asked.thresholds,
        prepaid=True,
    )  # fmt: skip
    check_budget(budget)
    return budget


async def _read_budget(registry: RegistryPort, tenant: str, asked: BudgetRequest, *, by_operator: bool) -> Budget:
    function = ""
    if asked.usd is None:
        raise BadInput("usd: expected dollars, such as 250.", field="usd")
    if asked.function is not None:
        try:
            function = full_name(tenant, asked.function)
        except BadInput as error:
            raise BadInput(f"function: {error.detail}", field="function") from None
        await (check_deployed(registry, function) if by_operator else _check_callable(registry, tenant, function))
    if asked.key is not None:
        await _check_key(registry, tenant, asked.key)
    budget = Budget(
        id=budget_id(asked.period, function, asked.key or ""),
        amount=nano_usd(asked.usd),
        period=asked.period,
        tz=asked.tz,
        function=function,
        key=asked.key or "",
        mode=asked.mode,
        by_operator=by_operator,
        thresholds=asked.thresholds,
    )
    check_budget(budget)
    return budget


async def _check_key(registry: RegistryPort, tenant: str, name: str) -> None:
    """Check that a key is the tenant's; a holder's of tokens is not on record, and may be anybody an issuer knows."""
    if any(is_holder_of(record, name) for record in registry.issuers()):
        return
    key = await registry.key(name) if NAME.fullmatch(name) else None
    if key is None or key.tenant != tenant:
        raise BadInput(
            f"key: {tenant} has no API key with the id {name!r}, and no issuer on record has such a holder of tokens "
            "('pilotlight whoami' says what somebody is called).",
            field="key",
        )


async def _check_callable(registry: RegistryPort, tenant: str, function: str) -> None:
    """Check that a tenant has or had a function, or that another one shares it: as for calls, nothing else is told."""
    ref = parse_ref(function)
    if ref.tenant == tenant:
        await check_deployed(registry, function)
        return
    owner = ref.tenant or ""
    share, app = await registry.share(owner, ref.app), await registry.app(owner, ref.app)
    is_shared = share is not None and share.opens(ref.function, tenant)
    if not is_shared or app is None or ref.function not in app.functions:
        raise UnknownFunction(f"There is no function {function}.")


def _check_number(tenant: str, budgets: list[Budget]) -> None:
    """Check the budgets that the tenant has set, or those of operators: neither take the others' room."""
    if len(budgets) > MOST_BUDGETS:
        raise Conflict(f"{tenant} has {MOST_BUDGETS} budgets already: remove some first.")
    if len({one.tz for one in budgets}) > MOST_ZONES:
        raise Conflict(f"{tenant} has budgets in {MOST_ZONES} time zones already: use one of these.")


def _check_owner(had: tuple[Budget, ...], name: str, *, by_operator: bool) -> None:
    if not by_operator and any(one.id == name and one.by_operator for one in had):
        raise Forbidden("An operator has set this budget, and an operator changes it.")
