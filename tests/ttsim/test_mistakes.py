"""Typical mistakes on the command line: one line on stderr with the fix, and exit code 2."""

import shlex

import pytest

from ttsim.__main__ import main

SHAPE = "--shape 1,8,8,32 --values off --no-suggestions"
FILES = {
    "layer.toml": "[[layer]]\nin_chanels = 32\n",
    "values.toml": "[[layer]]\nin_channels = '32'\nout_channels = 32\ninput_height = 4\ninput_width = 4\n",
    "text.toml": "layers of a U-Net",
    "design.toml": "[space]\ndram.bank = [6, 12]\n",
    "card.toml": 'extends = "n151"\n',
    "report.json": "{}",
    "script.py": "import ttnn\n",
}
MISTAKES = [  # a command line, and words of its line
    ("", "the following arguments are required: COMMAND; see ttsim --help"),
    ("rum", "ask, mcp, exec, pytest, compare, check, devices, completion, did you mean 'run'?; see ttsim --help"),
    (f"run {SHAPE} --valeus off", "run: unknown flag '--valeus', did you mean '--values'?; see ttsim run --help"),
    (f"run {SHAPE} --values of", "'of' is none of exact, fast, off, did you mean 'off'?"),
    (f"run {SHAPE} extra", "run: unexpected argument 'extra'; see ttsim run --help"),
    ("run --in 3", "ambiguous option: --in could match --in-channels, --input-height"),
    ("run --shape 1,8,8", "run: --shape must be N,H,W,C, not 1,8,8"),
    ("run --shape 1x8x8x32", "give whole numbers with commas between, such as 2,2, not '1x8x8x32'"),
    ("run --in-channels 32", "run: a layer needs in_channels, out_channels, input_height, input_width; input_height,"),
    (f"run {SHAPE} --groups 0", "run: groups must be an integer of at least 1, not 0"),
    (f"run {SHAPE} --groups 3", "groups must divide in_channels and out_channels, not 3 with 32 and 32"),
    (f"run {SHAPE} --stride two", "--stride: give whole numbers with commas between, such as 2,2, not 'two'"),
    (f"run {SHAPE} --padding 9", "padding must not exceed dilation * (kernel_size - 1), which is 1 here, not 9"),
    (f"run {SHAPE} --slice V:3", "slice must be 'l1_full', 'H:n' or 'W:n' with n slices"),
    (f"run {SHAPE} --dtype bf16", "'bf16' is none of bfloat16, float32, bfloat8_b, did you mean"),
    (f"run {SHAPE} --config shard_layout", "give FIELD=VALUE, such as shard_layout=HEIGHT_SHARDED, not 'shard_layout'"),
    (f"run {SHAPE} --config act_block_h=32", "no field 'act_block_h', did you mean 'act_block_h_override'?; its"),
    (f"run {SHAPE} --config act_block_h_override=x", "act_block_h_override must be non-negative int, not 'x'"),
    (f"run {SHAPE} --config act_block_h_override=33", "must be a multiple of 32 (tile height).; conv_config.act_block"),
    (f"run {SHAPE} --config shard_layout=HIGH", "shard_layout must be one of INTERLEAVED, HEIGHT_SHARDED"),
    (f"run {SHAPE} --config core_grid=8", "core_grid must be COLUMNSxROWS of at least 1x1, not 8; such as '8x4'"),
    (f"run {SHAPE} --compute math_fidelity=LowFi", "math_fidelity must be one of LoFi, HiFi2, HiFi3, HiFi4"),
    ("run --only d9 --values off", "run: no layer has 'd9' in its name"),
    (f"run {SHAPE} --only d4", "--shape defines one layer, --layers and --only choose layers of a file: give one"),
    ("run --layers none.toml", "No such file or directory: 'none.toml'"),
    ("run --layers layer.toml", "layer.toml: layer 1 '': unknown key 'in_chanels'; did you mean 'in_channels'?"),
    ("run --layers values.toml", "in_channels must be an integer of at least 1, not '32'"),
    ("run --layers text.toml", "text.toml: a file of layers is TOML"),
    (f"run {SHAPE} --device n151", "unknown device 'n151', did you mean 'n150'?; known are blackhole_p100"),
    (f"run {SHAPE} --device card.toml", "unknown device 'n151', did you mean 'n150'?"),
    (f"run {SHAPE} --set dram.bank=6", "unknown field 'dram.bank', did you mean 'dram.bank"),
    (f"run {SHAPE} --set dram.banks", "a change is FIELD=VALUE, not 'dram.banks'; such as dram.banks=16"),
    (f"run {SHAPE} --set l1.bytes=2GHz", "l1.bytes is in bytes, not a frequency as '2GHz' is"),
    (f"run {SHAPE} --l1-small-size -5", "l1_small_size must be at least 0 and below the 1393312 B of L1, not -5"),
    (f"run {SHAPE} --html layer.toml", "'layer.toml' is read, not written; give it before the flag, or name a FILE"),
    (f"run {SHAPE} --baseline b.json", "run: --baseline is laid over the page of --html; give --html FILE as well"),
    (f"run {SHAPE} --json no/such/folder.json", "No such file or directory: 'no/such/folder.json'"),
    (f"run {SHAPE} --json .", "Is a directory: '.'"),
    (f"run {SHAPE} --report layer.toml/new", "Not a directory: 'layer.toml/new'"),
    (f"run {SHAPE} --json a.json --html a.json", "run: --json and --html write 'a.json'; name two files"),
    ("run --shape -1,8,8,32", "run: batch_size must be an integer of at least 1, not -1"),
    (f"run --shape 1,8,8,{10**20}", "input: shape must have at most 281,474,976,710,656 elements, not"),
    ("devices --json n150", "'n150' is read, not written; give it before the flag"),
    ("devices --only dram", "--only chooses among the fields of --explain; give both or neither"),
    ("devices wormhole", "unknown device 'wormhole', did you mean 'wormhole_n"),
    ("sweep --only d1 --config act_block_h=32", "no field 'act_block_h', did you mean 'act_block_h_override'?"),
    ("sweep --vary slice", "sweep: argument --vary: what is varied is KEY=VALUE,VALUE, not 'slice'"),
    ("sweep --vary slyce=none", "did you mean 'slice'"),
    ("sweep --vary slice=none --vary slice=H:2", "--vary names a setting twice; give all its values at once"),
    ("sweep --shape 1,8,8,32 --top 0", "sweep: --top must be at least 1, not 0"),
    ("sweep --plot best.svg", "sweep: unknown flag '--plot'; --html FILE writes a page; see ttsim sweep --help"),
    ("tune --effort many", "--effort: give a whole number, such as 2, not 'many'"),
    ("tune --shape 1,8,8,32 --effort 1", "effort must be at least 2 calls, not 1"),
    ("tune --shape 1,8,8,32 --allow all", "allow takes"),
    ("tune --shape 1,8,8,32 --json no/layer.json", "No such file or directory: 'no/layer.json'"),
    ("design", "the following arguments are required: SPACE; see ttsim design --help"),
    ("design none.toml", "No such file or directory: 'none.toml'"),
    ("design design.toml", "design: space: unknown field 'dram.bank', did you mean 'dram.bank"),
    ("compare report.json", "the following arguments are required: AFTER; see ttsim compare --help"),
    ("compare report.json report.json", "'report.json' is no report in JSON (it has no 'device'); give a file"),
    ("compare a.json b.json --fail-over x", "give a percentage from 0 on, such as 5%, not 'x'"),
    ("compare a.json b.json --fail-over -5%", "give a percentage from 0 on, such as 5%, not '-5%'"),
    ("exec --record calls.json script.py", "record: 0 devices made calls"),
    ("exec --report script.py script.py", "Not a directory: 'script.py'"),
    ("exec none.py", "No such file or directory: 'none.py'"),
    ("exec --devise n150 script.py", "exec: unknown flag '--devise', did you mean '--device'?"),
    ("exec --device n151 script.py", "unknown device 'n151', did you mean 'n150'?"),
    ("pytest --device n151", "unknown device 'n151', did you mean 'n150'?"),
    ("completion tcsh", "'tcsh' is none of bash, zsh, fish, did you mean 'zsh'?"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


@pytest.mark.parametrize(("line", "words"), MISTAKES)
def test_a_mistake_is_one_line_with_the_fix(line, words, capsys):
    assert main(shlex.split(line)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("ttsim: ")
    assert said.err.count("\n") == 1
    assert words in said.err


@pytest.mark.parametrize(
    "more",
    [
        "--shape 1,4,4,65536 --out-channels 8192 --slice l1_full",
        "--shape 1,64,64,512 --input-memory l1 --set l1.bytes=256KiB",
    ],
)
def test_a_call_that_does_not_fit_is_a_result(more, capsys):
    assert main(["run", *shlex.split(f"{SHAPE} {more}")]) == 1
    said = capsys.readouterr()
    assert said.err == ""
    assert "Out of Memory" in said.out or "Statically allocated circular buffers" in said.out
