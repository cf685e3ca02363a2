"""The layout that weights are prepared for: recorded shapes of the real library's prepared tensors."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout, ShardOrientation
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import CONV2D, CONV_TRANSPOSE2D, SliceType
from ops.planners.conv.operands import matrix_refusal, size_refusal
from ops.planners.conv.preparation import (
    checked_preparation,
    partition_preparation,
    plan_preparation,
    plan_rows,
)
from ops.programs.conv2d.weights import PrepareWeights, misfit
from tests.build import L1_FULL, TWO_SLICES, call as plain_call, cut, height_sharded, operand, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, box, in_box

SPEC = load_spec("blackhole_p150")
GRID = {"override_sharding_config": True, "core_grid": box(6, 6)}
TURNED = {"shard_layout": BLOCK, "transpose_shards": True}
ACROSS = SliceType.DRAM_WIDTH
WIDER = {"padding": (2, 2, 1, 6), "dilation": (1, 3)}


def call(size, channels, out_channels, kernel, stride, *, layout=Layout.TILE, **changes):
    changes = {"weights_format": BFLOAT16} | changes
    return sized_call(size, (channels, out_channels), kernel, layout=layout, with_bias=True, stride=stride, **changes)


def upsampled(channels, slices):
    """A call of tt-metal's nightly tests, as far as its preparation is told."""
    rows = {"layout": Layout.ROW_MAJOR, "output_layout": Layout.ROW_MAJOR, "slice_config": cut(slices, ACROSS)}
    return call((32, 32), channels, 64, (8, 8), (4, 4), **rows, padding=(2, 2, 2, 2))


def shape(plan, role):
    return plan.tensors[plan.results[role]].padded_shape[-2:]


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        # a given core grid is not looked at
        (call((11, 60), 64, 595, (4, 4), (3, 3), **GRID, shard_layout=BLOCK), (4096, 640)),
        # tiles in DRAM lie as a window does, whose channels are a multiple of 8
        (call((1, 1), 86, 256, (5, 4), (1, 3), shard_layout=BLOCK), (7040, 256)),
        (call((63, 1), 16, 664, (4, 4), (3, 3), **WIDER, **TURNED), (1024, 672)),
        # so they do where a 1x1 kernel runs as a matmul
        (call((75, 3), 1024, 96, (1, 1), (1, 1), **TURNED), (1280, 320)),
    ],
)
def test_rows_and_columns_of_prepared_weights(made, wanted):
    assert shape(plan_preparation(made, "weight", SPEC, free_l1_bytes=1400000), "weight") == wanted


@pytest.mark.parametrize(("scheme", "rows"), [(None, 768), (BLOCK, 576)])
def test_images_in_memory_without_shards_are_dealt_tile_by_tile(scheme, rows):
    """Three rows of a kernel of 3 x 64 channels; eight cores of 8 channels would fill up 24 rows of each to 32."""
    made = call((16, 20), 64, 32, (3, 3), (1, 1), padding=(1, 1, 0, 0), shard_layout=BLOCK)
    image = made.input.spec.changed(layout=Layout.ROW_MAJOR, memory_config=L1_MEMORY_CONFIG)
    made = replace(made, input=replace(made.input, spec=image))
    plan = plan_preparation(made, "weight", SPEC, free_l1_bytes=1400000, scheme=scheme)
    assert shape(plan, "weight") == (rows, 32)


@pytest.mark.parametrize("scheme", [None, BLOCK])
def test_slices_lie_as_their_windows_whatever_the_memory(scheme):
    """Three rows of a kernel of 4 x 8 channels."""
    rows = {"layout": Layout.ROW_MAJOR, "slice_config": cut(2, ACROSS)}
    made = call((63, 40), 3, 6, (3, 4), (1, 1), **rows, rules=CONV2D, padding=(1, 1, 2, 2), shard_layout=BLOCK)
    plan = plan_preparation(made, "weight", SPEC, free_l1_bytes=1400000, scheme=scheme)
    assert shape(plan, "weight") == (96, 32)


