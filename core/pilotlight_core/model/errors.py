"""The platform's errors: one tree of classes, and one table of codes.

    PilotlightError
    ├── BadInput
    ├── Unauthenticated, Forbidden
    ├── NotFound                 UnknownFunction, UnknownCall
    ├── Conflict, RemovesFunctions
    ├── TooMuch                  a limit of the tenant: slow down, QuotaExceeded: make room, BudgetExhausted: money
    ├── Unavailable              a limit of the platform: try again
    ├── DeadlineExceeded
    ├── Cancelled
    └── CallFailed               FunctionRaised, ExecutionTimeout, LoadFailed, BadOutput, ContainerDied, Preempted

The detail of an error is a sentence that says what happened. `CODES` has the HTTP status and the advice of each code.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class Code(msgspec.Struct, frozen=True):
    """The HTTP status of a code, its title, and advice to the caller."""

    status: int
    title: str
    advice: str
    retry: bool = False
    """Whether the same request may succeed if it is repeated."""


CODES: dict[str, Code] = {
    "bad_input": Code(422, "The input is not valid", "Correct the named field and send the request again."),
    "bad_request": Code(400, "The request cannot be read", "Correct the request; GET /openapi.json describes it."),
    "budget_exhausted": Code(
        402,
        "A budget is used up",
        "Wait for its next period (Retry-After), raise it, or send deadline_ms with less time.",
    ),
    "unauthenticated": Code(
        401, "No valid API key", "Send 'Authorization: Bearer pl_live_…' with a key that is valid."
    ),
    "key_expired": Code(401, "The API key has expired", "Make a new key with 'pilotlight key create'."),
    "token_invalid": Code(401, "The token is not valid", "Log in again with 'pilotlight login', or send an API key."),
    "token_expired": Code(401, "The token has expired", "Log in again with 'pilotlight login', or refresh the token."),
    "no_access": Code(
        403, "The token gives no access", "Ask the platform's operator which groups and tenants have access."
    ),
    "issuer_unavailable": Code(
        503,
        "The issuer does not answer",
        "Wait for Retry-After, then send it again; API keys need no issuer.",
        retry=True,
    ),
    "forbidden": Code(403, "The key may not do this", "Use a key with the scope that the detail names."),
    "not_found": Code(404, "There is no such thing", "Check the name or the address."),
    "unknown_function": Code(404, "There is no such function", "List what is deployed with 'pilotlight app list'."),
    "model_not_found": Code(404, "There is no such model", "List models with 'pilotlight model list'."),
    "unknown_version": Code(404, "There is no such version", "List versions with 'pilotlight app history APP'."),
    "unknown_call": Code(404, "There is no such call", "Calls are kept for a while after they end; check the id."),
    "method_not_allowed": Code(405, "The address does not take this method", "See the Allow header."),
    "not_acceptable": Code(406, "No acceptable representation", "Accept application/json or text/event-stream."),
    "deadline_exceeded": Code(
        408, "The deadline passed before the call was done", "Send it again with more time.", retry=True
    ),
    "slow_body": Code(
        408, "The body came too slowly", "Send it over a faster connection, or less of it at a time.", retry=True
    ),
    "conflict": Code(409, "It conflicts with the present state", "Read the present state and decide again."),
    "nested_refused": Code(
        409,
        "A function may not make this call",
        "The detail names the bound, and what to do instead.",
    ),
    "removes_functions": Code(
        409, "The deploy would remove functions", "To remove them add --prune; to keep them deploy them too."
    ),
    "call_lost": Code(
        410, "The call's gateway is gone", "Live calls die with their gateway; send the call again.", retry=True
    ),
    "events_gone": Code(
        410, "The events are not kept any more", "Send the call again; reconnect sooner, or read faster."
    ),
    "idempotency_key_in_use": Code(
        409, "The first request with this key runs still", "Wait for Retry-After, then send it again.", retry=True
    ),
    "answer_not_kept": Code(410, "The answer was too large to keep", "The call has run; a fresh key runs it again."),
    "idempotency_key_reused": Code(
        422, "The key stands for another request", "Make a fresh key for every new request."
    ),
    "too_many_tokens": Code(
        400,
        "More tokens than one call may have",
        "Shorten the prompt, or ask for fewer tokens: the detail has both numbers.",
    ),
    "too_large": Code(413, "The body is too large", "Send less, or split it over several calls."),
    "unsupported_media_type": Code(415, "The body's type is not known", "Send it as the type that the detail names."),
    "queue_full": Code(429, "The function's queue is full", "Wait for Retry-After, then send it again.", retry=True),
    "rate_limited": Code(429, "Too many requests", "Wait for Retry-After, then send it again.", retry=True),
    "quota_exceeded": Code(
        403, "A quota is used up", "Remove what you do not need any more, or ask the operator for more."
    ),
    "stale_split": Code(
        409, "The traffic of its app was split anew meanwhile", "Try it again: the newest split holds.", retry=True
    ),
    "version_withdrawn": Code(
        409, "The version was rolled back", "Deploy another one, or name it with --retry to try it once more."
    ),
    "rollout_running": Code(409, "A rollout is under way", "Promote or abort it first, or wait for its end."),
    "policy_refused": Code(
        403, "A policy does not allow this", "Replace the components that the detail names; 'pilotlight policy show'."
    ),
    "cancelled": Code(499, "The call was cancelled", "Nothing: it was cancelled on request."),
    "function_raised": Code(500, "The function raised an exception", "Read the remote traceback; mend the function."),
    "load_failed": Code(500, "The function could not be loaded", "Read the traceback; mend and deploy again."),
    "bad_output": Code(
        500, "The function's answer is not valid", "Return what its type hints promise, and what can travel."
    ),
    "internal": Code(
        500, "The platform made a mistake", "Send it again; report the request id if it repeats.", retry=True
    ),
    "not_offered": Code(
        501, "The platform does not offer this", "Do without it; the detail says what there is instead."
    ),
    "container_died": Code(
        502, "The container died during the call", "Read its logs; if it is safe to run twice: idempotent=True."
    ),
    "no_capacity": Code(
        503, "No capacity fits the function now", "Wait for Retry-After, then send it again.", retry=True
    ),
    "preempted": Code(
        503,
        "The node was taken away during the call",
        "If it is safe to run twice, send it again; streams of resumable=True go on elsewhere by themselves.",
    ),
    "breaker_open": Code(
        503, "The version keeps failing", "Read its logs; wait for Retry-After, then send it again.", retry=True
    ),
    "starting": Code(503, "The platform is starting", "Wait for Retry-After, then send it again.", retry=True),
    "draining": Code(503, "This gateway is shutting down", "Send it again: another gateway takes it.", retry=True),
    "overloaded": Code(
        503, "The gateway's memory for requests is in use", "Wait for Retry-After, then again.", retry=True
    ),
    "misconfigured": Code(
        503, "The platform is not set up right", "Its operator has to mend it; send it again later.", retry=True
    ),
    "execution_timeout": Code(504, "The function ran past its timeout", "Raise timeout= or do less per call."),
}

PLATFORMS_FAULT = frozenset({
    "internal", "no_capacity", "overloaded", "starting", "draining", "breaker_open", "container_died", "preempted",
    "call_lost", "load_failed", "deadline_exceeded", "queue_full", "misconfigured",
})  # fmt: skip
"""Codes of calls that were not available. Others are the caller's mistakes, its own limits, and what its code raised:
they are neither good nor bad, or nonsense of callers would hide an outage."""


class PilotlightError(Exception):
    """The base of all errors that the platform raises on purpose."""

    code: ClassVar[str] = "internal"

    def __init__(
        self, detail: str = "", *, code: str | None = None, retry_after: float | None = None, **more: Any
    ) -> None:
        self.wire_code = code or type(self).code
        if self.wire_code not in CODES:
            self.wire_code = "internal"
        self.detail = detail or CODES[self.wire_code].title
        self.retry_after = retry_after
        self.more = more
        """Further members of the problem document, such as `field` or `request_id`."""
        self.course: Any = None
        """What the gateway knows of the call's course until then; it is told to nobody."""
        self.is_recorded = False
        """Whether the failure was counted."""
        super().__init__(self.detail)

    @property
    def meaning(self) -> Code:
        return CODES[self.wire_code]

    def __str__(self) -> str:
        return f"{self.detail} {self.meaning.advice}"


