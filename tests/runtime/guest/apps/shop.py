"""A tenant's class with synchronous methods."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Iterator
from typing import Any

from pilotlight import App, batched, concurrent, count_units, enter, exit, method  # noqa: A004 - the SDK's name

app = App("shop")
BULK = bytes(20 * 2**20)


@app.gpu_function
class Shop:
    """Hooks, a method, a stream and a batch."""

    events: list[str]

    @enter()
    def open(self) -> None:
        self.events = ["opened"]

    @enter()
    async def light(self) -> None:
        """A hook may be asynchronous, though nothing else is."""
        self.events.append("lit")

    def __check__(self) -> bool:
        self.events.append("checked")
        return True

    @exit()
    def fails(self) -> None:
        raise RuntimeError("the exit hook failed")

    @exit()
    async def close(self) -> None:
        print("shop closed")

    @method()
    def history(self, since: int = 0) -> list[str]:
        return self.events[since:]

    @method()
    def each(self, upto: int) -> Iterator[int]:
        yield from range(upto)

    @method()
    def weigh(self, grams: int, fails: bool = False) -> int:
        """Counted in two steps, the second in a thread of its own."""
        count_units(custom=grams)
        second = threading.Thread(
            target=contextvars.copy_context().run, args=(lambda: count_units(custom=1, images=2),)
        )
        second.start()
        second.join()
        if fails:
            raise RuntimeError("the scales broke")
        return grams

    @batched(max_batch_size=8, wait_ms=1)
    def price(self, item: list[str], count: list[int]) -> Any:
        """Prices; special items make it fail in special ways."""
        if "weighed" in item:
            count_units(custom=count)
        if "miscounted" in item:
            count_units(custom=1)
        if "fire" in item:
            raise RuntimeError("the shop burns")
        if "list" in item:
            return tuple(item)
        if "short" in item:
            return item[1:]
        if "slow" in item:
            print("pricing")
            time.sleep(0.2)
        return [self._price(*pair) for pair in zip(item, count, strict=True)]

    def _price(self, item: str, count: int) -> Any:
        special = {"broken": ValueError("it is broken"), "thing": object(), "bulk": BULK}
        return special.get(item, f"{item} x {count}")


@app.gpu_function
@concurrent(max_inputs=3)
class Crowd:
    """Synchronous methods, three at a time."""

    @method()
    def hold(self, path: str) -> str:
        print("holding", flush=True)
        with open(path) as fifo:  # noqa: PTH123 - shorter than it is wrong
            return fifo.read()

    @method()
    def each(self, upto: int) -> Iterator[int]:
        try:
            yield from range(upto)
        finally:
            print("closed")


@app.gpu_function
class Sick:
    """Comes up, and says itself that it is not fit."""

    def __check__(self) -> bool:
        return False

    @method()
    def nothing(self) -> None: ...


@app.gpu_function
class Stuck:
    """Does not come up."""

    @enter()
    def load(self) -> None:
        raise OSError("no model here")

    @method()
    def nothing(self) -> None: ...
