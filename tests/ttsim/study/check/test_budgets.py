"""Files of budgets: what entries may say, and one sentence for each that is wrong, with its line."""

import re
from fractions import Fraction

import pytest

from device.errors import TTSimError
from ttsim.study.check.budgets import Script, entry_lines, read_budgets

LAYER = '[[budget]]\nlayer = "vgg_unet.d1.up"\n'
SCRIPT = '[[budget]]\nscript = "net.py"\ncycles = 1\n'


def read(folder, text, **options):
    (folder / "net.py").write_text("")
    (folder / "b.toml").write_text(text, encoding="utf-8")
    return read_budgets(folder / "b.toml", **options).budgets


def test_an_entry_takes_settings_of_the_file_and_its_own(tmp_path):
    text = (
        'device = "n150"\nset = ["dram.banks=6"]\nl1_small_size = 1024\nband_percent = 1.5\n'
        f'{LAYER}cycles = 7\n{LAYER}name = "b"\ndevice = "p150"\nset = []\nrelease = "2025"\nstrict = false\n'
        "cycles = 7\n"
    )
    first, second = read(tmp_path, text)
    assert (first.name, first.line, first.l1_small_size, first.strict) == ("vgg_unet.d1.up", 5, 1024, True)
    assert (first.device.endswith("n150, dram.banks=6"), first.band) == (True, Fraction(15, 1000))
    assert (second.name, second.line, second.strict) == ("b", 8, False)
    assert second.device == "p150, release=2025"
    (flagged,) = read(tmp_path, f'device = "n150"\nset = ["dram.banks=6"]\n{LAYER}cycles = 7\n', device="p150",
                      changes=["grid=9x7"])  # fmt: skip
    assert flagged.device == "p150, dram.banks=6, grid=9x7"


def test_layers_stand_in_the_file_in_another_or_in_the_entry(tmp_path):
    sizes = "in_channels = 32, out_channels = 32, input_height = 4, input_width = 4"
    own = f'[[layer]]\nname = "a"\n{sizes.replace(", ", chr(10))}\n'
    (tmp_path / "layers.toml").write_text(own)
    entry = '[[budget]]\nlayer = "a"\ncycles = 1\n'
    for text in (f'device = "n150"\n{own}{entry}', f'device = "n150"\nlayers = "layers.toml"\n{entry}'):
        assert read(tmp_path, text)[0].subject.in_channels == 32
    (inline,) = read(tmp_path, f'device = "n150"\n[[budget]]\nlayer = {{name = "c", {sizes}}}\ncycles = 1\n')
    assert (inline.name, inline.subject.input_width) == ("c", 4)


def test_a_script_gets_its_device_by_variables(tmp_path):
    (budget,) = read(tmp_path, f'device = "n150"\nstrict = false\n{SCRIPT}arguments = ["l1"]\nvalues = "fast"\n')
    variables = {"TTSIM_DEVICE": "n150", "TTSIM_VALUES": "fast", "TTSIM_STRICT": "0"}
    assert budget.subject == Script(tmp_path / "net.py", ("l1",), variables)


