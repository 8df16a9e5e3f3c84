"""How findings read, and what they come to."""

from __future__ import annotations

from pilotlight_supervisor.doctor.finding import Finding, Health, HostRole, judged, report, worst

WELL = judged("kernel", "Linux 6.1", "Linux 5.3 or newer", ok=True, todo="never shown")
POOR = judged("open files", "1024", "65536 or more", ok=False, todo="ulimit -n\nor so", otherwise=Health.WARN)
BAD = judged("bubblewrap", "not installed", "0.8 or newer", ok=False, todo="apt-get install -y bubblewrap")


def test_what_is_well_has_nothing_to_do() -> None:
    """It keeps what was expected, for whoever reads the JSON."""
    assert Finding(name="kernel", health=Health.OK, found="Linux 6.1", expected="Linux 5.3 or newer") == WELL


def test_the_worst_counts() -> None:
    """A failure before a warning before nothing."""
    assert [worst(each) for each in ([], [WELL], [WELL, POOR], [POOR, BAD, WELL])] == ["ok", "ok", "warn", "fail"]


def test_a_report_says_what_to_do_below_what_is_not_well() -> None:
    """And what the host can be at its end."""
    assert report([WELL, POOR, BAD], HostRole.NODE).splitlines() == [
        "ok    kernel      Linux 6.1",
        "warn  open files  1024",
        "                  expected: 65536 or more",
        "                  do: ulimit -n",
        "                  do: or so",
        "fail  bubblewrap  not installed",
        "                  expected: 0.8 or newer",
        "                  do: apt-get install -y bubblewrap",
        "",
        "This host cannot be a node: 1 ok, 1 warn, 1 fail.",
    ]
    assert report([WELL], HostRole.BUS).endswith("\nThis host can be a server of the bus: 1 ok.\n")


def test_nothing_that_others_sent_moves_the_terminal() -> None:
    """Such as the version that a server of the bus says that it has; it is shown as it is written."""
    evil = "\x1b[2J\x9b1mé\x00"
    text = report([judged(evil, evil, evil, ok=False, todo=evil)], HostRole.NODE)

    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert text.count("\\x1b[2J\\x9b1m\\xe9\\x00".replace("\\xe9", "é")) == 4


def test_long_findings_are_wrapped() -> None:
    """Below where they began; a word that is longer stays whole, so that it can be copied."""
    lines = report([judged("name", "word " * 40, "", ok=True, todo="")], HostRole.NODE).splitlines()[:-2]

    assert len(lines) > 1
    assert all(len(line) <= 120 for line in lines)
    assert all(line.startswith(" " * 12) for line in lines[1:])
