"""Attention of one token for each user, as ttnn 0.81.1 plans and refuses it on an 8x8 Wormhole."""

import pytest

from device.errors import DeviceError
from device.memory.memory_config import L1_HEIGHT_SHARDED_MEMORY_CONFIG
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.attention.sdpa_decode import DecodeArguments, plan_decode
from tests.build import tensor_spec

SPEC = load_spec("wormhole_n150")


def call(rows, positions, **changes):
    """A user's rows of tiles of queries with a position each, and two blocks of 64 keys."""
    named = {
        "query": tensor_spec(f"1x1x{32 * rows}x64 tile"),
        "key": tensor_spec("2x1x64x64 tile"),
        "value": tensor_spec("2x1x64x64 tile"),
        "table": tensor_spec("1x2 int32 rows"),
        "indices": tensor_spec(f"{positions} int32 rows"),
    }
    return DecodeArguments(**named | changes)


@pytest.mark.parametrize(
    ("rows", "cores", "chunk", "plain", "candidates"),
    [
        (1, 1, 32, 77_920, 75_872),
        (1, 5, 32, 110_688, 100_448),  # parts of a head are joined in rounds: three instead of four
        (1, 8, 32, 135_264, 100_448),
        (1, 64, 32, 594_016, 125_024),
        (2, 1, 0, 305_248, 200_800),  # kernels choose among up to four tiles of keys
    ],
)
def test_rows_of_tiles_with_a_position_each(rows, cores, chunk, plain, candidates):
    for count, bytes_ in ((0, plain), (rows, candidates)):
        blocks = {"table": tensor_spec("1x8 int32 rows"), "key": tensor_spec("8x1x64x64 tile")} if not chunk else {}
        blocks |= {"value": blocks["key"]} if blocks else {}
        named = {"grid": (8, 8), "chunk": chunk, "most_cores": cores, "candidates": count, **blocks}
        plan = plan_decode(call(rows, count or 1, **named), SPEC)
        (step,) = [step for step in plan.steps if isinstance(step, Operation)]
        assert sum(buffer.size_bytes for buffer in step.circular_buffers if buffer.view_of is None) == bytes_
        assert bool(plan.without_values) is bool(count)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"query": tensor_spec("1x1x64x64 tile bfloat8_b"), "key": tensor_spec("2x2x64x64 tile")},
         "spec_multi_pos_tiles requires a BFLOAT16 Q tensor, got DataType::BFLOAT8_B"),
        ({"query": tensor_spec("1x1x64x64 tile height/64x64/1")},
         "spec_multi_pos_tiles requires an unsharded (DRAM interleaved) Q tensor"),
        ({"mask": tensor_spec("1x1x64x128 tile")}, "spec_multi_pos_tiles is not supported with an explicit attn_mask"),
        ({"indices": tensor_spec("3 int32 rows"), "modulo": 7},
         "cache_position_modulo (7) must be a multiple of effective block_size (64)"),
        ({"indices": tensor_spec("3 int32 rows")},
         "spec_multi_pos_tiles=2: cur_pos must have 2 entries (B=1 groups of 2), got 3"),
        ({"place": L1_HEIGHT_SHARDED_MEMORY_CONFIG, "query": tensor_spec("1x1x64x64 tile float32")},
         "bad optional access"),
    ],
)  # fmt: skip
def test_candidates_and_places_that_the_real_library_refuses(changes, text):
    with pytest.raises(DeviceError) as error:
        plan_decode(call(2, 2, candidates=2, **changes), SPEC)
    assert str(error.value).startswith(text)