class BadInput(PilotlightError):
    """The request is wrong: it names the field and what was expected."""

    code = "bad_input"


class Unauthenticated(PilotlightError):
    """No valid credential came with the request."""

    code = "unauthenticated"


class Forbidden(PilotlightError):
    """The credential is valid but does not allow this."""

    code = "forbidden"


class NotFound(PilotlightError):
    """The named resource does not exist, or is not visible to this tenant."""

    code = "not_found"


class UnknownFunction(NotFound):
    """There is no such function or version."""

    code = "unknown_function"


class UnknownCall(NotFound):
    """There is no such call."""

    code = "unknown_call"


class Conflict(PilotlightError):
    """The present state does not allow this."""

    code = "conflict"


class RemovesFunctions(PilotlightError):
    """The deploy would take functions out of service, and was not told to; `removes` names them."""

    code = "removes_functions"


class PolicyRefused(PilotlightError):
    """A policy about what versions may be made of; `findings` has each rule and component."""

    code = "policy_refused"


class NestedRefused(PilotlightError):
    """A function may not make this call: it names the bound."""

    code = "nested_refused"


class TooMuch(PilotlightError):
    """A limit of the tenant is reached."""

    code = "rate_limited"


class QuotaExceeded(TooMuch):
    """The tenant keeps as much as it may."""

    code = "quota_exceeded"


