"""The page of logging in, and that of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from pilotlight_gateway.dashboard.page_parts.markup import Markup, joined, tag, void


def login_body(code: str = "", refusal: str = "", issuers: Sequence[str] = ()) -> Markup:
    """A field for an API key, and links to issuers; with the code of a link, a button alone."""
    said = tag("p", refusal, class_="sentence bad", role="alert") if refusal else ""
    inner: tuple[Markup, ...]
    if code:
        inner = (
            tag("p", "This link opens the dashboard once."),
            void("input", type="hidden", name="code", value=code),
            tag("button", "Open the dashboard"),
        )
    else:
        inner = (
            tag("label", "API key", for_="key"),
            void(
                "input", id="key", name="key", type="password", autocomplete="current-password", required=True,
                maxlength=128, spellcheck="false",
            ),
            tag("button", "Log in"),
            tag("p", "A key with the scope read shows its tenant; one with operator shows the platform too.",
                class_="note"),
        )  # fmt: skip
    links = [
        tag("p", tag("a", f"Log in with {name}", href=f"/ui/login/with/{name}", class_="button"))
        for name in ([] if code else issuers)
    ]
    return joined((said, tag("form", *inner, method="post", action="/ui/login", class_="login"), *links))


def entered_body() -> Markup:
    """The page behind a login at an issuer: the browser goes on from here by itself, as from a page of this site."""
    goes = void("meta", http_equiv="refresh", content="0;url=/ui/overview")
    return joined((goes, tag("p", "You are logged in. ", tag("a", "Go on", href="/ui/overview"))))


def message_body(text: str, *, logged_in: bool, again: bool = False) -> Markup:
    """A sentence, and where to go from there. `again`: the page is asked for once more in a few seconds."""
    link = tag("a", "Back to the start" if logged_in else "Log in", href="/ui/overview" if logged_in else "/ui/login")
    goes = void("meta", http_equiv="refresh", content="5") if again else ""
    return joined((goes, tag("p", text, class_="sentence", role="alert"), tag("p", link)))
