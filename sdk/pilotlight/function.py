"""Decorated functions, called by `.local() .remote() .remote_gen() .map() .starmap() .spawn()`; see `verbs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

import msgspec

from pilotlight.definitions.call_target import CallSettings, CallTarget
from pilotlight.definitions.decorated import Decorated
from pilotlight.definitions.errors import Misuse
from pilotlight.definitions.signature import Callee
from pilotlight.verbs import Local, Map, Remote, RemoteGen, Spawn, StarMap, UpdateAutoscaler
from pilotlight_core.model.ids import CLIENT_CALL_ID, Ref, check_name
from pilotlight_core.model.spec import FunctionSpec

if TYPE_CHECKING:
    from pilotlight.client import Client

P = ParamSpec("P")
R = TypeVar("R")


class Function(Decorated, Generic[P, R]):
    """A plain function, or a method of a class. Calling it runs it in this process, as `.local()` does.

    `__wrapped__` is the function as written, `spec` its deployed form, `target` what a call names.
    """

    def __init__(self, target: CallTarget, client: Client | None = None) -> None:
        self.target = target
        self._client = client
        if (callee := target.callee) is not None:
            self.__wrapped__ = callee.function
            self.__name__ = callee.function.__name__
            self.__qualname__ = callee.function.__qualname__
            self.__module__ = callee.function.__module__
            self.__doc__ = callee.function.__doc__

    @classmethod
    def of(cls, target: Callable[P, R], *, app: str, spec: FunctionSpec, callee: Callee) -> Function[P, R]:
        del target  # it is the callee's; it stands here for its type
        return Function(CallTarget(ref=Ref(app=app, function=spec.name), spec=spec, callee=callee))

    @classmethod
    def from_name(
        cls, app: str, name: str, *, version: int | str | None = None, method: str = ""
    ) -> Function[..., Any]:
        """Return a deployed function by its name, without a request.

        Args:
            app: the app's name; "tenant:app" for another owner's.
            version: 7 or "v7"; default: the deployed one.
            method: of a class.

        Raises:
            BadInput: naming the part that is not a name.
        """
        tenant, _, app = app.rpartition(":")
        pin = f"v{version}" if isinstance(version, int) else version
        for part, field in ((tenant or None, "tenant"), (app, "app"), (name, "name"), (pin, "version")):
            if part is not None:
                check_name(part, field)
        return Function(CallTarget(ref=Ref(app=app, function=name, tenant=tenant or None, pin=pin), method=method))

    @property
    def ref(self) -> Ref:
        """Its app, function and, of another owner, tenant."""
        return self.target.ref

    @property
    def name(self) -> str:
        """The name it is deployed under."""
        return self.target.ref.function

    @property
    def spec(self) -> FunctionSpec:
        """Its FunctionSpec.

        Raises:
            Misuse: if it was found by name.
        """
        if self.target.spec is None:
            raise Misuse(f"{self.ref} was found by name: its spec is at the platform ('pilotlight app list --json').")
        return self.target.spec

    def options(
        self,
        *,
        id: str | None = None,  # noqa: A002 - what the wire calls it
        deadline: float | None = None,
        on_stage: Callable[[str, float, dict[str, Any]], object] | None = None,
        client: Client | None = None,
        idempotency_key: str | None = None,
        run_at: float | None = None,
        sticky: str | None = None,
    ) -> Function[P, R]:
        """Return the same function with other settings for its calls; those that are not given stay.

        Args:
            id: an id of your own for one call, from `pilotlight.call_id()`, for `pilotlight.cancel(id)`.
            deadline: seconds that the caller waits in all; default: as long as the function may take. Of `.spawn()`:
                seconds that the call may wait for a container; default: a day.
            on_stage: called with (name, ms since the call began, detail) at each stage, also of a cold start.
            client: of another platform or key than the configured one.
            idempotency_key: calls with one key run once and have one answer; "auto": a fresh key for each call. Such a
                call is sent again if its connection breaks, goes on when its caller leaves, and reports no stages.
            run_at: of `.spawn()` and `.map()`: unix seconds before which it does not begin.
            sticky: whom the call is for, such as a user's id: while a rollout goes by it (`--sticky header`), all of
                that user's calls run the same version.

        Raises:
            Misuse: if the id, the deadline, the key or `sticky` is malformed.
        """
        if id is not None and not CLIENT_CALL_ID.fullmatch(id):
            raise Misuse(f"id={id!r}: expected cid_ and 8 to 60 letters, digits, '_' or '-'.", field="id")
        if deadline is not None and not deadline > 0:
            raise Misuse(f"deadline={deadline!r}: expected seconds, more than 0.", field="deadline")
        if sticky is not None and not (0 < len(sticky) <= 256 and sticky.isascii() and sticky.isprintable()):
            raise Misuse(f"sticky={sticky[:60]!r}: expected 1 to 256 printable ASCII characters.", field="sticky")
        given = {
            "id": id, "deadline": deadline, "on_stage": on_stage, "idempotency_key": idempotency_key, "run_at": run_at,
            "sticky": sticky,
        }  # fmt: skip
        settings = msgspec.structs.replace(
            self.target.settings, **{key: value for key, value in given.items() if value is not None}
        )
        if settings.idempotency_key is not None:
            _check_key(settings)
        return Function(msgspec.structs.replace(self.target, settings=settings), client or self._client)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.local(*args, **kwargs)

    @property
    def local(self) -> Local[P, R]:
        """Run it in this process."""
        return Local(self.target)

    @property
    def remote(self) -> Remote[P, R]:
        """Run it on the platform and return its answer."""
        return Remote(self.target, self._client)

    @property
    def remote_gen(self) -> RemoteGen[P]:
        """Run a generator on the platform and iterate over what it yields."""
        return RemoteGen(self.target, self._client)

    @property
    def map(self) -> Map:
        """Call it for each item of its iterables, many at a time."""
        return Map(self.target, self._client)

    @property
    def starmap(self) -> StarMap:
        """Call it for each tuple of arguments, many at a time."""
        return StarMap(self.target, self._client)

    @property
    def spawn(self) -> Spawn[P, R]:
        """Store a call on the platform; return a `FunctionCall`, which fetches its answer later."""
        return Spawn(self.target, self._client)

    @property
    def update_autoscaler(self) -> UpdateAutoscaler:
        """Say another number of containers, without a deploy."""
        return UpdateAutoscaler(self.target, self._client)

    if not TYPE_CHECKING:  # type checkers know the attributes there are

        def __getattr__(self, name: str) -> NoReturn:
            target = self.__dict__.get("target")
            if not name.startswith("_") and target is not None and target.callee is None and not target.method:
                how = f"Function.from_name({target.ref.app!r}, {target.ref.function!r}, method={name!r})"
                raise AttributeError(f"{target.ref} was found by name: a method of a class is {how}.")
            from pilotlight.definitions.hints.peer_names import FUNCTION_NAMES

            hint = f": here it is {FUNCTION_NAMES[name]}" if name in FUNCTION_NAMES else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __repr__(self) -> str:
        return f"Function({self.target.label!r})"


def _check_key(settings: CallSettings) -> None:
    key = settings.idempotency_key or ""
    if not 0 < len(key) <= 255 or not key.isascii() or not key.isprintable() or " " in key:
        raise Misuse(f"idempotency_key={key!r}: expected 1 to 255 visible ASCII characters.", field="idempotency_key")
    if settings.on_stage is not None:
        raise Misuse("on_stage: a call with an idempotency_key tells no stages.", field="on_stage")
