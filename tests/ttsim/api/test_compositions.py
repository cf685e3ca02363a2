"""Functions of several operands and of several calls: numbers against numpy, and refusals by their first line."""

import re

import numpy as np
import pytest

import ttsim
from tests.ttsim.api.calls import operations

X = np.array([[-2.0, 0.0, 1.0, 3.0]], np.float32)
Y = np.array([[2.0, 4.0, 0.5, -1.0]], np.float32)
SIGMOID = 1 / (1 + np.exp(-2.0))
NUMBERS = {
    "where(x, y, 7.0)": np.where(X != 0, Y, 7),
    "where(x, 7.0, y)": np.where(X != 0, 7, Y),
    "where(x, 7.0, 8.0)": np.where(X != 0, 7.0, 8.0),
    "where(x, y, x)": np.where(X != 0, Y, X),
    "addcmul(x, x, y, value=2.0)": X + 2 * X * Y,
    "addcdiv(x, x, y, value=2.0)": X + 2 * X / Y,
    "mac(x, y, x)": X * Y + X,
    "mac(x, 2.0, y)": X * 2 + Y,
    "mac(x, 2.0, 3.0)": X * 2 + 3,
    "lerp(x, y, 0.25)": X + 0.25 * (Y - X),
    "lerp(x, y, x)": X + X * (Y - X),
    "lerp(x, ttsim.typecast(y, ttsim.float32), 0.25)": X + 0.25 * (Y - X),
    "clamp(x, min=-1.0, max=2.0)": np.clip(X, -1, 2),
    "clip(x, max=2.0)": np.minimum(X, 2),
    "clamp(x, min=y)": np.maximum(X, Y),
    "clamp(x, max=y)": np.minimum(X, Y),
    "clip(x, min=x, max=y)": np.minimum(X, Y),
    "div(x, y)": X / Y,
    "div(3.0, y)": 3 / Y,
    'div(x, y, rounding_mode="floor")': np.floor(X / Y),
    'div(x, 0.75, rounding_mode="trunc")': np.trunc(X / 0.75),
    'rdiv(y, 3.0, rounding_mode="floor")': np.floor(3 / Y),
    "pow(x, 3)": X**3,
    "unary_chain(x, [ttsim.UnaryOpType.NEG, ttsim.UnaryWithParam(ttsim.UnaryOpType.RELU)])": np.maximum(-X, 0),
    "pow(x, 0)": np.ones_like(X),
    "pow(x, 1)": X,
    "pow(2.0, x)": 2.0**X,
    "pow(y, y)": np.array([[4.0, 256.0, 0.70710678, -1.0]]),
    "addalpha(x, y, 0.5)": X + 0.5 * Y,
    "subalpha(x, y, 0.5)": X - 0.5 * Y,
    "floor_div(x, y)": np.floor(X / Y),
    "floor_div(x, 2.0)": np.floor(X / 2),
    "div_no_nan(y, x)": np.array([[-1.0, 0.0, 0.5, -1 / 3]]),
    "isclose(x, x)": np.ones_like(X),
    "polyval(x, [1.0, -2.0, 3.0])": X * X - 2 * X + 3,
    # pi^3 times gamma(4.5) gamma(4) gamma(3.5) gamma(3), or gamma(3) gamma(2.5) gamma(2) gamma(1.5)
    "multigammaln(ttsim.where(x, 4.5, 3.0))": np.where(
        X != 0, np.log(np.pi**4 * 105 / 16 * 6 * 15 / 8 * 2), np.log(np.pi**4 * 2 * 3 / 8)
    ),
    "outer(x, y)": X[..., :, None] * Y[..., None, :],
    "outer(ttsim.repeat(x, (2, 1)), y)": (X[..., :, None] * Y[..., None, :]).repeat(2, axis=0),
    "prelu(x, 0.5)": np.where(X < 0, X / 2, X),
    "prelu(x, y)": np.where(X < 0, X * Y, X),
    "prelu(ttsim.reshape(x, (1, 4, 1)), y)": np.where(X < 0, X * Y, X).reshape(1, 4, 1),
}


