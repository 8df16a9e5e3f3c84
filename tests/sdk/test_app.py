"""Apps: which app a function belongs to, and what an app refuses."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from pilotlight import App, Function, OptionError, gpu_function
from pilotlight.app import app_named, collecting


def embed(text: str) -> list[float]:
    return [float(len(text))]


def test_a_function_without_an_app_is_in_that_of_its_module() -> None:
    """The app is named after the module, with dashes for dots."""
    assert gpu_function(embed).ref.app == __name__.replace(".", "-")
    named: Function[..., Any] = gpu_function(app="by-name")(embed)
    assert named.ref.app == "by-name"


def test_a_name_is_taken_once_in_an_app() -> None:
    """The same function replaces itself, and another one is refused."""
    app = App("tests")
    app.gpu_function(embed)
    app.gpu_function(embed)
    with pytest.raises(OptionError, match="two functions called 'embed'"):
        app.gpu_function(name="embed")(test_a_name_is_taken_once_in_an_app)


def test_an_app_needs_a_name() -> None:
    """The error names the option."""
    with pytest.raises(OptionError, match="is not a name") as caught:
        App("a b")
    assert caught.value.more["field"] == "app"


def test_an_app_has_a_base_environment() -> None:
    """The one that every node has, unless it says another; the error names the option."""
    assert (App("a").base, App("a", base="torch-2_9").base) == ("default", "torch-2_9")
    with pytest.raises(OptionError, match="is not a name") as caught:
        App("a", base="torch 2")
    assert caught.value.more["field"] == "base"


def test_tags_of_an_app_are_those_of_its_functions() -> None:
    """A function's own come first; without any the specification says nothing."""
    app = App("tests", tags={"team": "search", "stage": "live"})
    plain, own = app.gpu_function(name="plain")(embed), app.gpu_function(name="own", tags={"stage": "test"})(embed)
    assert plain.spec.tags == {"team": "search", "stage": "live"}
    assert own.spec.tags == {"team": "search", "stage": "test"}
    assert App("untagged").gpu_function(tags={})(embed).spec.tags is UNSET


def test_tags_that_cannot_be_are_refused() -> None:
    """Of the app, of a function, and of both together."""
    with pytest.raises(OptionError, match="team is 'a b': expected 1 to 64") as caught:
        App("a", tags={"team": "a b"})
    assert caught.value.more["field"] == "tags"
    with pytest.raises(OptionError, match=r"tags='red': expected a dict of strings"):
        gpu_function(tags="red")(embed)  # type: ignore[call-overload]
    app = App("tests", tags={f"a{n}": "x" for n in range(6)})
    with pytest.raises(OptionError, match=r"embed: tags= of it and of the app 'tests' together: 12 tags") as caught:
        app.gpu_function(tags={f"b{n}": "x" for n in range(6)})(embed)
    assert caught.value.more["field"] == "tags"


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("image", r"App\('shop'\): image= is not supported yet: functions run in a base environment"),
        ("gpu", r"gpu= is an option of a function, not of the app: @app\.gpu_function\(gpu=\)\."),
        ("colour", r"colour= is not an option of an app: those are base=, requirements= and tags=\."),
    ],
)
def test_an_option_that_an_app_lacks_is_explained(option: str, why: str) -> None:
    """`App("shop", image=...)` is how other platforms write it."""
    with pytest.raises(OptionError, match=why) as refused:
        App("shop", **{option: 1})  # type: ignore[arg-type]  # a checker refuses it too
    assert refused.value.more["field"] == option


def test_an_app_has_one_decorator() -> None:
    """The decorators of other platforms are refused with its name."""
    app = App("tests")
    for word in ("function", "cls", "server"):
        with pytest.raises(AttributeError, match=rf"no attribute '{word}': @app\.gpu_function"):
            getattr(app, word)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        app.nonsense  # noqa: B018


def test_a_decorated_function_is_not_decorated_again() -> None:
    """An app or a name in place of the function is refused, too."""
    app = App("tests")
    with pytest.raises(OptionError, match="already"):
        app.gpu_function(app.gpu_function(embed))
    for target in ("search", app):
        with pytest.raises(OptionError, match="by keyword"):
            gpu_function(target)  # type: ignore[call-overload]


def test_functions_registered_in_a_block_are_collected() -> None:
    """Named apps start empty in the block and are unchanged after it."""
    before = app_named("collected")
    with collecting() as registered:
        inside = gpu_function(app="collected")(embed)
        assert registered == [(app_named("collected"), inside)]
        assert app_named("collected") is not before
    assert app_named("collected") is before
    assert before.functions == {}
