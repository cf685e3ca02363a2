"""What outlives what: several devices in one process, calls after failed ones, tensors after their release."""

import numpy as np
import pytest

import ttsim as ttnn
from device.errors import DeviceError


def call(device, x, **changes):
    shape = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "input_height": 8, "input_width": 8}
    options = {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1), "output_padding": (1, 1)}
    rng = np.random.default_rng(1)
    w = ttnn.Tensor(rng.standard_normal((32, 32, 3, 3), np.float32), ttnn.bfloat16)
    return ttnn.conv_transpose2d(input_tensor=x, weight_tensor=w, device=device, **{**shape, **options, **changes})


def image(device, memory=None):
    x = ttnn.Tensor(np.random.default_rng(0).standard_normal((1, 1, 64, 32), np.float32), ttnn.bfloat16)
    return x.to(device, ttnn.DRAM_MEMORY_CONFIG if memory is None else memory)


def opened(spec="wormhole_n150", **options):
    return ttnn.open_device(l1_small_size=32768, spec=spec, **options)


def test_two_devices_do_not_know_of_each_other():
    with opened() as first, opened("blackhole_p150") as second:
        a, b = image(first), image(second)
        out_a, out_b = call(first, a), call(second, b)
        again = call(first, a)
        assert np.array_equal(out_a.to_numpy(), again.to_numpy())
        assert np.corrcoef(out_a.to_numpy().ravel(), out_b.to_numpy().ravel())[0, 1] > 0.999
        second.close()
        assert np.array_equal(call(first, a).to_numpy(), out_a.to_numpy())


def test_a_tensor_of_another_device_is_refused():
    with opened() as first, opened() as second, pytest.raises(DeviceError, match="device"):
        call(first, image(second))


def test_a_failed_call_leaves_the_device_as_it_was():
    with opened() as device:
        x = image(device)
        want = call(device, x)
        before = device.machine.allocator.statistics(ttnn.BufferType.L1)
        address = want.buffer.address
        want.deallocate()
        blocks = ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.WIDTH_SHARDED)
        full = ttnn.Conv2dL1FullSliceConfig
        large = ttnn.Tensor(np.zeros((1, 1, 256 * 256, 32), np.float32), ttnn.bfloat16).to(device)
        with pytest.raises(DeviceError, match="L1"):
            call(device, large, input_height=256, input_width=256, conv_config=blocks, dram_slice_config=full)
        large.deallocate()
        assert device.machine.allocator.statistics(ttnn.BufferType.L1) == before
        again = call(device, x)
        assert again.buffer.address == address


def test_a_released_tensor_can_not_be_used_again():
    with opened() as device:
        x = image(device, ttnn.L1_MEMORY_CONFIG)
        x.deallocate()
        with pytest.raises(DeviceError, match="allocated"):
            call(device, x)
        with pytest.raises(DeviceError, match="allocated"):
            x.to_numpy()


def test_an_input_in_l1_is_gone_once_it_is_consumed():
    with opened() as device:
        x = image(device, ttnn.L1_MEMORY_CONFIG)
        call(device, x, conv_config=ttnn.Conv2dConfig(deallocate_activation=True))
        assert not x.is_allocated()
        with pytest.raises(DeviceError, match="allocated"):
            call(device, x)


def test_a_closed_device_says_so():
    device = opened()
    x = image(device)
    device.close()
    with pytest.raises(DeviceError, match=r"closed|allocated"):
        call(device, x)