@pytest.fixture(scope="module")
def device():
    with ttsim.open_device(l1_small_size=32768) as opened:
        yield opened


def on(device, values, dtype=ttsim.bfloat16):
    return ttsim.Tensor(values, dtype, device, ttsim.TILE_LAYOUT)


@pytest.mark.parametrize("call", NUMBERS)
@pytest.mark.parametrize("dtype", [ttsim.bfloat16, ttsim.float32], ids=str)
def test_numbers(device, call, dtype):
    names = {"x": on(device, X, dtype), "y": on(device, Y, dtype)}
    got = eval(f"ttsim.{call}", {"ttsim": ttsim}, names).to_numpy().astype(np.float64)
    np.testing.assert_allclose(got, NUMBERS[call], rtol=2.0**-7 if dtype is ttsim.bfloat16 else 1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "factor"), [("glu", SIGMOID), ("reglu", 2.0), ("swiglu", 2 * SIGMOID)])
def test_gates_multiply_the_halves(device, name, factor):
    values = np.concatenate([np.full((1, 1, 32, 32), 3.0), np.full((1, 1, 32, 32), 2.0)], -1).astype(np.float32)
    got = getattr(ttsim, name)(on(device, values)).to_numpy()
    assert got.shape == (1, 1, 32, 32)
    np.testing.assert_allclose(got.astype(float), 3 * factor, rtol=2.0**-7)


def test_the_host_fills_bfloat4_b(device):
    """As the real library, which has no operation for it."""
    for dtype, count in ((ttsim.bfloat8_b, 1), (ttsim.bfloat4_b, 0)):
        x = on(device, X, dtype)
        assert len(operations(lambda x=x: ttsim.polyval(x, [2.0]))) == count
        assert (ttsim.polyval(x, [2.0]).to_numpy() == 2).all()


def test_extrema_with_a_number_leave_activations_out(device):
    neg = [ttsim.UnaryWithParam(ttsim.UnaryOpType.NEG)]
    assert np.array_equal(ttsim.maximum(on(device, X), 1.0, activations=neg).to_numpy(), np.maximum(X, 1))
    assert np.array_equal(ttsim.maximum(on(device, X), on(device, X), activations=neg).to_numpy(), -X)


def test_a_gate_gives_the_rows_of_whole_tiles(device):
    """As the real library does, whose last rows are what lies in the padding."""
    values = np.full((1, 1, 33, 64), 2.0, np.float32)
    got = ttsim.reglu(on(device, values)).to_numpy()
    assert got.shape == (1, 1, 64, 32)
    assert (got[0, 0, :33] == 4.0).all()
    assert ttsim.reglu(on(device, values[..., :50])).shape == (1, 1, 64, 32)  # columns as well


def test_a_fast_quotient_of_block_floats_stays_fast_when_it_is_rounded(device):
    """It then has a buffer more, for reciprocals."""
    x, y = (on(device, values, ttsim.bfloat8_b) for values in (X, Y))
    counts = []
    for fast in (False, True):
        ttsim.graph.begin_graph_capture(ttsim.graph.RunMode.NO_DISPATCH)
        ttsim.div(x, y, rounding_mode="floor", fast_and_approximate_mode=fast)
        nodes = ttsim.graph.end_graph_capture()
        counts.append(sum(node["node_type"] == "circular_buffer_allocate" for node in nodes))
    assert counts[1] == counts[0] + 1


