"""Layers on a terminal, as far as the approved texts do not hold them: widths, and names that mean harm."""

import dataclasses
import io
import json
import time

import pytest
from rich.console import Console

from tests.ttsim.report.ran_operations import LAYER
from tests.ttsim.report.test_approved import ACCURACY, drawn
from ttsim.report.formatting import cells_of
from ttsim.report.memory import LayerResult
from ttsim.report.writers.json import layers_as_json
from ttsim.report.writers.table import code_lines, print_layers, print_overview
from ttsim.report.writers.terminal import progress

HOSTILE = ("[red]x[/red]", "a\nb\r\nc", "\x1b[31m\x00\x07", "\u202e\u2028x", "層" * 5000)


def test_json_has_no_nan(layer):
    strange = dataclasses.replace(ACCURACY, pcc=float("nan"), max_abs_error=float("inf"))
    result = dataclasses.replace(layer, summary=dataclasses.replace(layer.summary, accuracy=strange))
    accuracy = json.loads(layers_as_json([result]))["layers"][0]["summary"]["accuracy"]
    assert accuracy == {"pcc": None, "max_abs_error": None, "rms_error": 0.001, "exact_std": 1.0}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_on_its_row(layer, report, name):
    """Markup, control characters, line breaks, wide characters and 10 kB, of a layer, a device and a buffer."""
    good = dataclasses.replace(layer.summary, accuracy=ACCURACY, cycles=report)
    use = dataclasses.replace(good.operations[-1], name=name, live=(good.operations[-1].live[0]._replace(name=name),))
    summary, named = (
        dataclasses.replace(good, device=name[:80], operations=(use,)),
        dataclasses.replace(LAYER, name=name),
    )
    hostile = dataclasses.replace(layer, layer=named, summary=summary)
    text = drawn(print_layers, [hostile, layer], details=True, width=80)
    assert not set(text) & set("\x00\x07\r\x1b\u202e\u2028")
    assert max(map(cells_of, text.split("\n"))) <= 80
    assert name[:7].isprintable() <= (name[:7] in text)
    overview = drawn(print_overview, [hostile, LayerResult(layer=named, error=f"no {name}")], width=80)
    assert len(overview.splitlines()) == 3


def test_a_layer_alone_is_shown_in_any_case(layer):
    texts = [drawn(print_layers, [layer] * count, each=False, width=200) for count in (1, 2)]
    assert ["L1         peak" in text for text in texts] == [True, False]


def test_code_breaks_where_it_may():
    code = "  compute_config=ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.LoFi, packer_l1_acc=True)"
    assert code_lines(code, 80) == [
        "  compute_config=ttnn.WormholeComputeKernelConfig(",
        "    math_fidelity=ttnn.MathFidelity.LoFi, packer_l1_acc=True)",
    ]
    assert code_lines(code, 120) == [code]


def shown(*, terminal: bool, patience_seconds: float, steps: int = 3, quiet: bool = False) -> str:
    """What is written while two of three steps are done."""
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=terminal)
    with progress("[red]x", console=console, patience_seconds=patience_seconds, quiet=quiet) as begin:
        done = begin(steps)
        for _ in range(2):
            time.sleep(0.01)
            done()
        time.sleep(0.15)  # a picture is drawn ten times a second
    return out.getvalue()


def test_a_terminal_sees_what_is_done_how_fast_and_how_long_it_will_take() -> None:
    text = shown(terminal=True, patience_seconds=0)
    assert all(part in text for part in ("[red]x", "2/3", "/s", " \x1b[36m0:00:0"))


def test_a_pipe_sees_nothing_and_neither_does_who_need_not_wait() -> None:
    assert shown(terminal=False, patience_seconds=0) == shown(terminal=True, patience_seconds=60) == ""
    assert shown(terminal=True, patience_seconds=0, quiet=True) == ""


def test_an_error_ends_it() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    bar = progress("x", console=console, patience_seconds=0)
    begin = bar.__enter__()
    begin(1)
    time.sleep(0.05)
    assert bar.__exit__(ValueError, ValueError("x"), None) is False
    assert console.file.getvalue().endswith("\x1b[2K")  # type: ignore[attr-defined] # the line is cleared
