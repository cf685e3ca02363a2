"""Heads that are split out of shards, as ttnn 0.81.1 plans and refuses them on an 8x8 Wormhole."""

import pytest

from device.errors import DeviceError
from device.memory.memory_config import L1_HEIGHT_SHARDED_MEMORY_CONFIG
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.attention.heads import SplitArguments, plan_split
from tests.build import tensor_spec

SPEC = load_spec("wormhole_n150")
PLACE = L1_HEIGHT_SHARDED_MEMORY_CONFIG


@pytest.mark.parametrize("words", ["width/32x256/2", "width/32x256/2 dram"])
def test_a_core_takes_the_queries_of_a_key(words):
    source = tensor_spec(f"1x1x32x512 tile {words}")
    plan = plan_split(SplitArguments(source=source, heads=4, kv_heads=2, place=PLACE), SPEC)
    (step,) = [step for step in plan.steps if isinstance(step, Operation)]
    views = [(buffer.view_of, buffer.size_bytes, buffer.cores.num_cores()) for buffer in step.circular_buffers]
    assert views == [("query", 4096, 4), ("key", 4096, 2), ("value", 4096, 2)]
    assert plan.without_values


@pytest.mark.parametrize(
    ("source", "other", "options", "text"),
    [
        ("1x1x32x512 tile width/32x128/4", None, {"heads": 4, "kv_heads": 2},
         "Number of KV heads (2) must be divisible by number of cores (4)"),
        ("1x1x32x512 tile width/32x128/4", None, {"heads": 2, "kv_heads": 3},
         "Number of Q heads (2) must be >= number of KV heads (3)"),
        ("1x1x32x512 tile width/32x512/1", None, {"heads": 4, "kv_heads": 2},
         "Shard spec shape[1] (512) must equal (num_q_heads / num_kv_heads + 2) * head_dim (256)"),
        ("1x1x32x256 tile width/32x128/2", "1x1x32x256 tile", {"heads": 4, "kv_heads": 2},
         "Input tensor KV must be sharded"),
        ("1x1x32x256 tile width/32x128/2", "1x1x32x256 tile width/32x64/4", {"heads": 4, "kv_heads": 2},
         "Input tensor and KV tensor must have the same shard grid"),
        ("1x1x32x256 tile width/32x128/2", None, {"heads": 4, "kv_heads": 2, "transposed": True},
         "Transpose K heads must be false"),
        ("1x1x32x256 tile", "1x1x32x256 tile", {"heads": 4, "kv_heads": 0},
         "num_kv_heads must be greater than 0 when a KV tensor is given"),
    ],
)  # fmt: skip
def test_shards_that_the_real_library_refuses(source, other, options, text):
    other = None if other is None else tensor_spec(other)
    call = SplitArguments(source=tensor_spec(source), other=other, place=PLACE, **options)
    with pytest.raises(DeviceError) as error:
        plan_split(call, SPEC)
    assert str(error.value).startswith(text)
