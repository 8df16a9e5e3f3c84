"""Which of a row of like tests are variants."""

from __future__ import annotations

from tests.variants import with_variants


def test_the_first_are_not() -> None:
    """Each is the test of the same values as before."""
    one, two, three = with_variants([1, (2, "b"), {}], 1)
    assert one == 1
    assert (two.values, three.values) == ((2, "b"), ({},))
    assert [mark.name for mark in (*two.marks, *three.marks)] == ["variant", "variant"]
