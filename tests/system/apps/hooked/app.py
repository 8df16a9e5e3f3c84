"""A class whose calls run through hooks in containers of their own."""

from __future__ import annotations

import asyncio

from pilotlight import App, enter, method, postprocess, preprocess

app = App("hooked")


@app.gpu_function(scaledown_window=20.0, forecast=False)
class Words:
    """Sums numbers that one hook makes of a text, of which another one makes a text."""

    @enter(stage="preprocess")
    def open_table(self) -> None:
        """Run where texts are read alone."""
        self.table = {"one": 1, "two": 2, "three": 3}

    @enter()
    def load(self) -> None:
        """Run where numbers are summed alone."""
        assert not hasattr(self, "table")
        self.model = sum

    @preprocess(memory="256MiB", max_containers=2)
    async def read(self, text: str, pause: float = 0.0) -> dict[str, object]:
        """Make numbers of words."""
        print(f"reads {text}")
        await asyncio.sleep(pause)  # what awaits ends at once when its call is cancelled
        return {"numbers": [self.table[word] for word in text.split()], "times": 1}

    @postprocess(memory="256MiB", max_inputs=4)
    def write(self, answer: int) -> str:
        """Say it in words."""
        if answer == 6:
            raise ValueError("six is not written")
        return f"it is {answer}"

    @method()
    def add(self, numbers: list[int], times: int) -> int:
        """Sum them."""
        return self.model(numbers) * times

    def __check__(self) -> bool:
        return self.model is sum
