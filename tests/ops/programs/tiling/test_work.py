"""What programs tell of themselves that lay tensors out anew."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.meaning import Ends
from ops.meanings import MEANINGS, load_spec
from ops.programs.movement.work import Conversion
from ops.programs.tiling.work import LayOut


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
    work = LayOut(conversion=conversion, source_format=BFLOAT16, data_format=made_format)
    assert MEANINGS[LayOut].account(work, ends, load_spec("wormhole_n150")).measured_as == measured_as