D = 'device = "n150"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = = 1", "b.toml: a file of budgets is TOML: Invalid value"),
        ("", "b.toml: a file of budgets has at least one [[budget]] table"),
        ("budget = 3", "has at least one [[budget]] table"),
        ("budgets = []", "unknown key 'budgets'; did you mean 'budget'?"),
        (f"{LAYER}cycles = 1", 'b.toml:1: budget \'vgg_unet.d1.up\': name the device in front of all tables, such as'),
        (f"device = 3\n{LAYER}cycles = 1", "device must be a name or a file, not 3"),
        (f'set = "dram.banks=6"\n{LAYER}cycles = 1', "set must be a list of changes, such as ['dram.banks=16']"),
        (f"{D}band_percent = -1\n{LAYER}cycles = 1", "band_percent must be a number of at least 0, not -1"),
        (f"{D}band_percent = nan\n{LAYER}cycles = 1", "band_percent must be a number of at least 0, not nan"),
        (f'{D}{LAYER}cycles = 1\nstrict = "no"', "b.toml:2: budget 'vgg_unet.d1.up': strict must be true or false"),
        (f'device = "n151"\n{LAYER}cycles = 1', "b.toml:2: budget 'vgg_unet.d1.up': unknown device 'n151', did"),
        (f'{D}set = ["dram"]\n{LAYER}cycles = 1', "a change is FIELD=VALUE, not 'dram'"),
        (f'{D}release = "3"\n{LAYER}cycles = 1', "release must be one of"),
        (f"{D}[[budget]]\ncycles = 1", "b.toml:2: name what is measured, by one of the keys layer, op, report, script"),
        (f'{D}{LAYER}script = "net.py"\ncycles = 1', "layer, op, report, script, not by layer and script"),
        (f'{D}[[budget]]\nscript = "no.py"\ncycles = 1', "no.py': No such file or directory"),
        (f'{D}[[budget]]\nreport = "."\ncycles = 1', "b.toml:2: budget '.': "),
        (f"{D}{LAYER}cycle = 1", "unknown key 'cycle'; did you mean 'cycles'?"),
        (f"{D}{LAYER}arguments = []\ncycles = 1", "unknown key 'arguments'"),
        ('[[budget]]\nreport = "r.json"\ndevice = "n150"\ncycles = 1', "unknown key 'device'"),
        (f"{D}{LAYER}", "no figure is limited; write one or more of cycles, time_us, time_ns, trace_replay_us"),
        (f"{D}{LAYER}cycles = -1", "cycles must be an integer from 0 on, not -1"),
        (f"{D}{LAYER}cycles = {2**63}", "cycles must be an integer from 0 on, not 9223372036854775808; budgets are b"),
        (f"{D}{LAYER}time_us = 1e300", "time_us must be a number with three decimals or fewer, from 0 on, not 1e+300"),
        (f"{D}{LAYER}cycles = 1.5", "cycles must be an integer from 0 on, not 1.5"),
        (f"{D}{LAYER}cycles = true", "cycles must be an integer from 0 on, not True"),
        (f"{D}{LAYER}time_us = inf", "time_us must be a number with three decimals or fewer, from 0 on, not inf"),
        (f"{D}{LAYER}time_us = 1.2345", "with three decimals or fewer, from 0 on, not 1.2345"),
        (f'{D}{LAYER}operations = "a"', "operations must be an integer from 0 on, or a list of the names of"),
        (f"{D}{LAYER}operations = 3\noperation_cycles = [1]", "operation_cycles has an integer for each name of"),
        (f'{D}{LAYER}operations = ["a", "b"]\noperation_cycles = [1]', "has an integer for each name of operations"),
        (f'{D}{LAYER}operations = ["a"]\noperation_cycles = [1.5]', "must be a list of integers of at least 0, not"),
        (f'{D}[[budget]]\nlayer = "d1"\ncycles = 1', "no layer is called 'd1'; the layers are vanilla_unet.upconv4"),
        (f"{D}[[budget]]\nlayer = [1]\ncycles = 1", "no layer is called [1]; the layers are"),
        (f'{D}[[budget]]\nlayer = {{name = "a"}}\ncycles = 1', "layer: a layer needs in_channels, out_channels"),
        (f"{D}{LAYER}name = 3\ncycles = 1", "name must be a text, not 3"),
        (f"{D}{LAYER}cycles = 1\n{LAYER}cycles = 1", '2 budgets are called \'vgg_unet.d1.up\'; give each'),
        (f'{D}[[budget]]\nop = "relux"\ncycles = 1', "b.toml:2: budget 'relux': 'relux' is no operation"),
        (f"{D}[[budget]]\nop = 3\ncycles = 1", "b.toml:2: op must be a text, not 3"),
        (f'{D}[[budget]]\nop = "relu"\nargs = ["ttnn.bfloat17"]\ncycles = 1', "'ttnn.bfloat17' is no constant of ttnn"),
        (f'{D}[[budget]]\nop = "relu"\nkwargs = 3\ncycles = 1', "kwargs must be an object, not 3"),
        (f"{D}{SCRIPT}".replace('"net.py"', "3"), "script must be the path of a file, not 3"),
        (f"{D}{SCRIPT}arguments = [1]", "arguments must be a list of texts, not [1]"),
        (f'{D}{SCRIPT}values = "some"', "values must be one of exact, fast, off, not 'some'"),
        (f'{D}layers = "b.toml"\n{LAYER}cycles = 1\n[[layer]]', 'give layers = "FILE" or [[layer]] tables'),
        (f'{D}[common]\nconfig = {{weights_dtype = "bf7"}}\n[[layer]]\nname = "a"\nin_channels = 32\n'
         'out_channels = 32\ninput_height = 4\ninput_width = 4\n[[budget]]\nlayer = "a"\ncycles = 1',
         "b.toml:10: budget 'a': weights_dtype must be one of"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told_in_a_sentence(text, message, tmp_path):
    with pytest.raises(TTSimError, match=re.escape(message)) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("[[budget]]\n a = 1\n\n  [[ budget ]]  # two\r\nb = 1\n", [1, 4]),
        ('[[budget]]\n[budget.x]\n[[layer]]\n[["budget"]]\n', [1, 1]),  # not seen: every entry is at the first line
        ('a = """\n[[budget]]\n"""\nbudget = [{}]\n', [2]),
        ("budget = [{}, {}]\n", [1, 1]),
    ],
)
def test_entries_have_the_lines_of_their_heads(text, lines):
    assert entry_lines(text, len(lines)) == lines
