"""Results in tensors of the caller: equal to new ones, at the tensor's address, without new memory, on all devices."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import wide
from tests.ttsim.api.calls import operations, put, put_all, refusal


def sliced(end, *, step=1, begin=0, **options):
    def call(x, into):
        return ttnn.slice(x, [0, 0, begin, 0], [1, 1, *end], [1, 1, step, 1], output_tensor=into, **options)

    return call


def repeated(*counts, **options):
    return lambda x, into: ttnn.repeat(x, counts, optional_output_tensor=into, **options)


def broadcast(x, into):
    return ttnn.experimental.broadcast_to(x, (64, 64), output=into)


def summed(*axes):
    return lambda x, into: ttnn.experimental.fast_reduce_nc(x, dims=axes, output=into)


def assigned(x, into):
    return ttnn.assign(x, memory_config=ttnn.L1_MEMORY_CONFIG, output_tensor=into)


def power(x, into):
    return ttnn.pow(x, 3, output_tensor=into)


def joined(x, into):
    return ttnn.experimental.nlp_concat_heads_decode(x, num_heads=8, output_tensor=into)


def joined_on(cores):
    def call(x, into):
        return ttnn.experimental.nlp_concat_heads_decode(x, num_heads=8, sub_core_grids=cores, output_tensor=into)

    return call


def gathered(x, places, into):
    return ttnn.gather(x, 1, ttnn.typecast(ttnn.zeros_like(places), ttnn.uint16), out=into)


def added(dim):
    return lambda x, y, into: ttnn.bcast(x, y, ttnn.BcastOpMath.ADD, getattr(ttnn.BcastOpDim, dim), output_tensor=into)


SOME = ttnn.CoreGrid(x=4, y=2).core_range_set()
# The inputs of a call, the call with a target or None, and the target
CALLS = {
    "slice": ("1x1x128x96 tile", sliced((64, 64)), "1x1x64x64 tile l1"),
    "slice into shards": ("1x1x128x96 tile", sliced((64, 64)), "1x1x64x64 tile height/32x64/2"),
    "slice of rows": ("1x1x128x96 rows", sliced((60, 64)), "1x1x60x64 rows l1"),
    "slice with steps": ("1x1x128x96 rows", sliced((60, 64), step=2), "1x1x30x64 rows"),
    "slice of all": ("1x1x64x96 tile", sliced((64, 96)), "1x1x64x96 tile l1"),
    "slice within tiles": ("1x1x64x96 tile", sliced((64, 96), begin=16), "1x1x48x96 tile l1"),
    "slice of shards of rows": ("1x1x64x96 rows height/16x96/4", sliced((40, 64)), "1x1x40x64 rows"),
    "maximum of integers as floats": (
        "64x32 tile int32",
        lambda x, into: ttnn.maximum(x, 2, dtype=ttnn.float32, output_tensor=into),
        "64x32 tile float32",
    ),
    "bcast": ("1x2x32x64 tile + 1x1x1x64 rows", added("H"), "1x2x32x64 tile l1"),
    "bcast of shards": ("1x1x64x64 tile height/32x64/2 + 1x1x1x1 rows", added("HW"), "1x1x64x64 tile height/32x64/2"),
    "broadcast": (
        "1x1x1x64 tile",
        lambda x, into: ttnn.experimental.broadcast_to(x, (2, 1, 40, 64), output=into),
        "2x1x40x64 tile l1",
    ),
    "sum of images": ("3x2x32x32 tile", summed(0), "1x2x32x32 tile l1"),
    "sum along axes": ("3x2x32x32 tile", summed(0, 1), "1x1x32x32 tile"),
    "assign": ("32x64 rows", assigned, "32x64 rows l1"),
    "experimental.typecast": (
        "32x64 tile",
        lambda x, into: ttnn.experimental.typecast(x, ttnn.float32, ttnn.L1_MEMORY_CONFIG, into),
        "32x64 tile float32 l1",
    ),
    "power of integers": ("32x64 tile int32", power, "32x64 tile int32 l1"),
    "heads of one token": ("1x2x8x64 tile height/32x64/2", joined, "1x1x32x512 tile width/32x64/8"),
    "heads of one token on some cores": (
        "1x2x8x64 tile height/32x64/2",
        joined_on(SOME),
        "1x1x32x512 tile width/32x64/8",
    ),
    "gather": (
        "1x1x64x128 tile + 1x1x64x64 tile uint16",
        lambda x, places, into: ttnn.gather(x, 3, places, out=into),
        "1x1x64x64 tile l1",
    ),
    "gather of rows": ("50x70 tile + 50x70 tile uint16", gathered, "50x70 tile"),
    "repeat": ("1x1x32x64 tile", repeated(1, 1, 2, 2), "1x1x64x128 tile l1"),
    "repeat of fewer axes": ("2x32x64 rows", repeated(1, 2, 1), "2x64x64 rows"),
    "repeat within tiles": ("1x1x40x64 tile", repeated(1, 1, 2, 1), "1x1x80x64 tile"),
    "repeat into shards": ("1x1x32x64 rows", repeated(1, 1, 2, 1), "1x1x64x64 rows height/16x64/4"),
    "repeat of five axes": ("1x2x1x32x64 tile", repeated(2, 1, 1, 1, 1), "2x2x1x32x64 tile"),
    "repeat of nothing": ("1x1x32x64 tile", repeated(1, 1, 1, 1), "1x1x32x64 tile l1"),
    "slice with padding": ("1x1x64x96 tile", sliced((40, 96), pad_value=3.0), "1x1x40x96 tile"),
}


@pytest.mark.parametrize(("inputs", "call", "target"), CALLS.values(), ids=CALLS)
def test_a_result_is_written_into_the_callers_tensor(device, inputs, call, target):
    tensors = put_all(device, inputs)
    wanted, into = call(*tensors, None).to_numpy(), put(device, target, first=100)
    before, address = device.machine.memory.live(), into.buffer_address()
    result = call(*tensors, into)
    assert device.machine.memory.live() == before
    assert result.buffer_address() == address
    assert result.memory_config() == into.memory_config()
    assert np.array_equal(into.to_numpy(), wanted)
    assert np.array_equal(result.to_numpy(), wanted)


@pytest.mark.parametrize(("inputs", "call", "target"), CALLS.values(), ids=CALLS)
def test_numbers_that_a_call_would_overwrite_are_not_known_without_values(inputs, call, target):
    with ttnn.open_device(l1_small_size=32768, values="off") as device:
        into = put(device, target)
        call(*put_all(device, inputs), into)
        assert not into.known


def test_a_box_is_copied_where_the_program_wrote_it(device):
    x, into = put_all(device, "1x1x128x96 tile + 1x1x64x64 tile l1")
    assert operations(lambda: sliced((64, 64))(x, into)) == ["Slice", "Copy"]
    shards = put(device, "1x1x64x64 tile height/32x64/2")
    assert operations(lambda: sliced((64, 64))(x, shards)) == ["Slice", "Reshard"]
    assert operations(lambda: sliced((128, 96))(x, put(device, "1x1x128x96 tile l1"))) == ["Copy"]


def test_elements_of_another_axis_than_the_last_are_a_new_tensor(device):
    x, places, out = put_all(device, "64x32 tile + 64x32 tile uint16 + 64x32 tile")
    places, before = ttnn.zeros_like(places), out.to_numpy()
    result = ttnn.gather(x, 0, places, out=out)
    assert np.array_equal(result.to_numpy(), np.broadcast_to(x.to_numpy()[:1], (64, 32)))
    assert np.array_equal(out.to_numpy(), before)
    assert operations(lambda: ttnn.gather(x, 0, places, out=out)).count("Transpose") == 4
    x, places, out = put_all(device, "4x64x40 tile bfloat8_b + 2x64x40 tile uint16 + 2x64x40 tile bfloat8_b")
    before = device.machine.memory.live()
    ttnn.gather(x, 0, ttnn.zeros_like(places), out=out)  # whose padding is filled by way of bfloat16
    assert device.machine.memory.live() == before


def test_a_repeated_tensor_is_copied_onto_itself_where_a_program_sees_it_under_another_shape(device):
    rows, tiles = put_all(device, "2x32x64 rows + 1x1x32x64 tile")
    assert operations(lambda: repeated(2, 1, 1)(rows, put(device, "4x32x64 rows"))) == ["RepeatCodegen", "Copy"]
    assert operations(lambda: repeated(1, 1, 2, 1)(tiles, put(device, "1x1x64x64 tile"))) == ["RepeatCodegen"]


def test_sorted_rows_and_their_places_are_written_into_a_pair(device):
    x = put(device, "1x1x50x128 tile")
    out = put_all(device, "1x1x50x128 tile l1 + 1x1x50x128 tile uint16 l1")
    before, wanted = device.machine.memory.live(), [tensor.to_numpy() for tensor in ttnn.sort(x)]
    for pair in (tuple(out), out):
        results = ttnn.sort(x, out=pair)
        assert [tensor.buffer_address() for tensor in results] == [tensor.buffer_address() for tensor in out]
        assert all(map(np.array_equal, [tensor.to_numpy() for tensor in out], wanted))
    assert device.machine.memory.live() == before
    short = put_all(device, "64x1 tile + 64x1 tile + 64x1 tile uint16")
    ttnn.sort(short[0], out=short[1:])
    assert np.array_equal(short[1].to_numpy(), short[0].to_numpy())
    assert not short[2].to_numpy().any()


@pytest.mark.parametrize(
    ("source", "dim", "values", "indices", "wanted"),
    [
        ("50x70 tile", -1, "50x70 tile l1", "50x70 tile uint16 l1", ["Pad"] * 3 + ["Sort", "Slice", "Slice"]),
        ("64x128 tile", 0, "64x128 tile", "64x128 tile uint16", ["Transpose"] * 3 + ["Sort"] + ["Transpose"] * 2),
        ("40x64 rows l1", -1, "40x64 rows", "40x64 rows uint16 l1", ["Pad"] * 3 + ["Sort"] + ["Slice"] * 2 + ["Copy"]),
        ("64x128 tile", -1, "64x128 rows l1", "64x128 tile uint16", ["Sort", "UntilizeCodegen", "Copy"]),
        ("64x1 rows", -1, "64x1 tile", "64x1 tile uint16", ["TilizeWithValPadding", "Copy"]),
        # the indices come to the shards of the values, and to the place of their target
        ("64x128 tile", -1, "64x128 tile height/32x128/2", "64x128 tile uint16",
         ["Sort", "InterleavedToSharded", "ShardedToInterleaved"]),
    ],
)  # fmt: skip
def test_sorted_rows_that_are_no_place_for_the_program_come_in_new_buffers(
    device, source, dim, values, indices, wanted
):
    x, *out = put_all(device, f"{source} + {values} + {indices}")
    steps = operations(lambda: ttnn.sort(x, dim, out=out))
    assert [step for step in steps if step != "FillPad"] == wanted
    before, expected = device.machine.memory.live(), [tensor.to_numpy() for tensor in ttnn.sort(x, dim)]
    results = ttnn.sort(x, dim, out=out)
    assert [tensor.buffer_address() for tensor in results] == [tensor.buffer_address() for tensor in out]
    assert all(map(np.array_equal, [tensor.to_numpy() for tensor in out], expected))
    assert [tensor.layout for tensor in out] == [put(device, text).layout for text in (values, indices)]
    del results
    assert len(device.machine.memory.live()) == len(before)


def three_heads(function, x, **options):
    return lambda into: getattr(ttnn.experimental, function)(x, output_tensors=into, **options)


@pytest.mark.parametrize(
    ("function", "columns", "heads", "options"),
    [
        ("nlp_create_qkv_heads", 768, "4x64x64", {"num_heads": 4, "transpose_k_heads": False}),
        ("nlp_create_qkv_heads_vit", 2304, "12x64x64", {}),
    ],
)
def test_heads_are_written_into_three_tensors(device, function, columns, heads, options):
    call = three_heads(function, put(device, f"1x1x64x{columns} tile"), **options)
    out = put_all(device, " + ".join([f"1x{heads} tile l1"] * 3))
    before, wanted = device.machine.memory.live(), [tensor.to_numpy() for tensor in call(None)]
    results = call(out)
    assert [tensor.buffer_address() for tensor in results] == [tensor.buffer_address() for tensor in out]
    assert all(map(np.array_equal, [tensor.to_numpy() for tensor in out], wanted))
    assert device.machine.memory.live() == before
    assert call(out[:2])[0].buffer_address() != out[0].buffer_address()  # others than three do not count
    assert refusal(lambda: call([*out[:2], None])).startswith("Device: bad optional access\noutput_tensors: give three")


@pytest.mark.parametrize("turns", [False, True])
def test_heads_in_shards_are_written_into_three_tensors(device, turns):
    x, kv = put_all(device, "1x1x64x64 tile block/64x32/2x1 + 1x1x32x128 tile block/32x64/2x1")
    key = "1x2x32x32 tile height/32x32/2"
    out = put_all(device, f"1x2x64x32 tile height/64x32/2 + {key} + {key}")
    options = {"num_heads": 2, "transpose_k_heads": turns, "memory_config": ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG}
    call = ttnn.experimental.create_qkv_heads_from_separate_tensors
    wanted = [tensor.to_numpy() for tensor in call(x, kv, **options)]
    call(x, kv, output_tensors=out, **options)
    assert all(map(np.array_equal, [tensor.to_numpy() for tensor in out], wanted))
    for place, text in (("", "Device: Only L1 buffers can"), (" l1", "NotSimulated: output_tensors in other shards")):
        apart = put_all(device, " + ".join(f"1x2x{rows}x32 tile{place}" for rows in (64, 32, 32)))
        assert refusal(lambda apart=apart: call(x, kv, output_tensors=apart, **options)).startswith(text)


def test_fused_heads_are_new_tensors_whatever_the_caller_gives(device):
    x = put(device, "1x1x64x384 tile block/64x192/2x1")
    options = {"num_heads": 4, "memory_config": ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG}
    call = ttnn.experimental.split_query_key_value_and_split_heads
    three = put_all(device, "1x4x64x32 tile + 1x4x32x64 tile + 1x4x64x32 tile")
    results = call(x, ttnn.CoreCoord(8, 8), output_tensors=three, **options)
    assert results[0].buffer_address() != three[0].buffer_address()
    text = refusal(lambda: call(x, ttnn.CoreCoord(8, 8), output_tensors=three[:2], **options))
    assert text.startswith("Device: Must have 3 output tensors\noutput_tensors: give as many")


def test_heads_of_another_form_than_the_results_are_planned_alone():
    with ttnn.open_device(values="off") as device:
        x, *out = put_all(device, "1x1x64x64 tile" + " + 1x2x64x32 tile float32" * 3)
        assert three_heads("nlp_create_qkv_heads_segformer", x)(out)[0].dtype == ttnn.float32
    with ttnn.open_device() as device:
        x, *out = put_all(device, "1x1x64x64 tile" + " + 1x2x64x32 tile float32" * 3)
        text = refusal(lambda: three_heads("nlp_create_qkv_heads_segformer", x)(out))
        assert text.startswith("NotSimulated: output_tensors: [1, 2, 64, 32] of float32")


@pytest.mark.parametrize("count", [32, 20])
def test_the_largest_elements_and_their_places_are_written_into_a_pair(device, count):
    x = put(device, "1x1x64x128 tile")
    out = put_all(device, f"1x1x64x{count} tile l1 + 1x1x64x{count} tile uint16 l1")
    before, wanted = device.machine.memory.live(), [tensor.to_numpy() for tensor in ttnn.topk(x, count)]
    results = ttnn.topk(x, count, output_tensor=tuple(out))
    assert [tensor.buffer_address() for tensor in results] == [tensor.buffer_address() for tensor in out]
    assert all(map(np.array_equal, [tensor.to_numpy() for tensor in out], wanted))
    assert device.machine.memory.live() == before


def test_the_largest_elements_of_another_axis_are_new_tensors(device):
    x, *out = put_all(device, "64x128 tile + 20x128 tile + 20x128 tile uint16 l1")
    wanted, before = ttnn.topk(x, 20, 0), [tensor.to_numpy() for tensor in out]
    results = ttnn.topk(x, 20, 0, output_tensor=out)
    assert all(
        np.array_equal(tensor.to_numpy(), other.to_numpy()) for tensor, other in zip(results, wanted, strict=True)
    )
    assert all(map(np.array_equal, [tensor.to_numpy() for tensor in out], before))
    steps = operations(lambda: ttnn.topk(x, 20, 0, output_tensor=out))
    assert steps == ["Transpose"] * 3 + ["TopK", "Copy"] + ["Transpose"] * 2


@pytest.mark.parametrize("columns", [128, 50])
def test_numbers_of_elements_are_given_instead_of_their_places(device, columns):
    x, labels = put_all(device, f"1x2x33x{columns} tile + 1x2x33x{columns} tile uint32 l1")
    values, places = (tensor.to_numpy() for tensor in ttnn.topk(x, 20))
    best, picked = ttnn.topk(x, 20, indices_tensor=labels)
    assert (picked.dtype, picked.memory_config()) == (ttnn.uint32, x.memory_config())
    assert np.array_equal(best.to_numpy(), values)
    assert np.array_equal(picked.to_numpy(), np.take_along_axis(labels.to_numpy(), places.astype(np.int64), -1))


@pytest.mark.parametrize(
    ("tensors", "options", "text"),
    [
        ("64x128 tile + 64x64 tile uint16", {}, "Indices tensor has incorrect shape! Got : Shape([64, 64]), expected"),
        ("64x128 tile + 64x128 tile uint16", {"dim": -2},
         "Indices tensor is only supported for a reduction on the last dimension, got dim=-2 for rank 2"),
        ("64x50 tile + 64x50 tile uint16", {}, "ttnn.pad: padding len can't be larger than input tensor rank"),
        ("64x128 tile + 64x128 tile uint16", {"stable": True}, "TopK stable=true does not support a custom indices"),
        ("64x128 tile + 64x128 rows uint16", {}, "Optional indices tensor must be in tiled format, got: Layout::ROW"),
        ("64x128 tile + 64x128 tile", {}, "Optional indices tensor must be UINT16, UINT32, or INT32, got: DataType::B"),
        ("64x128 tile float32 + 64x128 tile uint16", {},
         "Optional indices tensor must be UINT32 when input tensor is FLOAT32, got UINT16"),
        # shards that do not hold the result are refused first
        ("64x128 tile + 64x128 tile uint16", {"memory_config": wide((32, 64), 1)},
         "Shard height 32 must match physical height 64 for width sharded"),
        ("64x128 tile + 64x128 tile uint16", {"memory_config": wide((64, 32), 1)},
         "Sharded implementation not supported yet"),
    ],
)  # fmt: skip
def test_numbers_of_elements_that_no_call_takes(device, tensors, options, text):
    x, labels = put_all(device, tensors)
    assert refusal(lambda: ttnn.topk(x, 32, indices_tensor=labels, **options)).partition(": ")[2].startswith(text)


def test_numbers_of_other_widths_than_their_target_are_refused(device):
    x, labels, *out = put_all(device, "64x128 tile + 64x128 tile uint32 + 64x32 tile + 64x32 tile uint16")
    text = refusal(lambda: ttnn.topk(x, 32, indices_tensor=labels, output_tensor=out)).partition(": ")[2]
    assert text.startswith(
        "Optional indices tensor must be the same width as the output indices dtype DataType::UINT16"
    )


def test_places_in_targets_of_32_bits_take_wider_buffers():
    with ttnn.open_device(values="off") as device:
        x, *out = put_all(device, "64x128 tile + 64x32 tile + 64x32 tile uint32")
        results = ttnn.topk(x, 32, output_tensor=out)
        assert results[1].dtype == ttnn.uint32


@pytest.mark.parametrize("call", [lambda x, y: ttnn.sort(x, out=y), lambda x, y: ttnn.topk(x, 2, output_tensor=(x, 2))])
def test_other_targets_than_a_pair_of_tensors_are_no_arguments(device, call):
    with pytest.raises(ttnn.ArgumentTypeError, match=r"^ttnn\.(sort|topk)\(\): incompatible function arguments\.\n"):
        call(*put_all(device, "64x128 tile + 64x128 tile"))


def sorts(x, *out):
    return ttnn.sort(x, out=out)


def picks(x, *out):
    return ttnn.topk(x, 32, output_tensor=out)


@pytest.mark.parametrize(
    ("call", "tensors", "text"),
    [
        (sorts, "64x128 tile + 64x128 tile float32 + 64x128 tile uint16",
         "Preallocated sort values tensor dtype must match the input dtype DataType::BFLOAT16, got DataType::FLOAT32"),
        (sorts, "64x128 tile + 64x128 tile + 64x128 tile int32",
         "Preallocated sort indices tensor dtype must be UINT16 or UINT32, got DataType::INT32"),
        (sorts, "64x128 tile + 64x64 tile + 64x64 tile uint16",
         "Preallocated sort output tensors must match the input shape Shape([64, 128]), got values shape "
         "Shape([64, 64])"),
        (sorts, "64x128 tile + 64x128 tile + 64x64 tile uint16",
         "Preallocated sort output tensors must match the input shape Shape([64, 128]), got indices shape "
         "Shape([64, 64])"),
        (sorts, "64x128 tile + 64x64 tile float32 + 64x64 tile int32",
         "Preallocated sort output tensors must match the input shape Shape([64, 128]), got values shape "
         "Shape([64, 64])"),
        (sorts, "64x128 tile float32 + 64x128 tile float32 + 64x128 tile uint16",
         "Preallocated sort indices tensor dtype must be UINT32 when input dtype is FLOAT32 or UINT16, got "
         "DataType::UINT16"),
        (sorts, "64x2 rows + 64x2 rows + 64x2 rows uint16", "Input shape inner dim 2 must be a power of two >= 64."),
        (picks, "64x128 tile + 64x64 tile + 64x32 tile uint16",
         "Preallocated values tensor has incorrect shape! Got : Shape([64, 64]), expected: Shape([64, 32])"),
        (picks, "64x128 tile + 64x32 rows + 64x32 tile uint16",
         "Preallocated output tensor must be in tiled format, got: Layout::ROW_MAJOR"),
        (picks, "64x128 tile + 64x32 tile + 64x32 rows uint16",
         "Preallocated indices tensor must be in tiled format, got: Layout::ROW_MAJOR"),
        (picks, "64x128 tile + 64x32 tile int32 + 64x32 tile uint16",
         "Preallocated output tensor must be BFLOAT16, BFLOAT8_B, or FLOAT32 got: DataType::INT32"),
        (picks, "64x128 tile + 64x32 tile + 64x32 tile float32",
         "Preallocated indices tensor must be UINT16, UINT32, or INT32 got: DataType::FLOAT32"),
        (picks, "64x128 tile + 64x32 tile float32 + 64x32 tile uint16",
         "Preallocated output tensor dtype must match input tensor dtype. Got output: DataType::FLOAT32, input: "
         "DataType::BFLOAT16"),
        (picks, "64x128 tile float32 + 64x32 tile float32 + 64x32 tile uint16",
         "Preallocated indices tensor must be 32-bit (UINT32 or INT32) for this input, got: DataType::UINT16"),
    ],
)  # fmt: skip
def test_pairs_are_refused_as_in_the_real_library(device, call, tensors, text):
    assert refusal(lambda: call(*put_all(device, tensors))).partition(": ")[2].startswith(text)


@pytest.mark.parametrize(
    ("inputs", "call", "target", "text"),
    [
        ("32x64 tile", repeated(2, 1, memory_config=ttnn.L1_MEMORY_CONFIG), "32x64 rows",
         "repeat: memory_config must match optional_output_tensor memory config"),
        ("1x1x64x64 tile width/64x32/2 + 1x1x1x64 rows", added("H"), "1x1x64x64 tile width/64x64/1",
         "Output tensor should have same number of cores 1 as input tensor 2"),
        ("1x1x64x64 tile + 1x1x1x64 rows", added("H"), "1x1x64x64 tile width/64x32/2",
         "Bcast does not currently support input0 sharding, except if dim is HW"),
        ("1x2x8x64 tile height/32x64/2", joined, "1x1x32x512 tile", "bad optional access"),
        ("1x2x8x64 tile float32 height/32x64/2", joined, "1x1x32x512 tile bfloat16 width/32x64/8",
         "DFB 'q_out' (entry_size 4096 * num_entries 2 = 8192 bytes) is larger than the per-bank allocation of its "
         "borrowed TensorParameter 'output' (4096 bytes)."),
        ("1x2x8x64 tile height/32x64/2", joined, "1x512 rows width/1x64/8",
         "DataflowBufferSpec 'q_out' has num_entries = 0. num_entries must be set to a non-zero value."),
        ("3x2x32x32 tile", summed(0), "1x2x32x32 rows", "FastReduceNC output only supports TILE layout."),
        ("3x2x32x32 tile", summed(0), "1x2x32x32 tile int32",
         "FastReduceNC output only supports specific data types. [BFLOAT16, BFLOAT8_B, FLOAT32]"),
        ("3x2x32x32 tile", summed(0), "2x32x32 tile",
         "FastReduceNC preallocated output rank 3 must match input rank 4"),
        ("32x64 rows", assigned, "32x64 rows",
         "Mismatched output memory config. Check to see if the preallocated output tensor has a different shard spec "
         "than the one specified in the passed-in memory config."),
        ("32x64 tile int32", power, "32x64 tile",
         "pow_int: output dtype DataType::BFLOAT16 must match input dtype DataType::INT32"),
        ("32x64 tile int32", power, "64x64 tile int32",
         "pow_int: output shape Shape([64, 64]) must match input shape Shape([32, 64])"),
        ("32x64 tile + 32x64 tile uint16", gathered, "32x32 tile",
         "gather_codegen: output tensor shape must be the same as index tensor shape. Got output tensor shape: "
         "Shape([1, 1, 32, 32]) and index tensor shape: Shape([1, 1, 32, 64])"),
        ("32x64 tile + 32x64 tile uint16", gathered, "1x1x1x32x32 tile", "Tensor rank is greater than 4"),
        ("1x64 tile", broadcast, "32x64 tile",
         "bcast_to: Invalid output shape Shape([32, 64])Output shape must match operation attributes Shape([64, 64])"),
        ("1x64 tile", broadcast, "64x64 rows",
         "bcast_to: Input Layout::TILE and output Layout::ROW_MAJOR must have same layout"),
        ("1x64 tile", broadcast, "64x64 tile float32",
         "bcast_to: Input DataType::BFLOAT16 and output DataType::FLOAT32 must have same dtype"),
        ("32x64 tile", repeated(2, 1), "32x64 rows float32", "repeat optional output dtype mismatch"),
        ("32x64 tile", repeated(2, 1), "32x64 rows", "repeat optional output layout mismatch"),
        ("32x64 tile", repeated(2, 1), "32x64 tile", "repeat optional output shape mismatch"),
        ("1x1x128x96 tile", sliced((64, 64)), "1x1x64x96 tile",
         "The preallocated output tensor needs a padded shape of Shape([1, 1, 64, 64]), however it is "
         "Shape([1, 1, 64, 96])"),
        ("1x1x128x96 tile", sliced((60, 64)), "1x1x64x64 tile",
         "Input tensor shape Shape([1, 1, 60, 64]) does not match output tensor shape Shape([1, 1, 64, 64])"),
        ("1x1x128x96 tile", sliced((64, 64)), "1x1x64x64 rows",
         "Input tensor layout (Layout::TILE) must equal output tensor layout (Layout::ROW_MAJOR)"),
        ("1x1x64x96 tile", sliced((64, 96)), "1x1x64x96 tile float32", "Mismatched output dtype"),
        ("64x64 rows", lambda x, into: ttnn.slice(x, [0, 0], [32, 64], output_tensor=into), "32x64 rows float32 l1",
         "The preallocated output tensor needs a layout of TensorLayout(dtype=DataType::BFLOAT16,page_config="
         "PageConfig(config=RowMajorPageConfig()),memory_config=MemoryConfig(memory_layout=TensorMemoryLayout::"
         "INTERLEAVED,buffer_type=BufferType::L1,shard_spec=std::nullopt,nd_shard_spec=std::nullopt,"
         "created_with_nd_shard_spec=0,per_core_allocation=0,range_lockstep_allocation=0),alignment=Alignment([1])), "
         "however it is TensorLayout(dtype=DataType::FLOAT32,"),
    ],
)  # fmt: skip
def test_targets_are_refused_as_in_the_real_library(device, inputs, call, target, text):
    tensors, into = put_all(device, inputs), put(device, target)
    assert refusal(lambda: call(*tensors, into)).partition(": ")[2].startswith(text)
