"""How many files and sockets a process may have open."""

from __future__ import annotations

import resource

ENOUGH = 1_048_576


def allow_open_files() -> int:
    """Raise the process's own bound as far as its host lets it; the bound that holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return ENOUGH if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