def test_integers_are_divided_by_operations_of_their_own(device):
    x, y = on(device, np.array([[7, -7]]), ttsim.int32), on(device, np.array([[2, 2]]), ttsim.int32)
    assert ttsim.div(x, y).to_list() == [[3.5, -3.5]]
    assert ttsim.div(x, y, rounding_mode="floor").to_list() == [[3, -4]]
    assert ttsim.div(x, y, rounding_mode="trunc").to_list() == [[3, -3]]
    assert ttsim.div(x, 2.0).dtype is ttsim.float32


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ('div(x, y, rounding_mode="ceil")', "Incorrect rounding mode (expected None, 'trunc', or 'floor')"),
        (
            "outer(x, ttsim.typecast(x, ttsim.float32))",
            "ttnn.outer: inputs must have the same dtype, but got DataType::",
        ),
        (
            "outer(*2 * [ttsim.typecast(x, ttsim.uint16)])",
            "ttnn.outer: unsupported dtype (got DataType::UINT16 and Dat",
        ),
        ("clamp(x)", "Only one of 'min' or 'max' can be None. Please provide one value"),
        ("clamp(x, min=0, max=1.0)", "std::get: wrong index for variant"),
        ("glu(x)", "ShapeBase[] index out of range. 3 not in [-4, 2)"),
        ("glu(ttsim.reshape(x, (1, 1, 1, *x.shape)))", "Split tensor dimension should be in full tile"),
        ("div_(ttsim.typecast(x, ttsim.int32), 2)", "For integer division, supported output dtype is FLOAT32"),
        (
            "logaddexp(ttsim.repeat(x, (2, 1)), ttsim.typecast(ttsim.repeat(x, (3, 1)), ttsim.float32))",
            "Invalid subtile",
        ),
        (
            "prelu(x, 1.0 * x[:, :2])",
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = 2 a",
        ),
        (
            "clip(ttsim.typecast(x, ttsim.float32), y, ttsim.typecast(y, ttsim.float32))",
            "Mixed dtype is not supported for binary operation BinaryOpType::MINIMUM, dtype A: DataType::BFLOAT16",
        ),
        ("gt(1.0, x)", "ttnn.gt(): incompatible function arguments."),
        (
            "mac(x, y, ttsim.zeros((3, 5), layout=ttsim.TILE_LAYOUT, device=device))",
            "Broadcasting rule violation at dimension index -1 (output rank 2), dim a: 4, dim b: 4, dim c: 5",
        ),
        (
            "mac(x, x, ttsim.zeros((2, 1, 1, 1, 1, 2, 4), layout=ttsim.TILE_LAYOUT, device=device))",
            "Broadcasting rule violation for rank >= 7 at dimension index -7 (output rank 7). Broadcast is supported u",
        ),
        (
            "mac(x, ttsim.repeat(x, (2, 2)), ttsim.repeat(x, (3, 1)))",
            "Broadcasting rule violation at dimension index -1",
        ),
        ("where(x, ttsim.repeat(x, (2, 2)), ttsim.repeat(x, (3, 1)))", "ttnn.where: shapes Shape"),
        (
            "addcmul(ttsim.repeat(x, (2, 1)), ttsim.repeat(x, (2, 1)), ttsim.repeat(x, (3, 1)))",
            "Invalid subtile broadcast type",
        ),
        (
            "lerp(x, ttsim.expand(x, (2, -1, -1)), ttsim.expand(x, (3, -1, -1)))",
            "Broadcasting rule violation at dimension index -3 (output rank 3), dim a: 1, dim b: 2, dim c: 3",
        ),
        (
            "mac(x, ttsim.typecast(y, ttsim.int32), x, output_tensor=x, sub_core_grids=ttsim.CoreRangeSet([]))",
            "ttnn::mac: output_tensor is not supported when the operation falls back to the composite path",
        ),
        (
            "lerp(ttsim.typecast(x, ttsim.int32), ttsim.typecast(y, ttsim.int32), 2)",
            "Mixed dtype is not supported for binary operation BinaryOpType::ADD, dtype A: DataType::INT32, dtype B: D",
        ),
        (
            "lerp(*3 * [ttsim.typecast(x, ttsim.int32)], output_tensor=x)",
            "Output tensor dtype must match input dtype, or be FLOAT32 when inputs are BFLOAT16, or be BFLOAT16 when",
        ),
        (
            "where(x, ttsim.typecast(y, ttsim.int32), 1.5)",
            "ttnn.where with a DataType::INT32 tensor cannot represent the scalar 1.5:",
        ),
        (
            "pow(ttsim.to_layout(ttsim.typecast(x, ttsim.int32), ttsim.ROW_MAJOR_LAYOUT), 2)",
            "pow_int: input must be in TILE layout, got Layout::ROW_MAJOR",
        ),
        (
            "clone(ttsim.to_layout(x, ttsim.ROW_MAJOR_LAYOUT), dtype=ttsim.bfloat8_b)",
            "Only TILE layout is supported for BFLOAT8_B dtype!",
        ),
    ],
)
def test_refusals(device, call, line):
    names = {"x": on(device, X), "y": on(device, Y), "device": device}
    with pytest.raises((ttsim.DeviceError, ttsim.ArgumentTypeError)) as refused:
        eval(f"ttsim.{call}", {"ttsim": ttsim}, names)
    assert str(refused.value).startswith(line)


