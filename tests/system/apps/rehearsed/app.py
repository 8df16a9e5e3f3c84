"""Functions that warm up and check themselves before calls reach them."""

from __future__ import annotations

from pilotlight import App, Example, check, enter, method

app = App("rehearsed")


@app.gpu_function(
    warmup=[Example({"text": "first"}, method="count"), Example({"text": "second"}, method="count")],
    check=Example({"text": "third"}, 3, method="count"),
    check_every=5,
    max_containers=1,
    scaledown_window=60.0,
    forecast=False,
)
class Counter:
    """Counts its calls, and is worn out after so many."""

    @enter()
    def begin(self) -> None:
        self.calls = 0
        self.worn = False

    @method()
    def count(self, text: str) -> int:
        self.calls += 1
        print("counts", text)
        return 3 if text == "third" and not self.worn else self.calls

    @method()
    def wear(self) -> None:
        self.worn = True

    @check()
    def healthy(self) -> None:
        print("checked after", self.calls)


@app.gpu_function(warmup=[{"of": 1}], max_containers=1, forecast=False)
def cold(of: int) -> float:
    """Cannot warm up."""
    return of / 0
