"""One contract for CUDA's driver library and its fake."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_runtime.devices.nvidia.cuda_port import Cuda, CudaError, FakeCuda, LibCuda
from pilotlight_runtime.devices.nvidia.driver_libraries import Libraries

SIZE = 4096


def test_a_library_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """So is one that is none."""
    (tmp_path / "libcuda.so.1").write_bytes(b"no library")

    with pytest.raises(OSError, match="nowhere"):
        LibCuda("/nowhere/libcuda.so.1")
    with pytest.raises(OSError, match="libcuda"):
        LibCuda(str(tmp_path / "libcuda.so.1"))


def test_a_library_without_cudas_functions_is_an_error() -> None:
    """An older driver, or another library of that name."""
    with pytest.raises(AttributeError, match="cuInit"):
        LibCuda("libc.so.6")


def test_the_librarys_errors_have_its_names(libcuda: Libraries) -> None:
    """As its header has them."""
    with pytest.raises(CudaError, match=r"cuDevicePrimaryCtxRelease_v2: CUDA_ERROR_INVALID_DEVICE \(101\)"):
        LibCuda(str(libcuda.libcuda)).close()


def test_what_is_written_is_read_back(cuda: Cuda) -> None:
    """One contract for the library and its fake."""
    cuda.open()
    first, second = cuda.allocate(SIZE), cuda.allocate(SIZE)
    cuda.fill(first, 0x01020304, SIZE)
    cuda.copy(second, first, SIZE)

    assert first != second
    assert cuda.read(second, SIZE) == bytes([4, 3, 2, 1]) * (SIZE // 4)
    cuda.free(first)
    cuda.free(second)
    cuda.close()


@pytest.mark.parametrize("method", ["open", "close", "allocate", "free", "fill", "copy", "read"])
def test_a_fake_fails_where_it_is_told_to(method: str) -> None:
    """With CUDA's code; nothing else fails."""
    cuda = FakeCuda()
    cuda.open()
    address = cuda.allocate(SIZE)
    arguments = {"allocate": (SIZE,), "free": (address,), "fill": (address, 1, SIZE), "read": (address, SIZE)}
    arguments["copy"] = (address, address, SIZE)
    cuda.errors[method] = 700

    with pytest.raises(CudaError) as raised:
        getattr(cuda, method)(*arguments.get(method, ()))

    assert raised.value.code == 700
    assert cuda.is_open
    assert address in cuda.memory


def test_a_stuck_cell_reads_as_it_always_does() -> None:
    """In every allocation, whatever was written."""
    cuda = FakeCuda(stuck=(5, 0xFF))
    address = cuda.allocate(SIZE)
    cuda.fill(address, 0, SIZE)

    assert cuda.read(address, 8) == b"\0\0\0\0\0\xff\0\0"