@pytest.mark.parametrize(("name", "slices"), [("wormhole_n150", 0), ("blackhole_p150", 2)])
def test_a_nightly_test_of_tt_metal_prepares_weights_for_another_scheme_than_its_call_has(name, slices):
    """test_convt2d_dram does not say its output padding to the preparation, which the real library takes for 0.

    With 64 channels both matrices are 4096 x 64; the shapes of the test above show which one the real library makes.
    """
    result = upsampled(64, slices)
    of_call = replace(result, output_padding=(2, 2))
    schemes = [prepared(one, name).layout.scheme for one in (result, of_call)]
    assert schemes == [HEIGHT, BLOCK]
    assert misfit(prepared(result, name), TensorSpec((1, 1, 4096, 64), BFLOAT16, Layout.TILE), prepared(of_call, name))


def prepared(made, name):
    plan = plan_preparation(made, "weight", load_spec(name), free_l1_bytes=1_350_000)
    return next(step.op for step in plan.steps if isinstance(getattr(step, "op", None), PrepareWeights))


def test_full_inner_dim_orders_the_rows_of_block_weights():
    """One channel of k2x2: eight of the shard four times fill one tile, not a tile for each kernel row."""
    result = call((4, 32), 1, 253, (2, 2), (2, 1), layout=Layout.ROW_MAJOR, place=L1_MEMORY_CONFIG, shard_layout=BLOCK)
    assert shape(plan_preparation(result, "weight", SPEC, free_l1_bytes=1400000), "weight") == (64, 256)
    result = replace(result, conv_config=replace(result.conv_config, full_inner_dim=True))
    assert shape(plan_preparation(result, "weight", SPEC, free_l1_bytes=1400000), "weight") == (32, 256)


def test_a_bias_of_a_strided_1x1_kernel_is_prepared_for_a_matmul():
    """59 tiles of columns are a prime number, which a matmul does not deal; the weights have 60."""
    result = call((2, 79), 11, 1888, (1, 1), (2, 2), shard_layout=BLOCK, transpose_shards=True)
    assert (prepared_shape(result)[1], prepared_shape(result, "bias")[1]) == (60 * 32, 59 * 32)


@pytest.mark.parametrize(
    ("scheme", "shapes", "text"),
    [
        (BLOCK, [(1, 1, 1728, 128)], None),
        (BLOCK, [(1, 1, 1728, 256)], "num_cores_x 4 should be divisible by num_weight_slices_width 8"),
        (BLOCK, [(1, 1, 1728, 128), (1, 1, 32, 64)], "Bias tiles (2) must equal weight matrix width in tiles (4)"),
        (HEIGHT, [(1, 1, 1728, 160)], "weight_matrix_width_ntiles 5 should be divisible by weight_block_w_ntiles 4"),
        (HEIGHT, [(1, 1, 1728, 256)], "num_blocks_weight_w_per_core 1 should be equal to num_blocks_weight_w 2"),
        (HEIGHT, [(1, 1, 1728, 64)], "Invalid weight shape. Incorrect weight tensor."),
    ],
)
def test_weights_for_another_call_are_refused(scheme, shapes, text):
    made = call((8, 8), 96, 128, (3, 3), (2, 2), place=L1_MEMORY_CONFIG, shard_layout=scheme)
    found = matrix_refusal(128, shapes[0]) or size_refusal(partition_preparation(made, SPEC, None).layout, shapes)
    assert (None if found is None else found.splitlines()[0]) == text


def test_operands_in_rows_are_allocated_and_released_before_a_preparation():
    result = call((16, 16), 24, 32, (2, 2), (3, 3))
    plan = plan_rows(checked_preparation(result, "bias", SPEC, function="prepare", strict=False), SPEC)
    assert [type(step).__name__ + step.tensor for step in plan.steps] == [
        "Allocateweight.rows", "Allocatebias.rows", "Freebias.rows", "Freeweight.rows",
    ]  # fmt: skip
    assert plan.tensors["weight.rows"].shape == (32, 24, 2, 2)
    assert plan.tensors["bias.rows"].shape == (1, 1, 1, 32)


