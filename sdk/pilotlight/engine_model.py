"""Engine functions: language models that containers serve without code of their app."""

from __future__ import annotations

from typing import Any

from pilotlight.cls import Cls
from pilotlight.definitions.engines.engine_specs import ENGINE_CALLEES, EngineMethods
from pilotlight.definitions.local_calls import LocalInstance
from pilotlight.function import Function
from pilotlight_core.model.spec import FunctionSpec


class EngineModel(Cls[EngineMethods]):
    """A language model, made by `app.engine(…)` or `@app.gpu_function(engine=…)`."""

    def __init__(self, *, app: str, spec: FunctionSpec, source: str, doc: str = "") -> None:
        """`source` is the module that defines it."""
        super().__init__(EngineMethods, app=app, spec=spec, callees=ENGINE_CALLEES)
        self.__name__ = self.__qualname__ = spec.name
        self.__module__ = self.source_module = source
        self.__doc__ = doc or type(self).__doc__

    @property
    def generate(self) -> Function[..., Any]:
        """Go on from a prompt or a chat: `.generate.remote_gen(messages=[…])`."""
        return self._of_platform("generate")

    @property
    def embed(self) -> Function[..., Any]:
        """The vectors of texts: `.embed.remote(input=[…])`."""
        return self._of_platform("embed")

    def _of_platform(self, name: str) -> Function[..., Any]:
        method = self.find_method(name, LocalInstance(EngineMethods, ()))
        assert method is not None, name  # noqa: S101 - both are among its callees
        return method

    def __repr__(self) -> str:
        return f"EngineModel({str(self.ref)!r})"
