"""The command lines of uv, and the environment in which it runs. Pure.

Whatever else could tell it of another index, of credentials or of code to run is off: files of configuration, variables
(the environment is this one whole), keyrings, sources in packages' own metadata, distributions that have to be built.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pilotlight_runtime.builder.build_frames import BuildJob

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_PLAIN = (
    *("--no-config", "--no-sources", "--only-binary", ":all:", "--keyring-provider", "disabled"),
    *("--index-strategy", "first-index", "--color", "never", "--no-progress", "--quiet"),
)


FAILED = 2
"""uv's status for what went wrong; 1: what was asked for cannot be."""
_UNANSWERED = re.compile(
    "error sending request|HTTP status server error|429 Too Many Requests|tunnel error|operation timed out"
    "|error decoding response body|connection closed|Request failed after"
)


def is_unanswered(status: int, words: str) -> bool:
    """Whether the index, or the way to it, has failed, by what uv says: not what it was asked for."""
    return status == FAILED and _UNANSWERED.search(words) is not None


def lock_command(job: BuildJob, folder: Path) -> list[str]:
    """Print what the requirements come to. `folder` has them, what holds them to the base, and its stubs."""
    return [
        *(job.uv, "pip", "compile", str(folder / "requirements.in"), "--constraints", str(folder / "base.txt")),
        *(("--constraints", str(folder / "pins.txt")) if job.pins else ()),
        *("--find-links", str(folder / "stubs"), "--python", job.python),
        *("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"),
        *_PLAIN,
    ]


def install_command(job: BuildJob, folder: Path, target: Path) -> list[str]:
    """Install what is locked, and nothing else, into the folder `target`."""
    return [
        *(job.uv, "pip", "install", "--requirements", str(folder / "lock.txt"), "--target", str(target)),
        *("--no-deps", "--require-hashes", "--compile-bytecode", "--link-mode", "hardlink"),
        *("--python", job.python, *_PLAIN),
    ]


def uv_environment(job: BuildJob, folder: Path, proxy: str) -> Mapping[str, str]:
    """All of uv's environment. `proxy`: where its requests go."""
    return {
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "UV_DEFAULT_INDEX": job.index,  # not on the command line, which every user of the host can read
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_TIMEOUT": "30",
        "UV_HTTP_RETRIES": "2",
        "UV_CONCURRENT_DOWNLOADS": "8",
        "UV_CONCURRENT_INSTALLS": "2",
        "TOKIO_WORKER_THREADS": "2",
        # They are read-only wherever they are read, so nobody need compare them with their sources.
        "PYC_INVALIDATION_MODE": "UNCHECKED_HASH",
        **dict.fromkeys(PROXIES, proxy),
        **({"SSL_CERT_FILE": job.certificates} if job.certificates else {}),
    }
