"""What the tests of GPUs share: CUDA's driver library, real, compiled for the test, and in memory."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pynvml
import pytest

from pilotlight_runtime.devices.nvidia.cuda_port import Cuda, FakeCuda, LibCuda
from pilotlight_runtime.devices.nvidia.driver_libraries import Libraries, find_libraries

LIBRARY = r"""
#include <stdlib.h>
#include <string.h>
typedef unsigned long long address;
static int users;
int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int number) { *device = 7; return number ? 101 : 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { users++; *context = &users; return device == 7 ? 0 : 101; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device == 7 && --users == 0 ? 0 : 101; }
int cuCtxSetCurrent(void *context) { return context == &users ? 0 : 201; }
int cuMemAlloc_v2(address *out, size_t size) {
    if (getenv("FAKE_FULL")) return 2;
    *out = (address)malloc(size);
    return 0;
}
int cuMemFree_v2(address at) { free((void *)at); return 0; }
int cuMemsetD32_v2(address at, unsigned word, size_t count) {
    if (getenv("FAKE_CRASH")) abort();
    if (getenv("FAKE_ECC")) return 214;
    for (size_t n = 0; n < count; n++) ((unsigned *)at)[n] = word;
    return 0;
}
int cuMemcpyDtoD_v2(address to, address from, size_t size) { memcpy((void *)to, (void *)from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, address from, size_t size) { memcpy(to, (void *)from, size); return 0; }
int cuGetErrorName(int code, const char **name) {
    *name = code == 214 ? "CUDA_ERROR_ECC_UNCORRECTABLE" : code == 101 ? "CUDA_ERROR_INVALID_DEVICE" : 0;
    return 0;
}
"""
"""CUDA's functions on the host's memory, as its header declares them."""


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    """A library with these functions."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("libcuda")
    (folder / "cuda.c").write_text(LIBRARY)
    made = folder / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(made), str(folder / "cuda.c")], check=True)
    return Libraries(libcuda=made, env={}, read_only=())


@pytest.fixture(params=["fake", "library", pytest.param("real", marks=pytest.mark.gpu)])
def cuda(request: pytest.FixtureRequest) -> Iterator[Cuda]:
    if request.param == "fake":
        yield FakeCuda()
    elif request.param == "library":
        yield LibCuda(str(request.getfixturevalue("libcuda").libcuda))
    else:
        pynvml.nvmlInit()
        yield LibCuda(str(find_libraries().libcuda))
        pynvml.nvmlShutdown()
