"""Packs a path on a tenant's machine into FunctionSpecs and files, and deploys it."""

from __future__ import annotations

from pilotlight.packing.bundle import Bundle, make_bundle
from pilotlight.packing.load import load_apps
from pilotlight.packing.packed_artifacts import pack_artifacts, paths_of_artifacts
from pilotlight.packing.target import DeployTarget, find_target

__all__ = [
    "Bundle",
    "DeployTarget",
    "find_target",
    "load_apps",
    "make_bundle",
    "pack_artifacts",
    "paths_of_artifacts",
]
