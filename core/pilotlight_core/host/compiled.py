"""Whether this process runs compiled modules, which its first line of log says."""

from __future__ import annotations

IS_COMPILED = not __file__.endswith(".py")
"""Of this module, and so of the whole installation: a wheel has all of the listed modules compiled, or none."""
