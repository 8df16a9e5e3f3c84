"""The issuers on record: set, removed and listed by operators, and shown to whoever wants to log in."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from pilotlight_core.model.api.issuer_api import ISSUER_NAME_PATTERN, IssuerInfo, IssuerRequest, LoginInfo
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, Unavailable
from pilotlight_core.model.records.issuers import ISSUERS_AT_MOST, IssuerRecord, issuer_fault
from pilotlight_gateway.oidc.issuer_keys import KnownKeys
from pilotlight_gateway.oidc.jwks_source import IssuerSilent, JwksSource, discover_jwks_url
from pilotlight_gateway.tenancy.registry_port import IssuerRegistry


async def set_issuer(
    registry: IssuerRegistry, source: JwksSource, name: str, request: IssuerRequest, at: float
) -> IssuerRecord:
    """Put an issuer on record, or replace it, at the unix second `at`. Where its keys are it is asked only now.

    Raises:
        BadInput: naming what is wrong.
        Conflict: there are too many, or another one has its tokens.
        Unavailable: `issuer_unavailable`: it does not say where its keys are.
    """
    check_issuer_name(name)
    asked = msgspec.structs.asdict(request)
    # The fault of everything else first: an issuer that is asked for nothing may be anybody.
    _check(IssuerRecord(**{"name": name} | asked | {"jwks_url": request.jwks_url or request.url}))
    for tenant in {request.tenant, *request.tenants.values()} - {"", "*"}:
        if registry.tenant_nowait(tenant) is None:
            raise BadInput(f"tenant: there is no tenant {tenant}.", field="tenant")
    if not request.jwks_url:
        try:
            asked["jwks_url"] = await discover_jwks_url(source, request.url)
        except IssuerSilent as error:
            raise Unavailable(f"{error}. Name the address of its keys, jwks_url.", code="issuer_unavailable") from None
    record = IssuerRecord(**{"name": name} | asked | {"changed_at": at})
    others = [one for one in registry.issuers() if one.name != name]
    if len(others) >= ISSUERS_AT_MOST:
        raise Conflict(f"There are {ISSUERS_AT_MOST} issuers already.")
    if same := [one.name for one in others if (one.url, one.audience) == (record.url, record.audience)]:
        raise Conflict(f"{same[0]} is the record of {record.url} for this audience already.")
    await registry.change_issuer(name, lambda _: record)
    return record


async def remove_issuer(registry: IssuerRegistry, name: str) -> None:
    """Take an issuer off the record: its tokens are worth nothing from then on.

    Raises:
        NotFound: there is none.
    """
    check_issuer_name(name)

    def removed(present: IssuerRecord | None) -> None:
        if present is None:
            raise NotFound(f"There is no issuer {name}.")

    await registry.change_issuer(name, removed)


def check_issuer_name(name: str) -> None:
    """Raises BadInput: it is no name of an issuer."""
    if not re.match(ISSUER_NAME_PATTERN, name):
        raise BadInput(
            f"issuer {name!r:.80} is not a name: expected 1 to 32 lower-case letters, digits or '-'.", field="issuer"
        )


def issuer_info(record: IssuerRecord, known: KnownKeys, at: float) -> IssuerInfo:
    """How the issuer stands at this gateway, at the monotonic second `at`."""
    age = at - known.fetched_at if known.keys else None
    return IssuerInfo(
        **msgspec.structs.asdict(record),
        keys=len(known.keys),
        keys_age_s=age if age is None else round(age, 1),
        problem=known.problem,
    )


def login_infos(records: Iterable[IssuerRecord]) -> list[LoginInfo]:
    """The issuers at which people log in, by name."""
    return [
        LoginInfo(
            name=record.name, url=record.url, client_id=record.client_id, scope=record.login_scope,
            parameters=record.login_parameters, id_tokens=record.takes_id_tokens,
        )
        for record in sorted(records, key=lambda record: record.name)
        if record.client_id
    ]  # fmt: skip


def _check(record: IssuerRecord) -> None:
    if fault := issuer_fault(record):
        raise BadInput(f"{fault}.", field=fault.partition(":")[0])
