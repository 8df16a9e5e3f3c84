"""The versions of a class's hooks, as calls find them."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import UnknownFunction
from pilotlight_core.model.pipelines.pipeline import CallHook, HookKind, Pipeline
from pilotlight_gateway.tenancy.hook_versions import hook_versions
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.specs import function_spec, method, version_record


async def test_a_class_finds_the_versions_of_its_hooks() -> None:
    """Those of its own app and name alone; a function without hooks has none."""
    registry = MemoryRegistry()
    first = version_record(function_spec("Words~pre"), id="ver_pre")
    registry.versions["ver_pre"] = first
    pipeline = Pipeline(preprocess=CallHook(attribute="read", version="ver_pre"), takes={"add": ""})
    words = version_record(function_spec("Words", method("add", "add"), is_class=True, pipeline=pipeline))

    assert await hook_versions(registry, words) == {HookKind.PREPROCESS: first}
    assert await hook_versions(registry, version_record()) is None
    registry.versions["ver_pre"] = version_record(function_spec("Other~pre"), id="ver_pre")
    with pytest.raises(UnknownFunction, match="is not there any more"):
        await hook_versions(registry, words)
