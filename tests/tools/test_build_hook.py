"""What hatchling packs: compiled modules beside their sources, or plain Python alone."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilder

from tools import compiled_modules

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path, version: str = "standard") -> Path:
    """Build the wheel of this tree."""
    return Path(next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=[version])))


def hook_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> BuildHookInterface[Any]:
    """The hook, on a machine that seems to have a compiler."""
    monkeypatch.delenv("PILOTLIGHT_PURE", raising=False)
    monkeypatch.setenv("CC", "sh")
    (hook,) = WheelBuilder(str(ROOT)).get_build_hooks(str(folder)).values()
    return hook


def libraries(wheel: Path) -> list[str]:
    """The compiled modules in it."""
    with zipfile.ZipFile(wheel) as packed:
        return [name for name in packed.namelist() if name.endswith(".so")]


def test_the_pure_wheel_runs_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It says why it is pure, and needs nothing to be built."""
    monkeypatch.setenv("PILOTLIGHT_PURE", "1")

    wheel = build(tmp_path)

    assert wheel.name.endswith("-py3-none-any.whl")
    assert libraries(wheel) == []
    assert "building plain Python: PILOTLIGHT_PURE is set" in capfd.readouterr().err
    assert WheelBuilder(str(ROOT)).config.dependencies == []


def test_without_a_compiler_the_wheel_is_pure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A build never fails for want of a compiler."""
    monkeypatch.delenv("PILOTLIGHT_PURE", raising=False)
    monkeypatch.setenv("CC", "no-such-compiler")

    assert build(tmp_path).name.endswith("-py3-none-any.whl")
    assert "building plain Python: there is no C compiler (no-such-compiler)" in capfd.readouterr().err


def test_an_editable_install_has_no_compiled_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hide every later edit of its source."""
    hook, data = hook_of(tmp_path, monkeypatch), {"pure_python": True}

    hook.initialize("editable", data)

    assert data == {"pure_python": True}


def test_a_compiled_module_lies_beside_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the wheel is for this Python and this platform alone; its build needs the pinned mypy."""
    library = tmp_path / "inbox.so"
    library.write_bytes(b"")

    def compiled(_root: Path, _folder: Path) -> Iterator[tuple[Path, str]]:
        yield library, "pilotlight_core/bus/inbox.so"

    hook = hook_of(tmp_path, monkeypatch)
    monkeypatch.setitem(type(hook).initialize.__globals__, "compiled", compiled)
    data: dict[str, Any] = {"force_include": {}}

    hook.initialize("standard", data)

    assert data == {
        "pure_python": False, "infer_tag": True, "force_include": {str(library): "pilotlight_core/bus/inbox.so"}
    }  # fmt: skip
    assert {"mypy==2.4.1", "msgspec>=0.20,<1"} <= {
        str(one).replace("<1,>=0.20", ">=0.20,<1") for one in hook.dependencies()
    }


def test_a_module_that_cannot_be_compiled_ends_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Naming it, before minutes have gone by."""
    hook = hook_of(tmp_path, monkeypatch)
    monkeypatch.setitem(type(hook).initialize.__globals__, "check", lambda _root: ["a.py:1: no"])

    with pytest.raises(SystemExit, match=r"these modules cannot be compiled:\na.py:1: no"):
        hook.initialize("standard", {})


def test_the_pinned_compiler_is_the_one_that_checks_the_types() -> None:
    """Else a tree that passes its checks could not be compiled."""
    pinned = (ROOT / "tools" / "build_hook.py").read_text().split('"mypy==', 1)[1].split('"')[0]

    assert f"mypy=={pinned}\n" in (ROOT / "constraints.txt").read_text()
    assert compiled_modules.PURE == "PILOTLIGHT_PURE"
