"""Which modules a wheel carries compiled, and when it is built of plain Python instead."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.compiled_modules import CompiledModules, check, obstacles, read_list, why_pure

ROOT = Path(__file__).resolve().parents[2]
IMPORT_ALL = """
import importlib, json, pkgutil, sys
for name in ("pilotlight_runtime.guest", "pilotlight"):
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""


def tree(root: Path, *files: str) -> Path:
    """A tree of empty modules."""
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("")
    return root


def test_nothing_stands_against_compiling_the_list() -> None:
    """What this says is what a build would end with, minutes later."""
    assert check(ROOT) == []


def test_guests_import_no_module_of_the_list() -> None:
    """A sandbox sees plain files: all that the guest and the SDK import is in no compiled room."""
    said = subprocess.run([sys.executable, "-I", "-c", IMPORT_ALL], capture_output=True, text=True, check=True).stdout
    compiled = {".".join(Path(file).with_suffix("").parts[1:]) for file in read_list(ROOT).files(ROOT)}

    imported = set(json.loads(said))

    assert "pilotlight_runtime.guest.work_runner" in imported
    assert not imported & compiled


def test_a_new_module_of_a_room_is_compiled(tmp_path: Path) -> None:
    """But for packages and programs themselves, and what is named."""
    root = tree(
        tmp_path, "core/p/bus/__init__.py", "core/p/bus/inbox.py", "core/p/bus/deep/new.py", "core/p/bus/client.py",
        "core/p/bus/old/a.py", "core/p/bus/__main__.py", "core/p/other.py", "core/p/one.py",
    )  # fmt: skip
    listed = CompiledModules(
        rooms=("core/p/bus", "core/p/one.py"), plain={"why": ["core/p/bus/client.py", "core/p/bus/old"]}
    )

    assert listed.files(root) == ["core/p/bus/deep/new.py", "core/p/bus/inbox.py", "core/p/one.py"]
    assert listed.stale(root) == []


def test_a_list_that_names_too_much_is_refused(tmp_path: Path) -> None:
    """A file that was moved would else be compiled unnoticed, or never again."""
    root = tree(tmp_path, "core/p/bus/inbox.py", "core/p/other.py")
    listed = CompiledModules(rooms=("core/p/bus", "core/p/gone"), plain={"why": ["core/p/bus/x.py", "core/p/other.py"]})

    assert listed.stale(root) == [
        "core/p/gone: does not exist",
        "core/p/bus/x.py: does not exist",
        "core/p/other.py: is plain, but in no compiled room",
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("async def f():\n    yield 1", "x.py:1: mypyc has no async generators: f; move it to"),
        ("class A:\n    async def f(self):\n        if 1:\n            yield", "x.py:2: mypyc has no async generators"),
        ("class A(msgspec.Struct, frozen=True): ...", "x.py:1: msgspec reads the annotations of A"),
        ("class A(Message): ...", "x.py:1: msgspec reads the annotations of A"),
        ("def f(*, a=1, b): ...", "x.py:1: mypyc crashes at f: b has no default; put it before"),
        ("async def f():\n try:\n  ...\n except E:\n  await g()", "x.py:5: compiled, an await while"),
        ("async def f():\n try:\n  ...\n finally:\n  await g()", "x.py:5: compiled, an await while"),
        ("async def f():\n async with g():\n  await h()", "x.py:2: compiled, an await while"),
        ("class A:\n @cached_property\n def f(self): ...", "x.py:3: compiled, f is worked out at each look; keep it"),
        ("def f(a, /, **b): ...", "x.py:1: mypyc knows no `/`: ** of f may name what stands before; hand in"),
    ],
)  # fmt: skip
def test_what_mypyc_cannot_compile_is_named_by_its_line_and_what_to_do(source: str, said: str) -> None:
    """Each of these fails late in a build, or crashes the compiler, or breaks at run time."""
    (found,) = obstacles("x.py", source)

    assert found.startswith(said)


@pytest.mark.parametrize(
    "source",
    [
        "async def f():\n    def g():\n        yield 1\n    return g",
        "def f():\n    yield 1",
        "class A(Base): ...",
        "def f(a=1, *, b, c=2): ...",
        "async def f(self):\n async with timeout(1), self.lock:\n  await g()",
        "async def f():\n async with TaskGroup() as g:\n  g.create_task(h())",
        "async def f():\n try:\n  await g()\n except E:\n  ...\n await h()",
    ],
)
def test_what_mypyc_compiles_is_not_refused(source: str) -> None:
    """A generator within a coroutine is one of its own."""
    assert obstacles("x.py", source) == []


def test_a_wheel_is_plain_where_it_cannot_be_compiled_or_need_not_be(tmp_path: Path) -> None:
    """Each time with the reason."""
    compiler = tree(tmp_path, "cc") / "cc"
    compiler.chmod(0o755)
    environment = {"CC": "cc -pthread", "PATH": str(tmp_path)}

    assert why_pure(environment, "standard") == ""
    assert why_pure(environment | {"PILOTLIGHT_PURE": "0"}, "standard") == ""
    assert why_pure(environment | {"PILOTLIGHT_PURE": "1"}, "standard") == "PILOTLIGHT_PURE is set"
    assert why_pure(environment | {"CC": "icc"}, "standard") == "there is no C compiler (icc)"
    assert why_pure(environment, "editable") == "an editable install"
