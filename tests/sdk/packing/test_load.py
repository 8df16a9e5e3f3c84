"""Importing what is deployed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pilotlight.definitions.errors import BadInput, Misuse, OptionError
from pilotlight.packing import find_target, load_apps
from pilotlight.packing.load import LoadedApps
from pilotlight_core.model.spec import FunctionSpec


def load(folder: Path, text: str = "app.py", inside: str = ".", **files: str) -> dict[str, dict[str, FunctionSpec]]:
    """The functions of each app of `text` in a folder with these modules."""
    return {name: one.specs for name, one in loaded(folder, text, inside, **files).items()}


def loaded(folder: Path, text: str = "app.py", inside: str = ".", **files: str) -> LoadedApps:
    """The apps of `text` in a folder with these modules."""
    for name, content in files.items():
        path = folder / inside / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return load_apps(find_target(text, within=folder))


APP = "from pilotlight import App, gpu_function\napp = App('hello')\n"
GREET = "@app.gpu_function\ndef greet(name: str) -> str: return name\n"


def test_apps_are_found_with_their_functions(tmp_path: Path) -> None:
    """They are explicit, by name, or the module's own."""
    code = f"{APP}{GREET}@gpu_function(app='other')\ndef b(): ...\n@gpu_function\ndef c(): ...\n"
    apps = load(tmp_path, app=code)
    assert {name: list(functions) for name, functions in apps.items()} == {
        "hello": ["greet"], "other": ["b"], "app": ["c"],
    }  # fmt: skip
    assert (apps["hello"]["greet"].module, apps["hello"]["greet"].qualname) == ("app", "greet")


def test_an_app_says_its_base_environment(tmp_path: Path) -> None:
    """One for all its functions: where two of its modules say two, it is refused."""
    apps = loaded(tmp_path, app=APP.replace("'hello'", "'hello', base='torch'") + GREET)
    assert {name: one.base for name, one in apps.items()} == {"hello": "torch"}
    helper = "from pilotlight import App\napp = App('hello', base='torch')\n@app.gpu_function\ndef helped(): ...\n"
    with pytest.raises(Misuse, match="'hello' has two base environments, 'torch' and 'default'") as caught:
        loaded(tmp_path, app=f"import helper\n{APP}{GREET}", helper=helper)
    assert caught.value.more["field"] == "base"


def test_an_app_says_what_it_requires(tmp_path: Path) -> None:
    """In a list, or in a file of the folder that is deployed; its modules agree."""
    apps = loaded(tmp_path, app=APP.replace("'hello'", "'hello', requirements=['polars']") + GREET)
    assert {name: one.requirements for name, one in apps.items()} == {"hello": ("polars",)}
    (tmp_path / "requirements.txt").write_text("duckdb==1.3.0\n")
    code = APP.replace("'hello'", "'hello', requirements='requirements.txt'") + GREET
    assert loaded(tmp_path, app=code)["hello"].requirements == ("duckdb==1.3.0",)
    made = "app = App('hello', requirements=['polars'])"
    helper = f"from pilotlight import App\n{made}\n@app.gpu_function\ndef helped(): ...\n"
    with pytest.raises(Misuse, match="'hello' is made twice, with other requirements=") as caught:
        loaded(tmp_path, app=f"import helper\n{APP}{GREET}", helper=helper)
    assert caught.value.more["field"] == "requirements"


def test_modules_beside_the_target_belong_to_it(tmp_path: Path) -> None:
    """An app may be spread over several modules."""
    helper = "from pilotlight import gpu_function\n@gpu_function(app='hello')\ndef helped(): ...\n"
    apps = load(tmp_path, app=f"import helper\n{APP}{GREET}", helper=helper)
    assert {name: spec.module for name, spec in apps["hello"].items()} == {"helped": "helper", "greet": "app"}


def test_a_package_is_imported_as_a_package(tmp_path: Path) -> None:
    """Relative imports work."""
    code = f"from .data import X\n{APP}{GREET}"
    apps = load(tmp_path, "pkg/app.py", "pkg", __init__="", data="X = 1", app=code)
    assert apps["hello"]["greet"].module == "pkg.app"


def test_importing_leaves_no_trace(tmp_path: Path) -> None:
    """Two apps of one module name can be loaded in turn, and no byte code is written."""
    path = list(sys.path)
    first, second = tmp_path / "a", tmp_path / "b"
    assert list(load(first, app=f"import helper\n{APP}{GREET}", helper="X = 1")) == ["hello"]
    assert list(load(second, app=f"import helper\n{APP}{GREET}{'app2 = App(helper.X)'}", helper="X = 'y'")) == ["hello"]
    assert sys.path == path
    assert "app" not in sys.modules
    assert "helper" not in sys.modules
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_broken_module_is_an_error_with_its_line(tmp_path: Path) -> None:
    """The line is the last one of the tenant's code."""
    with pytest.raises(BadInput, match=r"ZeroDivisionError: division by zero \(helper\.py:2\)"):
        load(tmp_path, app="import helper", helper="\n1/0")
    with pytest.raises(BadInput, match="SyntaxError"):
        load(tmp_path / "s", app="def")
    with pytest.raises(OptionError, match=r"greet \(app\.py:3\): keep_warm="):
        load(tmp_path / "o", app=f"{APP}@app.gpu_function(keep_warm=1)\ndef greet(): ...")


def test_a_target_that_cannot_be_deployed_is_refused(tmp_path: Path) -> None:
    """It lacks functions, or has one that is unknown, local, or named twice."""
    with pytest.raises(BadInput, match="nothing to deploy"):
        load(tmp_path / "a", app=APP)
    with pytest.raises(BadInput, match="no function 'other'; it has greet"):
        load(tmp_path / "b", "app.py::other", app=f"{APP}{GREET}")
    with pytest.raises(BadInput, match="defined inside a function"):
        load(tmp_path / "c", app=f"{APP}def f():\n  @app.gpu_function\n  def g(): ...\nf()")
    with pytest.raises(BadInput, match="two functions called 'greet'"):
        load(tmp_path / "d", app=f"import helper\n{APP}{GREET}", helper=f"{APP}{GREET}")
    with pytest.raises(BadInput, match="two functions called 'greet', both in app: give one of them name="):
        load(tmp_path / "e", app=f"{APP}{GREET}{GREET}")


def test_functions_of_installed_libraries_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their code is not packed."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "lib_with_app.py").write_text(
        "from pilotlight import App\nx = App('lib')\n@x.gpu_function\ndef f(): ...\n"
    )
    monkeypatch.syspath_prepend(str(library))
    assert list(load(tmp_path / "own", app=f"import lib_with_app\n{APP}{GREET}")) == ["hello"]
    del sys.modules["lib_with_app"]
