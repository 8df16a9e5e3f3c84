"""Files of the kernel are read whole, and what is gone is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.kernel_files import AT_ONCE, read_kernel_file


def test_a_file_of_the_kernel_is_read() -> None:
    """What it says of this process is what `read_text` finds."""
    path = f"/proc/{os.getpid()}/cmdline"
    assert read_kernel_file(path) == Path(path).read_text()


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    """One longer than a read is not cut."""
    (tmp_path / "procs").write_text("1\n" * AT_ONCE)
    assert read_kernel_file(tmp_path / "procs") == "1\n" * AT_ONCE


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """A process may end between two reads."""
    with pytest.raises(OSError, match="No such file"):
        read_kernel_file(tmp_path / "gone")
