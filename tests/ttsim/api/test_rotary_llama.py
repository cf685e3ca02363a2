"""Rotary embeddings by a matrix of pairs, and exchanged halves: numbers by numpy, buffers and errors as ttnn 0.81.1."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import captured, put, refusal

LLAMA, HALF = ttnn.experimental.rotary_embedding_llama, ttnn.experimental.rotate_half
PAIRS = np.kron(np.eye(16), [[0, 1], [-1, 0]]).astype(np.float32)  # (a, b) becomes (-b, a)
USERS = "height/32x64/4x1"


def sizes(call, kind):
    """Sizes of the buffers of a kind."""
    nodes = captured(call, ttnn.graph.RunMode.NO_DISPATCH)[2]
    return [int(node["params"]["size"]) for node in nodes if node["node_type"] == kind]


def drawn(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def expected(x, cosines, sines):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    turned = np.stack([-pairs[..., 1], pairs[..., 0]], -1).reshape(x.shape)
    return x * cosines + turned * sines


@pytest.mark.parametrize("values", ["exact", "fast"])
@pytest.mark.parametrize(("sides", "tables"), [((2, 3, 40, 64), (1, 1, 50, 64)), ((1, 2, 32, 32), (1, 2, 32, 32))])
def test_each_row_takes_its_row_of_the_tables(values, sides, tables):
    x, cosines, sines = drawn(*sides), drawn(*tables), drawn(*tables)[..., ::-1].copy()
    with ttnn.open_device(values=values) as device:
        tensors = [put(device, f"{'x'.join(map(str, array.shape))} tile", array) for array in (x, cosines, sines)]
        matrix = put(device, "1x1x32x32 tile", PAIRS[None, None])
        found = LLAMA(*tensors, matrix).to_numpy()
    rows = sides[2]
    assert np.abs(found - expected(x, cosines[:, :, :rows], sines[:, :, :rows])).max() < 0.1
    assert found.shape == sides


def test_all_heads_of_a_user_take_the_row_and_the_matrix_of_the_user(device):
    x, cosines, sines = drawn(1, 4, 8, 64), drawn(1, 4, 1, 64), drawn(1, 4, 1, 64)[..., ::-1].copy()
    tensors = [put(device, f"{'x'.join(map(str, array.shape))} tile {USERS}", array) for array in (x, cosines, sines)]
    matrices = np.concatenate([PAIRS * (user + 1) for user in range(4)])[None, None]
    matrix = put(device, "1x1x128x32 tile height/32x32/4x1", matrices)
    found = LLAMA(*tensors, matrix, is_decode_mode=True)
    wanted = expected(x, cosines, sines * np.arange(1, 5).reshape(1, 4, 1, 1))
    assert np.abs(found.to_numpy() - wanted).max() < 0.2
    assert found.memory_config() == tensors[0].memory_config()


def test_tables_of_few_rows_stay_for_all_heads(device):
    """66 batches on 64 cores leave each two of them, and all four rows of tiles: kept for two heads, not for three."""
    for heads, kept in ((2, 4), (3, 1)):
        x, matrix = put(device, f"66x{heads}x128x64 tile"), put(device, "1x1x32x32 tile")
        table, row = put(device, "1x1x128x64 tile"), 2 * 2048
        held = 2 * row * kept
        found = sizes(lambda x=x, m=matrix, t=table: LLAMA(x, t, t, m), "dataflow_buffer_allocate")
        assert found == [held, held, held, 2048, row, row, row, 2 * row]
        assert sizes(lambda x=x, m=matrix, t=table: LLAMA(x, t, t, m), "scratchpad_allocate") == [row]


def refused(device, *words, matrix="1x1x32x32 tile", **options):
    tensors = [put(device, text, np.zeros([int(side) for side in text.split()[0].split("x")])) for text in words]
    return refusal(
        lambda: LLAMA(*tensors, put(device, matrix, np.zeros([*map(int, matrix.split()[0].split("x"))])), **options)
    )


REFUSED = [
    (("1x2x64x64", *["1x1x64x64 tile"] * 2), {}, "input tensor to rotary embedding must be tilized"),
    (("1x2x64x64 tile float32", *["1x1x64x64 tile"] * 2), {}, "All input tensors must have dtype = bfloat16"),
    (("1x2x64x288 tile", *["1x1x64x288 tile"] * 2), {}, "Head dim must be less than 256"),
    (("1x2x64x64 tile", "1x1x64x64 tile", "1x1x96x64 tile"), {}, "Cos and Sin dims must match"),
    (("1x2x64x64 tile", *["1x3x64x64 tile"] * 2), {}, "Num heads in cos/sin must match input tensor num heads or be 1"),
    (("1x2x64x64 tile", *["1x1x64x32 tile"] * 2), {}, "Cos dims must match input dims: cos.shape = Shape([1, 1, "),
    (("1x2x64x64 tile", *["1x1x64x64 tile"] * 2), {"matrix": "1x1x64x64 tile"},
     "Transformation matrix must have 4th dim equal to TILE_WIDTH"),
    (("1x2x32x64 tile height/32x64/2", *["1x1x32x64 tile"] * 2), {}, "Input tensor must be interleaved in"),
    (("1x4x8x64 tile", *[f"1x4x1x64 tile {USERS}"] * 2), {"is_decode_mode": True},
     "Sharded inputs for RoPE must be HEIGHT_SHARDED."),
    ((f"1x4x8x64 tile {USERS}", *["1x2x1x64 tile height/32x64/2x1"] * 2),
     {"is_decode_mode": True, "matrix": "1x1x128x32 tile height/32x32/4x1"},
     "Cos and Sin must have the same batch size as the input"),
    (("1x4x8x64 tile height/64x64/2x1", *[f"1x4x1x64 tile {USERS}"] * 2),
     {"is_decode_mode": True, "matrix": "1x1x128x32 tile height/32x32/4x1"},
     "DFB 'cos' (entry_size 2048 * num_entries 4 = 8192 bytes) is larger than the per-bank allocation of its"),
    ((f"1x4x8x64 tile {USERS} dram", *[f"1x4x1x64 tile {USERS}"] * 2),
     {"is_decode_mode": True, "matrix": "1x1x128x32 tile height/32x32/4x1"},
     "DFB 'input' borrows memory from TensorParameter 'input', but its TensorSpec is not L1-resident"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "options", "text"), REFUSED)
def test_errors_begin_as_those_of_the_real_library(device, words, options, text):
    assert refused(device, *words, **options).startswith(f"Device: {text}")


@pytest.mark.parametrize(
    ("words", "options", "text"),
    [
        (("1x2x64x64 tile", *["1x1x32x64 tile"] * 2), {}, "tables of 32 rows have none for 32 of 64 rows"),
        (
            (f"1x4x8x64 tile {USERS}", *["1x4x1x64 tile height/32x64/2x2"] * 2),
            {"is_decode_mode": True, "matrix": "1x1x128x32 tile height/32x32/4x1"},
            "every core reads the tables and the matrix of its own L1",
        ),
    ],
)
def test_numbers_that_hang_on_other_memory_are_refused(device, words, options, text):
    assert refused(device, *words, **options).startswith(f"NotSimulated: rotary_embedding_llama: {text}")


@pytest.mark.parametrize(
    ("words", "ran"), [("1x2x40x128 tile", []), ("64 tile", []), ("2x64", ["TilizeWithValPadding"])]
)
def test_halves_are_exchanged_and_the_first_is_negative(device, words, ran):
    x = put(device, words)
    names, result, _ = captured(lambda: HALF(x))
    first, second = np.split(x.to_numpy(), 2, axis=-1)
    assert names == [*ran, "RotateHalf"]
    assert (result.to_numpy() == np.concatenate([-second, first], -1)).all()


def test_the_negative_half_of_float32_has_16_bits(device):
    x = ttnn.full((32, 64), 1 / 3, ttnn.float32, layout=ttnn.TILE_LAYOUT, device=device)
    row = HALF(x).to_numpy()[0]
    assert row[32] == np.float32(1 / 3)
    assert row[0] != -row[32]
    assert abs(row[0] + row[32]) < 2.0**-9


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("1x1x32x96 tile", "Input X dimension (96) must be divisible by 64 for tiling."),
        ("1x2x32x64 tile height/32x64/2", "RotateHalf does not currently support sharding"),
    ],
)
def test_halves_that_the_real_library_does_not_exchange(device, words, text):
    assert refusal(lambda: HALF(put(device, words))).startswith(f"Device: {text}")


def test_sines_may_lie_in_parts_of_columns_beside_interleaved_cosines(device):
    x, cosines, sines = drawn(1, 2, 64, 64), drawn(1, 1, 64, 64), drawn(1, 1, 64, 64)[..., ::-1].copy()
    tensors = [put(device, f"{'x'.join(map(str, array.shape))} tile", array) for array in (x, cosines, sines)]
    matrix = put(device, "1x1x32x32 tile", PAIRS[None, None])
    wanted = LLAMA(*tensors, matrix).to_numpy()
    parts = put(device, "1x1x64x64 tile width/64x32/2", sines)
    assert np.array_equal(LLAMA(*tensors[:2], parts, matrix).to_numpy(), wanted)
