"""Wheels, good ones and others, as bytes."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

TAG = "py3-none-any"


@dataclass(frozen=True)
class Wheel:
    """The file of one version of a package."""

    name: str
    version: str
    data: bytes
    tag: str = TAG

    @property
    def filename(self) -> str:
        return f"{self.name}-{self.version}-{self.tag}.whl"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def wheel(
    name: str,
    version: str = "1.0",
    files: Mapping[str, str | bytes] | None = None,
    *,
    requires: Iterable[str] = (),
    scripts: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    tag: str = TAG,
) -> Wheel:
    """A wheel with `files`; without any, a module that says its version. `links` are symbolic links of the archive."""
    inside = f"{name}-{version}.dist-info"
    entries: dict[str, bytes] = {
        path: text.encode() if isinstance(text, str) else text
        for path, text in (files or {f"{name}.py": f"VERSION = {version!r}\n"}).items()
    }
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    entries[f"{inside}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}".encode()
    entries[f"{inside}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    if scripts:
        lines = "".join(f"{script} = {target}\n" for script, target in scripts.items())
        entries[f"{inside}/entry_points.txt"] = f"[console_scripts]\n{lines}".encode()
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in entries.items())
    entries[f"{inside}/RECORD"] = f"{record}{inside}/RECORD,,\n".encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in entries.items():
            archive.writestr(path, data)
        for path, target in (links or {}).items():
            link = zipfile.ZipInfo(path)
            link.create_system = 3
            link.external_attr = 0o120777 << 16
            archive.writestr(link, target)
    return Wheel(name, version, out.getvalue(), tag)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