KNOWN = {"weights_format": BFLOAT16}
RESHARDED = KNOWN | {"reshard_if_not_optimal": True}
ROW = {"bias": operand(1, 1, 1, 32)}
SHARDED = {"input": height_sharded(BufferType.L1)}
MISSING = "bad optional access\nconv_config.shard_layout"
SEARCH = "get_cb_info expects conv_config.weights_dtype to be already set"
# One row, k 3, s 2, padding 1 and 2: no rows but the one of the output padding, which preparing counts.
LONG = operand(1, 1, 117, 32, place=DRAM_MEMORY_CONFIG)
ONE_ROW = KNOWN | {"input": LONG, "input_height": 1, "input_width": 117, "padding": (1, 2, 1, 1)}


def tensor_in_dram():
    return operand(1, 1, 64, 32, place=DRAM_MEMORY_CONFIG)


DIMENSION = "Number of slices {} should be less or equal than the dimension being sliced {} ".format
ON_DEVICE = {"bias": operand(1, 1, 1, 32, place=DRAM_MEMORY_CONFIG)}


@pytest.mark.parametrize(
    ("role", "changes", "text"),
    [
        ("weight", KNOWN, ""),
        ("weight", {"slice_config": TWO_SLICES}, ""),
        ("weight", {"input": operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG)}, ""),
        ("weight", {}, SEARCH),
        ("weight", {"slice_config": cut()}, SEARCH),
        # shards that are kept need no scheme for the search of slices
        ("weight", KNOWN | SHARDED | {"slice_config": L1_FULL}, ""),
        ("weight", SHARDED | {"slice_config": L1_FULL}, SEARCH),
        ("weight", KNOWN | {"weight": operand(32, 32, 3)}, "ShapeBase"),
        ("weight", RESHARDED, MISSING),
        ("weight", RESHARDED | {"slice_config": L1_FULL}, ""),
        ("weight", RESHARDED | {"shard_layout": HEIGHT, "slice_config": cut(500, ACROSS)}, DIMENSION(500, 16)),
        ("weight", ONE_ROW | {"slice_config": cut(2)}, DIMENSION(2, 1)),
        ("bias", KNOWN | ROW, ""),
        ("bias", ROW | {"weights_format": BFLOAT8_B}, "Only TILE layout is supported for BFLOAT8_B dtype!"),
        ("bias", RESHARDED | ROW, MISSING),
        ("bias", ROW, "bad optional access\nconv_config.weights_dtype"),
        ("bias", KNOWN | ON_DEVICE, "conv bias should be placed on host"),
        ("bias", ON_DEVICE, "conv bias should be placed on host"),
        ("bias", KNOWN | {"bias": operand(1, 1, 1, 16)}, "Bias must have the same length"),
    ],
)
def test_what_is_refused_of_a_preparation(role, changes, text):
    result = plain_call(**changes)
    if not text:
        prepared_shape(result, role)
        return
    with pytest.raises(ArgumentError, match=f"^{text}"):
        prepared_shape(result, role)


HIGH_BLOCK = {"act_block_h_override": 33}
OUTPUT = {"override_output_sharding_config": True}
IN_L1 = {"input": operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG)}
BLOCK_FIRST, OUTPUT_FIRST = "Config Error: act_block_h_override", "When override_output_sharding_config is set to true"


@pytest.mark.parametrize("rules", [CONV2D, CONV_TRANSPOSE2D])
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        # blocks come first where a scheme is chosen or shards are made, the output's cores where shards are kept
        (IN_L1, BLOCK_FIRST),
        (IN_L1 | {"shard_layout": HEIGHT}, BLOCK_FIRST),
        ({"slice_config": cut(2)}, BLOCK_FIRST),
        ({"slice_config": cut(2), "shard_layout": HEIGHT}, OUTPUT_FIRST),
        ({"slice_config": cut(2), "shard_layout": HEIGHT, "reshard_if_not_optimal": True}, BLOCK_FIRST),
        (SHARDED, OUTPUT_FIRST),
        (SHARDED | {"shard_layout": HEIGHT, "reshard_if_not_optimal": True}, BLOCK_FIRST),
        (SHARDED | {"reshard_if_not_optimal": True}, "bad optional access"),
        ({"slice_config": cut(99)}, "Number of slices 99 should be less or equal than the dimension being sliced"),
    ],
)
def test_blocks_and_the_output_s_cores_in_order(rules, changes, text):
    result = plain_call(**KNOWN, **HIGH_BLOCK, **OUTPUT, **{"input": tensor_in_dram()} | changes)
    result = replace(result, rules=rules, output_padding=(0, 0))
    with pytest.raises(ArgumentError, match=f"^{text}"):
        checked_preparation(result, "weight", SPEC, function="prepare", strict=False)


