"""A function that Pilotlight can run: `.local() .remote() .remote_gen() .map() .starmap() .spawn()`; see `verbs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

import msgspec

from pilotlight.errors import Misuse
from pilotlight.function_call import Spawn
from pilotlight.local import Receiver
from pilotlight.marks import Wrapper
from pilotlight.signature import Callee
from pilotlight.verbs import Local, Map, Remote, RemoteGen, StarMap
from pilotlight_core.model.ids import CLIENT_CALL_ID, Ref, check_name
from pilotlight_core.model.spec import FunctionSpec, Mode

if TYPE_CHECKING:
    from pilotlight.client import Client

P = ParamSpec("P")
R = TypeVar("R")


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How calls are made; see `Function.options`."""

    id: str | None = None
    deadline: float | None = None
    on_stage: Callable[[str, float, dict[str, Any]], object] | None = None
    client: Client | None = None
    idempotency_key: str | None = None
    run_at: float | None = None


class Function(Wrapper, Generic[P, R]):
    """A plain function, or a method of a class. Calling it runs it here, as `.local()` does.

    `__wrapped__` is the function as it was written; `spec` is what is deployed (None for one found by name).
    """

    def __init__(
        self,
        *,
        ref: Ref,
        method: str = "",
        spec: FunctionSpec | None = None,
        callee: Callee | None = None,
        receiver: Receiver | None = None,
        settings: CallSettings | None = None,
    ) -> None:
        self.ref = ref
        self.method = method
        self.settings = settings or CallSettings()
        self._spec = spec
        self._callee = callee
        self._receiver = receiver
        if callee is not None:
            self.__wrapped__ = callee.function
            self.__name__ = callee.function.__name__
            self.__qualname__ = callee.function.__qualname__
            self.__module__ = callee.function.__module__
            self.__doc__ = callee.function.__doc__

    @classmethod
    def of(cls, target: Callable[P, R], *, app: str, spec: FunctionSpec, callee: Callee) -> Function[P, R]:
        """The wrapper of a decorated function."""
        del target  # it is the callee's; it stands here for its type
        return Function(ref=Ref(app=app, function=spec.name), spec=spec, callee=callee)

    @classmethod
    def from_name(
        cls, app: str, name: str, *, version: int | str | None = None, method: str = ""
    ) -> Function[..., Any]:
        """A deployed function by its name; nothing is asked of the platform until it is called.

        Args:
            app: the app's name; "tenant:app" for another owner's.
            name: the function's name.
            version: 7 or "v7" for that version, another word for an alias; default: the one that is deployed.
            method: of a class, which one.

        Raises:
            Misuse: naming the part that is not a name.
        """
        tenant, _, app = app.rpartition(":")
        pin = f"v{version}" if isinstance(version, int) else version
        for part, field in ((tenant or None, "tenant"), (app, "app"), (name, "name"), (pin, "version")):
            if part is not None:
                check_name(part, field)
        return Function(ref=Ref(app=app, function=name, tenant=tenant or None, pin=pin), method=method)

    @property
    def name(self) -> str:
        """The name it is deployed under."""
        return self.ref.function

    @property
    def spec(self) -> FunctionSpec:
        """What is deployed.

        Raises:
            Misuse: for a function that was found by name.
        """
        if self._spec is None:
            raise Misuse(f"{self.ref} was found by name: its spec is at the platform ('pilotlight app list --json').")
        return self._spec

    @property
    def callee(self) -> Callee | None:
        """The function as its author wrote it; None for one found by name."""
        return self._callee

    @property
    def receiver(self) -> Receiver | None:
        """For a method, where its object comes from when it runs here."""
        return self._receiver

    @property
    def batch_size(self) -> int | None:
        """The largest batch it takes; None if it is not batched or not known here."""
        batched = self._callee.batched if self._callee else None
        return batched.max_batch_size if batched else None

    @property
    def is_generator(self) -> bool | None:
        """Whether it yields; None if that is not known here."""
        return None if self._callee is None else self._callee.mode is Mode.GENERATOR

    def options(
        self,
        *,
        id: str | None = None,  # noqa: A002 - what the wire calls it
        deadline: float | None = None,
        on_stage: Callable[[str, float, dict[str, Any]], object] | None = None,
        client: Client | None = None,
        idempotency_key: str | None = None,
        run_at: float | None = None,
    ) -> Function[P, R]:
        """The same function, called differently.

        Args:
            id: an id of your own for one call (`pilotlight.call_id()` makes one), for `pilotlight.cancel(id)`.
            deadline: seconds that the caller waits in all; default: as long as the function may take. Of `.spawn()`:
                seconds for which the call may wait for a container; default: a day.
            on_stage: called with (name, ms, detail) as a call passes each stage, those of a cold start among them.
            client: another platform or key than the configured one.
            idempotency_key: the platform carries out one call with this key, and answers every further one with the
                first one's answer; "auto": a fresh key for each call. An attempt whose connection breaks is then sent
                again, safely, and the call goes on when its caller leaves. Such calls tell no stages.
            run_at: of `.spawn()` alone: unix seconds before which it is not begun.

        Raises:
            Misuse: if the id, the deadline or the key is not one.
        """
        if id is not None and not CLIENT_CALL_ID.fullmatch(id):
            raise Misuse(f"id={id!r}: expected cid_ and 8 to 60 letters, digits, '_' or '-'.", field="id")
        if deadline is not None and not deadline > 0:
            raise Misuse(f"deadline={deadline!r}: expected seconds, more than 0.", field="deadline")
        given = {
            "id": id, "deadline": deadline, "on_stage": on_stage, "client": client, "idempotency_key": idempotency_key,
            "run_at": run_at,
        }  # fmt: skip
        settings = msgspec.structs.replace(
            self.settings, **{key: value for key, value in given.items() if value is not None}
        )
        if settings.idempotency_key is not None:
            _check_key(settings)
        return Function(
            ref=self.ref,
            method=self.method,
            spec=self._spec,
            callee=self._callee,
            receiver=self._receiver,
            settings=settings,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.local(*args, **kwargs)

    @property
    def local(self) -> Local[P, R]:
        """Run it in this process."""
        return Local(self)

    @property
    def remote(self) -> Remote[P, R]:
        """Run it on the platform and wait for its answer."""
        return Remote(self)

    @property
    def remote_gen(self) -> RemoteGen[P]:
        """Run a generator on the platform and iterate over what it yields."""
        return RemoteGen(self)

    @property
    def map(self) -> Map:
        """Call it for each item of its iterables, many at a time."""
        return Map(self)

    @property
    def starmap(self) -> StarMap:
        """As `map`, with a tuple of arguments per call."""
        return StarMap(self)

    @property
    def spawn(self) -> Spawn[P, R]:
        """Store a call on the platform, to come back for its answer later: a `FunctionCall`."""
        return Spawn(self)

    @property
    def label(self) -> str:
        """How messages name it: `app.function` or `app.function.method`."""
        return f"{self.ref}.{self.method}" if self.method else str(self.ref)

    if not TYPE_CHECKING:  # type checkers know the attributes there are

        def __getattr__(self, name: str) -> NoReturn:
            if not name.startswith("_") and self.__dict__.get("_callee", self) is None and not self.method:
                how = f"Function.from_name({self.ref.app!r}, {self.ref.function!r}, method={name!r})"
                raise AttributeError(f"{self.ref} was found by name: a method of a class is {how}.")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"Function({self.label!r})"


def _check_key(settings: CallSettings) -> None:
    key = settings.idempotency_key or ""
    if not 0 < len(key) <= 255 or not key.isascii() or not key.isprintable() or " " in key:
        raise Misuse(f"idempotency_key={key!r}: expected 1 to 255 visible ASCII characters.", field="idempotency_key")
    if settings.on_stage is not None:
        raise Misuse("on_stage: a call with an idempotency_key tells no stages.", field="on_stage")
