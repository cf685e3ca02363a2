"""Tensors that a call joins or gathers on some cores: their buffers, by hand."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from ops.passes.cycles import operations_of
from ops.planners.concat import plan_concat
from ops.planners.gather import GatherArguments, plan_gather
from tests.build import N150, tensor_spec

SIX = CoreRangeSet([CoreRange(CoreCoord(2, 1), CoreCoord(4, 2))])


def gathered(text):
    call = GatherArguments(source=tensor_spec(text), indices=tensor_spec("128x128 uint32 tile"), dim=1, cores=SIX)
    return plan_gather(call, N150, l1_bytes=1 << 20)


@pytest.mark.parametrize(
    ("plan", "sizes"),
    [
        # Two tiles, or rows of 128 B, on their way through each core
        (plan_concat((tensor_spec("64x64 tile"),) * 2, 0, N150, cores=SIX), [4096]),
        (plan_concat((tensor_spec("64x64"),) * 2, 0, N150, cores=SIX), [256]),
        # Sixteen tiles of indices in four rows, fewer than cores: a row of four tiles, an index tile of 4 KiB
        (gathered("128x128 tile"), [8192, 4096]),
    ],
)
def test_buffers_lie_on_the_cores_that_may_be_used(plan, sizes):
    *_, last = operations_of(plan)
    assert [buffer.size_bytes for buffer in last.circular_buffers][: len(sizes)] == sizes
    assert {buffer.cores.num_cores() for buffer in last.circular_buffers} == {6}
    assert all(SIX.contains(buffer.cores) for buffer in last.circular_buffers)