@pytest.mark.parametrize(("dtype", "tiles"), [("int32", 7), ("uint32", 6)])
def test_the_relu_of_an_unsigned_operand_has_no_buffer(device, dtype, tiles):
    """Two tiles of each operand and of the result, and one of what the function gives."""
    x = ttsim.zeros((32, 32), getattr(ttsim, dtype), ttsim.TILE_LAYOUT, device)
    answer = ttsim.graph.query_op_constraints(ttsim.add, device, x, x, input_tensor_a_activations=["relu"])
    usage = answer.resource_usage
    assert usage.cb_peak_size_per_core == tiles * 4096


def test_a_number_with_functions_is_a_second_operand(device):
    x = ttsim.Tensor(np.array([[5, 3]]), ttsim.int32, device, ttsim.TILE_LAYOUT)
    assert operations(lambda: ttsim.remainder(x, 3, activations=["relu"])) == ["BinaryNg"]
    assert ttsim.remainder(x, 3, activations=["relu"]).to_list() == [[2, 0]]


@pytest.mark.parametrize(
    ("dtype", "wanted", "steps"),
    [
        (ttsim.bfloat16, None, ["BinaryNg", "Unary"]),
        (ttsim.bfloat16, ttsim.bfloat16, ["BinaryNg", "Unary"]),
        (ttsim.bfloat16, ttsim.float32, ["Typecast", "BinaryNg", "Unary"]),
        (ttsim.int32, ttsim.float32, ["Typecast", "BinaryNg", "Unary"]),
        (ttsim.bfloat16, ttsim.bfloat8_b, ["BinaryNg", "Unary", "Typecast"]),
    ],
    ids=str,
)
def test_the_gelu_of_a_sum_with_a_number_is_cast_first_to_float32_and_last_to_all_other_formats(
    device, dtype, wanted, steps
):
    x = ttsim.ones((32, 32), dtype, ttsim.TILE_LAYOUT, device)
    assert operations(lambda: ttsim.bias_gelu(x, 1, dtype=wanted, activations=["neg"])) == steps
    result = ttsim.bias_gelu(x, 1, dtype=wanted, activations=["neg"])  # the library drops activations
    assert result.dtype is (wanted or dtype)
    assert result.to_numpy()[0, 0] == pytest.approx(1.9545, rel=0.01)


def test_functions_of_operands_stay_with_them_where_the_number_comes_first(device):
    x = on(device, np.array([[3.0]]))
    assert ttsim.subtract(2.0, x, input_tensor_b_activations=["square"]).to_list() == [[-7.0]]
    assert ttsim.subtract(2.0, x, input_tensor_a_activations=["square"]).to_list() == [[1.0]]


def test_integers_of_8_bits_are_compared_in_place_as_they_are(device):
    x, y = (ttsim.Tensor(np.array([[3, 7]]), ttsim.uint8, device, ttsim.TILE_LAYOUT) for _ in range(2))
    assert operations(lambda: ttsim.eq(x, y)) == ["Typecast", "Typecast", "BinaryNg"]
    assert operations(lambda: ttsim.eq_(x, y)) == ["BinaryNg"]
    assert x.to_list() == [[1, 1]]
    with pytest.raises(ttsim.NotSimulatedError, match="a number beside a tensor of uint8 is not simulated"):
        ttsim.eq_(x, 1)


