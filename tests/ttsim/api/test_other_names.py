"""Arguments under the names of the other forms that the real library's functions have.

Compared with ttnn 0.81.1, whose functions print their forms for wrong arguments.
"""

import numpy as np
import pytest

import ttsim as ttnn


@pytest.fixture
def x(device):
    return ttnn.Tensor(np.array([[1.0, 2.0, 5.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)


@pytest.fixture
def n(device):
    return ttnn.Tensor(np.array([[12, 3, 5]]), ttnn.int32, device, ttnn.TILE_LAYOUT)


@pytest.mark.parametrize(
    ("name", "named", "values"),
    [
        ("bitwise_and", {"input_b": 6}, [4, 2, 4]),
        ("bitwise_left_shift", {"input_b": 1}, [24, 6, 10]),
        ("logical_left_shift", {"input_b": 1}, [24, 6, 10]),
    ],
)
def test_numbers_of_integers(n, name, named, values):
    assert getattr(ttnn, name)(n, **named).to_list() == [values]


@pytest.mark.parametrize(
    ("name", "named", "values"),
    [
        ("maximum", {"input_b": 3.0}, [3, 3, 5]),
        ("minimum", {"input_b": 3.0}, [1, 2, 3]),
        ("rsub", {"input_b": 3.0}, [2, 1, -2]),
        ("fmod", {"scalar": 2.0}, [1, 0, 1]),
        ("div", {"value": 2.0}, [0.5, 1, 2.5]),
        ("divide", {"value": 2.0}, [0.5, 1, 2.5]),
        ("floor_div", {"value": 2.0}, [0, 1, 2]),
        ("div_no_nan", {"value": 2.0}, [0.5, 1, 2.5]),
        ("mac", {"value1": 2.0, "value2": 1.0}, [3, 5, 11]),
        ("multiply_", {"input_b": 2.0}, [2, 4, 10]),
        ("eq_", {"input_b": 2.0}, [0, 1, 0]),
        ("rsub_", {"input_b": 3.0}, [2, 1, -2]),
        ("div_", {"input_b": 2.0}, [0.5, 1, 2.5]),
    ],
)
def test_numbers_of_floats(x, name, named, values):
    assert getattr(ttnn, name)(x, **named).to_list() == [values]


def test_tensors_that_may_be_numbers(x):
    two = ttnn.full_like(x, 2.0)
    assert ttnn.floor_div(x, input_tensor_b=two).to_list() == [[0, 1, 2]]
    assert ttnn.div_no_nan(x, input_tensor_b=two).to_list() == [[0.5, 1, 2.5]]
    assert ttnn.mac(x, two, value=1.0).to_list() == [[3, 5, 11]]
    assert ttnn.mac(x, value=3.0, input_tensor_c=two).to_list() == [[5, 8, 17]]
    assert ttnn.multiply_(input_a=x, input_b=two) is x


def test_a_name_that_is_taken_is_told(x):
    with pytest.raises(ttnn.errors.ArgumentTypeError) as refused:
        ttnn.div(x, 2.0, value=3.0)
    first, second, *_ = str(refused.value).splitlines()
    assert first == "ttnn.div(): incompatible function arguments."
    assert second == "div: value is another name of input_tensor_b, which is given, too"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: ttnn.maximum(x, input_tensor_b=2.0), "input_tensor_b is a tensor; a number has the name input_b"),
        (lambda x: ttnn.div(x, input_tensor_b=2.0), "input_tensor_b is a tensor; a number has the name value"),
        (lambda x: ttnn.mac(x, x, input_tensor_c=2.0), "input_tensor_c is a tensor; a number has the name value"),
        (lambda x: ttnn.fmod(x, scalar=x), "scalar is no tensor; a tensor has the name input_tensor_b"),
    ],
)
def test_numbers_and_tensors_have_names_of_their_own(x, call, text):
    with pytest.raises(ttnn.errors.ArgumentTypeError, match=f"incompatible function arguments.\n[a-z]+: {text}"):
        call(x)


def test_boxes_and_shapes(x):
    assert ttnn.slice(x, starts=[0, 1], ends=[1, 3], steps=[1, 1]).to_list() == [[2, 5]]
    assert ttnn.reshape(x, logical_shape=(3, 1), padded_shape=(32, 32)).to_list() == [[1], [2], [5]]
    assert ttnn.permute(x, [1, 0], 0.0).shape == ttnn.transpose(x, 0, 1, 0.0).shape == (3, 1)


def test_a_cast_names_the_data_type_that_it_begins_with(x):
    for cast in (
        ttnn.typecast(x, ttnn.bfloat16, ttnn.float32),
        ttnn.typecast(x, input_dtype=ttnn.bfloat16, output_dtype=ttnn.float32),
    ):
        assert cast.dtype is ttnn.float32
    with pytest.raises(ttnn.errors.DeviceError, match=r"^input dtype and input tensor's dtype provided should match\n"):
        ttnn.typecast(x, ttnn.float32, ttnn.bfloat8_b)


def test_rows_become_tiles_of_another_data_type(device):
    rows = ttnn.Tensor(np.ones((30, 30)), ttnn.bfloat16, device)
    tiles = ttnn.tilize_with_zero_padding(rows, output_dtype=ttnn.float32)
    assert (tiles.dtype, tiles.padded_shape) == (ttnn.float32, (32, 32))


@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
def test_a_tensor_is_filled_where_it_is(device, layout):
    own = ttnn.zeros((32, 32), ttnn.bfloat16, layout, device, ttnn.L1_MEMORY_CONFIG)
    address = own.buffer_address()
    tiles = ttnn.zeros((32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    for value, fill, given in (
        (7.0, ttnn.full, ((1, 2), 7.0)),
        (3.0, ttnn.full_like, (tiles, 3.0)),
        (1.0, ttnn.ones_like, (tiles,)),
        (0.0, ttnn.zeros_like, (tiles,)),
    ):
        filled = fill(*given, optional_tensor=own)
        assert (filled.buffer_address(), filled.shape) == (address, (32, 32))
        assert own.to_numpy()[31, 31] == value


def test_an_empty_tensor_is_always_on_a_device():
    with pytest.raises(ttnn.errors.ArgumentTypeError, match=r"^ttnn.empty\(\): incompatible function arguments\.\n"):
        ttnn.empty((1, 2))
