import json
import sys

import pytest

from tools.bench import __main__ as bench
from tools.bench.figure import Figure
from tools.bench.layers import bench_planning, torch_call
from tools.bench.plans import tensor_bytes
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import exact_output, make_inputs

FIGURES = [
    Figure(bench="layers", case="up", name="first call", value=2.0, unit="ms", median=2.25, longest=9.5),
    Figure(bench="layers", case="up", name="of torch", value=3.0, unit="x", limit=2.0),
]


@pytest.fixture
def arguments(monkeypatch):
    monkeypatch.setattr(bench, "BENCHES", {"layers": lambda repeats: iter(FIGURES * repeats), "other": None})
    return lambda *words: monkeypatch.setattr(sys, "argv", ["bench", "--layers", "--repeats", "1", *words])


def test_table(arguments, capsys):
    arguments()
    bench.main()
    text = capsys.readouterr().out
    assert "3.000 x" in text
    assert "over" in text
    assert all(figure in text for figure in ("2.000 ms", "2.250", "9.500"))


def test_json(arguments, capsys):
    arguments("--json")
    bench.main()
    printed = json.loads(capsys.readouterr().out)
    assert [row["within"] for row in printed["figures"]] == [True, False]
    assert [row["longest"] for row in printed["figures"]] == [9.5, None]
    assert printed["processor"] == bench.processor() != ""


def test_check_fails_over_a_limit(arguments, capsys):
    arguments("--check")
    with pytest.raises(SystemExit, match="1"):
        bench.main()


def test_planning_gives_a_figure_for_every_layer():
    figures = list(bench_planning(1))
    assert len(figures) == 8
    assert all(figure.unit == "ms" and figure.value > 0 for figure in figures)


def test_bytes_of_tensors():
    layer = Layer(in_channels=32, out_channels=16, input_height=2, input_width=2, input_dtype="bfloat8_b", bias=False)
    assert tensor_bytes(layer, 1024) == 128 * 1088 / 1024 + 2 * 32 * 16 * 4 + 1088


def test_torch_computes_the_same():
    torch = pytest.importorskip("torch")
    layer = Layer(in_channels=8, out_channels=4, input_height=3, input_width=5, stride=(2, 2), padding=(1, 0))
    inputs = make_inputs(layer)
    found = torch_call(layer, inputs)().permute(0, 2, 3, 1).numpy()
    assert torch.get_num_threads() >= 1
    assert abs(found - exact_output(layer, inputs)).max() < 1e-5
