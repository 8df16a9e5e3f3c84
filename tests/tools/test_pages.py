"""What pages may name, and what each package's page has to show."""

from __future__ import annotations

from tools.pages import MAX_LINES, glued_lists, missing_classes, missing_files, missing_links, page_faults, tree_names


def test_a_file_that_a_page_names_exists_by_the_end_of_its_path() -> None:
    """Whole, from a room on, or by its name alone; a tenant's file is an example."""
    names = tree_names(["gateway/pilotlight_gateway/home/queue.py", "pyproject.toml"])
    assert missing_files("`home/queue.py`, `queue.py`, `../pyproject.toml`, `app.py`, `gpu.function`", names) == []
    assert missing_files("`homes/queue.py` and `ueue.py`, `queue.py::test_it`", names) == ["homes/queue.py", "ueue.py"]


def test_a_folder_of_the_product_that_a_page_names_exists() -> None:
    """It is named from the root of the tree; other folders may be a tenant's."""
    names = tree_names(["gateway/pilotlight_gateway/home/queue.py"])
    assert missing_files("`gateway/pilotlight_gateway/home/`, `gateway/pilotlight_gateway/`, `models/`", names) == []
    assert missing_files("`gateway/pilotlight_gateway/scheduler/`", names) == ["gateway/pilotlight_gateway/scheduler/"]


def test_a_link_leads_to_a_file_or_a_folder() -> None:
    """From the page's own folder, with or without an anchor; addresses elsewhere are not looked at."""
    paths = ["docs", "docs/jobs.md", "docs/design", "docs/design/words.md", "README.md"]
    text = "[a](words.md#names), [b](../jobs.md), [c](../design/), [d](https://example.com), [e](#here)"
    assert missing_links(text, "docs/design/words.md", paths) == []
    assert missing_links("[a](jobs.md) [b](../README.md)", "docs/design/words.md", paths) == ["../README.md", "jobs.md"]


def test_a_list_begins_after_an_empty_line() -> None:
    """An item that goes on in the next line does not end its list, and code is no list."""
    assert glued_lists("Text.\n\n- one,\n  more\n- two\n\n1. first\n2. second\n\n```\nx\n- y\n```\n") == []
    assert glued_lists("Text:\n- one\n- two\n\n**Why.**\n1. first\n") == ["- one", "1. first"]


def test_a_package_has_a_page_that_names_its_rooms_and_fits_a_screen() -> None:
    """What is missing is said by name."""
    assert page_faults("core", None, ["bus"]) == ["docs/design/structure/core.md is missing"]
    assert page_faults("core", "| `bus/` | ...", ["bus"]) == []
    assert page_faults("core", "| `bus/` |", ["bus", "host/blobs"]) == [
        "docs/design/structure/core.md does not name `host/blobs/`"
    ]
    long = "line\n" * (MAX_LINES + 1)
    assert page_faults("core", long, []) == [
        f"docs/design/structure/core.md: {MAX_LINES + 1} lines, {MAX_LINES} allowed"
    ]


def test_a_class_that_a_page_names_exists_with_its_member() -> None:
    """Constants and plain words are not classes."""
    defined = {"Home": {"enqueue"}, "Effect": set[str]()}
    assert missing_classes("`Home`, `Home.enqueue`, `Effect`, `FILTERS`, `place`, `READY`", defined) == []
    assert missing_classes("`Home.queue` of a `House`", defined) == ["Home.queue", "House"]
