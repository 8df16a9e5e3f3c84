"""What a base environment is: its interpreter, its platform, and a digest of the packages that it has."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pilotlight_runtime.sandbox.sandbox_spec import Mount

FACTS_S = 60.0
CODE = """
import hashlib, importlib.metadata, json, sys, sysconfig
found = sorted({
    f"{each.metadata['Name']}=={each.version}"
    for each in importlib.metadata.distributions()
    if each.metadata["Name"] != "pilotlight"
})
print("\\n" + json.dumps({
    "digest": hashlib.sha256("\\n".join(found).encode()).hexdigest(),
    "python": f"cp{sys.version_info[0]}{sys.version_info[1]}",
    "platform": sysconfig.get_platform().replace("-", "_").replace(".", "_").lower(),
}))
"""


class BaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    digest: str
    """Of the names and versions of its packages, but for the platform's own: what is built outlives its upgrade."""
    python: str
    platform: str


@dataclass(frozen=True, kw_only=True)
class BuildBase:
    """A base environment as a builder needs it."""

    python: Path
    read_only: tuple[Mount, ...]


class NoFacts(Exception):
    """The interpreter does not say; the message is its own."""


@functools.cache
def base_facts(python: Path) -> BaseFacts:
    """What an interpreter says of its environment, asked once; blocks.

    Raises:
        NoFacts: it does not run.
    """
    try:
        done = subprocess.run(
            [str(python), "-I", "-B", "-c", CODE], capture_output=True, text=True, timeout=FACTS_S, check=False, cwd="/"
        )
        if not done.returncode:
            return msgspec.json.decode(done.stdout.strip().rpartition("\n")[2], type=BaseFacts)
        why = done.stderr.strip()[-400:]
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        why = str(error)
    raise NoFacts(f"{python} does not say what it has: {why}")


def merged_mounts(*groups: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """All mounts, each target once."""
    found: Mapping[Path, Mount] = {mount.target: mount for group in groups for mount in group}
    return tuple(found.values())