def test_a_logarithm_releases_its_terms_one_by_one(device):
    """The number of the last sum, a circular buffer of a tile beside shards, lies where a term was."""
    place = ttsim.create_sharded_memory_config((32, 32), ttsim.CoreGrid(y=1, x=1), ttsim.ShardStrategy.HEIGHT)
    x = ttsim.ones((32, 32), ttsim.bfloat16, ttsim.TILE_LAYOUT, device, place)
    usage = ttsim.graph.query_op_constraints(ttsim.multigammaln, device, x).resource_usage
    assert usage.peak_memory_usage_per_core == usage.l1_buffers_peak_per_core == 4 * 2048


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("addcmul(x, row, x, output_tensor=target)", X + X * Y[:, :1]),
        ("addcdiv(x, row, y, output_tensor=target)", X + Y[:, :1] / Y),
        ("lerp(x, row, y, output_tensor=target)", X + Y * (Y[:, :1] - X)),
        ("lerp(x, row, 0.5, output_tensor=target)", X + (Y[:, :1] - X) / 2),
    ],
)
def test_block_floats_that_are_repeated_are_copied_into_the_caller_s_tensor(device, call, wanted):
    x, y, row = (on(device, values, ttsim.bfloat8_b) for values in (X, Y, Y[:, :1]))
    target = ttsim.zeros_like(x)
    names = {"x": x, "y": y, "row": row, "target": target}
    assert operations(lambda: eval(f"ttsim.{call}", {"ttsim": ttsim}, names))[-1] == "Copy"
    np.testing.assert_allclose(target.to_numpy().astype(float), wanted, rtol=2.0**-5, atol=2.0**-4)


def test_a_clamp_by_tensors_writes_into_the_caller_s_tensor(device):
    x, y, target = on(device, X), on(device, Y), on(device, np.zeros_like(X))
    assert ttsim.clamp(x, min=y, output_tensor=target) is target
    assert np.array_equal(target.to_numpy(), np.maximum(X, Y))
    assert ttsim.clamp(x, min=x, max=y, output_tensor=target) is target
    assert np.array_equal(target.to_numpy(), np.minimum(X, Y))


def test_rounded_quotients_become_integers_last(device):
    x = on(device, np.array([[7.0, -7.0]]))
    call = {"rounding_mode": "floor", "dtype": ttsim.int32}
    assert operations(lambda: ttsim.div(x, 2.0, **call)) == ["BinaryNg", "Unary", "Typecast"]
    assert ttsim.div(x, 2.0, **call).to_list() == [[3, -4]]
    target = ttsim.zeros_like(x, ttsim.int32)
    assert ttsim.div(x, 2.0, rounding_mode="trunc", output_tensor=target) is target
    assert target.to_list() == [[3, -3]]


@pytest.mark.parametrize(("exponent", "steps"), [(0, []), (1, ["Copy"]), (2, ["PowInt"]), (3, ["PowInt"])])
def test_powers_of_integers_are_written_into_the_caller_s_tensor(device, exponent, steps):
    x = ttsim.Tensor(np.array([[2, 3]]), ttsim.int32, device, ttsim.TILE_LAYOUT)
    target = ttsim.zeros_like(x)
    assert operations(lambda: ttsim.pow(x, exponent, output_tensor=target)) == steps
    assert target.to_list() == [[2**exponent, 3**exponent]]


@pytest.mark.parametrize(
    ("target", "exponent", "line"),
    [
        ({"dtype": ttsim.float32}, 2, "pow_int: output dtype DataType::FLOAT32 must match input dtype DataType::INT32"),
        ({"layout": ttsim.ROW_MAJOR_LAYOUT}, 2, "pow_int: output must be in TILE layout, got Layout::ROW_MAJOR"),
        ({"dtype": ttsim.float32}, 1, "Mismatched output dtype"),
    ],
)
def test_tensors_that_take_no_powers_of_integers(device, target, exponent, line):
    x = ttsim.Tensor(np.array([[2, 3]]), ttsim.int32, device, ttsim.TILE_LAYOUT)
    with pytest.raises(ttsim.DeviceError, match=f"^{line}"):
        ttsim.pow(x, exponent, output_tensor=ttsim.zeros_like(x, **target))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("arange(0, 10, 0, device=device)", "Step must be nonzero"),
        ("arange(10, 0, device=device)", "Invalid range: Step direction does not match range bounds"),
        ("rand((2, 2), device, low=1.0)", "Uniform range lower bound must be less than upper bound, got [1, 1)"),
        ("rand((2, 2), device, low=float('nan'))", "Uniform range endpoints must be finite, got [nan, 1)"),
        ("rand((2, 2), device, dtype=ttsim.uint8)", "[ttnn::rand] Output dtype DataType::UINT8 is not supported."),
        (
            "prod(ttsim.zeros((3, 3), ttsim.uint8, ttsim.TILE_LAYOUT, device), dim=5)",
            "Unsupported datatype DataType::UINT8",
        ),
    ],
)
def test_ranges_and_random_numbers_that_are_refused(device, call, line):
    with pytest.raises(ttsim.DeviceError, match=f"^{re.escape(line)}"):
        eval(f"ttsim.{call}", {"ttsim": ttsim, "device": device})


