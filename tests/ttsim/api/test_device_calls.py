"""What functions of device tensors share: equal calls are planned once, and all that is seen is the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttsim
from ops.passes.caches import PlanCache
from ttsim.api.device_calls import require_left_out, required_device

SIDE, CHANNELS = 16, 64
L1, DRAM = ttsim.L1_MEMORY_CONFIG, ttsim.DRAM_MEMORY_CONFIG
CORES = ttsim.CoreRangeSet({ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(7, 0))})
SHARDED = ttsim.MemoryConfig(
    ttsim.TensorMemoryLayout.HEIGHT_SHARDED,
    ttsim.BufferType.L1,
    ttsim.ShardSpec(CORES, (32, CHANNELS), ttsim.ShardOrientation.ROW_MAJOR),
)


def pooled(x: ttsim.Tensor, **options: Any) -> ttsim.Tensor:
    return ttsim.max_pool2d(
        input_tensor=x, batch_size=1, input_h=SIDE, input_w=SIDE, channels=CHANNELS,
        **{"kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1], **options},
    )  # fmt: skip


CALLS: dict[str, Callable[[ttsim.Tensor], ttsim.Tensor]] = {
    "pool": pooled,
    "pool, other stride": lambda x: pooled(x, stride=[1, 1]),
    "concat": lambda x: ttsim.concat([x, x], dim=3),
    "concat, other axis": lambda x: ttsim.concat([x, x], dim=2),
    "concat, other place": lambda x: ttsim.concat([x, x], dim=3, memory_config=L1),
    "to_layout": lambda x: ttsim.to_layout(x, ttsim.TILE_LAYOUT),
    "to_layout, other format": lambda x: ttsim.to_layout(x, ttsim.TILE_LAYOUT, ttsim.bfloat8_b),
    "tilize": lambda x: ttsim.tilize(x),
    "tilize on one core": lambda x: ttsim.tilize(x, use_multicore=False),
    "untilize": lambda x: ttsim.untilize(ttsim.tilize(x)),
    "typecast": lambda x: ttsim.typecast(ttsim.tilize(x), ttsim.float32),
    "to_memory_config": lambda x: ttsim.to_memory_config(x, SHARDED),
    "to_memory_config, other place": lambda x: ttsim.to_memory_config(x, L1),
    "shards and back": lambda x: ttsim.sharded_to_interleaved(ttsim.interleaved_to_sharded(x, SHARDED), L1),
    "move": lambda x: ttsim.move(ttsim.to_memory_config(x, L1)),
    "permute": lambda x: ttsim.permute(x, (0, 1, 3, 2)),
    "transpose": lambda x: ttsim.transpose(x, 2, 3),
}


def seen(device: ttsim.Device) -> list[tuple[str, str, str, bytes]]:
    """Of every call, made twice: events, report and values."""
    events: list[Any] = []
    device.machine.recorders.append(events)
    found = []
    for name, call in CALLS.items():
        for _ in range(2):
            values = np.random.default_rng(0).standard_normal((1, 1, SIDE * SIDE, CHANNELS), dtype=np.float32)
            x = ttsim.Tensor(values, ttsim.bfloat16).to(device, DRAM)
            with ttsim.profile(device) as profile:
                result = call(x)
            found.append((name, repr(events), profile.report().to_json(), result.cpu().to_numpy().tobytes()))
            events.clear()
    return found


def test_what_is_left_out_or_says_no_is_no_request():
    require_left_out("f", first=None, second=False, third=(), fourth=[])


@pytest.mark.parametrize("value", [0, True, "", (0,), np.zeros(0)], ids=str)
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(ttsim.ArgumentError, match=r"^f: other is not simulated; leave it out$"):
        require_left_out("f", none=None, other=value)


def test_a_tensor_on_the_host_has_no_device():
    with pytest.raises(ttsim.DeviceError, match=r"^f: Operands need to be on device!\n.*\.to\(device\)"):
        required_device("f", ttsim.Tensor([1.0]))


def test_what_is_seen_is_the_same_whether_plans_are_kept_or_not() -> None:
    shared, several = PlanCache(), []
    for plans in (PlanCache(0), shared, shared):
        with ttsim.open_device(l1_small_size=32768, values="fast") as device:
            device.plans = plans
            several.append(seen(device))
    assert several[0] == several[1] == several[2]


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_kept(name: str) -> None:
    kept = PlanCache()
    steps = []
    for _ in range(2):
        with ttsim.open_device(l1_small_size=32768, values="off") as device:
            device.plans = kept
            CALLS[name](ttsim.Tensor(np.zeros((1, 1, SIDE * SIDE, CHANNELS)), ttsim.bfloat16).to(device, DRAM))
        steps.append(kept.steps)
    assert 0 < steps[0] == steps[1]
