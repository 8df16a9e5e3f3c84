"""The port to CUDA's driver library, for testing a GPU: the real one, and a fake.

Everything blocks, and raises `CudaError`. Sizes are bytes; a word is 32 bits.
"""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass, field
from typing import Any, Protocol

WORD = 4


class CudaError(Exception):
    """A function of the library has failed: `code` is CUDA's."""

    def __init__(self, function: str, code: int, name: str = "") -> None:
        super().__init__(f"{function}: {name or 'error'} ({code})")
        self.code = code


class Cuda(Protocol):
    """The first device visible to this process."""

    def open(self) -> None:
        """Take the device, before anything else."""
        ...

    def close(self) -> None: ...
    def allocate(self, size: int) -> int:
        """Returns an address on the device."""
        ...

    def free(self, address: int) -> None: ...
    def fill(self, address: int, word: int, size: int) -> None:
        """Repeat a word over `size` bytes."""
        ...

    def copy(self, to: int, source: int, size: int) -> None: ...

    def read(self, address: int, size: int) -> bytes: ...


class LibCuda:
    def __init__(self, path: str) -> None:
        """Raises OSError if it cannot be loaded, AttributeError if it lacks a function."""
        self._library = ctypes.CDLL(path)
        names = (
            "cuInit",
            "cuDeviceGet",
            "cuDevicePrimaryCtxRetain",
            "cuCtxSetCurrent",
            "cuMemAlloc_v2",
            "cuMemFree_v2",
        )
        more = ("cuMemsetD32_v2", "cuMemcpyDtoD_v2", "cuMemcpyDtoH_v2", "cuDevicePrimaryCtxRelease_v2")
        self._functions = {name: getattr(self._library, name) for name in (*names, *more)}
        self._device = ctypes.c_int()

    def open(self) -> None:
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(0))
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)

    def close(self) -> None:
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)

    def allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def fill(self, address: int, word: int, size: int) -> None:
        self._call("cuMemsetD32_v2", ctypes.c_uint64(address), ctypes.c_uint(word), ctypes.c_size_t(size // WORD))

    def copy(self, to: int, source: int, size: int) -> None:
        self._call("cuMemcpyDtoD_v2", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size))

    def read(self, address: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw

    def _call(self, name: str, *arguments: Any) -> None:
        if code := self._functions[name](*arguments):
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise CudaError(name, code, (text.value or b"").decode())


@dataclass(kw_only=True)
class FakeCuda:
    errors: dict[str, int] = field(default_factory=dict)
    """Method -> the code that it fails with."""
    stuck: tuple[int, int] | None = None
    """A defective cell: the offset of a byte in each allocation, and its constant value."""
    is_open: bool = False
    memory: dict[int, bytearray] = field(default_factory=dict)
    _next: itertools.count[int] = field(default_factory=lambda: itertools.count(0x7F0000000000, 2**32))

    def open(self) -> None:
        self._fail("open")
        self.is_open = True

    def close(self) -> None:
        self._fail("close")
        self.is_open = False

    def allocate(self, size: int) -> int:
        self._fail("allocate")
        address = next(self._next)
        self.memory[address] = bytearray(size)
        return address

    def free(self, address: int) -> None:
        self._fail("free")
        del self.memory[address]

    def fill(self, address: int, word: int, size: int) -> None:
        self._fail("fill")
        self.memory[address][:size] = word.to_bytes(WORD, "little") * (size // WORD)

    def copy(self, to: int, source: int, size: int) -> None:
        self._fail("copy")
        self.memory[to][:size] = self.memory[source][:size]

    def read(self, address: int, size: int) -> bytes:
        self._fail("read")
        data = bytearray(self.memory[address][:size])
        if self.stuck is not None:
            offset, value = self.stuck
            data[offset] = value
        return bytes(data)

    def _fail(self, method: str) -> None:
        if code := self.errors.get(method):
            raise CudaError(method, code)
