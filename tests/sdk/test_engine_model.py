"""Engine functions as their app has them."""

from __future__ import annotations

import pytest

from pilotlight import App, EngineModel, Misuse, OptionError, Sim, Torch
from pilotlight.app import collecting


def test_an_app_has_a_model_without_code() -> None:
    app = App("shop", tags={"team": "search"})
    chat = app.engine("chat", Torch("tiny@0123456789"), adapters=["legal"], memory="4GiB")

    assert isinstance(chat, EngineModel)
    assert app.functions == {"chat": chat}
    assert chat.weights == ("tiny@0123456789", "legal")
    assert chat.source_module == __name__
    assert chat.spec.tags == {"team": "search"}
    assert chat.generate.target.label == "shop.chat.generate"
    assert chat.embed.target.method == "embed"
    assert repr(chat) == "EngineModel('shop.chat')"


def test_an_empty_function_gives_it_its_name() -> None:
    app = App("shop")

    @app.gpu_function(engine=Sim())
    def chat() -> None:
        """Talks."""

    made = app.functions["chat"]
    assert [type(one) for one in (made, chat)] == [EngineModel, EngineModel]
    assert (made.name, made.__doc__) == ("chat", "Talks.")


async def test_it_runs_on_the_platform_only() -> None:
    chat = App("shop").engine("chat", Sim())

    with pytest.raises(Misuse, match="runs in containers of the platform only"):
        await chat.embed.local(input=["a"])
    with pytest.raises(Misuse, match="runs in containers of the platform only"):
        async for _ in chat.generate.local(prompt="a"):
            pass
    with pytest.raises(OptionError, match=r"is a generator: iterate over \.remote_gen"):
        chat.generate.remote(prompt="a")


def test_a_module_that_is_imported_anew_replaces_it() -> None:
    with collecting() as registered:
        App("shop").engine("chat", Sim())
        App("shop").engine("chat", Sim())

    assert [function.name for _, function in registered] == ["chat", "chat"]
