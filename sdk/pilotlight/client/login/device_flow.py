"""Logging in by a code that is typed on any device with a browser (RFC 8628)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import msgspec

from pilotlight.client.login.issuer_client import (
    IssuerAnswer,
    IssuerClient,
    IssuerEndpoints,
    IssuerUnreachable,
    LoginFailed,
    refusal,
)
from pilotlight_core.model.api.issuer_api import LoginInfo

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL_S = 5.0
SLOWER_S = 5.0
LONGEST_S = 1_800.0
Sleep = Callable[[float], Awaitable[None]]


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True):
    """What a person types where."""

    code: str
    """Known to this program and the issuer alone."""
    user_code: str
    url: str
    whole_url: str
    """With the code in it; "": the issuer has none."""
    interval_s: float
    expires_in_s: float


async def begin_device_flow(issuer: IssuerClient, endpoints: IssuerEndpoints, info: LoginInfo) -> DeviceCode:
    """Return the code that the issuer gives.

    Raises:
        LoginFailed: it gives none.
    """
    if not endpoints.device_authorization_endpoint:
        raise LoginFailed(f"{info.url} knows no login by a code: use 'pilotlight login --browser'.")
    form = {**info.parameters, "client_id": info.client_id, "scope": info.scope}
    answer = await issuer.post(endpoints.device_authorization_endpoint, form)
    if answer.error:
        raise refusal(answer)
    if not (answer.device_code and answer.user_code and answer.verification_uri):
        raise LoginFailed(f"{info.url} has given no code.")
    return DeviceCode(
        code=answer.device_code,
        user_code=answer.user_code,
        url=answer.verification_uri,
        whole_url=answer.verification_uri_complete,
        interval_s=max(1.0, INTERVAL_S if answer.interval is None else answer.interval),
        expires_in_s=min(LONGEST_S, LONGEST_S if answer.expires_in is None else answer.expires_in),
    )


async def poll_device_flow(
    issuer: IssuerClient,
    endpoints: IssuerEndpoints,
    info: LoginInfo,
    code: DeviceCode,
    sleep: Sleep,
    clock: Callable[[], float] = time.monotonic,
) -> IssuerAnswer:
    """Return the tokens, once the person has agreed. `clock` is monotonic.

    Raises:
        LoginFailed: they have not, or not in time.
    """
    form = {**info.parameters, "grant_type": GRANT, "device_code": code.code, "client_id": info.client_id}
    interval_s, ends_at = code.interval_s, clock() + code.expires_in_s
    while (left_s := ends_at - clock()) > 0:
        await sleep(min(interval_s, left_s))
        try:
            answer = await issuer.post(endpoints.token_endpoint, form)
        except IssuerUnreachable:
            interval_s += SLOWER_S  # it may be back in time
            continue
        pause = next_pause(answer, interval_s)
        if pause is None:
            return answer
        interval_s = pause
    raise LoginFailed("The code has expired before anybody has agreed.")


def next_pause(answer: IssuerAnswer, interval_s: float) -> float | None:
    """Return after how many seconds to ask again; None: the answer has the tokens.

    Raises:
        LoginFailed: it is final.
    """
    if answer.error == "authorization_pending":
        return interval_s
    if answer.error == "slow_down":
        return interval_s + SLOWER_S
    if answer.error == "access_denied":
        raise LoginFailed("Whoever was asked has not agreed.")
    if answer.error == "expired_token":
        raise LoginFailed("The code has expired before anybody has agreed.")
    if answer.error:
        raise refusal(answer)
    return None
