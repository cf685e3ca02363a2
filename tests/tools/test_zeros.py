"""What inserted zeros cost: the document's tables are those of the tool, and phases never take longer."""

from pathlib import Path

import pytest

from tools.zeros import BEGIN, DEVICES, END, LOWERINGS, cost_of, tables, updated
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "phase-lowering.md"
LAYERS = read_layers(DEFAULT_LAYERS)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_phases_take_at_most_the_cycles_of_the_frame_and_fit(layer, device):
    frame, phase = (cost_of(layer, device, lowering) for lowering in LOWERINGS)
    assert phase.cycles <= frame.cycles
    assert phase.scheme == frame.scheme
    assert phase.headroom_bytes >= frame.headroom_bytes


def test_the_document_has_the_tables_that_the_tool_prints():
    text = DOCUMENT.read_text(encoding="utf-8")
    printed = "\n".join(tables(list(DEVICES)))
    assert text == updated(text, f"\n{printed}\n"), f"python -m tools.zeros --update {DOCUMENT}"


def test_a_document_without_marks_is_refused():
    assert updated(f"a\n{BEGIN}old\n{END}b\n", "new\n") == f"a\n{BEGIN}new\n{END}b\n"
    with pytest.raises(ValueError, match="has no lines"):
        updated("a\n", "new\n")