@pytest.mark.parametrize(("rules", "text"), [(CONV2D, OUTPUT_FIRST), (CONV_TRANSPOSE2D, BLOCK_FIRST)])
def test_a_search_for_slices_of_a_given_scheme(rules, text):
    result = plain_call(**KNOWN, **HIGH_BLOCK, **OUTPUT, input=tensor_in_dram(), shard_layout=HEIGHT)
    with pytest.raises(ArgumentError, match=f"^{text}"):
        checked_preparation(
            replace(result, rules=rules, output_padding=(0, 0)), "weight", SPEC, function="prepare", strict=False
        )


def test_a_whole_image_may_have_blocks_higher_than_a_core_s_rows():
    """Its first slice of one in DRAM would have 9 rows a core, and a block of two tiles."""
    changes = {"stride": (4, 4), "shard_layout": WIDTH, "act_block_h_override": 64, "weights_format": BFLOAT8_B}
    result = sized_call((249, 1), (152, 221), layout=Layout.TILE, slice_config=L1_FULL, **changes)
    prepared_shape(result)
    chosen = replace(result, conv_config=replace(result.conv_config, shard_layout=None))
    narrow = replace(chosen, input_height=1, stride=(1, 1))
    with pytest.raises(DeviceError, match=r"^Conv2d output block size"):  # where the scheme is chosen
        prepared_shape(narrow)


@pytest.mark.parametrize(
    ("rules", "role"), [(CONV2D, "weight"), (CONV_TRANSPOSE2D, "weight"), (CONV_TRANSPOSE2D, "bias")]
)
def test_shards_that_the_call_has_to_move_stay_for_a_preparation(rules, role):
    place = in_box(HEIGHT, (8, 32), 8, orientation=ShardOrientation.COL_MAJOR)
    result = plain_call(**KNOWN, **ROW, input=operand(1, 1, 64, 32, place=place))
    result = replace(result, rules=rules, output_padding=(0, 0))
    made = checked_preparation(result, role, SPEC, function="prepare", strict=False)
    assert shape(plan_preparation(made, role, SPEC, free_l1_bytes=1400000), role)[-1] == 32


def test_weights_for_shards_that_stay_and_results_of_small_blocks_are_prepared():
    """Only the program itself asks for the rates of the result's format, which are not known of bfloat4_b."""
    made = plain_call(**KNOWN, **SHARDED, out_format=BFLOAT4_B)
    assert shape(plan_preparation(made, "weight", SPEC, free_l1_bytes=1400000), "weight") == (288, 32)


def test_a_matmul_s_weights_for_shards_that_are_moved_want_their_layout():
    sizes = {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0), "weight": operand(32, 32, 1, 1)}
    result = replace(plain_call(**RESHARDED, **SHARDED, **sizes), rules=CONV2D, output_padding=(0, 0))
    with pytest.raises(ArgumentError, match=r"^bad optional access"):
        checked_preparation(result, "weight", SPEC, function="prepare", strict=False)


def prepared_shape(made, role="weight"):
    made = checked_preparation(made, role, SPEC, function="prepare", strict=False)
    return shape(plan_preparation(made, role, SPEC, free_l1_bytes=1400000), role)


def conv2d_call(size, channels, kernel, **changes):
    changes = {"weights_format": BFLOAT8_B, "layout": Layout.TILE, "with_bias": True} | changes
    return sized_call(size, channels, kernel, rules=CONV2D, **changes)


IN_ROWS = "Only TILE layout is supported for BFLOAT8_B dtype!"


