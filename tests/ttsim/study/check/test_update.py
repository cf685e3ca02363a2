"""Updates of files of budgets: figures change, and nothing else does; what is not safe is refused by name."""

import tomllib

import pytest

from device.errors import ArgumentError
from tests.ttsim.study.check.checked import file_of, found
from ttsim.study.check.budgets import read_budgets
from ttsim.study.check.update import updated

ENTRY = """# why: the card's limit
"cycles"=1_000 # of 2025
 time_us =   3.3   # holds
time_ns = 0x10
operations = [  # two
]
band_percent = 5"""


def test_broken_figures_change_and_comments_order_and_the_rest_stay(tmp_path):
    entry = ENTRY.replace("[  # two\n]", "[\n]  # two")
    file = file_of(tmp_path, f"{entry}\noperation_cycles = []", settings="# mine", halo=1000, conv=2300)
    text, count = updated(file, found(file))
    assert text == (
        '# mine\n[[budget]]\nreport = "net.json"\n# why: the card\'s limit\n"cycles"=3_300 # of 2025\n'
        " time_us =   3.3   # holds\ntime_ns = 3_300\n"
        'operations = ["HaloDeviceOperation", "Conv2dDeviceOperation"]  # two\nband_percent = 5\n'
        "operation_cycles = [1_000, 2_300]\n"
    )
    assert count == 4
    file.path.write_text(text)
    again = read_budgets(file.path)
    assert updated(again, found(again)) == (text, 0)


def test_figures_that_hold_stay_so_that_small_losses_add_up(tmp_path):
    file = file_of(tmp_path, "cycles = 3250\ntime_ns = 3000", halo=3300)
    assert "cycles = 3250\ntime_ns = 3_300\n" in updated(file, found(file))[0]


def test_each_entry_gets_its_own_figure_with_the_line_ends_of_the_file(tmp_path):
    file = file_of(tmp_path, "cycles = 1", **{"halo": 7, "conv": 5})
    more = '[[budget]]\nname = "b"\nreport = "net.json"\noperations = []\ncycles = 2 # ä\n[common]\n[[layer]]\n'
    names = "".join(f"{name} = 1\n" for name in ("in_channels", "out_channels", "input_height", "input_width"))
    text = "\ufeff" + (file.text + more + names).replace("\n", "\r\n")
    file.path.write_bytes(text.encode())
    (tmp_path / "net.json").write_text((tmp_path / "net.json").read_text().replace("Conv2d", "Conv2d" * 20))
    file = read_budgets(file.path)
    new, count = updated(file, found(file))
    conv, halo = "Conv2d" * 20 + "DeviceOperation", "HaloDeviceOperation"
    listed = f'operations = [\r\n    "{halo}",\r\n    "{conv}",\r\n]\r\n'
    assert new == text.replace("operations = []\r\n", listed).replace("= 1\r\n[[", "= 12\r\n[[").replace(
        "cycles = 1\r\n", "cycles = 12\r\n").replace("cycles = 2 ", "cycles = 12 ")  # fmt: skip
    assert count == 3
    assert tomllib.loads(new.removeprefix("\ufeff"))["budget"][1]["operations"] == [halo, conv]


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        (ENTRY, "toml:2: budget 'net.json': --update finds no plain operations = ... on a line of its own; write oper"),
        ('name = """\ncycles = 3\n"""\ncycles = 3', "--update finds no plain cycles"),
        ('name = """\ncycles = 1\n"""\n"cycle\\u0073" = 1', "--update would change more than figures; change them by"),
    ],
)
def test_what_is_not_safe_is_refused_by_name(entry, rule, tmp_path):
    file = file_of(tmp_path, entry, halo=3300)
    findings = found(file)
    with pytest.raises(ArgumentError, match=rule):
        updated(file, findings)


def test_entries_of_another_form_are_refused(tmp_path):
    file = file_of(tmp_path, "cycles = 1", halo=3)
    file.path.write_text('budget = [{report = "net.json", cycles = 1}]')
    file = read_budgets(file.path)
    with pytest.raises(ArgumentError, match=r"--update reads \[\[budget\]\] tables only; write every entry as one"):
        updated(file, found(file))
