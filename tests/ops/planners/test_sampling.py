"""A draw of scores: buffers as ttnn 0.81.1 plans them, refusals in its words, and no values."""

import re

import pytest

import ttsim
from device.cores import CoreRange, CoreRangeSet
from device.errors import DeviceError
from ops.planners.sampling import SamplingArguments, plan_sampling
from tests.build import N150, tensor_spec

ROW = "32 bfloat16"


def planned(scores="1x1x32x64 tile", indices=None, counts="32 uint32", target=None, **options):
    call = SamplingArguments(
        scores=tensor_spec(scores),
        indices=tensor_spec(indices or f"{scores.split()[0]} uint32"),
        counts=tensor_spec(counts),
        shares=tensor_spec(options.pop("shares", ROW)),
        temperatures=tensor_spec(options.pop("temperatures", ROW)),
        target=None if target is None else tensor_spec(target),
        **options,
    )
    (step,) = plan_sampling(call, N150).steps
    return step


@pytest.mark.parametrize("columns", [32, 64, 1024])
def test_buffers(columns):
    sizes = [buffer.size_bytes for buffer in planned(f"1x1x32x{columns} tile").circular_buffers]
    assert sizes == [23 * 2048, 4 * (columns // 32) * 2048, 32 * (130 + 6 * 32)]


def test_a_core_for_each_user():
    cores = CoreRangeSet([CoreRange((0, 0), (3, 7))])
    assert planned(cores=cores).op.cores.num_cores() == 32
    assert planned(cores=cores).op.cores.bounding_box() == CoreRange((0, 0), (3, 7))


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"scores": "32x64 tile"}, "ShapeBase[] index out of range. 2 not in [-4, 2)"),
        ({"scores": "1x32x64 tile"}, "Sampling input_values must be rank-4; got rank 3"),
        ({"scores": "2x1x32x64 tile"}, "Sampling requires input dims 0 and 1 (N, C) to be 1; got [2, 1, 32, 64]!"),
        ({"scores": "1x1x33x64 tile"}, "Sampling currently supports between 1 and 32 users (one core per user); got"),
        ({"scores": "1x1x32x50 tile"}, "Input inner dim (50) must be non-zero and divisible by 32, pad if needed!"),
        ({"scores": "1x1x32x96 tile"}, "Input inner dim (96) must yield a power-of-2 number of tiles (Wt = W/32 = 3)"),
        ({"scores": "1x1x32x64 tile float32"}, "Only BFLOAT16 is supported for inputs!"),
        ({"scores": "1x1x32x64"}, "Only TILE_LAYOUT is supported for inputs!"),
        ({"indices": "1x1x32x64 bfloat16"}, "Only UINT32 & INT32 dtypes are supported for input indices!"),
        ({"indices": "1x1x32x64 tile uint32"}, "Only ROW_MAJOR is supported for input indices!"),
        ({"indices": "1x1x32x32 uint32"}, "Input values and indices must have the same shape!"),
        ({"counts": "32 bfloat16"}, "Only UINT32 & INT32 dtypes are supported for k!"),
        ({"shares": "32 float32"}, "Only BFLOAT16 dtypes are supported for p!"),
        ({"temperatures": "1x32"}, "temp must have shape [32] (one per user)!"),
        (
            {"cores": CoreRangeSet([CoreRange((0, 0), (3, 3))])},
            "Subcore grid must supply at least num_users (32)",
        ),
        ({"target": "1x1x1x32"}, "Only UINT32 & INT32 dtypes are supported for outputs!"),
        ({"target": "1x1x1x64 uint32"}, "Sampling preallocated output logical shape must be [1,1,1,32] (input dim 2)"),
    ],
)
def test_refusals(options, first):
    with pytest.raises(DeviceError, match=f"^{re.escape(first)}"):
        planned(**options)


def test_no_values():
    with ttsim.open_device() as device:
        scores = ttsim.zeros((1, 1, 2, 64), layout=ttsim.TILE_LAYOUT, device=device)
        indices = ttsim.zeros((1, 1, 2, 64), dtype=ttsim.uint32, device=device)
        counts, half = ttsim.full((2,), 4, dtype=ttsim.uint32, device=device), ttsim.full((2,), 0.5, device=device)
        with pytest.raises(ttsim.NotSimulatedError, match="a device draws scores at random"):
            ttsim.sampling(scores, indices, counts, half, half)