@pytest.mark.parametrize(
    ("role", "changes", "text"),
    [
        ("weight", {}, IN_ROWS),
        ("weight", {"slice_config": L1_FULL}, ""),
        ("weight", {"slice_config": cut(40)}, IN_ROWS),  # before the slices are counted
        ("weight", {"place": L1_MEMORY_CONFIG, "slice_config": cut(2)}, IN_ROWS),
        # No slices are read for a bias
        ("bias", {"slice_config": L1_FULL}, IN_ROWS),
        ("bias", {"place": L1_MEMORY_CONFIG, "slice_config": cut(2)}, ""),
        ("bias", {"kernel_size": (20, 3), "weight": operand(32, 32, 20, 3)}, IN_ROWS),  # and before outputs
    ],
)
def test_operands_of_block_floats_are_prepared_in_rows_where_slices_are_planned(role, changes, text):
    made = conv2d_call((16, 64), (32, 32), (3, 3), **changes)
    if not text:
        assert prepared_shape(made, role)[1] == 32
        return
    with pytest.raises(ArgumentError, match=f"^{text}"):
        prepared_shape(made, role)


@pytest.mark.parametrize("role", ["weight", "bias"])
@pytest.mark.parametrize("slices", [None, L1_FULL, cut(), cut(3)])
def test_a_row_is_never_cut(role, slices):
    assert prepared_shape(conv2d_call((1, 64), (32, 32), (1, 3), slice_config=slices), role)[1] == 32


def test_windows_that_leave_pixels_out_plan_slices_of_a_matmul():
    made = conv2d_call((8, 16), (96, 32), (1, 1), stride=(2, 2), weights_format=BFLOAT16)
    made = replace(made, conv_config=replace(made.conv_config, enable_kernel_stride_folding=True))
    for role in ("weight", "bias"):
        with pytest.raises(ArgumentError, match=r"^Conv2D DRAM with matmul should never use the slicing code path"):
            prepared_shape(made, role)


def test_a_bias_for_shards_that_are_moved_wants_their_layout():
    made = conv2d_call((8, 8), (32, 32), (3, 3), weights_format=BFLOAT16, **SHARDED, reshard_if_not_optimal=True)
    for rules in (CONV2D, CONV_TRANSPOSE2D):
        with pytest.raises(ArgumentError, match=r"^bad optional access"):
            prepared_shape(replace(made, rules=rules), "bias")


def test_operands_of_a_matmul_are_prepared_for_shards_that_part_the_channels():
    """Recorded from ttnn 0.81.1: 20 channels on eight cores, for which the call makes other shards."""
    place = in_box(BLOCK, (800, 8), 8)
    source = operand(1, 1, 800, 20, place=place)
    spec = TensorSpec((1, 1, 800, 20), BFLOAT16, Layout.ROW_MAJOR, place, (1, 1, 800, 64))
    made = conv2d_call((8, 100), (20, 32), (1, 1), layout=Layout.ROW_MAJOR, weights_format=BFLOAT16)
    made = replace(made, input=replace(source, spec=spec))
    assert prepared_shape(made, "bias") == (32, 256)


@pytest.mark.parametrize(
    ("rules", "layout", "rows"),
    [(CONV2D, HEIGHT, 288), (CONV_TRANSPOSE2D, HEIGHT, 96), (CONV2D, BLOCK, 96), (CONV_TRANSPOSE2D, BLOCK, 96)],
)
def test_tiles_cut_into_slices_keep_their_channels_in_high_shards_of_conv2d(rules, layout, rows):
    changes = {"shard_layout": layout, "slice_config": TWO_SLICES, "weights_format": BFLOAT16}
    made = sized_call((32, 32), (8, 16), rules=rules, layout=Layout.TILE, **changes)
    assert prepared_shape(made)[0] == rows


def test_full_inner_dim_does_not_join_rows_of_high_shards():
    made = call((20, 64), 3, 3, (5, 5), (2, 2), layout=Layout.ROW_MAJOR, shard_layout=HEIGHT, full_inner_dim=True)
    assert prepared_shape(made) == (320, 32)


