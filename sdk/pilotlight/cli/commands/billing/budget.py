"""`pilotlight billing budget`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.advice import advising
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.budget_api import BudgetInfo, BudgetRequest
from pilotlight_core.model.money.budgets import BudgetMode, BudgetPeriod

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Tenant = Annotated[str, typer.Argument(help="the tenant's name")]
COLUMNS = ("budget", "USD", "spent", "left", "mode", "told at", "begins anew")


@app.callback()
def group() -> None:
    """What a tenant may spend in a day, a month, or ever."""


@app.command(name="list")
def list_budgets(tenant: Tenant, as_json: Json = False) -> None:
    """List a tenant's budgets, and what is left of them.

    \b
    pilotlight billing budget list acme
    """
    found = ask(client().tenancy.list_budgets(tenant))
    if as_json:
        print_json(found)
        return
    rows = [_row(budget) for budget in found.budgets]
    print_table(COLUMNS, rows, empty=f"{tenant} has no budget.", right=("USD", "spent", "left"))


@app.command(name="set")
def set_budget(
    tenant: Tenant,
    usd: Annotated[str | None, typer.Argument(help="dollars, at most nine places")] = None,
    period: Annotated[BudgetPeriod, typer.Option(help="when it begins anew")] = BudgetPeriod.MONTH,
    tz: Annotated[str, typer.Option(help="at whose midnight, such as Europe/Berlin")] = "UTC",
    function: Annotated[str | None, typer.Option(help="only calls to this function: app.function")] = None,
    key: Annotated[str | None, typer.Option(help="only calls with the API key of this id")] = None,
    soft: Annotated[
        bool, typer.Option("--soft", help="reserve what nearly all calls take, not their worst case")
    ] = False,
    prepaid: Annotated[bool, typer.Option("--prepaid", help="what its credit covers, for operators")] = False,
    thresholds: Annotated[str, typer.Option(help="percents at which the tenant is told")] = "50,80,100",
    as_json: Json = False,
) -> None:
    """Set what a tenant may spend: what would go beyond it is refused with 402 budget_exhausted.

    There is one budget for each scope and period; setting it again replaces it, and keeps what is spent.

    \b
    pilotlight billing budget set acme 250
    pilotlight billing budget set acme 20 --period day --tz Europe/Berlin --soft
    pilotlight billing budget set acme 5 --period day --function llm.chat --thresholds 80,100
    pilotlight billing budget set acme --prepaid
    """
    asked = BudgetRequest(
        usd=usd,
        prepaid=prepaid,
        period=period,
        tz=tz,
        function=function,
        key=key,
        mode=BudgetMode.SOFT if soft else BudgetMode.HARD,
        thresholds=_percents(thresholds),
    )
    with advising(bad_input="See 'pilotlight billing budget set --help'."):
        answer = ask(client().tenancy.set_budget(tenant, asked))
    if as_json:
        print_json(answer)
    else:
        print_text(f"{tenant} may spend {answer.usd} USD: {answer.id}, {answer.mode}. {answer.left_usd} USD are left.")


@app.command()
def remove(
    tenant: Tenant,
    budget: Annotated[str, typer.Argument(help="its name in the list, such as month or day:acme:llm.chat")],
    as_json: Json = False,
) -> None:
    """Remove a budget.

    \b
    pilotlight billing budget remove acme month
    """
    ask(client().tenancy.remove_budget(tenant, budget))
    if as_json:
        print_json({"tenant": tenant, "id": budget, "removed": True})
    else:
        print_text(f"{tenant} has no budget {budget} any more.")


def _percents(text: str) -> tuple[int, ...]:
    parts = [part.strip().removesuffix("%") for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise typer.BadParameter("expected percents such as 50,80,100", param_hint="--thresholds")
    return tuple(int(part) for part in parts)


def _row(budget: BudgetInfo) -> tuple[str, ...]:
    told = ", ".join(f"{percent}%{' (told)' * (percent in budget.reached)}" for percent in budget.thresholds)
    return (
        budget.id,
        budget.usd,
        f"{float(budget.spent_usd):.4g}",
        f"{float(budget.left_usd):.4g}",
        "prepaid" if budget.prepaid else budget.mode.value,
        told,
        budget.resets_at or "never",
    )
