"""`upstream=` of a function: it reaches that API, has its key, and runs as many calls at a time as the API may take."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pilotlight.definitions.decorated import markers_of
from pilotlight.definitions.errors import OptionError
from pilotlight.markers import concurrent


def with_upstream(target: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a function with those that its `upstream=` stands for; `target` is marked with its concurrency.

    Raises:
        OptionError: it is no Upstream, or the function is not asynchronous.
    """
    api = options.get("upstream")
    if api is None:
        return options
    from pilotlight.upstream.upstream import Upstream  # here: few functions have one

    if not isinstance(api, Upstream):
        raise OptionError(f'upstream={api!r:.100}: expected Upstream("https://…").', field="upstream")
    if not isinstance(target, type) and not inspect.iscoroutinefunction(target):
        raise OptionError(
            "upstream= is for asynchronous functions, and classes of them: write 'async def', and 'await api.call(…)'.",
            field="upstream",
        )
    given = options.get("secrets") or {}
    if api.secrets and not isinstance(given, Mapping):
        raise OptionError(
            "secrets= beside upstream= names the place of each: expected a mapping of variables to secrets.",
            field="secrets",
        )
    network = options.get("network") or ()
    named = [network] if isinstance(network, str) else list(network)
    if markers_of(target).max_inputs is None:
        concurrent(max_inputs=min(api.most_calls, 10_000))(target)
    told = {**options, "network": [*dict.fromkeys([*named, api.target])]}
    return told | ({"secrets": {**given, **api.secrets}} if api.secrets else {})
