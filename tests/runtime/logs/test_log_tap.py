"""The pipes of a sandbox, read as they fill."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.logs import LogLine
from pilotlight_core.model.secrets.secret_masks import SecretMask
from pilotlight_runtime.logs.log_lines import LogRateLimit
from pilotlight_runtime.logs.log_tap import LogTap


class Pipes:
    """Both pipes of a sandbox, and the lines that came out."""

    def __init__(self) -> None:
        self.stdout, self.stdout_writer = os.pipe()
        self.stderr, self.stderr_writer = os.pipe()
        os.set_blocking(self.stdout, False)
        os.set_blocking(self.stderr, False)
        self.lines: list[LogLine] = []
        self.came = asyncio.Event()

    def sink(self, line: LogLine) -> None:
        self.lines.append(line)
        self.came.set()

    def tap(self, cap: LogRateLimit | None = None) -> LogTap:
        return LogTap(
            stdout_fd=self.stdout, stderr_fd=self.stderr, container="c1", sink=self.sink, cap=cap or LogRateLimit()
        )


@pytest.fixture
def pipes(anyio_backend: str) -> Iterator[Pipes]:
    made = Pipes()
    yield made
    for fd in (made.stdout, made.stdout_writer, made.stderr, made.stderr_writer):
        try:
            os.close(fd)
        except OSError:
            continue


async def test_lines_name_their_stream_and_their_call(pipes: Pipes) -> None:
    """A line belongs to the one call that runs, if it is one."""
    tap = pipes.tap()
    tap.running = lambda: "call_1"
    os.write(pipes.stderr_writer, b"oops\n")
    await pipes.came.wait()
    tap.close()

    assert [(line.stream, line.text, line.container, line.call_id) for line in pipes.lines] == [
        ("stderr", "oops", "c1", "call_1")
    ]


async def test_closing_reads_what_is_left(pipes: Pipes) -> None:
    """The last words of a container are not lost, even without an end of line."""
    tap = pipes.tap()
    os.write(pipes.stdout_writer, b"last words")
    tap.close()
    tap.close()

    assert [line.text for line in pipes.lines] == ["last words"]


async def test_why_a_call_failed_is_told_line_by_line_within_the_cap(pipes: Pipes) -> None:
    """Its traceback, or what it raised where there is none, under the call's id."""
    tap = pipes.tap(LogRateLimit(lines=3))
    tap.log_failure("call_1", RemoteError("ValueError", "no", "Traceback:\n  File x\n"))
    tap.log_failure("call_2", RemoteError("ValueError", "no"))
    tap.log_failure("call_3", RemoteError("ValueError", "too much"))
    tap.close()

    assert [(line.stream, line.text, line.call_id) for line in pipes.lines[:3]] == [
        ("platform", "Traceback:", "call_1"), ("platform", "  File x", "call_1"),
        ("platform", "ValueError: no", "call_2"),
    ]  # fmt: skip
    assert len(pipes.lines) == 4
    assert "1 line" in pipes.lines[3].text


async def test_an_end_of_file_is_no_busy_loop(pipes: Pipes) -> None:
    """A guest that closes its output is not asked again."""
    tap = pipes.tap()
    os.write(pipes.stdout_writer, b"half")
    os.close(pipes.stdout_writer)
    await pipes.came.wait()
    tap.close()

    assert [line.text for line in pipes.lines] == ["half"]


async def test_the_cap_counts_bytes_whatever_was_written(pipes: Pipes) -> None:
    """What is no UTF-8 becomes characters of three bytes each."""
    tap = pipes.tap(LogRateLimit(lines=1_000, bytes=1_000))
    os.write(pipes.stdout_writer, (b"\xff" * 99 + b"\n") * 10)
    tap.close()

    assert sum(line.text == "\ufffd" * 99 for line in pipes.lines) == 4


async def test_what_is_dropped_is_told_once_a_second(pipes: Pipes) -> None:
    """The container's log says itself that it is not complete."""
    tap = pipes.tap(LogRateLimit(lines=1, bytes=10_000))
    os.write(pipes.stdout_writer, b"one\ntwo\nthree\n")
    await pipes.came.wait()
    tap.close()

    assert pipes.lines[0].text == "one"
    assert pipes.lines[-1].stream == "platform"
    assert pipes.lines[-1].text.startswith("2 lines")


async def test_values_are_hidden_in_all_that_it_passes_on(pipes: Pipes) -> None:
    """What was printed, what the platform says of the container, and errors."""
    tap = pipes.tap()
    os.write(pipes.stdout_writer, b"before: a value of mine\n")
    await pipes.came.wait()
    tap.hide(SecretMask(["a value of mine"]))
    os.write(pipes.stdout_writer, b"out: a value of mine\n")
    os.write(pipes.stderr_writer, b"err: a value of mine\n")
    tap.log("import failed: a value of mine")
    tap.log_failure("call_1", RemoteError("ValueError", "a value of mine"))
    tap.close()

    assert sorted(line.text for line in pipes.lines) == [
        "ValueError: ***", "before: a value of mine", "err: ***", "import failed: ***", "out: ***",
    ]  # fmt: skip