class BudgetExhausted(TooMuch):
    """What is left of a budget is less than the call may cost; `budget` says which, and how much."""

    code = "budget_exhausted"


class Unavailable(PilotlightError):
    """The platform cannot take this now."""

    code = "no_capacity"


class DeadlineExceeded(PilotlightError):
    """The caller's time ran out before the call was done."""

    code = "deadline_exceeded"


class Cancelled(PilotlightError):
    """The call was cancelled on request."""

    code = "cancelled"


class CallFailed(PilotlightError):
    """The call reached the function, and the function did not answer it."""

    code = "function_raised"


class FunctionRaised(CallFailed):
    """The function raised; `remote_traceback` is the text of its traceback."""

    code = "function_raised"

    @property
    def remote_traceback(self) -> str:
        """The traceback as the function's process printed it, or ""."""
        return str(self.more.get("traceback", ""))


class ExecutionTimeout(CallFailed):
    """The function ran past its timeout; its container was killed."""

    code = "execution_timeout"


class LoadFailed(CallFailed):
    """The function's module or class could not be loaded."""

    code = "load_failed"


class BadOutput(CallFailed):
    """The function returned something that its type hints exclude, or that cannot be encoded."""

    code = "bad_output"


class ContainerDied(CallFailed):
    """The container died while it ran the call."""

    code = "container_died"


class Preempted(CallFailed):
    """The container's node was taken away while it ran the call; what it had sent until then is all there is."""

    code = "preempted"


def _leaves(cls: type[PilotlightError]) -> list[type[PilotlightError]]:
    return [cls, *(leaf for sub in cls.__subclasses__() for leaf in _leaves(sub))]


CLASSES: dict[str, type[PilotlightError]] = {}
for _cls in _leaves(PilotlightError):
    CLASSES.setdefault(_cls.code, _cls)
CLASSES |= {
    "function_raised": FunctionRaised, "bad_request": BadInput, "too_large": BadInput, "not_acceptable": BadInput,
    "unsupported_media_type": BadInput, "method_not_allowed": BadInput, "key_expired": Unauthenticated,
    "token_invalid": Unauthenticated, "token_expired": Unauthenticated, "no_access": Forbidden,
    "issuer_unavailable": Unavailable,
    "unknown_version": UnknownFunction, "call_lost": UnknownCall, "queue_full": TooMuch, "starting": Unavailable,
    "draining": Unavailable, "overloaded": Unavailable, "breaker_open": Unavailable, "idempotency_key_in_use": Conflict,
    "idempotency_key_reused": BadInput, "answer_not_kept": NotFound, "slow_body": DeadlineExceeded,
    "events_gone": NotFound, "model_not_found": UnknownFunction,
}  # fmt: skip


def error_from_code(code: str, detail: str, *, retry_after: float | None = None, **more: Any) -> PilotlightError:
    """The error of a wire code; an unknown code gives the base class."""
    return CLASSES.get(code, PilotlightError)(detail, code=code, retry_after=retry_after, **more)
