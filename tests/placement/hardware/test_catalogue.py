"""The catalogue of devices."""

from __future__ import annotations

import pytest

from pilotlight_placement.hardware.catalogue import FILE, ProfileReading, corrected, is_kind, read, standard

KNOWN = ("T4", "A10", "L4", "L40S", "A30", "A100-40GB", "A100-80GB", "H100-80GB", "H100-94GB", "H100-96GB", "H200",
         "B200")  # fmt: skip


def test_every_device_is_there_and_sound() -> None:
    """Larger cuts never have less memory, and none has more than its device."""
    catalogue = standard()

    assert set(catalogue.devices) >= set(KNOWN)
    for device in catalogue.devices.values():
        sizes = [(cut.profile.size, cut.memory) for cut in device.cuts]
        assert sorted(sizes, key=lambda pair: pair[0]) == sorted(sizes)
        assert all(0 < memory <= device.memory for _, memory in sizes)
        assert all(0 < share <= 1 for share in device.shares)


def test_only_parts_with_mig_are_cut_and_only_new_ones_online() -> None:
    """T4, A10, L4 and L40S have no MIG; Ampere needs a reset to change its mode."""
    catalogue = standard()

    assert [name for name in KNOWN if catalogue[name].family is None] == ["T4", "A10", "L4", "L40S"]
    assert not catalogue["A100-80GB"].online_mig
    assert not catalogue["A30"].online_mig
    assert catalogue["H200"].online_mig
    assert catalogue["B200"].online_mig


def test_a_3g_costs_half_a_device_by_its_memory() -> None:
    """Its share is what it keeps others from: 4 of 8 memory slices."""
    device = standard()["H100-80GB"]
    shares = dict(zip((cut.profile.key for cut in device.cuts), device.shares, strict=True))

    assert shares["3g"] == 0.5
    assert shares["1g"] == 0.125
    assert shares["7g"] == 1.0


@pytest.mark.parametrize(
    ("reported", "memory", "name"),
    [("H100", 81_559, "H100-80GB"), ("H100", 95_000, "H100-94GB"), ("A100-40GB", 0, "A100-40GB"), ("T4", 0, "T4")],
)
def test_a_reported_type_is_found_by_its_memory(reported: str, memory: int, name: str) -> None:
    """Agents report some products without their size."""
    assert standard().device(reported, memory).name == name


def test_an_unknown_gpu_is_taken_whole() -> None:
    """It has no family, so nothing is cut from it."""
    device = standard().device("RTX-4090", 24_564)

    assert (device.name, device.memory, device.family) == ("RTX-4090", 24_564, None)


def test_the_drivers_figures_win() -> None:
    """Usable memory depends on the driver's version."""
    read_from_driver = [ProfileReading(name="1g.23gb", memory=22_528, sms=18, size=1, starts=(6, 5, 4, 3, 2, 1, 0))]

    device = corrected(standard()["B200"], memory=183_000, readings=read_from_driver)

    assert device.memory == 183_000
    assert device.cuts[0].memory == 22_528
    assert device.cuts[2].memory == standard()["B200"].cuts[2].memory


def test_a_driver_that_places_otherwise_is_not_overruled() -> None:
    """A GPU whose geometry contradicts the catalogue must not be cut."""
    with pytest.raises(ValueError, match="the driver places 3g"):
        corrected(standard()["H200"], readings=[ProfileReading(name="3g.71gb", memory=1, sms=1, size=4, starts=(0, 2))])


def test_a_device_without_a_profile_of_its_family_is_refused() -> None:
    """A line that is missing is found when the file is read, not when it is needed."""
    broken = FILE.read_text().replace('"3g"    = { name = "3g.71gb", memory = 71168, sms = 60 }\n', "")

    with pytest.raises(ValueError, match="H200"):
        read(broken)


def test_a_type_without_its_size_means_any_size_and_no_other_product() -> None:
    """ "A100" is either kind; "A1" is nothing."""
    assert is_kind("A100", "A100-80GB")
    assert is_kind("ANY", "T4")
    assert not is_kind("A10", "A100-40GB")
    assert not is_kind("A1", "A10")
