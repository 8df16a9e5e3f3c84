"""Decorated classes: one object per container, loaded once, called by method."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import UNSET

from pilotlight.definitions.call_target import CallTarget
from pilotlight.definitions.decorated import Decorated
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.local_calls import LocalInstance
from pilotlight.definitions.signature import Callee
from pilotlight.function import Function
from pilotlight.verbs import UpdateAutoscaler
from pilotlight_core.model.ids import Ref
from pilotlight_core.model.spec import FunctionSpec

T = TypeVar("T")


class Cls(Decorated, Generic[T]):
    """A decorated class. Calling it makes an Obj; `__wrapped__` is the class itself."""

    is_class = True

    def __init__(self, target: type[T], *, app: str, spec: FunctionSpec, callees: tuple[Callee, ...]) -> None:
        self.__wrapped__ = target
        self.__name__ = target.__name__
        self.__qualname__ = target.__qualname__
        self.__module__ = target.__module__
        self.__doc__ = target.__doc__
        self.ref = Ref(app=app, function=spec.name)
        self.spec = spec
        self._callees = {callee.name: callee for callee in callees}

    @property
    def name(self) -> str:
        """The name it is deployed under."""
        return self.ref.function

    def __call__(self, *args: Any, **kwargs: Any) -> Obj[T]:
        if args or kwargs:
            raise OptionError(f"{self.name}() takes no arguments yet: classes with parameters come later.")
        return Obj(self)

    def find_method(self, name: str, instance: LocalInstance) -> Function[..., Any] | None:
        """Return the method `name`, which runs on `instance` in this process, or None."""
        callee = self._callees.get(name)
        if callee is None:
            return None
        return Function(CallTarget(ref=self.ref, method=name, spec=self.spec, callee=callee, instance=instance))

    @property
    def update_autoscaler(self) -> UpdateAutoscaler:
        """Say another number of containers, without a deploy."""
        return UpdateAutoscaler(CallTarget(ref=self.ref, spec=self.spec), None)

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods that calls may name."""
        return tuple(self._callees)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        # `class Larger(MiniLM)` is a subclass of the class that was decorated.
        return (self.__wrapped__,)

    def __getattr__(self, name: str) -> Any:
        callees = self.__dict__.get("_callees", {})
        if name in callees or name in ("local", "remote", "remote_gen", "map", "starmap", "spawn"):
            example = name if name in callees else f"{next(iter(callees), 'method')}.{name}"
            raise AttributeError(f"{self.name} is a class: make an instance first, {self.name}().{example}(…)")
        if name.startswith("__") or "__wrapped__" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return f"Cls({str(self.ref)!r})"


class Obj(Generic[T]):
    """An instance of a decorated class; its methods are Functions."""

    def __init__(self, cls: Cls[T]) -> None:
        self._cls = cls
        self._instance = LocalInstance(cls.__wrapped__, _enter_hooks(cls.spec))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_cls" not in self.__dict__:
            raise AttributeError(name)
        method = self._cls.find_method(name, self._instance)
        if method is None:
            raise AttributeError(
                f"{self._cls.name} has no method {name!r} to call; it has {', '.join(self._cls.methods)}. "
                f"The class itself is {self._cls.name}.__wrapped__."
            )
        return method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._cls.methods})

    def __repr__(self) -> str:
        return f"{self._cls.name}()"


def _enter_hooks(spec: FunctionSpec) -> tuple[str, ...]:
    """Return those of all containers: in this process one object stands for them."""
    of_hooks = () if spec.pipeline is UNSET else spec.pipeline.hooks.values()
    return (*spec.enter, *(name for hook in of_hooks for name in hook.enter))
