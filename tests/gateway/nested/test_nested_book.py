"""What is known of nested calls that have not ended."""

from __future__ import annotations

from pilotlight_gateway.nested.nested_book import NestedBook, key_of
from pilotlight_gateway.nested.nested_rules import Lineage
from tests.gateway.nested.nested_world import asked


def test_calls_are_counted_by_parent_and_by_tree() -> None:
    """A nested call may make others: they belong to the same tree."""
    book = NestedBook()
    first = book.enter(key_of(asked(1)), "n1", book.lineage_of("a").below("f"), "reply")
    book.begun(first, "b", "ver_1")
    second = book.enter(key_of(asked(1, parent="b")), "n1", book.lineage_of("b").below("g"), "reply")

    assert second.lineage == Lineage("a", ("f", "g"))
    assert (book.tree("a").open, book.tree("a").total) == (2, 2)
    assert book.of_parent("a") == [first]
    assert book.of_parent("b") == [second]
    book.check_integrity()

    book.close(second)
    book.close(second)
    assert (book.tree("a").open, book.tree("a").total, len(book)) == (1, 2, 1)
    book.close(first)
    assert book.lineage_of("b") == Lineage("b")
    book.check_integrity()


def test_a_tree_is_forgotten_with_the_call_from_outside() -> None:
    """Until then its calls are counted, though they have ended."""
    book = NestedBook()
    book.close(book.enter(key_of(asked()), "n1", Lineage("a", ("f",)), "reply"))

    book.forget(lambda root: root == "a")
    assert book.tree("a").total == 1
    assert book.tree("a").open == 0
    book.forget(lambda _: False)
    assert book.is_empty
    assert book.tree("a").total == 0