def test_weights_for_shards_that_need_no_slices_are_prepared_for_the_shards():
    """Recorded from ttnn 0.81.1: one slice is found, and 64 cores keep their BLOCK shards of 256 channels."""
    place = in_box(BLOCK, (32, 256), 8, 8)
    spec = TensorSpec((1, 1, 196, 2016), FLOAT32, Layout.TILE, place, (1, 1, 224, 2048))
    made = call((14, 14), 2016, 96, (3, 3), (1, 3), slice_config=cut(0, ACROSS), out_format=BFLOAT16)
    made = replace(made, input=replace(made.input, spec=spec))
    assert prepared_shape(made)[0] == 18432


def test_cores_that_a_call_overrides_do_not_count():
    made = plain_call(**KNOWN, **SHARDED, **GRID)
    for role in ("weight", "bias"):
        assert prepared_shape(replace(made, bias=ROW["bias"]), role)[1] == 32


def test_the_scheme_of_slices_is_chosen_for_shards_in_dram():
    """Blocks are estimated for all schemes, although the shards of the input have one."""
    place = replace(in_box(HEIGHT, (32, 32), 2), buffer_type=BufferType.DRAM)
    window = {"batch": 3, "padding": (2, 2, 0, 0), "stride": (1, 2)}
    made = conv2d_call((1, 3), (32, 16), (3, 1), **window, weights_format=BFLOAT16, act_block_h_override=512)
    made = replace(made, input=operand(1, 1, 9, 32, place=place, layout=Layout.TILE))
    with pytest.raises(DeviceError, match=r"^Conv2d output block size"):
        prepared_shape(made)


def test_a_bias_of_a_transposed_convolution_is_that_of_the_convolution_over_its_frame():
    """No slices of a kernel of one row over frames of one row; rows of block floats are refused else."""
    row = {"weights_format": BFLOAT8_B, "with_bias": True, "layout": Layout.TILE}
    made = sized_call((1, 64), (32, 32), (1, 3), **row)
    assert prepared_shape(made, "bias") == (32, 32)
    with pytest.raises(ArgumentError, match=f"^{IN_ROWS}"):
        prepared_shape(sized_call((2, 64), (32, 32), (1, 3), **row), "bias")


@pytest.mark.parametrize("scheme", [HEIGHT, WIDTH, BLOCK])
def test_shards_that_are_not_given_lie_in_l1_and_have_a_scheme(scheme):
    made = conv2d_call((16, 64), (96, 32), (3, 3), place=L1_MEMORY_CONFIG)
    bare, known = (
        checked_preparation(made, "weight", SPEC, function="prepare", strict=False, scheme=each)
        for each in (scheme, None)
    )
    assert (bare.conv_config.shard_layout, known.conv_config.shard_layout) == (scheme, None)
    assert shape(plan_preparation(bare, "weight", SPEC, free_l1_bytes=1400000), "weight")
    moved = replace(made, conv_config=replace(made.conv_config, reshard_if_not_optimal=True))
    with pytest.raises(ArgumentError, match=r"^bad optional access"):
        checked_preparation(moved, "weight", SPEC, function="prepare", strict=False, scheme=scheme)


def test_weights_are_looked_at_once_the_blocks_are_planned():
    made = conv2d_call((16, 64), (32, 32), (3, 3), place=L1_MEMORY_CONFIG, act_block_h_override=33)
    made = replace(made, weight=operand(32, 32, 9))
    with pytest.raises(ArgumentError, match=f"^{BLOCK_FIRST}"):
        prepared_shape(made)
    with pytest.raises(ArgumentError, match=r"^Host conv weights should be 4D tensor"):
        prepared_shape(replace(made, conv_config=replace(made.conv_config, act_block_h_override=0)))


def test_weights_of_a_matmul_on_an_input_in_dram_are_one_matrix_for_wide_shards_as_well():
    made = conv2d_call((6, 30), (100, 96), (2, 1), stride=(2, 1), shard_layout=WIDTH, place=DRAM_MEMORY_CONFIG)
    assert prepared_shape(made) == (224, 96)
