"""Errors about unknown names. They suggest only what the caller may see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from pilotlight_core.model.errors import BadInput, NotFound, UnknownFunction
from pilotlight_core.model.ids import NAME, Ref, parse_ref
from pilotlight_core.model.pipelines.pipeline import is_companion
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.suggestions import NAMES_AT_MOST, did_you_mean, nearest, nearest_function
from pilotlight_gateway.tenancy.registry_port import RegistryPort

FUNCTIONS_SHOWN = 8
"""Functions of an app in one message."""


def no_function(registry: RegistryPort, tenant: str, ref: Ref, shared: Iterable[str]) -> UnknownFunction:
    """The error for a function that `tenant` does not have or see; `shared` are refs of those shared with it."""
    owner = ref.tenant if ref.tenant != tenant else None
    seen = shared if owner else _own(registry, tenant, ref.app)
    word = f"{owner}:{ref.app}.{ref.function}" if owner else f"{ref.app}.{ref.function}"
    return _no_function(str(ref), _nearest_function(word, tuple(islice(seen, NAMES_AT_MOST))))


async def check_owned(registry: RegistryPort, owner: str, ref: Ref) -> None:
    """Check, for an operator, that `owner` has or had the function.

    Raises:
        UnknownFunction: it never had it.
    """
    record = await registry.app(owner, ref.app)
    if record is None or ref.function not in record.versions:
        near = nearest_function(f"{ref.app}.{ref.function}", _own(registry, owner, ref.app))
        raise _no_function(f"{owner}:{ref.app}.{ref.function}", f"{owner}:{near}" if near is not None else None)


async def check_explainable(registry: RegistryPort, tenant: str, ref: Ref) -> None:
    """Check, for an operator of `tenant`, that some tenant has or had the function.

    Raises:
        UnknownFunction: suggests a name, or lists the app's functions.
    """
    owner = ref.tenant or tenant
    record = await registry.app(owner, ref.app)
    if record is not None and ref.function in record.versions:
        return
    whose = "" if owner == tenant else f"{owner}:"
    name = f"{ref.app}.{ref.function}"
    near = nearest_function(name, _own(registry, owner, ref.app))
    there = f"There is no function {whose}{name}."
    if near is None and record is not None:
        there = f"There is no function {whose}{name}: {functions_text(record, whose)}."
    meant = f"{whose}{near}" if near is not None else None
    raise UnknownFunction(f"{there}{did_you_mean(meant)}", **_more(meant))


async def check_no_app(registry: RegistryPort, text: str) -> None:
    """Refuse an app (`acme:shop`) in place of a function.

    Raises:
        NotFound: lists the app's functions.
    """
    owner, colon, app = text.partition(":")
    if not (colon and NAME.fullmatch(owner) and NAME.fullmatch(app)):
        return
    record = await registry.app(owner, app)
    if record is None:
        raise NotFound(f"There is no app {text}.")
    raise NotFound(f"{text} is an app, not a function: {functions_text(record, f'{owner}:')}.")


async def no_container(registry: RegistryPort, tenant: str, name: str, containers: Iterable[str]) -> NotFound | None:
    """The error for a container's name that is an app or function, or resembles one of `containers`."""
    record = await registry.app(tenant, name) if NAME.fullmatch(name) else None
    if record is not None:
        functions = [f"{name}.{function}" for function in record.named_functions]
        only = functions[0] if len(functions) == 1 else None
        return NotFound(f"{name} is an app, not a container: {functions_text(record)}.", **_more(only))
    own = list(islice(_own(registry, tenant, name), NAMES_AT_MOST))
    called_so = [ref for ref in own if ref.rpartition(".")[2] == name]
    others = [*containers, *dict.fromkeys(ref.partition(".")[0] for ref in own)]
    meant = called_so[0] if len(called_so) == 1 else nearest(name, others)
    if meant is None:
        return None
    return NotFound(f"There is no container {name}.{did_you_mean(meant)}", **_more(meant))


def functions_text(record: AppRecord, owner: str = "") -> str:
    """Such as `shop has shop.hello and shop.pay`."""
    names = [f"{owner}{record.app}.{function}" for function in sorted(record.named_functions)]
    if not names:
        return f"{owner}{record.app} has no functions"
    shown, more = names[:FUNCTIONS_SHOWN], len(names) - FUNCTIONS_SHOWN
    rest = f"{more} more" if more > 0 else shown.pop() if len(shown) > 1 else ""
    return f"{owner}{record.app} has {', '.join(shown)}{f' and {rest}' if rest else ''}"


async def known_app(registry: RegistryPort, tenant: str, app: str) -> AppRecord:
    """Raises NotFound, with a suggestion, if the tenant has no such app."""
    record = await registry.app(tenant, app)
    if record is None:
        meant = nearest(app, (record.app for record in registry.iter_apps(tenant) if not record.ends_at))
        raise NotFound(f"There is no app {app}.{did_you_mean(meant)}", **_more(meant))
    return record


async def check_listed(registry: RegistryPort, tenant: str, text: str) -> None:
    """Check that a list can be filtered by a function: `tenant` has or had it, or others share it.

    A function that names its owner passes, since it may have been shared once.

    Raises:
        BadInput: it is not a function, or pins a version.
        UnknownFunction: it is unknown.
    """
    ref = parse_ref(text)
    if ref.pin is not None:
        raise BadInput("function: all versions are listed; leave the part after @ out.", field="function")
    if ref.tenant not in (None, tenant):
        return
    record = await registry.app(tenant, ref.app)
    known = record is not None and ref.function in record.versions
    if not known and not _is_shared(registry, tenant, ref):
        raise no_function(registry, tenant, ref, ())


def check_function(record: AppRecord, function: str, field: str) -> None:
    """Check that an app has or had a function.

    Raises:
        UnknownFunction: it never had it; names `field` of the request.
    """
    if function not in record.versions:
        near = nearest(function, (name for name in record.versions if not is_companion(name)))
        meant = f"{record.app}.{near}" if near is not None else None
        raise _no_function(f"{record.app}.{function}", meant, field=field)


def _own(registry: RegistryPort, tenant: str, app: str) -> Iterator[str]:
    """The tenant's functions, those of `app` first, so that they are compared."""
    serving = (record for record in registry.iter_apps(tenant) if not (record.stopped or record.ends_at))
    records = sorted(serving, key=lambda record: record.app != app)
    return (f"{record.app}.{function}" for record in records for function in record.named_functions)


def _is_shared(registry: RegistryPort, tenant: str, ref: Ref) -> bool:
    """Whether some other tenant shares a function of that name. No list of all that is shared is made for it."""
    for share in registry.shares():
        if share.app == ref.app and share.tenant != tenant and share.opens(ref.function, tenant):
            record = registry.app_nowait(share.tenant, share.app)
            if record is not None and not record.stopped and ref.function in record.functions:
                return True
    return False


def _no_function(name: str, meant: str | None, **more: Any) -> UnknownFunction:
    return UnknownFunction(f"There is no function {name}.{did_you_mean(meant)}", **_more(meant), **more)


def _more(meant: str | None) -> dict[str, Any]:
    return {"suggestion": meant} if meant is not None else {}


@lru_cache(128)
def _nearest_function(word: str, known: tuple[str, ...]) -> str | None:
    """Cached: an unknown function may be called a thousand times a second."""
    return nearest_function(word, known)
