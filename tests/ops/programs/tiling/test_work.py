"""What programs tell of themselves that lay tensors out anew."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Operation
from ops.builder import PlanBuilder
from ops.op_model import CyclesContext, Ends, ValuesContext
from ops.op_models import OP_MODELS, load_spec
from ops.programs.movement.work import Conversion
from ops.programs.tiling.plan import tilized_by, untilized_by
from ops.programs.tiling.work import TilizeOp


@pytest.mark.parametrize(
    ("conversion", "made_format", "measured_as"),
    [
        (Conversion.TILIZE, BFLOAT16, "Tilize"),
        (Conversion.TILIZE, BFLOAT8_B, ""),  # changes the format on the way
        (Conversion.UNTILIZE_CODEGEN, BFLOAT16, ""),
    ],
)
def test_a_program_is_measured_as_it_is_around_convolutions(conversion, made_format, measured_as):
    rows, tiles = (
        TensorSpec((1, 1, 64, 64), data_format, layout, DRAM_MEMORY_CONFIG)
        for data_format, layout in ((BFLOAT16, Layout.ROW_MAJOR), (made_format, Layout.TILE))
    )
    ends = Ends(read=rows, written=tiles) if conversion is Conversion.TILIZE else Ends(read=tiles, written=rows)
    work = TilizeOp(conversion=conversion, source_format=BFLOAT16, data_format=made_format)
    assert OP_MODELS[TilizeOp].account(work, ends, load_spec("wormhole_n150")).measured_as == measured_as


@pytest.mark.parametrize(
    ("conversion", "rows", "on_one_core", "buffers"),
    [
        (Conversion.UNTILIZE, 4096, False, [(64, 32768), (64, 32768)]),  # two rows of four tiles a core: one ahead
        (Conversion.UNTILIZE, 4096, True, [(1, 16384), (1, 16384)]),
        (Conversion.TILIZE, 4096, True, [(1, 16384), (1, 16384)]),
    ],
)
def test_one_core_has_one_row_of_tiles_at_a_time_in_plan_and_cycles(conversion, rows, on_one_core, buffers):
    """Buffers as the real library plans them for use_multicore=False."""
    spec = load_spec("wormhole_n150")
    layouts = (Layout.TILE, Layout.ROW_MAJOR) if conversion is Conversion.UNTILIZE else (Layout.ROW_MAJOR, Layout.TILE)
    source, made = (TensorSpec((1, 1, rows, 128), FLOAT32, layout, L1_MEMORY_CONFIG) for layout in layouts)
    plan = PlanBuilder(spec, {"input": source})
    if conversion is Conversion.UNTILIZE:
        untilized_by(plan, plan.tensor("input"), made, "output", on_one_core=on_one_core)
    else:
        place = made.memory_config
        tilized_by(plan, plan.tensor("input"), "output", place=place, whole=True, on_one_core=on_one_core)
    (step,) = plan.finish({"output": "output"}).steps
    assert isinstance(step, Operation)
    assert [(one.cores.num_cores(), one.size_bytes) for one in step.circular_buffers] == buffers
    meaning, ends = OP_MODELS[TilizeOp], Ends(read=source, written=made)
    assert meaning.cycles is not None
    cycles = meaning.cycles(step.work, ends, CyclesContext(spec=spec, contention=True))
    assert cycles.cores == buffers[0][0]


def values(source, source_format, data_format, kept=None):
    work = TilizeOp(
        conversion=Conversion.UNTILIZE_WITH_UNPADDING, source_format=source_format, data_format=data_format, kept=kept
    )
    reading = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)
    return OP_MODELS[TilizeOp].values(work, [source], reading)


def test_what_is_kept_begins_with_the_first_element():
    source = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert values(source, FLOAT32, FLOAT32, (1, 2, 3)).tolist() == [[[0, 1, 2], [4, 5, 6]]]
    assert values(source, FLOAT32, FLOAT32) is source


def test_another_format_rounds_what_is_kept_alone():
    """64 shares its exponent with 1.25 no more once it is cut off."""
    source = np.float32([[1.25, 1.25, 64.0]])
    assert values(source, FLOAT32, BFLOAT8_B).astype(np.float32).tolist() == [[1, 1, 64]]
    assert values(source, FLOAT32, BFLOAT8_B, (1, 2)).astype(np.float32).tolist() == [[1.25, 1.25]]
