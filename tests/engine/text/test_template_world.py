"""Templates that would run for ever end, and all others render as before."""

from __future__ import annotations

import pytest

from pilotlight_engine.text import template_time
from pilotlight_engine.text.chat_template import ChatTemplate
from pilotlight_engine.text.template_time import TemplateRefusal

MESSAGES = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
TURNS = "{% for a in range(99999) %}"
ENDLESS = {
    "loops": f"{TURNS}{TURNS}{TURNS}{{% endfor %}}{{% endfor %}}{{% endfor %}}",
    "passed over": f"{TURNS}{TURNS}{{% for a in range(99999) if a < 0 %}}{{% endfor %}}{{% endfor %}}{{% endfor %}}",
    "a loop in itself": "{% for a in [1, 1] recursive %}{{ loop([1, 1]) if loop.depth < 60 }}{% endfor %}",
    "macros": "{% macro f(n) %}{% if n %}{% set a = f(n - 1) ~ f(n - 1) %}{% endif %}{% endmacro %}{{ f(99) }}",
    "calls of macros": "{% macro f(n) %}{{ caller() }}{% if n %}{% call f(n - 1) %}{% endcall %}"
    "{% call f(n - 1) %}{% endcall %}{% endif %}{% endmacro %}{% call f(99) %}{% endcall %}",
    "filters": "{% set all = range(99999) %}" + "{% set a = all | map('string') | list | length %}" * 2000,
    "numbers": "{% set n = namespace(a=3) %}{% for a in range(99) %}{% set n.a = n.a * n.a %}{% endfor %}",
    "lists that are sorted": "{{ (range(99999) | map('string') | list * 400) | sort | length }}",
    "lists that double": "{% set n = namespace(a=[1]) %}{% for a in range(30) %}{% set n.a = n.a + n.a %}{% endfor %}"
    "{{ n.a | sort | length }}",
    "texts": "{{ (9999999 * 'a') | replace('a', 'bb') | length }}",
    "powers": "{% set a = 7 ** 10 ** 9 %}{% set a = 7 ** 9999999999 %}",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_ended(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it repeats. Its time is short here."""
    monkeypatch.setattr(template_time, "MOST_S", 0.01)
    template = ChatTemplate(ENDLESS[name], {})
    with pytest.raises(TemplateRefusal, match=r"takes longer than|more than 4096 bits|parts"):
        template.render(MESSAGES, None)


def test_what_ends_is_as_it_was() -> None:
    """The turns that are counted are not seen: first and last ones, those passed over, those of loops in themselves."""
    for source, expected in (
        ("{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}", "1/2,2/2"),
        ("{% for m in messages if m.role == 'user' %}{{ m.content }}{{ loop.last }}{% endfor %}", "oneTrue"),
        ("{% for m in [] %}{% else %}none{% endfor %}", "none"),
        ("{% for m in [1, [2, [3]]] recursive %}{{ loop(m) if m is iterable else m }}{% endfor %}", "123"),
        ("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}{% endfor %}", "two"),
        ("{{ [1] + [2] * 2 }}{{ 'a' + 'b' }}{{ 1 + 2 }}{{ 0.5 + 1 }}", "[1, 2, 2]ab31.5"),
        ("{{ 3 * 4 }}{{ 2 ** 10 }}{{ '-' * 3 }}{{ 2 ** 0.5 > 1 }}", "121024---True"),
        ("{{ messages | map(attribute='role') | join('+') | upper }}", "USER+ASSISTANT"),
        ("{{ (messages | selectattr('role', 'equalto', 'user') | list | first).content | trim }}", "one"),
        ("{% macro f(a, b=2) %}{{ a }}{{ b }}{{ caller() }}{% endmacro %}{% call f(1) %}3{% endcall %}", "123"),
    ):
        assert ChatTemplate(source, {}).render(MESSAGES, None) == expected


def test_what_takes_long_by_itself_is_not_there() -> None:
    for source in ("{{ 'a' | wordwrap(1) }}", "{{ messages | slice(3) | list }}", "{{ messages | random }}"):
        with pytest.raises(ValueError, match="No filter named"):
            ChatTemplate(source, {})
    with pytest.raises(TemplateRefusal, match="'lipsum' is undefined"):
        ChatTemplate("{{ lipsum(n=9) }}", {}).render(MESSAGES, None)
