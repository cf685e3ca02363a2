import numpy as np
import pytest

import ttsim


def test_defaults_are_those_of_the_real_library() -> None:
    output = ttsim.zeros((2, 3))
    assert (output.shape, output.dtype, output.layout) == ([2, 3], ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT)
    assert ttsim.full((2, 2), 7, ttsim.int32).to_list() == [[7, 7], [7, 7]]
    assert ttsim.ones([1, 4]).to_list() == [[1.0] * 4]
    assert ttsim.arange(5).to_list() == [0, 1, 2, 3, 4]
    assert ttsim.arange(0, 10, 3, ttsim.int32).to_list() == [0, 3, 6, 9]


def test_on_a_device() -> None:
    with ttsim.open_device() as device:
        place = ttsim.L1_MEMORY_CONFIG
        output = ttsim.zeros((1, 1, 32, 64), ttsim.bfloat8_b, ttsim.TILE_LAYOUT, device, place)
        assert output.memory_config() == place
        like = ttsim.full_like(output, 2.0)
        assert (like.dtype, like.layout, like.device()) == (ttsim.bfloat8_b, ttsim.TILE_LAYOUT, device)
        assert like.memory_config() == place
        assert (like.to_numpy() == 2).all()
        random = ttsim.rand((32, 32), device)
        assert (random.dtype, random.layout) == (ttsim.bfloat16, ttsim.TILE_LAYOUT)
        assert 0.4 < float(random.to_numpy().mean()) < 0.6
        assert (random.to_numpy() == ttsim.rand((32, 32), device).to_numpy()).all()
        assert ttsim.empty_like(like).shape == [1, 1, 32, 64]
        assert ttsim.zeros_like(like).to_numpy().sum() == 0
        assert ttsim.ones_like(like).to_numpy().mean() == 1
        assert ttsim.empty((4, 4), device=device).layout is ttsim.ROW_MAJOR_LAYOUT


def test_device_operations_and_what_they_leave_behind() -> None:
    """Random rows of integers are drawn as float32, cast and untilized; a 16-bit Dst cuts a number that fills tiles."""
    with ttsim.open_device() as device, ttsim.profile(device) as profiled:
        ttsim.rand((64, 64), device, dtype=ttsim.uint32, layout=ttsim.ROW_MAJOR_LAYOUT, low=0, high=9)
        tiles = ttsim.zeros((64, 64), ttsim.bfloat16, ttsim.TILE_LAYOUT, device)
        assert (ttsim.full_like(tiles, 1.00390625 + 2**-9).to_numpy() == 1).all()
        rows = ttsim.full_like(tiles, 1.00390625 + 2**-9, layout=ttsim.ROW_MAJOR_LAYOUT)
        assert (rows.to_numpy() == 1.0078125).all()  # rounded on the host
        ttsim.empty_like(tiles)
        names = [operation.name for call in profiled.report().calls for operation in call.operations]
    result = ["Rand", "Typecast", "Untilize", "Unary"]
    assert [name.removesuffix("DeviceOperation") for name in names] == result
    assert all(operation.cycles for call in profiled.report().calls for operation in call.operations)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: ttsim.zeros((2, -1)), r"full: shape must be non-negative integers, not \(2, -1\)"),
        (lambda x: ttsim.full((2, 2), "x"), "full: fill_value must be a Real, not 'x'"),
        (lambda x: ttsim.zeros((2, 2), np.float32), "full: dtype must be a DataType"),
        (lambda x: ttsim.zeros((65536, 65536), device=5), "Tensor: device must be a Device, not 5"),
        (lambda x: ttsim.zeros_like(x, memory_config=5), "zeros_like: memory_config must be a MemoryConfig, not 5"),
        (lambda x: ttsim.zeros_like(x, device=5), "Tensor: device must be a Device, not 5"),
        (lambda x: ttsim.rand((2, 2), x.device(), memory_config=5), "rand: memory_config must be a MemoryConfig"),
        (lambda x: ttsim.rand((2, 2), 5), "rand: device must be a Device, not 5"),
        (lambda x: ttsim.arange(0, 4, 0.5), "arange: step must be a int, not 0.5"),
    ],
)
def test_wrong_arguments_are_named(call, text) -> None:  # type: ignore[no-untyped-def]
    with (
        ttsim.open_device(values="off") as device,
        pytest.raises(ttsim.ArgumentTypeError, match=f"^{text}"),
    ):
        call(ttsim.zeros((32, 32), layout=ttsim.TILE_LAYOUT, device=device))


def test_a_step_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="step must not be 0"):
        ttsim.arange(0, 4, 0)
