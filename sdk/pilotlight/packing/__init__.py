"""From a path on a tenant's machine to what a deploy sends: specs of functions, and the files they need."""

from __future__ import annotations

from pilotlight.packing.bundle import Bundle, make_bundle
from pilotlight.packing.load import load_apps
from pilotlight.packing.target import Target, find_target

__all__ = ["Bundle", "Target", "find_target", "load_apps", "make_bundle"]
