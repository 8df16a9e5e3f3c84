"""Where the driver's libraries are."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from pilotlight_runtime.devices.nvidia.driver_libraries import (
    LIBCUDA,
    Libraries,
    cached_libcuda,
    choose,
    find_libraries,
    loaded_folder,
)
from pilotlight_runtime.sandbox.sandbox_spec import Mount

CACHE = """\
2 libs found in cache `/etc/ld.so.cache'
\tlibcudart.so.13 (libc6,x86-64) => /usr/local/cuda/lib/libcudart.so.13
\tlibcuda.so.1 (libc6) => /lib/i386-linux-gnu/libcuda.so.1
\tlibcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1
\tlibcuda.so.1 (libc6,AArch64) => /lib/aarch64-linux-gnu/libcuda.so.1
\tlibcuda.so (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so
"""
MAPS = """\
7f00-7f01 r-xp 00000000 00:00 0
7f01-7f02 r-xp 00001000 fe:00 77   /usr/local/nvidia/lib64/libnvidia-ml.so.580.159.04
7f03-7f04 rw-p 00000000 fe:00 12   /usr/lib/x86_64-linux-gnu/libc.so.6
"""


def library_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / f"{LIBCUDA}.580").touch()
    (folder / LIBCUDA).symlink_to(f"{LIBCUDA}.580")
    return folder / LIBCUDA


@pytest.mark.parametrize(
    ("machine", "path"),
    [("x86_64", "/lib/x86_64-linux-gnu/libcuda.so.1"), ("aarch64", "/lib/aarch64-linux-gnu/libcuda.so.1")],
)
def test_the_linkers_cache_is_read_for_this_machine(machine: str, path: str) -> None:
    """Not the 32-bit library, and not what is called alike."""
    assert cached_libcuda(CACHE, machine) == Path(path)


def test_a_cache_may_have_none() -> None:
    """A node whose driver lies in a folder of its own, or that has none."""
    assert cached_libcuda("", "x86_64") is None
    assert cached_libcuda(CACHE, "riscv64") is None


def test_the_driver_is_where_its_nvml_was_loaded_from() -> None:
    """As the kernel shows it."""
    assert loaded_folder(MAPS) == Path("/usr/local/nvidia/lib64")
    assert loaded_folder("") is None


def test_what_the_linker_finds_by_itself_needs_no_variable(tmp_path: Path) -> None:
    """Setting it anyway would come between torch and its own libraries."""
    cached = library_in(tmp_path / "driver")
    again = tmp_path / "same"
    again.symlink_to(cached.parent)

    found = choose(cached, [again])

    assert (found.libcuda, found.env) == (cached, {})
    assert found.read_only == (Mount(source=cached.parent, target=cached.parent),)


def test_the_drivers_own_library_goes_before_the_one_in_the_cache(tmp_path: Path) -> None:
    """A toolkit brings another for compatibility, which refuses other drivers."""
    cached, own = library_in(tmp_path / "compat"), library_in(tmp_path / "driver")

    found = choose(cached, [tmp_path / "nothing", own.parent])

    assert found == Libraries(
        libcuda=own,
        env={"LD_LIBRARY_PATH": str(own.parent)},
        read_only=(Mount(source=own.parent, target=own.parent),),
    )


def test_a_library_elsewhere_is_shown_where_its_link_leads_to(tmp_path: Path) -> None:
    """Both folders, since the linker follows the link inside."""
    real = library_in(tmp_path / "store")
    linked = tmp_path / "run"
    linked.mkdir()
    (linked / LIBCUDA).symlink_to(real)

    assert [mount.target for mount in choose(None, [linked]).read_only] == [linked, real.parent]


def test_the_operating_systems_folders_are_shown_already() -> None:
    """/usr is part of every sandbox."""
    libm = next(Path("/usr/lib").glob("*/libm.so.6"), Path("/usr/lib64/libm.so.6"))

    assert choose(libm, []) == Libraries(libcuda=libm, env={}, read_only=())


def test_a_node_may_have_no_library(tmp_path: Path) -> None:
    """Nor is one believed in that the cache still names."""
    nothing = Libraries(libcuda=None, env={}, read_only=())

    assert choose(None, []) == nothing
    assert choose(tmp_path / "removed" / LIBCUDA, [tmp_path]) == nothing


def test_this_host_is_searched() -> None:
    """Whatever it has: what is found can be loaded."""
    found = find_libraries()

    assert found.libcuda is None or ctypes.CDLL(str(found.libcuda))
