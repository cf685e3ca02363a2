"""ttnn.pad by pairs or by shape, and of host tensors: expected shapes and errors are those of ttnn 0.81.1."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import numbers, operations, put


@pytest.mark.parametrize("layout", ["rows", "tile"])
def test_a_shape_says_what_comes_out(device, layout):
    x = put(device, f"1x2x30x16 {layout}")
    padded = ttnn.pad(x, [1, 4, 32, 16], [0, 0, 0, 0], 3.0)
    wanted = np.pad(numbers(1, 2, 30, 16), ((0, 0), (0, 2), (0, 2), (0, 0)), constant_values=3.0)
    assert np.array_equal(padded.to_numpy(), wanted)
    assert ttnn.pad(x, output_padded_shape=[1, 2, 30, 16], input_tensor_start=[0, 0, 0, 0], value=0) is not None


def test_a_start_puts_the_tensor_behind_the_constant(device):
    padded = ttnn.pad(put(device, "1x1x2x16 rows"), (1, 1, 4, 16), (0, 0, 1, 0), 7.0)
    assert padded.to_numpy()[0, 0, :, 0].tolist() == [7.0, *numbers(1, 1, 2, 16)[0, 0, :, 0].tolist(), 7.0]


REFUSED = [
    ("1x2x30x16 rows", ([1, 1, 30, 16], [0, 0, 0, 0], 0.0), "Output size cannot fit input with offset"),
    ("1x2x30x16 rows", ([1, 2, 32, 16], [0, 0, 4, 0], 0.0), "Output size cannot fit input with offset"),
    ("2x1x2x30x16 rows", ([1, 2, 32, 16], [0, 0, 0, 0], 0.0), "Output size cannot fit input with offset"),
    ("2x30x16 rows", ([1, 2, 32, 16], [0, 0, 0, 0], 0.0), r"ShapeBase\[\] index out of range. 3 not in \[-4, 3\)"),
    ("1x2x30x16 tile", ([1, 2, 32, 16], [0, 0, 2, 0], 0.0), "ttnn.pad: on device tile padding does not support front"),
    ("1x2x30x16 rows", ([1, 2, 32, 16], [0, 0, 0, 0]), r"ttnn.pad\(\): incompatible function arguments"),
    ("1x2x30x16 rows", ([1, 2, 32], [0, 0, 0], 0.0), r"ttnn.pad\(\): incompatible function arguments"),
    ("1x2x30x16 rows", ([(0, 2), (0, 0)],), r"ttnn.pad\(\): incompatible function arguments"),
]


@pytest.mark.parametrize(("words", "arguments", "first"), REFUSED)
def test_what_does_not_fit_is_refused(device, words, arguments, first):
    with pytest.raises((ttnn.DeviceError, ttnn.ArgumentTypeError), match=f"^{first}"):
        ttnn.pad(put(device, words), *arguments)


def test_padding_of_a_host_tensor_is_no_part_of_its_shape():
    """So it is in ttnn, where the padded shape alone grows, and front padding pushes elements out of sight."""
    x = ttnn.Tensor(np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3))
    padded = ttnn.pad(x, [(0, 0), (0, 0), (0, 1), (0, 1)], 1.0)
    assert (padded.shape, padded.padded_shape) == ([1, 1, 2, 3], [1, 1, 3, 4])
    assert padded.to_numpy()[0, 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.pad([1, 1, 4, 4], [0, 0, 1, 1], 0.0).to_numpy()[0, 0].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert padded.unpad([0, 0, 0, 1], [1, 1, 2, 3]).to_numpy()[0, 0].tolist() == [[1, 2], [4, 5]]
    for refused in (lambda: x.pad([1, 1, 1, 4], [0, 0, 0, 0], 0.0), lambda: x.unpad([0, 0, 1, 0], [1, 1, 1, 2])):
        with pytest.raises(ttnn.DeviceError):
            refused()


def test_tensors_without_elements_are_on_the_device(device):
    """They have no buffer: ttnn gives them address 0. Views keep them."""
    for layout, padded in ((ttnn.ROW_MAJOR_LAYOUT, [1, 2, 0]), (ttnn.TILE_LAYOUT, [1, 32, 0])):
        x = ttnn.Tensor(np.zeros((1, 2, 0), np.float32), ttnn.bfloat16, layout=layout).to(device)
        assert (x.shape, x.padded_shape, x.buffer_address()) == ([1, 2, 0], padded, 0)
        assert x.to_numpy().shape == (1, 2, 0)
        assert ttnn.reshape(x, (2, 0)).shape == ttnn.squeeze(x, 0).shape == [2, 0]
        assert ttnn.unsqueeze_to_4D(x).cpu().shape == [1, 1, 2, 0]
        ttnn.deallocate(x)
        assert not x.is_allocated()


def test_integers_without_a_type_become_unsigned():
    """As in ttnn: 64 bits become UINT32, 16 bits UINT16, of which the lower bits stay."""
    wide = ttnn.Tensor(np.array([[-1, 70000, 2**33 + 5]], np.int64))
    assert (wide.dtype, wide.to_list()) == (ttnn.uint32, [[4294967295, 70000, 5]])
    narrow = ttnn.Tensor(np.array([[-1, 7000]], np.int16))
    assert (narrow.dtype, narrow.to_list()) == (ttnn.uint16, [[65535, 7000]])


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ("2x30x16 tile", "FillPad"),
        ("2x30x16 tile bfloat8_b", "Typecast FillPad Typecast"),
        ("2x32x64 tile", ""),
    ],
)
def test_padding_of_tiles_is_filled(device, words, steps):
    x = put(device, words)
    assert operations(lambda: ttnn.fill_implicit_tile_padding(x, 2.0)) == steps.split()
    filled = ttnn.fill_implicit_tile_padding(x, 2.0)
    assert np.array_equal(filled.to_numpy(), x.to_numpy())
    assert (filled.buffer_address() == x.buffer_address()) == ("Typecast" not in steps)


def test_rows_have_no_padding_of_tiles(device):
    with pytest.raises(ttnn.DeviceError, match=r"^FillPad should only be used for tile layout"):
        ttnn.fill_implicit_tile_padding(put(device, "2x30x16 rows"), 2.0)


@pytest.mark.parametrize("layout", ["rows", "tile"])
def test_one_program_pads_behind_first_axes_of_one_element(device, layout):
    x = put(device, f"1x2x3x32x64 {layout}")
    around = [(0, 0), (0, 2), (0, 0), (0, 32), (0, 0)]
    assert operations(lambda: ttnn.pad(x, around, 1.5)) == ["Pad"]
    assert np.array_equal(ttnn.pad(x, around, 1.5).to_numpy(), np.pad(x.to_numpy(), around, constant_values=1.5))
