"""A record of two convolutions and a sum, and the same with names that mean harm."""

from dataclasses import replace

import numpy as np
import pytest

import ttsim as ttnn
from ops.op_model import Description
from ttsim.recording.record import record_of

HOSTILE = "a,b;c'd\"e\nf\r\tg\x00\x1b[31mh\ud800<i>&\u202e=1+1" + "x" * 10_000


def network(device):
    """Two calls of one layer, and a sum of what they make."""
    x = ttnn.Tensor(np.zeros((1, 1, 256, 32), np.float32), ttnn.bfloat16).to(device)
    w = ttnn.Tensor(np.zeros((32, 32, 2, 2), np.float32), ttnn.bfloat16)
    first, second = (
        ttnn.conv_transpose2d(
            input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=32, batch_size=1,
            input_height=16, input_width=16, kernel_size=(2, 2), stride=(2, 2))
        for _ in range(2)
    )  # fmt: skip
    return ttnn.add(first, second)


@pytest.fixture(scope="package")
def record():
    with ttnn.open_device(l1_small_size=32768, values="off") as device, ttnn.profile(device) as profile:
        kept = network(device)
        made = record_of(profile, "net")
    del kept
    return made


@pytest.fixture(scope="package")
def failed():
    """A call whose result does not fit."""
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
        x = ttnn.Tensor(np.zeros((1, 1, 8192, 8192), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT).to(device)
        with pytest.raises(ttnn.OutOfMemoryError):
            ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG)
        return record_of(profile, "failed")


@pytest.fixture(scope="package")
def hostile(record):
    calls = tuple(
        replace(
            one,
            function=HOSTILE,
            where=HOSTILE,
            arguments=((HOSTILE, HOSTILE),),
            error=HOSTILE,
            nodes=tuple(map(harmed, one.nodes)),
        )
        for one in record.calls
    )
    attributes = Description(attributes=((HOSTILE, HOSTILE),))
    operations = tuple(
        replace(one, name=HOSTILE, timed=replace(one.timed, description=attributes)) for one in record.operations
    )
    lifetimes = tuple(one._replace(made_at=(HOSTILE, 1), last_read_at=(HOSTILE, 2)) for one in record.lifetimes)
    cycles = replace(record.cycles, device=HOSTILE)
    return replace(record, calls=calls, operations=operations, lifetimes=lifetimes, cycles=cycles)


def harmed(node):
    """A node whose name means harm."""
    params = node["params"]
    return {**node, "params": {**params, "name": HOSTILE}} if params and "name" in params else node
