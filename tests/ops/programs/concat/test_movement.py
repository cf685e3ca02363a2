"""What a concatenation takes: the pages of its result, from where its tensors lie."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.op_model import CyclesContext, Ends
from ops.op_models import OP_MODELS, load_spec
from ops.programs.concat import Concatenate

MEANING = OP_MODELS[Concatenate]
WORK = Concatenate(axis=3, shapes=((1, 1, 64, 32), (1, 1, 64, 96)))
SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(("place", "read_bytes"), [(DRAM_MEMORY_CONFIG, 8 * 2048), (L1_MEMORY_CONFIG, 0)])
def test_all_of_the_result_is_read_where_the_first_tensor_lies(place, read_bytes):
    first = TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.TILE, place)
    written = TensorSpec((1, 1, 64, 128), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)
    ends = Ends(read=first, written=written)
    assert MEANING.cycles is not None
    cycles = MEANING.cycles(WORK, ends, CyclesContext(spec=SPEC, contention=True))
    assert (cycles.dram_read_bytes, cycles.dram_written_bytes) == (read_bytes, 8 * 2048)
    facts = {fact.name: fact.value for fact in MEANING.account(WORK, ends, SPEC).facts}
    assert (facts["cores"], facts["pages_read"], facts["pages_written"]) == (8, 8, 8)
