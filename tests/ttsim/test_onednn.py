"""oneDNN's operations as users call them: results, layouts, devices, and every error of the text, one by one."""

import json
import re

import ml_dtypes
import numpy as np
import pytest

import ttsim
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.reference import conv_transpose, plan_geometry
from tests.gradients import data_gradient, weights_gradient
from ttsim import onednn

FORMATS = {
    "IOX": lambda w: w,
    "OIX": lambda w: np.swapaxes(w, 0, 1),
    "XOI": lambda w: np.moveaxis(w, (0, 1), (-1, -2)),
    "XIO": lambda w: np.moveaxis(w, (0, 1), (-2, -1)),
}
FORWARD = "ConvTranspose"


def attributes(axes=2, **changed):
    ones, zeros = [1] * axes, [0] * axes
    return {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "dilations": ones, **changed}


def integers(rng, *shape, dtype=np.float32):
    return rng.integers(-4, 5, shape).astype(dtype)


@pytest.fixture(params=["fast", "exact"])
def device(request):
    with ttsim.open_device(values=request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def fast():
    with ttsim.open_device(values="fast") as opened:
        yield opened


CASES = [
    (1, [7], [3], {"strides": [2], "output_padding": [1]}, 1),
    (2, [4, 3], [3, 2], {"strides": [2, 3], "pads_begin": [1, 0], "pads_end": [0, 1]}, 2),
    (3, [2, 3, 2], [2, 2, 3], {"strides": [2, 1, 2], "dilations": [1, 2, 1]}, 1),
]


@pytest.mark.parametrize(
    ("dtype", "weights_format", "data_format"),
    [
        (np.float32, "IOX", "NXC"),
        (np.float32, "XOI", "NCX"),
        (np.float16, "OIX", "NCX"),
        (ml_dtypes.bfloat16, "XIO", "NXC"),
    ],
)
@pytest.mark.parametrize(("axes", "size", "kernel", "changed", "groups"), CASES)
def test_every_layout_and_type(device, dtype, axes, size, kernel, changed, groups, weights_format, data_format):
    rng, given = np.random.default_rng(axes), attributes(axes, groups=groups, **changed)
    geometry = plan_geometry(
        size, kernel, stride=given["strides"], pad_before=given["pads_begin"], pad_after=given["pads_end"],
        output_padding=given.get("output_padding", ()), dilation=given["dilations"],
    )  # fmt: skip
    src, weights = integers(rng, 2, 4, *size, dtype=dtype), integers(rng, 4, 6 // groups, *kernel, dtype=dtype)
    bias, diff = integers(rng, 6, dtype=dtype), integers(rng, 2, 6, *geometry.output_shape, dtype=dtype)
    place = (lambda a: np.moveaxis(a, 1, -1)) if data_format == "NXC" else (lambda a: a)
    common = {**given, "data_format": data_format, "device": device}
    stored = FORMATS[weights_format](weights)

    def same(got, want):
        assert got.dtype == dtype
        assert got.shape == want.shape
        assert np.array_equal(got, want.astype(np.float32).astype(dtype))

    for lowering in ("zero_insertion", "phase"):
        got = onednn.conv_transpose(
            place(src), stored, bias, weights_format=weights_format, lowering=lowering, **common
        )
        same(got, place(conv_transpose(src, weights, geometry, bias=bias, groups=groups)))
    got = onednn.conv_transpose_backward_data(place(diff), stored, weights_format=weights_format, **common)
    same(got, place(data_gradient(diff, weights, geometry, groups=groups)))
    want = FORMATS[weights_format](weights_gradient(src, diff, geometry, groups=groups))
    got = onednn.conv_transpose_backward_weights(
        place(src), place(diff), stored.shape, weights_format=weights_format, **common
    )
    same(got, want)
    got = onednn.conv_transpose_backprop_filters(
        place(src), place(diff), stored.shape, filter_format=weights_format, **common
    )
    same(got, want)


SRC, WEIGHTS = np.zeros((1, 4, 4, 4), np.float32), np.zeros((3, 3, 6, 4), np.float32)  # NXC, XOI
DST = np.zeros((1, 6, 6, 6), np.float32)
FORWARD_ERRORS = [
    ({"src": [[1.0]]}, "src must be a numpy array, not list; numpy.asarray makes one of it$"),
    ({"src": SRC.astype(np.float64)}, "src must be of type float32, .* not float64; give src.astype.numpy.float32.$"),
    ({"src": SRC.astype(np.int32)}, "src must be of type"),
    ({"weights": WEIGHTS.astype(np.float16)}, "weights must be of the type of src, float32, not float16$"),
    ({"bias": np.zeros(6, np.float16)}, "bias must be of the type of src, float32, not float16$"),
    ({"src": SRC[0, 0]}, r"src must have 1, 2 or 3 spatial axes .*, not the shape \(4, 4\); an image is \[N"),
    ({"src": np.zeros((1,) * 6, np.float32)}, "src must have 1, 2 or 3 spatial axes"),
    ({"weights": WEIGHTS[0]}, r"weights must have 4 sides .*, not \(3, 6, 4\); weights_format XOI gives their order$"),
    ({"weights": WEIGHTS[:0]}, r"weights must have 4 sides of at least 1 for 2 spatial axes, not \(0, 3, 6, 4\); "),
    ({"src": SRC[:, :0]}, "src must have at least 1 channel and 1 position on every axis"),
    ({"strides": None}, "strides is required, .*; it is missing$"),
    ({"pads_begin": None}, "pads_begin is required"),
    ({"pads_end": None}, "pads_end is required"),
    ({"dilations": None}, "dilations is required"),
    ({"strides": 2}, r"strides must be a list of integers, not 2; write \[2, 2\]$"),
    ({"strides": [1]}, r"strides must have one entry for each of the 2 spatial axes, not \[1\]$"),
    ({"pads_begin": [1]}, "pads_begin must have one entry"),
    ({"pads_end": [1, 1, 1]}, "pads_end must have one entry"),
    ({"dilations": []}, "dilations must have one entry"),
    ({"output_padding": [1]}, "output_padding must have one entry"),
    ({"strides": [0, 1]}, r"strides must be at least 1 on every axis, not \[0, 1\]$"),
    ({"dilations": [0, 1]}, r"dilations must be at least 1 on every axis, not \[0, 1\]$"),
    ({"pads_begin": [-1, 0]}, r"pads_begin must be at least 0 on every axis, not \[-1, 0\]$"),
    ({"pads_end": [0, -1]}, r"pads_end must be at least 0 on every axis, not \[0, -1\]$"),
    ({"output_padding": [0, -1]}, r"output_padding must be at least 0 on every axis, not \[0, -1\]$"),
    ({"groups": 0}, "groups must be at least 1, not 0$"),
    ({"groups": 3}, "groups must divide the channels of src, but 3 does not divide 4$"),
    ({"weights": WEIGHTS[..., :2], "groups": 2}, "in_channels of weights must be the 4 .*, not 2 .*groups"),
    ({"weights": WEIGHTS[..., :3]}, "in_channels of weights must be the 4 channels of src, not 3"),
    ({"bias": np.zeros(3, np.float32)}, r"bias must have the shape \(6,\), one value .*, not \(3,\)$"),
    ({"bias": np.zeros((1, 6), np.float32)}, r"bias must have the shape \(6,\).*not \(1, 6\)$"),
    ({"auto_pad": "same"}, "auto_pad must be one of none, same_upper, same_lower, valid, not 'same'$"),
    ({"data_format": "NHWC"}, "data_format must be one of NXC, NCX, not 'NHWC'$"),
    ({"weights_format": "OIHW"}, "weights_format must be one of IOX, OIX, XOI, XIO, not 'OIHW'$"),
    ({"pads_begin": [3, 3], "pads_end": [3, 3]}, r"dst must have at least 1 position .*, not \[0, 0\]; use less"),
    ({"dst_shape": [1, 6, 6, 5]}, r"dst_shape must be \[1, 6, 6, 6\], not \[1, 6, 6, 5\]$"),
    ({"strict": True, "output_padding": [1, 0]}, r"output_padding must be smaller than strides .* not \[1, 0\] with"),
    ({"precision": "double"}, "precision must be one of ieee, device, float64, not 'double'$"),
    ({"lowering": "fft"}, "lowering must be one of zero_insertion, phase, not 'fft'$"),
    ({"src": np.ma.masked_array(SRC, SRC > -1)}, r"src has 64 masked elements, .* give them a value with src.filled"),
]  # fmt: skip


DATA_ERRORS = [
    ({"diff_dst": DST[..., :5]}, "out_channels / groups of weights must be 5, the 5 channels of diff_dst over 1"),
    ({"groups": 4}, "groups must divide the channels of diff_dst, but 4 does not divide 6$"),
    ({"weights": WEIGHTS[..., :3], "groups": 2}, "groups must divide the in_channels of weights, but 2 does not"),
    ({"diff_dst": DST[:, :2]}, r"diff_src must have at least 1 position on every axis, not \[0, 4\]; diff_dst of"),
    ({"src_shape": [1, 4, 5, 4]}, r"src_shape must be \[1, 4, 4, 4\], not \[1, 4, 5, 4\]$"),
    ({"weights": WEIGHTS.astype(np.float16)}, "weights must be of the type of diff_dst, float32, not float16$"),
    ({"strides": None}, "strides is required"),
    ({"pads_end": [-1, 0]}, "pads_end must be at least 0"),
    ({"auto_pad": ""}, "auto_pad must be one of"),
    ({"precision": None}, "precision must be one of"),
]
WEIGHTS_ERRORS = [
    ({"weights_shape": None}, "weights_shape must be given as an input or as an attribute, 4 positive .* missing$"),
    ({"weights_shape": np.zeros((1, 4), np.int32)}, r"weights_shape must have one axis, not the shape \(1, 4\)$"),
    ({"weights_shape": [3, 3, 6]}, r"weights_shape must be 4 positive integers for 2 spatial axes, not \[3, 3, 6\]$"),
    ({"weights_shape": [3, 0, 6, 4]}, "weights_shape must be 4 positive integers"),
    ({"weights_shape": [3, 3, 6, 4.5]}, "weights_shape must be a list of integers"),
    ({"weights_shape": [3, 3, 6, 3]}, "in_channels of weights_shape must be the 4 channels of src, not 3"),
    ({"weights_shape": [3, 3, 5, 4]}, "out_channels / groups of weights_shape must be 6, the 6 channels of diff_dst"),
    ({"weights_shape": [4, 3, 6, 4]}, r"diff_dst of \[6, 6\] belongs to src of \[3, 4\] with the kernel \[4, 3\]"),
    ({"diff_dst": np.zeros((2, 6, 6, 6), np.float32)}, "src and diff_dst must have the same batch, not 1 and 2$"),
    ({"diff_dst": DST.astype(np.float16)}, "diff_dst must be of the type of src, float32, not float16$"),
    ({"diff_weights_shape": [3, 3, 6, 5]}, r"diff_weights_shape must be \[3, 3, 6, 4\], not \[3, 3, 6, 5\]$"),
    ({"groups": 3}, "groups must divide the channels of src, but 3 does not divide 4$"),
    ({"dilations": [1, 0]}, "dilations must be at least 1"),
    ({"diff_dst": np.zeros(0, np.float32)}, r"diff_dst must have 2 spatial axes .* as src has, not the shape \(0,\)$"),
    ({"diff_dst": DST[0]}, r"diff_dst must have 2 spatial axes .* as src has, not the shape \(6, 6, 6\)$"),
    ({"diff_dst": np.ma.masked_array(DST, DST > -1)}, r"diff_dst has 216 masked elements, .* with diff_dst.filled"),
]
DIRECTIONS = {
    "": (onednn.conv_transpose, {"src": SRC, "weights": WEIGHTS}, FORWARD_ERRORS),
    "BackwardData": (onednn.conv_transpose_backward_data, {"diff_dst": DST, "weights": WEIGHTS}, DATA_ERRORS),
    "BackwardWeights": (
        onednn.conv_transpose_backward_weights,
        {"src": SRC, "diff_dst": DST, "weights_shape": [3, 3, 6, 4]},
        WEIGHTS_ERRORS,
    ),
}


@pytest.mark.parametrize(
    ("direction", "changed", "message"),
    [(direction, *error) for direction, (_, _, errors) in DIRECTIONS.items() for error in errors],
)
def test_errors(fast, direction, changed, message):
    function, arguments, _ = DIRECTIONS[direction]
    with pytest.raises(ValueError, match=f"^ConvTranspose{direction}: {message}"):
        function(device=fast, **{**arguments, **attributes(), **changed})


def test_the_older_form_names_its_own_arguments(fast):
    with pytest.raises(ValueError, match=r"^ConvTransposeBackpropFilters: filter_shape must be given"):
        onednn.conv_transpose_backprop_filters(SRC, DST, device=fast, **attributes())
    with pytest.raises(
        ValueError, match=r"^ConvTransposeBackpropFilters: output_delta of .* belongs to input_forward of"
    ):
        onednn.conv_transpose_backprop_filters(SRC, DST, [4, 3, 4, 6], device=fast, **attributes())
    with pytest.raises(ValueError, match=r"^ConvTransposeBackpropFilters: filter_format must be one of"):
        onednn.conv_transpose_backprop_filters(SRC, DST, [3, 3, 4, 6], device=fast, filter_format="X", **attributes())


@pytest.mark.parametrize(
    ("name", "inputs"),
    [(FORWARD, [SRC]), (FORWARD, [SRC, None]), (FORWARD, [SRC] * 4), ("ConvTransposeBackwardData", [DST] * 3)],
)
def test_a_wrong_number_of_inputs_is_refused(name, inputs):
    with pytest.raises(ValueError, match=f"^{name}: inputs must be 2 to [23] tensors"):
        onednn.OPERATIONS[name](inputs, attributes())


def test_the_registry_has_the_names_of_the_texts(fast):
    assert list(onednn.OPERATIONS) == [
        "ConvTranspose",
        "ConvTransposeBackwardData",
        "ConvTransposeBackwardWeights",
        "ConvTransposeBackpropFilters",
    ]
    rng = np.random.default_rng(5)
    src, weights = integers(rng, 1, 4, 4, 4), integers(rng, 3, 3, 6, 4)
    got = onednn.OPERATIONS[FORWARD]([src, weights], attributes(weights_format="XOI"), device=fast)
    assert np.array_equal(got, onednn.conv_transpose(src, weights, device=fast, **attributes()))


def test_an_unknown_attribute_is_refused():
    with pytest.raises(ValueError, match=r"^ConvTranspose: 'weights_shape' is no attribute of this operation"):
        onednn.OPERATIONS[FORWARD]([SRC, WEIGHTS], attributes(weights_shape=[1]))


@pytest.mark.parametrize(
    ("name", "key", "shape"),
    [
        ("ConvTransposeBackwardWeights", "weights_shape", (3, 3, 6, 4)),
        ("ConvTransposeBackpropFilters", "filter_shape", (3, 3, 4, 6)),
    ],
)
def test_the_input_wins_over_the_attribute(fast, name, key, shape):
    operation = onednn.OPERATIONS[name]
    wrong = attributes(**{key: [9, 9, 9, 9]})
    assert operation([SRC, DST, np.array(shape, np.int32)], wrong, device=fast).shape == shape
    assert operation([SRC, DST], attributes(**{key: list(shape)}), device=fast).shape == shape


def test_a_declared_shape_stands_in_for_the_shape_of_the_weights(fast):
    got = onednn.conv_transpose_backward_weights(
        SRC, DST, device=fast, diff_weights_shape=WEIGHTS.shape, **attributes()
    )
    assert got.shape == WEIGHTS.shape


def test_a_remainder_of_the_stride_is_output_padding(fast):
    given = attributes(1, strides=[3])
    src, weights = np.ones((1, 4, 2), np.float32), np.ones((2, 2, 2), np.float32)
    for more in range(3):
        dst = onednn.conv_transpose(src, weights, device=fast, output_padding=[more], **given)
        assert onednn.conv_transpose_backward_data(dst, weights, device=fast, **given).shape == src.shape
    dst = onednn.conv_transpose(src, weights, device=fast, output_padding=[3], **given)
    assert onednn.conv_transpose_backward_data(dst, weights, device=fast, **given).shape != src.shape
    back = onednn.conv_transpose_backward_data(dst, weights, device=fast, output_padding=[3], **given)
    assert back.shape == src.shape


def test_an_empty_batch_has_an_empty_result(fast):
    got = onednn.conv_transpose(SRC[:0], WEIGHTS, device=fast, **attributes())
    assert got.shape == (0, 6, 6, 6)


def test_values_off_plans_and_gives_numbers_that_take_no_memory():
    with ttsim.open_device(values="off") as off:
        got = onednn.conv_transpose(SRC, WEIGHTS, device=off, **attributes())
    assert got.shape == (1, 6, 6, 6)
    assert np.isnan(got).all()
    assert got.strides == (0, 0, 0, 0)


def test_a_single_pass_is_less_exact(device):
    rng = np.random.default_rng(6)
    src, weights = (rng.standard_normal(a.shape).astype(np.float32) for a in (SRC, WEIGHTS))
    geometry = plan_geometry([4, 4], [3, 3], stride=[1, 1], pad_before=[0, 0], pad_after=[0, 0])
    want = conv_transpose(np.moveaxis(src, -1, 1), np.moveaxis(weights, (-1, -2), (0, 1)), geometry)
    errors = {}
    for precision in ("ieee", "device"):
        got = onednn.conv_transpose(src, weights, device=device, precision=precision, **attributes())
        errors[precision] = np.abs(np.moveaxis(got, -1, 1) - want).max() / np.abs(want).max()
    assert errors["ieee"] < 2e-6
    assert 1e-5 < errors["device"] < 1e-2


@pytest.mark.parametrize(("dtype", "passes"), [(np.float32, 13), (np.float16, 8), (ml_dtypes.bfloat16, 8)])
def test_passes_are_part_of_the_plan(dtype, passes):
    k_tiles, arrays = {}, [SRC.astype(dtype), WEIGHTS.astype(dtype)]
    for precision in ("ieee", "device"):
        call = onednn.OPERATIONS[FORWARD].call(arrays, attributes(), precision=precision)
        (operation,) = (step for step in call.plan(load_spec("wormhole_n150")).steps if isinstance(step, Operation))
        k_tiles[precision] = operation.op.matmul.problem.k_tiles
    assert k_tiles["ieee"] == passes * k_tiles["device"]


def test_a_call_leaves_the_device_as_it_was_and_is_seen_by_captures():
    with ttsim.open_device(values="fast") as opened:
        ttsim.graph.begin_graph_capture()
        onednn.conv_transpose(SRC, WEIGHTS, device=opened, **attributes(strides=[2, 2]))
        nodes = ttsim.graph.end_graph_capture()
        assert not opened.machine.memory.live()
    names = [node["params"]["name"] for node in nodes if node["params"] and "name" in node["params"]]
    assert "onednn.ConvTranspose" in names
    assert "PatchMatmulDeviceOperation" in names
    assert ttsim.graph.extract_resource_usage_per_core(nodes).peak_cb > 0


def test_equal_calls_on_a_device_have_one_plan_and_unlike_ones_do_not():
    ran = []
    with ttsim.open_device(values="off") as opened:
        opened.profilers.append(ran)
        for changes in ({}, {}, {"strides": [2, 2]}, {"lowering": "phase"}, {"precision": "device"}, {}):
            onednn.conv_transpose(SRC, WEIGHTS, device=opened, **attributes(**changes))
        onednn.conv_transpose(SRC, WEIGHTS, np.zeros(DST.shape[-1], np.float32), device=opened, **attributes())
    plans = [id(call.plan) for call in ran]
    assert [plans.index(plan) for plan in plans] == [0, 0, 2, 3, 4, 0, 6]


def test_a_wrong_argument_is_refused_after_an_equal_right_one():
    given = attributes(strides=[1, 1])
    with ttsim.open_device(values="off") as opened:
        onednn.conv_transpose(SRC, WEIGHTS, device=opened, **given)
        for wrong in ([True, 1], [1.0, 1]):
            with pytest.raises(ttsim.ArgumentError, match="must be a list of integers"):
                onednn.conv_transpose(SRC, WEIGHTS, device=opened, **{**given, "strides": wrong})
        given["strides"][0] = 0
        with pytest.raises(ttsim.ArgumentError, match="at least 1"):
            onednn.conv_transpose(SRC, WEIGHTS, device=opened, **given)


@pytest.mark.parametrize(
    ("dtype", "lost", "rounding"),
    [(np.float32, 2.0**-22, 2.0**-20), (np.float16, 2.0**-16, 2.0**-11), (ml_dtypes.bfloat16, 2.0**-16, 2.0**-8)],
)
@pytest.mark.parametrize("seed", range(3))
def test_what_slices_lose_is_measured_by_the_largest_numbers(dtype, lost, rounding, seed):
    """Numbers of a wide range, so that most products are small beside the largest, in all directions."""
    rng = np.random.default_rng(seed)

    def wide(shape):
        return (rng.standard_normal(shape) * np.exp2(rng.integers(-9, 3, shape))).astype(dtype)

    def within(got, want, products, first, second):
        largest = (np.abs(array.astype(np.float64)).max() for array in (first, second))
        bound = products * np.prod(list(largest)) * lost + np.abs(want) * rounding
        return (np.abs(got.astype(np.float64) - want) <= bound).all()

    geometry = plan_geometry([4, 4], [3, 3], stride=[1, 1], pad_before=[0, 0], pad_after=[0, 0])
    src, weights, diff = wide((1, 4, 4, 4)), wide((4, 6, 3, 3)), wide((1, 6, 6, 6))
    x, w, g = (array.astype(np.float64) for array in (np.moveaxis(src, -1, 1), weights, np.moveaxis(diff, -1, 1)))
    with ttsim.open_device(values="exact") as opened:
        common = {**attributes(), "weights_format": "IOX", "device": opened}
        forward = onednn.conv_transpose(src, weights, **common)
        of_data = onednn.conv_transpose_backward_data(diff, weights, **common)
        of_weights = onednn.conv_transpose_backward_weights(src, diff, weights.shape, **common)
    assert within(np.moveaxis(forward, -1, 1), conv_transpose(x, w, geometry), 9 * 4, src, weights)
    assert within(np.moveaxis(of_data, -1, 1), data_gradient(g, w, geometry), 9 * 6, diff, weights)
    assert within(of_weights, weights_gradient(x, g, geometry), 4 * 4, src, diff)


def cases(recordings, kind):
    """The conformance cases of a kind by their names."""
    listed = json.loads(recordings("oracle/deconvolution/cases.json").read_text(encoding="utf-8"))["cases"]
    return {case["id"]: case for case in listed if case["kind"] == kind}


def planned_shape(case):
    given = {name: value for name, value in case["attrs"].items() if name not in ("weights_format", "weights_shape")}
    arrays = [np.broadcast_to(np.float32(0), shape) for shape in case["inputs"]]
    if case["op"] == "ConvTransposeBackwardWeights":
        arrays.append(np.array(case["attrs"]["weights_shape"], np.int32))
    format_name = case["attrs"].get("weights_format", "XOI")
    return list(onednn.OPERATIONS[case["op"]].call(arrays, {**given, "weights_format": format_name}).shape)


def test_shapes_of_onednn_s_own_tests(recordings):
    listed = cases(recordings, "shape")
    assert {name: planned_shape(case) for name, case in listed.items()} == {
        name: case["expect_shape"] for name, case in listed.items()
    }


def refusal(case):
    """What a call is refused for, "" if it is not."""
    axes = len(case["attrs"]["pads_begin"])
    pads = {name: case["attrs"][name] for name in ("pads_begin", "pads_end")}
    given = {"strides": [1] * axes, "dilations": [1] * axes, **pads}
    src = np.zeros((1, *[5] * axes, 1), np.float32)
    arrays = [src, np.zeros((*[3] * axes, 1, 1), np.float32)]
    if case["op"] == "ConvTransposeBackwardWeights":
        sizes = [7 - sum(both) for both in zip(given["pads_begin"], given["pads_end"], strict=True)]
        arrays = [src, np.zeros((1, *sizes, 1), np.float32), np.array([*[3] * axes, 1, 1], np.int32)]
    try:
        onednn.OPERATIONS[case["op"]].call(arrays, given)
    except ttsim.ArgumentError as error:
        match = re.search(r"pads_(begin|end) must be at least 0", str(error))
        return "padding" if match else str(error)
    return ""


def test_padding_of_onednn_s_own_tests(recordings):
    listed = cases(recordings, "validate")
    assert {name: refusal(case) for name, case in listed.items()} == {
        name: "" if case["expect_ok"] else "padding" for name, case in listed.items()
    }