@pytest.mark.parametrize(("call", "arguments"), [("add(x, x", 23), ("gt(x, 2.0", 23), ("mac(x, x, x", 27)])
def test_shards_beyond_the_last_column_or_row_of_the_cores_of_a_call_are_refused(device, call, arguments):
    place = ttsim.create_sharded_memory_config((64, 64), ttsim.CoreGrid(y=2, x=2), ttsim.ShardStrategy.BLOCK)
    x = ttsim.ones((64, 64), ttsim.bfloat16, ttsim.TILE_LAYOUT, device, place)
    column = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(0, 1))])
    line = f"^Illegal Runtime Args on 1-0: Number of runtime args cannot be modified from 0 to {arguments}!"
    with pytest.raises(ttsim.DeviceError, match=line):
        eval(f"ttsim.{call}, sub_core_grids=column)", {"ttsim": ttsim, "x": x, "column": column})


@pytest.mark.parametrize("call", ["add(x, x{})", "gt(x, 2.0{})", "mac(x, x, x{})"])
def test_shards_beside_the_cores_of_a_call_are_planned_without_numbers(device, call):
    """The real library plans them as if the cores were all."""
    place = ttsim.create_sharded_memory_config((64, 64), ttsim.CoreGrid(y=2, x=2), ttsim.ShardStrategy.BLOCK)
    x = ttsim.ones((64, 64), ttsim.bfloat16, ttsim.TILE_LAYOUT, device, place)
    first = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(0, 0))])

    def usage(text):
        names = {"ttsim": ttsim, "cores": first}
        return ttsim.graph.query_op_constraints(lambda x: eval(f"ttsim.{text}", names, {"x": x}), device, x)

    limited = call.format(", sub_core_grids=cores")
    assert usage(limited).resource_usage == usage(call.format("")).resource_usage
    with pytest.raises(ttsim.NotSimulatedError, match="shards on cores beside sub_core_grids are not simulated"):
        eval(f"ttsim.{limited}", {"ttsim": ttsim, "x": x, "cores": first})


def test_a_quotient_without_a_number_lies_where_its_division_puts_it(device):
    place = ttsim.create_sharded_memory_config((32, 32), ttsim.CoreGrid(y=1, x=1), ttsim.ShardStrategy.HEIGHT)
    x = ttsim.ones((2, 1, 1, 32), ttsim.bfloat16, ttsim.TILE_LAYOUT, device)
    y = ttsim.ones((1, 32), ttsim.bfloat16, ttsim.TILE_LAYOUT, device, place)
    result = ttsim.div_no_nan(x, y, memory_config=ttsim.L1_BLOCK_SHARDED_MEMORY_CONFIG)
    assert result.memory_config().memory_layout is ttsim.TensorMemoryLayout.HEIGHT_SHARDED


def test_a_matmul_of_two_vectors_is_their_outer_product(device):
    x, y = on(device, X), on(device, Y)

    def programs(*operands):
        with ttsim.profile(device) as profile:
            ttsim.outer(*operands)
        return [run.name for run in profile.runs()][-1]

    assert programs(x, y) == "MatmulDeviceOperation"
    assert programs(ttsim.repeat(x, (2, 1)), y) == "BinaryNgDeviceOperation"
    assert programs(*(ttsim.typecast(tensor, ttsim.float32) for tensor in (x, y))) == "BinaryNgDeviceOperation"
