"""What outlives what: several devices in one process, calls after failed ones, tensors after their release."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.sizes import conv_sizes

L1 = ttnn.L1_MEMORY_CONFIG
SCALED = {"stride": (2, 2), "padding": (1, 1), "output_padding": (1, 1)}


def call(device, x, side=8, **options):
    w = ttnn.Tensor(np.random.default_rng(1).standard_normal((32, 32, 3, 3), np.float32), ttnn.bfloat16)
    sizes = conv_sizes(side, side, 32, 32, 3, 3)
    return ttnn.conv_transpose2d(input_tensor=x, weight_tensor=w, device=device, **sizes, **SCALED, **options)


def image(device, memory=ttnn.DRAM_MEMORY_CONFIG, side=8):
    values = np.random.default_rng(0).standard_normal((1, 1, side * side, 32), np.float32)
    return ttnn.Tensor(values, ttnn.bfloat16).to(device, memory)


def opened(spec="wormhole_n150"):
    return ttnn.open_device(l1_small_size=32768, spec=spec)


def test_two_devices_do_not_know_of_each_other():
    with opened() as first, opened("blackhole_p150") as second:
        a = image(first)
        out_a, out_b = call(first, a).to_numpy(), call(second, image(second)).to_numpy()
        assert np.array_equal(out_a, call(first, a).to_numpy())
        assert np.corrcoef(out_a.ravel(), out_b.ravel())[0, 1] > 0.999
        second.close()
        assert np.array_equal(call(first, a).to_numpy(), out_a)


def test_a_failed_call_leaves_the_device_as_it_was():
    with opened() as device:
        x = image(device)
        want = call(device, x)
        before, address = device.machine.allocator.statistics(ttnn.BufferType.L1), want.buffer.address
        want.deallocate()
        config = ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.WIDTH_SHARDED)
        large = image(device, side=256)
        with pytest.raises(ttnn.DeviceError, match="L1"):
            call(device, large, 256, conv_config=config, dram_slice_config=ttnn.Conv2dL1FullSliceConfig)
        large.deallocate()
        assert device.machine.allocator.statistics(ttnn.BufferType.L1) == before
        assert call(device, x).buffer.address == address


def of_another_device(device):
    return image(opened())


def released(device):
    x = image(device, L1)
    x.deallocate()
    with pytest.raises(ttnn.DeviceError, match="allocated"):
        x.to_numpy()
    return x


def consumed(device):
    x = image(device, L1)
    call(device, x, conv_config=ttnn.Conv2dConfig(deallocate_activation=True))
    assert not x.is_allocated()
    return x


def on_a_closed_device(device):
    x = image(device)
    device.close()
    return x


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (of_another_device, "lives on another device"),
        (released, "allocated"),
        (consumed, "allocated"),
        (on_a_closed_device, "closed|allocated"),
    ],
)
def test_a_tensor_that_is_not_there_is_refused(make, text):
    with opened() as device:
        x = make(device)
        with pytest.raises(ttnn.DeviceError, match=text):
            call(device, x)
