"""Arguments that are of no use are refused by name, in the library's own words."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import ttsim
from device.errors import shown
from tests.sizes import conv_sizes
from ttsim import graph

ONES = np.ones((1, 1, 32, 32), np.float32)
MANY_SLICES = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=100)


@pytest.fixture
def device():
    with ttsim.open_device(l1_small_size=8192) as opened:
        yield opened


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"l1_small_size": "x"}, "open_device: l1_small_size must be an integer, not 'x'"),
        ({"l1_small_size": None}, "open_device: l1_small_size must be an integer, not None"),
        ({"l1_small_size": 1.5}, "open_device: l1_small_size must be an integer, not 1.5"),
        ({"l1_small_size": True}, "open_device: l1_small_size must be an integer, not True"),
        ({"l1_small_size": float("nan")}, "open_device: l1_small_size must be an integer, not nan"),
        ({"device_id": "x"}, "open_device: device_id must be an integer, not 'x'"),
        ({"device_id": -1}, "open_device: device_id must be at least 0, not -1"),
        ({"strict": 1}, "open_device: strict must be a bool, not 1"),
        ({"cycles": None}, "open_device: cycles must be a bool, not None"),
        ({"values": []}, "open_device: values must be one of exact, fast, off, not []"),
        ({"trace_region_size": "x"}, "open_device: trace_region_size must be an integer, not 'x'"),
    ],
)
def test_a_device_is_opened_with_integers_and_bools(arguments, words):
    with pytest.raises(ttsim.TTSimError) as caught:
        ttsim.open_device(**arguments)
    assert str(caught.value).startswith(words)


def test_any_kind_of_integer_opens_a_device():
    with ttsim.open_device(np.int64(3), l1_small_size=np.uint16(32768)) as device:
        assert (device.id(), device.machine.l1_small_bytes) == (3, 32768)


@pytest.mark.parametrize("other", ["x", None, 5])
@pytest.mark.parametrize("name", ["close_device", "dump_device_memory_state", "profile", "synchronize_device"])
def test_what_wants_a_device_says_so(name, other):
    with pytest.raises(ttsim.ArgumentTypeError, match=f"^{name}: device must be a Device, not "):
        getattr(ttsim, name)(other)


def test_only_a_device_is_the_default_device(device):
    with pytest.raises(ttsim.ArgumentTypeError, match="SetDefaultDevice: device must be a Device, not 'x'"):
        ttsim.SetDefaultDevice("x")
    with pytest.raises(ttsim.ArgumentTypeError, match="get_memory_view: device must be a Device, not 'x'"):
        ttsim.get_memory_view("x", ttsim.BufferType.L1)
    with pytest.raises(ttsim.ArgumentTypeError, match="estimate_cycles: function must be one of this library"):
        ttsim.estimate_cycles(None, device=device)


@pytest.mark.parametrize("odd", [float("nan"), 1.5, "1", None, True])
def test_cores_have_integers_for_coordinates(odd):
    with pytest.raises(ttsim.ArgumentTypeError, match="CoreCoord: y must be an integer"):
        ttsim.CoreCoord(0, odd)
    with pytest.raises(ttsim.ArgumentTypeError, match="CoreGrid: x must be an integer"):
        ttsim.CoreGrid(x=odd, y=1)
    assert type(ttsim.CoreCoord(np.int64(1), 2).x) is int


@pytest.mark.parametrize("shape", [None, 5, "ab", (1,), (0, 1), (1.5, 2), {1: 2}])
def test_a_shard_has_two_positive_sides(shape):
    cores = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(0, 0))])
    with pytest.raises(ttsim.ArgumentError, match="ShardSpec: shape must be two positive integers"):
        ttsim.ShardSpec(cores, shape)


@pytest.mark.parametrize("trace", [None, 5, [5], [{}], "x", [{"node_type": "buffer_allocate", "params": {}}]])
def test_a_trace_is_a_list_of_nodes(trace):
    for function in (graph.extract_peak_L1_memory_usage, graph.extract_resource_usage_per_core):
        with pytest.raises(ttsim.ArgumentTypeError, match=f"^{function.__name__}: trace must be a list of nodes"):
            function(trace)
    with pytest.raises(ttsim.ArgumentTypeError, match="run_mode must be a RunMode, not 5"):
        graph.begin_graph_capture(5)
    assert not graph.is_graph_capture_active()


@pytest.mark.parametrize("stride", [{1, 2}, {1: 1, 2: 2}, iter([1, 1]), "11", np.ones((2, 2), int)])
def test_a_pair_is_in_order(stride, device):
    x = ttsim.Tensor(ONES, ttsim.bfloat16)
    with pytest.raises(ttsim.ArgumentTypeError, match="stride must be 2 non-negative integers, not "):
        ttsim.conv2d(input_tensor=x, weight_tensor=x, device=device, **conv_sizes(4, 8, 32, 32, 1, 1), stride=stride)


def test_an_array_is_no_tensor_and_the_error_says_what_makes_one(device):
    with pytest.raises(ttsim.ArgumentTypeError) as caught:
        ttsim.conv_transpose2d(
            input_tensor=ONES,
            weight_tensor=ttsim.Tensor(ONES, ttsim.bfloat16),
            device=device,
            **conv_sizes(4, 8, 32, 32, 1, 1),
        )
    second = str(caught.value).splitlines()[1]
    wanted = "input_tensor must be Tensor, not a numpy.ndarray; ttsim.from_torch makes one of it"
    assert second == f"conv_transpose2d: {wanted}"


def test_another_device_is_told_apart(device):
    with ttsim.open_device(l1_small_size=8192) as other:
        x = ttsim.Tensor(ONES, ttsim.bfloat16, other, ttsim.TILE_LAYOUT)
        y = ttsim.Tensor(ONES, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        with pytest.raises(ttsim.DeviceError) as caught:
            ttsim.matmul(x, y)
        assert f"(object {id(other):#x})" in str(caught.value)
        assert f"(object {id(device):#x})" in str(caught.value)


def test_a_long_value_is_cut_in_an_error():
    assert shown("x" * 10_000) == f"'{'x' * 30}'... (10000 characters)"
    assert shown([1] * 10_000) == "a list"
    assert shown(np.ones((3, 3))) == "a numpy.ndarray"
    assert shown("\x1b[31m\u202e") == "'\\x1b[31m\\u202e'"
    for call in (
        lambda: ttsim.Tensor(ONES, "x" * 10_000),
        lambda: ttsim.open_device(values="x" * 10_000),
        lambda: ttsim.open_device(spec="x" * 10_000),
        lambda: ttsim.MemoryConfig("x" * 10_000),
    ):
        with pytest.raises(ttsim.TTSimError) as caught:
            call()
        assert len(str(caught.value)) < 600


def test_a_copy_shares_the_buffer_until_both_are_gone(device):
    x = ttsim.Tensor(ONES, ttsim.bfloat16, device)
    twin = copy.copy(x)
    ttsim.deallocate(twin, force=False)
    assert x.is_allocated()
    assert twin.buffer_address() == x.buffer_address()
    own = copy.deepcopy(x)
    assert own.buffer_address() != x.buffer_address()
    np.testing.assert_array_equal(own.to_numpy(), ONES)
    del twin
    ttsim.deallocate(x, force=False)
    assert not x.is_allocated()


def test_host_tensors_are_pickled_and_devices_are_not(device):
    x = ttsim.Tensor(ONES, ttsim.bfloat8_b)
    again = pickle.loads(pickle.dumps(x))
    assert (again.spec, again.values().dtype) == (x.spec, x.values().dtype)
    assert not again.values().flags.writeable
    for one in (device, x.to(device)):
        with pytest.raises(ttsim.TTSimError, match="cannot be"):
            pickle.dumps(one)


@pytest.mark.parametrize("name", ["strides", "dilations", "output_padding"])
@pytest.mark.parametrize("size", [1 << 31, 1 << 63, 10**30])
def test_onednn_refuses_at_once_what_32_bits_cannot_count(name, size):
    given = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], name: [size, 1]}
    image, kernel = np.zeros((1, 4, 4, 1), ml_dtypes.bfloat16), np.zeros((3, 3, 1, 1), ml_dtypes.bfloat16)
    with pytest.raises(ttsim.ArgumentError, match="more than the 32-bit addresses of a device"):
        ttsim.onednn.conv_transpose(image, kernel, **given)


@pytest.mark.parametrize(
    ("shape", "changed"),
    [
        *((shape, {}) for shape in ((32, 32, 3), (32, 32, 2, 3), (16, 32, 3, 3), (32, 16, 3, 3), (1, 1, 288, 32))),
        *((shape, {}) for shape in ((3,), (), (0, 32, 3, 3), (32, 32, 3, 3, 1))),
        ((32, 32, 3, 3), {"groups": 0}),
        ((32, 32, 3, 3), {"input_height": (1 << 32) - 1}),
        ((32, 32, 3, 3), {"stride": (65536, 65536)}),
        ((32, 32, 3, 3), {"stride": (0, 0)}),
        ((32, 32, 3, 3), {"dram_slice_config": MANY_SLICES}),
    ],
)
@pytest.mark.parametrize(("on_host", "values"), [(True, "exact"), (False, "off")])
def test_what_no_call_can_use_is_not_prepared(shape, changed, on_host, values):
    device = ttsim.open_device(l1_small_size=8192, values=values)
    sizes = {**conv_sizes(4, 8, 32, 32), "groups": 1}
    coming = {"input_memory_config": ttsim.DRAM_MEMORY_CONFIG, "input_layout": ttsim.ROW_MAJOR_LAYOUT, "device": device}
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)
    pairs = {"kernel_size": (3, 3), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}
    given = {**sizes, **coming, **pairs, "input_dtype": ttsim.bfloat16, "conv_config": config, **changed}
    place = None if on_host else device
    with pytest.raises(ttsim.TTSimError):
        ttsim.prepare_conv_transpose2d_weights(
            weight_tensor=ttsim.Tensor(np.ones(shape, np.float32), ttsim.bfloat16, place),
            weights_format="IOHW",
            has_bias=True,
            **given,
        )
    bias = (1, 1, 1, 32) if changed else shape
    with pytest.raises(ttsim.TTSimError):
        ttsim.prepare_conv_transpose2d_bias(
            bias_tensor=ttsim.Tensor(np.ones(bias, np.float32), ttsim.bfloat16, place), **given
        )


def wide_grid(columns):
    cores = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(columns - 1, 0))])
    spec = ttsim.ShardSpec(cores, (32, 32))
    return ttsim.MemoryConfig(ttsim.TensorMemoryLayout.HEIGHT_SHARDED, ttsim.BufferType.L1, spec)


@pytest.mark.parametrize("columns", [10, 13])
def test_shards_lie_on_cores_of_the_device(columns, device):
    memory = wide_grid(columns)
    call = {
        "input_tensor": ttsim.Tensor(ONES, ttsim.bfloat16, device),
        "weight_tensor": ttsim.Tensor(np.ones((32, 32, 2, 2), np.float32), ttsim.bfloat16),
        "device": device,
        **conv_sizes(4, 8, 32, 32, 2, 2),
        "stride": (2, 2),
        "dram_slice_config": ttsim.Conv2dL1FullSliceConfig,
    }
    grid = ttsim.Conv2dConfig(
        shard_layout=ttsim.TensorMemoryLayout.HEIGHT_SHARDED,
        override_sharding_config=True,
        core_grid=memory.shard_spec.grid,
    )
    for result in (
        lambda: ttsim.Tensor(ONES, ttsim.bfloat16).to(device, memory),
        lambda: ttsim.to_memory_config(call["input_tensor"], memory),
        lambda: ttsim.conv_transpose2d(**call, memory_config=memory),
        lambda: ttsim.conv_transpose2d(**call, conv_config=grid),
    ):
        with pytest.raises(ttsim.DeviceError, match=r"^Invalid shard grid: shard core \(8, 0\) has no L1 bank on this"):
            result()


def test_a_torch_tensor_is_told_from_ours(device):
    torch = pytest.importorskip("torch")
    with pytest.raises(ttsim.ArgumentTypeError) as caught:
        ttsim.to_layout(torch.zeros(2, 2), ttsim.TILE_LAYOUT)
    assert "Tensor, not a torch.Tensor" in str(caught.value).splitlines()[1]


def test_the_name_of_a_device_can_be_printed(device):
    with pytest.raises(ttsim.SpecError, match="name must be text that can be printed, not "):
        device.spec.replace(name="\x1b[31m")
    with pytest.raises(ttsim.SpecError, match="name must have at most 100 characters, not 'xxx"):
        device.spec.replace(name="x" * 101)


@pytest.mark.parametrize("shape", [None, "ab", 5, np.array("x"), np.array(3), np.ones((2, 2), int), [1.5], {1, 2}])
def test_a_described_tensor_has_a_list_of_sides(shape):
    with pytest.raises(ttsim.ArgumentTypeError, match=r"^TensorDescription: (shape|every side of shape) must be"):
        ttsim.TensorDescription(shape, ttsim.bfloat16, ttsim.TILE_LAYOUT)
