"""A planned halo: tensors and circular buffers by hand; plans of recorded calls hold both, too."""

import pytest

from device.spec.device_spec import load_spec
from ops.programs.halo.plan import BLOCK
from tests.ops.programs.halo.halos import halo_plan
from tests.shards import box

SPEC = load_spec("wormhole_n150")


def example(**changes):
    """8x8 image of 64 channels on 2x2 cores: 32 inputs and 32 outputs for each row of cores."""
    fields = {"scheme": BLOCK, "cores": box(2, 2), "channel_cores": 2, "input_rows": 32, "output_rows": 32}
    return halo_plan(**{"size": 8, "row_cores": 2, "width": 32} | fields | changes)


def buffers(plan):
    return [(buffer.name, buffer.size_bytes, buffer.view_of) for buffer in plan.circular_buffers]


def test_idle_cores_hold_nothing():
    """An input of 32 rows and 32 channels in shards for 64 and 64: one column of cores, 16 rows for each core."""
    plan = example(tiled=True, input_rows=64, input_matrix=(32, 32))
    assert plan.output.shape == (1, 1, 120, 32)
    assert plan.output.buffer(SPEC).num_cores == 2
    assert buffers(plan)[0] == ("input", 2048, "x")
    assert buffers(example(tiled=True, input_rows=64))[0] == ("input", 4096, "x")


def test_row_major_halo():
    """60 sticks of 64 bytes.

    Padding: one row of 10 + 1, then 1 + 1 between rows of the image: 6 runs, 3 for each processor. A core sends the
    rows of its own half and one row across: 4 and 5 transfers of a row, dealt 3 and 2.
    """
    plan = example()
    assert plan.ranges.max_sticks == 60
    assert plan.output.shape == (1, 1, 120, 64)
    assert buffers(plan) == [
        ("input", 2048, "x"),
        ("output", 3840, "halo"),
        ("padding_stick_0", 64, None),
        ("padding_stick_1", 64, None),
        ("padding_0", 16, "halo.padding_0"),
        ("padding_1", 16, "halo.padding_1"),
        ("gather_0", 2 * (1 + 3 + 2 * 3 + 3 + 3), "halo.gather_0"),
        ("gather_1", 2 * (1 + 3 + 2 * 3), "halo.gather_1"),
    ]


@pytest.mark.parametrize(("alignment_bytes", "stick_bytes"), [(16, 48), (32, 64)])
def test_sticks_lie_as_far_apart_in_circular_buffers_as_in_the_tensor(alignment_bytes, stick_bytes):
    """20 channels are 40 bytes."""
    plan = example(width=20, stick_alignment_bytes=alignment_bytes)
    assert [size for _, size, _ in buffers(plan)][:4] == [32 * stick_bytes, 60 * stick_bytes, stick_bytes, stick_bytes]
    spec = SPEC.replace(l1_alignment_bytes=alignment_bytes)
    assert plan.output.buffer(spec).bank_bytes == 60 * stick_bytes
