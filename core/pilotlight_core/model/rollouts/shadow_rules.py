"""Which functions may be run once more beside a call, without anybody but the platform noticing."""

from __future__ import annotations

from msgspec import UNSET

from pilotlight_core.model.spec import FunctionSpec, network_of


def why_no_shadows(spec: FunctionSpec) -> str:
    """Why calls of a function are not repeated as shadows, in words; "": they may be.

    What it does must stay within its container: whoever is let out, or has secrets to show elsewhere, may do a thing
    twice.
    """
    if network_of(spec):
        return f"{spec.name} may connect to {', '.join(network_of(spec))}, so a shadow could do a thing twice"
    if spec.secrets is not UNSET and spec.secrets:
        return f"{spec.name} has secrets, which only calls of its tenant may use"
    if spec.pipeline is not UNSET or spec.hook is not UNSET:
        return f"{spec.name} has hooks, which run in functions of their own"
    return ""
