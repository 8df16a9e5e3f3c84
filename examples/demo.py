"""`make demo`: the whole story on this machine, with the real parts, in about a minute.

It starts the platform in a folder of its own, deploys the examples, makes cold, warm, streaming, batched and cancelled
calls, watches it go back to zero, prints the bill, has a worse version go back by itself, takes a machine away under a
stream, and leaves nothing running.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
START_S = 60.0
STOP_S = 30.0
IDLE_S = 60.0
NOTICE_S = 20.0
SENTENCES = [
    "the burner lights at once", "nothing runs while nobody calls", "a queue is fair to everybody",
    "the bill adds up to the last nanosecond", "a sandbox keeps strangers apart", "weights wait in host memory",
    "one bad item never fails its neighbours", "the first call does not wait",
]  # fmt: skip

PRICES = """
from pilotlight import App

app = App("prices")


@app.gpu_function(min_containers=1, idempotent=True, retries=0)
def quote(item: str) -> int:
    return {body}
"""
SOUND, BROKEN = "len(item)", "len(item) // 0"
BACK_S = 60.0

RECEIPTS: dict[str, int] = {}
"""function -> nanoseconds of the receipts that this demo got, to hold against the bill."""

console = Console(highlight=False, record="--svg" in sys.argv)
passing = Console(highlight=False)
"""For what is shown only while it lasts, and stays out of the picture."""


def main() -> int:
    """Tell the story; 0 if every chapter went as it should."""
    began = time.monotonic()
    console.print("\n[bold]Pilotlight[/bold]: GPU functions that cost nothing while nobody calls\n")
    title("Start: nats-server, gateway, controller and a node agent, on this machine")
    with tempfile.TemporaryDirectory(prefix="pilotlight-demo-") as folder, started(Path(folder)) as http:
        title("Deploy: each app is packed, checked, signed, and live at once")
        deploy("hello", "stream", "embeddings")
        cold(http)
        warm(http)
        search(http)
        stream()
        batch(http)
        cancel(http)
        to_zero(http)
        bill(http)
    two_nodes()
    console.print(f"\n[green]Done[/green] in {time.monotonic() - began:.0f} s; nothing is left running.\n")
    next_commands()
    if "--svg" in sys.argv:  # how the picture in the README is made
        console.save_svg(sys.argv[sys.argv.index("--svg") + 1], title="make demo")
    return 0


def title(text: str) -> None:
    console.print(f"\n[bold cyan]▍{text}[/bold cyan]")


@contextmanager
def started(folder: Path, *flags: str) -> Iterator[httpx.Client]:
    """A platform, from `pilotlight up` to Ctrl-C."""
    ready, client, log = folder / "ready.json", folder / "client.json", folder / "up.log"
    command = [sys.executable, "-m", "pilotlight_supervisor.up", "--state-dir", str(folder / "state"), "--port", "0"]
    command += ["--json-ready", str(ready), "--client-file", str(client), "--cpu-slots", "4", "--no-dashboard"]
    command += flags
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT)
    try:
        with passing.status("starting …"):
            while not (ready.exists() and client.exists()):
                if process.poll() is not None:
                    sys.exit(f"the platform did not start:\n{log.read_text()[-4000:]}")
                time.sleep(0.05)
        found = json.loads(client.read_text())
        os.environ["PILOTLIGHT_URL"], os.environ["PILOTLIGHT_API_KEY"] = found["url"], found["api_key"]
        parts = ", ".join(json.loads(ready.read_text())["pids"])
        console.print(f"  up at {found['url']}: {parts}")
        headers = {"Authorization": f"Bearer {found['api_key']}"}
        with httpx.Client(base_url=found["url"], headers=headers, timeout=60.0) as http:
            yield http
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def deploy(*apps: str) -> None:
    """Apps, as a person would deploy them."""
    for name in apps:
        began = time.monotonic()
        command = [sys.executable, "-m", "pilotlight.cli.main", "deploy", f"examples/{name}/app.py", "--json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"deploy of {name} failed:\n{done.stdout}{done.stderr}")
        functions = ", ".join(f["version"] for app in json.loads(done.stdout) for f in app["functions"])
        console.print(f"  [green]✓[/green] examples/{name}/app.py → {functions}  [dim]{_ms(began):.0f} ms[/dim]")


def cold(http: httpx.Client) -> None:
    """The first call of a function of which nothing runs."""
    title("A cold call: nothing of hello.greet is running")
    answer = call(http, "hello.greet", name="Ada")
    console.print(f"  hello.greet(name='Ada') → [bold]{answer['output']!r}[/bold]")
    cold_start = answer["cold_start"] or {}
    steps = ", ".join(f"{name} {ms:.0f}" for name, ms in cold_start.items())
    rest = answer["latency"]["stages"]["start"] - sum(cold_start.values())
    console.print(f"  start, in ms: {steps}; placing {max(0.0, rest):.0f}")
    console.print(bar(answer["latency"]))


def warm(http: httpx.Client) -> None:
    """The same call again, and again."""
    title("Warm calls: the container is there")
    took, answer = [], {}
    for number in range(50):
        began = time.monotonic()
        answer = call(http, "hello.greet", name=f"caller {number}")
        took.append(_ms(began))
    took.sort()
    console.print(f"  50 calls, one after the other: p50 {took[25]:.1f} ms, p95 {took[47]:.1f} ms")
    console.print(bar(answer["latency"]))
    usage = answer["usage"]
    console.print(
        f"  receipt: {usage['ns']:,} ns of {usage['ppm'] / 1e4:.0f} % of a {usage['price']} device, ${usage['cost']}"
    )
    console.print("  [dim]with what it was promised of the host's cores and memory[/dim]")


def search(http: httpx.Client) -> None:
    """A real model, from zero."""
    title("A real model from zero: MiniLM, 22 million weights, semantic search")
    query = "how much does it cost when idle?"
    answer = call(http, "embeddings.MiniLM", method="search", query=query, documents=SENTENCES)
    console.print(f"  {query}")
    for match in answer["output"]:
        console.print(f"    [green]{match['score']:.2f}[/green]  {match['text']}")
    steps = ", ".join(f"{name} {ms:.0f}" for name, ms in (answer["cold_start"] or {}).items())
    console.print(f'  start, in ms: {steps}; [dim]"blank" is a sandbox that had imported torch before[/dim]')
    console.print(bar(answer["latency"]))


def stream() -> None:
    """Chunks reach the caller as they are produced."""
    from pilotlight import Function

    title("A stream: each word as it is yielded")
    words = Function.from_name("stream", "words")
    began = time.monotonic()
    line = Text("  ")
    with Live(line, console=passing, refresh_per_second=30, transient=True):
        for chunk in words.remote_gen(text="nothing burns while nobody calls and the first call does not wait"):
            line.append(chunk["word"] + " ", style="bold")
    console.print(line)
    console.print(f"  [dim]12 words in {_ms(began):.0f} ms, cold start included[/dim]")


def batch(http: httpx.Client) -> None:
    """64 callers at once, computed together."""
    title("A batch of 64: separate callers, computed together")
    texts = [f"{sentence}, number {number}" for number in range(8) for sentence in SENTENCES]
    began = time.monotonic()
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda text: call(http, "embeddings.MiniLM", method="embed", text=text), texts))
    took = _ms(began)
    sizes = sorted({answer["usage"]["batch_size"] for answer in answers}, reverse=True)
    console.print(f"  64 vectors of {len(answers[0]['output'])} numbers in {took:.0f} ms, in batches of {sizes}")
    total = sum(answer["usage"]["ns"] for answer in answers) / 1e6
    console.print(f"  [dim]each receipt is an exact share of its batch; together {total:.1f} ms[/dim]")


def cancel(http: httpx.Client) -> None:
    """Whoever hangs up stops the work."""
    from pilotlight import Function

    title("A cancelled call: the caller leaves, the work stops")
    words = Function.from_name("stream", "words")
    chunks = iter(words.remote_gen(text="one two three", repeat=1000, pause_ms=20))
    for _ in range(3):
        next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    began = time.monotonic()
    while any(c["running"] for c in http.get("/v1/containers").json()["containers"] if c["function"] == "words"):
        time.sleep(0.02)
    console.print(f"  3 of 3000 words read, then gone; the container was free again after {_ms(began):.0f} ms")


def to_zero(http: httpx.Client) -> None:
    """Nothing runs while nobody calls."""
    title("Back to zero: nobody calls, and each function's window of 10 s passes")
    began = time.monotonic()
    with Live(console=passing, refresh_per_second=10, transient=True) as live:
        while containers := [each for each in _containers(http) if each["state"] != "parked"]:
            if time.monotonic() - began > IDLE_S:
                sys.exit("containers are left over")
            idle = (f"{c['app']}.{c['function']} {c['state']}, idle for {c['idle_s']:.0f} s" for c in containers)
            live.update(Text("  " + "; ".join(idle)))
            time.sleep(0.1)
    console.print(f"  no container has a slot after {time.monotonic() - began:.1f} s")
    for each in _containers(http):
        mib = each["memory_bytes"] / 2**20
        console.print(
            f"  {each['app']}.{each['function']} is parked: it takes long to start, and {mib:.0f} MiB of memory"
        )
    began = time.monotonic()
    call(http, "embeddings.MiniLM", method="embed", text="again")
    console.print(f"  the next call of embeddings.MiniLM took {_ms(began):.0f} ms")


def two_nodes() -> None:
    """Another platform, without what the first one had imported."""
    title("A platform of two nodes")
    with tempfile.TemporaryDirectory(prefix="pilotlight-demo-") as home:
        (notices := Path(home) / "notices").mkdir()
        os.environ["PILOTLIGHT_PREIMPORT"] = "none"  # nothing here needs torch
        with started(Path(home), "--extra-agents", "1", "--notice-dir", str(notices)) as http:
            deploy("stream")
            gone_back(http, Path(home))
            taken_away(http, notices)


def gone_back(http: httpx.Client, home: Path) -> None:
    """A new version that fails has half of the calls, and goes back by itself; its callers do not notice."""
    title("A rollout: the new version fails, and goes back by itself")
    file, answers = home / "prices.py", list[int]()
    _deploy_prices(file, SOUND)
    seen = ""
    call(http, "prices.quote", item="a lamp")
    began = _deploy_prices(file, BROKEN, "--rollout", "--steps", "50,100", "--pairs", "0")
    with passing.status("calling …"):
        while (rollout := http.get("/v1/apps/prices/rollout").json())["state"] not in ("rolling_back", "rolled_back"):
            if rollout["state"] != seen:
                seen = rollout["state"]
                console.print(f"  {_ms(began) / 1000:4.1f} s  {seen}: {rollout['share']:.0f} % of the calls")
            if _ms(began) > BACK_S * 1000:
                sys.exit(f"the rollout does not go back: {rollout}")
            answers.append(call(http, "prices.quote", item="a lamp")["output"])
    console.print(
        f"  {_ms(began) / 1000:4.1f} s  [bold]{rollout['state'].replace('_', ' ')}[/bold]: {rollout['reason']}"
    )
    if set(answers) != {6}:
        sys.exit(f"callers were answered {set(answers)}")
    console.print(
        f"  {len(answers)} calls meanwhile, of which none failed: the old version ran what the new one could not"
    )


def _deploy_prices(file: Path, body: str, *words: str) -> float:
    """A version of the app; when it was begun."""
    file.write_text(PRICES.format(body=body))
    began = time.monotonic()
    command = [sys.executable, "-m", "pilotlight.cli.main", "deploy", str(file), "--json", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"deploy of prices failed:\n{done.stdout}{done.stderr}")
    console.print(f"  [green]✓[/green] {' '.join(('pilotlight deploy prices.py', *words))}")
    return began


def taken_away(http: httpx.Client, notices: Path) -> None:
    """A provider takes a machine back in the middle of a stream; its caller does not notice."""
    from pilotlight import Client, Function

    title("A machine is taken away in the middle of a stream")
    client = Client(url=os.environ["PILOTLIGHT_URL"], api_key=os.environ["PILOTLIGHT_API_KEY"])
    recital = Function.from_name("stream", "recital").options(client=client)
    _listen(http, recital, notices)


def _listen(http: httpx.Client, recital: Any, notices: Path) -> None:
    text = "who listens hears every word once wherever it is spoken and pays for it once"
    line, places = Text("  "), list[str]()
    with Live(line, console=passing, refresh_per_second=30, transient=True):
        for chunk in recital.remote_gen(text=text, pause_ms=250):
            places += [node for node in _nodes_of(http, "recital") if node not in places]
            line.append(chunk["word"] + " ", style="bold" if len(places) < 2 else "bold green")
            if chunk["number"] == 4:
                notice = {"deadline": time.time() + NOTICE_S, "reason": "the provider needs it"}
                (notices / f"{places[0]}.json").write_text(json.dumps(notice))
    console.print(line)
    if (heard := line.plain.split()) != text.split() or len(places) < 2:
        sys.exit(f"the caller heard {heard}, from {places}")
    console.print(f"  {places[0]} was told after the fourth word that it has {NOTICE_S:.0f} s; {places[1]} went on")


def _nodes_of(http: httpx.Client, function: str) -> list[str]:
    return [each["node"] for each in _containers(http) if each["function"] == function and each["state"] == "ready"]


def _containers(http: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = http.get("/v1/containers").json()["containers"]
    return found


def bill(http: httpx.Client) -> None:
    """What it cost, by function and by what the device was doing."""
    title("The bill")
    time.sleep(2.0)  # the ledger folds once a second
    report = http.get("/v1/usage", params={"group": "app,function,state"}).json()
    shown = Table("function", "was", "calls", "device-seconds", "USD", box=None, pad_edge=True)
    for column in shown.columns[2:]:
        column.justify, column.no_wrap = "right", True
    for line in report["lines"]:
        name, calls = f"{line['app']}.{line['function']}", str(line["calls"] or "")
        shown.add_row(name, line["state"], calls, f"{line['gpu_seconds']:.3f}", line["cost"])
    console.print(shown)
    console.print(f"  total: [bold]${report['total']['cost']}[/bold]")
    console.print("  receipts against the bill, in ns on one of the four slots of the device:")
    for name, receipts in RECEIPTS.items():
        billed = sum(n["ns"] for n in report["lines"] if n["state"] == "busy" and name == f"{n['app']}.{n['function']}")
        agree = "[green]=[/green]" if billed == receipts else "[red]≠[/red]"
        console.print(f"  {name}: receipts {receipts:,} ns {agree} bill {billed:,} ns")


def next_commands() -> None:
    """What a person would type next."""
    console.print("[bold]Next[/bold]")
    for command, meaning in (
        ("make up", "keep it running; then, elsewhere:"),
        (". .venv/bin/activate", ""),
        ("pilotlight deploy examples/hello/app.py", "prints a curl line that works"),
        ("pilotlight call hello.greet name=Ada", "shows the start as it happens"),
        ("pilotlight logs -f hello", "what the function prints"),
        ("pilotlight usage", "what it costs"),
    ):
        console.print(f"  {command:<41} [dim]{meaning}[/dim]")


def call(http: httpx.Client, ref: str, *, method: str | None = None, **arguments: Any) -> dict[str, Any]:
    """One unary call; the whole answer."""
    answer = http.post(f"/v1/functions/{ref}/calls", json={"input": arguments, "method": method})
    if answer.status_code != 200:
        sys.exit(f"{ref}: {answer.status_code} {answer.text}")
    found = dict(answer.json())
    RECEIPTS[ref] = RECEIPTS.get(ref, 0) + found["usage"]["ns"]
    return found


def bar(latency: dict[str, Any]) -> Text:
    """Where the time went, as one line of blocks."""
    colours = {"start": "red", "queue": "yellow", "execute": "green", "batch_wait": "magenta", "transport": "blue"}
    line = Text("  ")
    for name, ms in latency["stages"].items():
        line.append("█" * round(14 * ms / latency["total_ms"]), style=colours.get(name, "white"))
    line.append(f"  {latency['total_ms']:.1f} ms: ")
    parts = [f"{name} {ms:.1f}" for name, ms in latency["stages"].items() if ms >= latency["total_ms"] / 20]
    line.append(", ".join(parts), style="dim")
    return line


def _ms(began: float) -> float:
    return (time.monotonic() - began) * 1000.0


if __name__ == "__main__":
    sys.exit(main())
