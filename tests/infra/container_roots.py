"""What a container has of a machine, without containers: a file system, a user, and capabilities of its own.

The root is this machine's, with what is written to it thrown away, or refused; volumes are where they are wanted. Every
user may walk to Python there, as in an image.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.infra.manifests import ROOT

PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
"""As images have it: what they start is found."""
SERVER = 10001
"""The user of infra/Dockerfile's server."""
NEW_ROOT = """
set -e
own=$1 mounts=$2 walked=$3 mode=$4
shift 4
mkdir -p "$own"
mount -t tmpfs tmpfs "$own"
mkdir "$own/upper" "$own/work" "$own/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$own/upper,workdir=$own/work" "$own/root"
for top in $(findmnt --noheadings --raw --output TARGET); do
    [ "$(dirname "$top")" != / ] || [ "$top" = / ] || mount --rbind "$top" "$own/root$top"
done
for folder in $walked; do chmod o+rx "$own/root$folder"; done
while read -r from to; do
    if [ -d "$from" ]; then mkdir -p "$own/root$to"; else mkdir -p "$(dirname "$own/root$to")"; touch "$own/root$to"; fi
    mount --rbind "$from" "$own/root$to"
done < "$mounts"
mount -o "remount,bind,$mode" "$own/root"
cd "$own/root"
pivot_root . .
umount --lazy .
cd /
exec "$@"
"""


class Confinement(NamedTuple):
    """What a container is denied."""

    user: int = 0
    read_only: bool = False
    no_capabilities: bool = False


def confined(folder: Path, mounts: Iterable[tuple[Path, Path]], confinement: Confinement) -> tuple[str, ...]:
    """What runs the command behind it so; `folder` is where its root and the list of its mounts are."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, whole = folder / "mounts", list(mounts)
    programs = [Path(sys.base_prefix), Path(sys.prefix), ROOT]
    hidden = [(path, path) for path in programs if any(path.is_relative_to(target) for _, target in whole)]
    rows.write_text("".join(f"{source} {target}\n" for source, target in [*whole, *hidden]))
    ways = {each for path in programs for each in (path, *path.parents)}
    walked = " ".join(str(each) for each in sorted(ways))
    mode = "ro" if confinement.read_only else "rw"
    command = ["unshare", "--mount", "--", "sh", "-c", NEW_ROOT, "sh", str(folder / "root"), str(rows), walked, mode]
    if confinement.user or confinement.no_capabilities:
        command += ["setpriv", "--no-new-privs"]
    if confinement.no_capabilities:
        command += ["--bounding-set=-all", "--inh-caps=-all"]
    if confinement.user:
        command += [f"--reuid={confinement.user}", f"--regid={confinement.user}", "--clear-groups"]
    return tuple(command)


def why_no_roots(folder: Path) -> str:
    """What the kernel says to who wants a root of its own; "": it makes them."""
    command = [*confined(folder / "tried", (), Confinement()), "true"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return (done.stderr.strip() or "it has failed") if done.returncode else ""
