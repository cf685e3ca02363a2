from typing import Any

import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError, DeviceError


def tensor(values: Any, device: ttsim.Device | None, dtype: Any = ttsim.bfloat16, place: Any = None) -> ttsim.Tensor:
    return ttsim.Tensor(np.asarray(values, np.float32), dtype, device, ttsim.TILE_LAYOUT, place)


@pytest.fixture(params=["exact", "fast"])
def device(request: pytest.FixtureRequest) -> ttsim.Device:
    return ttsim.open_device(values=request.param)


@pytest.mark.parametrize("place", [ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG])
@pytest.mark.parametrize("axes", [2, 3, 4])
def test_small_integers_come_out_exactly(device, place, axes):
    rng = np.random.default_rng(1)
    first, second = rng.integers(-2, 3, (40, 70)), rng.integers(-1, 2, (70, 50))
    offset, leading = rng.integers(-3, 4, (1, 50)), (1,) * (axes - 2)
    given = [tensor(values.reshape(*leading, *values.shape), device, place=place) for values in (first, second)]
    product = ttsim.matmul(*given)
    assert product.shape == [*leading, 40, 50]
    assert product.to_numpy().reshape(40, 50).astype(int).tolist() == (first @ second).tolist()
    shifted = ttsim.linear(*given, bias=tensor(offset, device), activation="relu", memory_config=place)
    expected = np.maximum(first @ second + offset, 0)
    assert shifted.to_numpy().reshape(40, 50).astype(int).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("place", "turned"),
    [
        (ttsim.DRAM_MEMORY_CONFIG, (True, False)),
        (ttsim.DRAM_MEMORY_CONFIG, (False, True)),
        (ttsim.L1_MEMORY_CONFIG, (False, False)),
        (ttsim.L1_MEMORY_CONFIG, (True, True)),
    ],
)
@pytest.mark.parametrize(("first_batches", "second_batches"), [((2, 3), (1, 1)), ((2, 3), (2, 3)), ((1, 1), (2, 3))])
def test_batches_and_transposed_operands(device, place, first_batches, second_batches, turned):
    rng = np.random.default_rng(2)
    first, second = rng.integers(-2, 3, (*first_batches, 40, 70)), rng.integers(-1, 2, (*second_batches, 70, 50))
    given = [
        tensor(np.swapaxes(one, -1, -2) if swap else one, device, place=place)
        for one, swap in zip((first, second), turned, strict=True)
    ]
    options = {"transpose_a": turned[0], "transpose_b": turned[1], "memory_config": place}
    if place == ttsim.L1_MEMORY_CONFIG and first_batches == (1, 1):  # a program of single tiles
        with pytest.raises(ArgumentError, match="batch dimension 0 mismatch: a=1 vs b=2"):
            ttsim.matmul(*given, **options)
        return
    product = ttsim.matmul(*given, **options)
    assert product.shape == [2, 3, 40, 50]
    assert product.to_numpy().astype(int).tolist() == (first @ second).tolist()
    if place == ttsim.DRAM_MEMORY_CONFIG or not any(turned):
        offset = rng.integers(-3, 4, (1, 50))
        shifted = ttsim.linear(*given, bias=tensor(offset, device), **options)
        assert shifted.to_numpy().astype(int).tolist() == (first @ second + offset).tolist()


def test_the_output_has_as_many_axes_as_the_argument_that_has_most(device):
    first, second = tensor(np.ones((32, 64)), device), tensor(np.ones((64, 32)), device)
    bias = tensor(np.ones((1, 1, 1, 32)), device)
    assert ttsim.matmul(first, tensor(np.ones((1, 1, 64, 32)), device)).shape == [1, 1, 32, 32]
    assert ttsim.linear(first, second, bias=bias).shape == [1, 1, 32, 32]
    assert ttsim.linear(first, second, bias=bias, memory_config=ttsim.L1_MEMORY_CONFIG).shape == [1, 1, 32, 32]


def test_output_format_and_place(device):
    first, second = tensor(np.ones((32, 64)), device), tensor(np.ones((64, 32)), device, ttsim.bfloat8_b)
    config = ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.HiFi4, fp32_dest_acc_en=True)
    output = ttsim.matmul(
        first, second, dtype=ttsim.float32, memory_config=ttsim.L1_MEMORY_CONFIG, compute_kernel_config=config
    )
    assert output.dtype == ttsim.float32
    assert output.memory_config() == ttsim.L1_MEMORY_CONFIG
    assert set(output.to_numpy().ravel().tolist()) == {64.0}
    assert ttsim.matmul(first, second).dtype == ttsim.bfloat16


@pytest.mark.parametrize(
    ("dtype", "kept"), [(ttsim.bfloat16, 1 + 2.0**-7), (ttsim.float32, 1 + 2.0**-7 + 2.0**-8 + 2.0**-9)]
)
def test_a_float32_bias_is_cut_to_what_dst_holds(device, dtype, kept):
    """Section G8 of the review: to bfloat16 for a 16-bit Dst, to TF32 for a 32-bit one."""
    zeros = tensor(np.zeros((32, 32)), device)
    offset = tensor(np.full((1, 32), 1 + 2.0**-7 + 2.0**-8 + 2.0**-9 + 2.0**-12), device, ttsim.float32)
    assert set(ttsim.linear(zeros, zeros, bias=offset, dtype=dtype).to_numpy().ravel().tolist()) == {kept}


def test_wrong_calls_are_refused(device):
    first, second = tensor(np.ones((32, 64)), device), tensor(np.ones((64, 32)), device)
    with pytest.raises(DeviceError, match="Operand to matmul must be on device"):
        ttsim.matmul(first.cpu(), second)
    with pytest.raises(ArgumentError, match="linear: optional_output_tensor is not simulated"):
        ttsim.linear(first, second, optional_output_tensor=first)
    with pytest.raises(ArgumentError, match="there is no activation 'rely'"):
        ttsim.matmul(first, second, activation="rely")
    with pytest.raises(TypeError, match="there is no 'bias'"):
        ttsim.matmul(first, second, bias=second)
    with pytest.raises(TypeError, match="input_tensor_a is given twice"):
        ttsim.matmul(first, second, input_tensor_a=first)
    with pytest.raises(TypeError, match="came without a name"):
        ttsim.matmul(first, second, second)
