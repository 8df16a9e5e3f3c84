"""Functions of `benchmarks.weights_loading`: a model of a GiB, from the page cache of its node."""

from __future__ import annotations

import ctypes
import mmap
import time

import pilotlight

app = pilotlight.App("bench-weights")
PAGE = 4096
CHUNK = 2**20
COPIES = 5


@app.gpu_function(weights=["gib"], memory="4GiB", cpu=1.0)
class Gib:
    """A model that is mapped, as safetensors does it, and of which every page is there once it is loaded."""

    @pilotlight.enter()
    def load(self) -> None:
        with (pilotlight.weights("gib") / "model.safetensors").open("rb") as file:
            self.model = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.touched = sum(memoryview(self.model)[::PAGE].tobytes())

    @pilotlight.method()
    def first(self) -> int:
        return self.touched

    @pilotlight.method()
    def rates(self) -> dict[str, float]:
        """Bytes per second into memory that was there before: from the mapped model, its file, and other memory."""
        path, size = pilotlight.weights("gib") / "model.safetensors", len(self.model)
        target, other = mmap.mmap(-1, size), mmap.mmap(-1, size)  # both begin with a page, as the model does
        target.write(bytes(size))
        maps, reads, copies = [], [], []
        for _ in range(COPIES):
            began = time.perf_counter()
            memoryview(other)[:] = memoryview(self.model)
            maps.append(size / (time.perf_counter() - began))
            began = time.perf_counter()
            with path.open("rb", buffering=0) as file:
                view, at = memoryview(target), 0
                while count := file.readinto(view[at : at + CHUNK]):
                    at += count
            reads.append(size / (time.perf_counter() - began))
            began = time.perf_counter()
            to, whence = ((ctypes.c_char * size).from_buffer(one) for one in (other, target))
            ctypes.memmove(to, whence, size)
            copies.append(size / (time.perf_counter() - began))
        rates = {"map": maps, "read": reads, "copy": copies}
        return {name: sorted(found)[COPIES // 2] for name, found in rates.items()}
