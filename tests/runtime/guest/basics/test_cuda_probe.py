"""Whether a blank has opened CUDA, by what it holds open and by what the driver says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_runtime.guest.basics.cuda_probe import (
    NOT_INITIALIZED,
    VISIBLE,
    answers_calls,
    device_count,
    has_opened_cuda,
    open_files,
    opens_nodes,
)


def test_an_open_device_node_tells(tmp_path: Path) -> None:
    """Of any GPU, or of the driver itself; a name that only looks like one does not."""
    assert opens_nodes(["socket:[1]", "/dev/nvidiactl"])
    assert opens_nodes(["/dev/nvidia0"])
    assert not opens_nodes(["/dev/null", "/tmp/dev/nvidia0", "pipe:[2]"])

    (tmp_path / "0").symlink_to("/dev/nvidia-uvm")
    (tmp_path / "1").touch()  # what is no link any more when it is read
    assert open_files(tmp_path) == ["/dev/nvidia-uvm"]


def test_the_drivers_own_word_tells() -> None:
    """It refuses all calls until it was initialised; a driver that nobody has loaded was not."""

    def lacking() -> int:
        raise OSError("libcuda.so.1: cannot open shared object file")

    assert answers_calls(lambda: 0)
    assert not answers_calls(lambda: NOT_INITIALIZED)
    assert not answers_calls(lacking)


def test_this_process_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it may see a GPU or not: it has not even loaded the library."""
    with pytest.raises(OSError):
        device_count()
    for visible in ("", "GPU-1"):
        monkeypatch.setenv(VISIBLE, visible)
        assert not has_opened_cuda()
