"""Arguments that are of no use are refused by name, in errors of one tree, which begin in the library's own words."""

import copy
import inspect
import pickle
import re
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

import ttsim
import ttsim.errors
from device import errors
from device.errors import shown
from tests.build import place
from tests.shards import HEIGHT, in_box
from tests.sizes import conv_sizes
from tests.ttsim.api.calls import refusal
from ttsim import graph

ONES, ZEROS = np.ones((1, 1, 32, 32), np.float32), np.zeros((1, 1, 4, 4), np.float32)
BOUND = "ArgumentType: ttnn.{0}(): incompatible function arguments.\n{0}: "
LONG = "x" * 10_000
COORD, TRACES = ttsim.CoreCoord, [None, 5, [5], [{}], "x", [{"node_type": "buffer_allocate", "params": {}}]]
CORES = in_box(HEIGHT, (1, 1), 1).shard_spec.grid
SIDES, CONV = [None, 5, "ab", (1,), (-1, 0), (1.5, 2), {1: 2}], conv_sizes(4, 8, 32, 32, 1, 1)


@pytest.fixture
def device() -> Iterator[ttsim.Device]:
    with ttsim.open_device(l1_small_size=8192) as opened:
        yield opened


def conv(d, x, function=ttsim.conv2d, **changes):
    return function(**{"input_tensor": x, "weight_tensor": x, "device": d, **CONV, **changes})


def on_a_closed_device():
    with ttsim.open_device() as opened:
        tensor = ttsim.Tensor(ZEROS, ttsim.bfloat16)
    tensor.to(opened)


def unfit(name: str, text: str) -> str:
    """The start of the error for arguments that a function does not take."""
    return f"ArgumentType: ttnn.{name}(): incompatible function arguments.\n{name}: {text}"


REFUSED = [
    *((lambda d, x, given=given: ttsim.open_device(**given), f"{error}: open_device: {text}")
      for given, error, text in (
        *(({"l1_small_size": value}, "ArgumentType", f"l1_small_size must be an integer, not {value!r}")
          for value in ("x", None, 1.5, True, float("nan"))),
        ({"device_id": "x"}, "ArgumentType", "device_id must be an integer, not 'x'"),
        ({"device_id": -1}, "Argument", "device_id must be at least 0, not -1"),
        ({"strict": 1}, "ArgumentType", "strict must be a bool, not 1"),
        ({"cycles": None}, "ArgumentType", "cycles must be a bool, not None"),
        ({"values": []}, "Argument", "values must be one of exact, fast, off, not []"),
        ({"values": "slow"}, "Argument", "values must be one of exact, fast, off, not 'slow'"),
        ({"trace_region_size": "x"}, "ArgumentType", "trace_region_size must be an integer, not 'x'"))),
    (lambda d, x: ttsim.open_device(spec="n151"), "Spec: "),
    (lambda d, x: ttsim.open_device(l1_small_size=1 << 30), "Device: "),
    (lambda d, x: on_a_closed_device(), "DeviceClosed: "),
    *((lambda d, x, name=name: getattr(ttsim, name)("x"), f"ArgumentType: {name}: device must be a Device, not 'x'")
      for name in ("close_device", "dump_device_memory_state", "profile", "synchronize_device", "SetDefaultDevice")),
    (lambda d, x: ttsim.profile(5).__enter__(), "ArgumentType: profile: device must be a Device, not 5"),
    (lambda d, x: ttsim.get_memory_view("x", ttsim.BufferType.L1),
     "ArgumentType: get_memory_view: device must be a Device, not 'x'"),
    (lambda d, x: ttsim.estimate_cycles(None, device=d), "ArgumentType: estimate_cycles: function must be one of this"),
    *((lambda d, x, odd=odd: COORD(0, odd), "ArgumentType: CoreCoord: y must be an integer")
      for odd in (float("nan"), 1.5, "1", None, True)),
    *((lambda d, x, dim=dim: ttsim.has_tile_padding(x, dim=dim), "ArgumentType: has_tile_padding: dim must be an int")
      for dim in (range(2), "x", 1.5, True)),
    (lambda d, x: ttsim.has_tile_padding(5), "ArgumentType: has_tile_padding: tensor must be a Tensor, not 5"),
    (lambda d, x: ttsim.has_tile_padding(x, dim=4), "ArgumentIndex: has_tile_padding: dim must be an axis of a tensor"),
    (lambda d, x: ttsim.zeros_like(x, np.ones(3)), unfit("zeros_like", "dtype must be DataType or None, not array(")),
    (lambda d, x: ttsim.rand((2, 2), d, low="x"), unfit("rand", "low must be float, not 'x'")),
    (lambda d, x: ttsim.rand((2, 2), d, low=2.0), "Device: Uniform range lower bound must be less than upper bound"),
    (lambda d, x: ttsim.rand((2, 2), d, seed=-1), unfit("rand", "seed must be non-negative int, not -1")),
    (lambda d, x: ttsim.zeros((1 << 31, 1 << 31)), "Argument: full: shape must have at most 281,474,976,710,656"),
    *((lambda d, x, call=call: call(x.to(d)), unfit(name, text)) for call, name, text in (
        (lambda x: ttsim.add(x, 10**400), "add", "an integer of 1,329 bits is larger than any number of the library"),
        (lambda x: ttsim.leaky_relu(x, -(10**400)), "leaky_relu", "an integer of 1,329 bits is larger than"),
        (lambda x: ttsim.divide_(2.0, x), "divide_", "input_tensor_a must be a Tensor, not 2.0"),
        (lambda x: ttsim.triu(x, diagonal=1 << 31), "triu", "diagonal must be int, not 2147483648"),
        (lambda x: ttsim.exp(x, fast_and_approximate_mode=3), "exp", "fast_and_approximate_mode must be a bool, not 3"),
        (lambda x: ttsim.relu(x, mode=1), "relu", "there is no 'mode'\n\nCalled with:\n  relu(input_tensor=a ttsim."
         "runtime.tensor.Tensor, mode=1)\n\nAvailable signatures:\n  relu(input_tensor: Tensor, *, memory_config: Me"),
    )),
    (lambda d, x: ttsim.full((2, 2), 10**400), unfit("full", "fill_value must be")),
    (lambda d, x: ttsim.arange(10**20), unfit("arange", "start, end and step must have 64")),
    (lambda d, x: ttsim.as_tensor(ONES, preprocess=5), "ArgumentType: as_tensor: preprocess must be a function of th"),
    (lambda d, x: ttsim.concat(np.ones(3)), "ArgumentType: concat: tensors must be a sequence of tensors, not array("),
    (lambda d, x: ttsim.upsample(x, 2, mode=np.ones(2)), "Device: mode must be 'nearest' or 'bilinear'"),
    (lambda d, x: ttsim.CoreGrid(x=1.5, y=1), "ArgumentType: CoreGrid: x must be an integer"),
    (lambda d, x: COORD(-1, 0), "Argument: "),
    (lambda d, x: ttsim.CoreRange(5, 5), "ArgumentType: CoreRange: start and end must be CoreCoord, not 5 and 5"),
    *((lambda d, x, shape=shape: ttsim.ShardSpec(CORES, shape),
       "Argument: ShardSpec: shape must be two positive integers")
      for shape in SIDES),
    (lambda d, x: ttsim.ShardSpec(CORES, (0, 1)),
     "Argument: Shard shape must be greater than 0 in each sharded dim, got [0, 1]\nShardSpec: shape must be two"),
    (lambda d, x: ttsim.ShardSpec(5, [1, 1]), "ArgumentType: ShardSpec: grid must be a CoreRangeSet, not 5"),
    (lambda d, x: ttsim.ShardSpec(CORES, [1, 1], 5), "ArgumentType: ShardSpec: orientation must be a ShardOrient"),
    (lambda d, x: ttsim.MemoryConfig(5),
     "ArgumentType: MemoryConfig: memory_layout must be a TensorMemoryLayout, not 5"),
    (lambda d, x: ttsim.MemoryConfig(buffer_type=5),
     "ArgumentType: MemoryConfig: buffer_type must be a BufferType, not 5"),
    (lambda d, x: ttsim.MemoryConfig(shard_spec=5),
     "ArgumentType: MemoryConfig: shard_spec must be a ShardSpec, not 5"),
    *((lambda d, x, trace=trace, function=function: function(trace),
       f"ArgumentType: {function.__name__}: trace must be a list of nodes") for trace in TRACES
      for function in (graph.extract_peak_L1_memory_usage, graph.extract_resource_usage_per_core)),
    (lambda d, x: graph.begin_graph_capture(5), "ArgumentType: begin_graph_capture: run_mode must be a RunMode, not 5"),
    *((lambda d, x, stride=stride: conv(d, x, stride=stride), BOUND.format("conv2d") + "stride must be 2 non-negative")
      for stride in ({1, 2}, {1: 1, 2: 2}, iter([1, 1]), "11", np.ones((2, 2), int))),
    (lambda d, x: conv(d, x, ttsim.conv_transpose2d, input_tensor=ONES), BOUND.format("conv_transpose2d")
     + "input_tensor must be Tensor, not a numpy.ndarray; ttnn.from_torch makes one of it\n"),
    (lambda d, x: ttsim.conv2d(ZEROS), BOUND.format("conv2d")),
    (lambda d, x: ttsim.onednn.conv_transpose(ZEROS, ZEROS), "Argument: ConvTranspose: "),
    (lambda d, x: ttsim.Tensor([np.inf], ttsim.int32), "Argument: "),
    (lambda d, x: ttsim.Tensor(["one"]), "ArgumentType: "),
    (lambda d, x: x.reshape(5), "Device: Invalid arguments to reshape"),
    (lambda d, x: ttsim.Tensor(ONES, ttsim.bfloat16, ttsim.TILE_LAYOUT),
     "ArgumentType: Tensor: device must be a Device"),
    (lambda d, x: ttsim.Tensor(ONES, ttsim.bfloat16, d, d), "ArgumentType: Tensor: layout must be a Layout"),
    *((lambda d, x, given=given: ttsim.Tensor(*given[0], **given[1]),
       "ArgumentType: __init__(): incompatible function arguments. The following argument types are")
      for given in ((([1.0, 2.0], [2], ttsim.bfloat16), {}), ((ONES,), {"dtypo": 5}))),
    (lambda d, x: ttsim.Tensor(ONES, ttsim.bfloat16, d, None, 5),
     "ArgumentType: Tensor: mem_config must be a MemoryCon"),
    (lambda d, x: x.to(d, 5), "ArgumentType: to: mem_config must be a MemoryConfig, not 5"),
    (lambda d, x: ttsim.from_torch(ONES, 5), "ArgumentType: from_torch: dtype must be a DataType, not 5"),
    (lambda d, x: ttsim.to_torch(5), "ArgumentType: to_torch: tensor must be a Tensor, not 5"),
    (lambda d, x: ttsim.to_device(x, 5), BOUND.format("to_device") + "device must be a Device, not 5"),
    (lambda d, x: ttsim.from_device(5), BOUND.format("from_device") + "tensor must be a Tensor, not 5"),
    (lambda d, x: ttsim.to_layout(x, 5), BOUND.format("to_layout") + "layout must be a Layout, not 5"),
    (lambda d, x: ttsim.to_dtype(x, 5), BOUND.format("to_dtype") + "dtype must be a DataType, not 5"),
    (lambda d, x: ttsim.to_memory_config(x, 5),
     BOUND.format("to_memory_config") + "memory_config must be a MemoryConfig"),
    (lambda d, x: ttsim.deallocate(5), BOUND.format("deallocate") + "tensor must be a Tensor, not 5"),
    (lambda d, x: ttsim.reshape(5, (1,)), BOUND.format("reshape")),
    (lambda d, x: d.spec.replace(name="\x1b[31m"), "Spec: name must be text that can be printed, not "),
    (lambda d, x: d.spec.replace(name="x" * 101),
     "Spec: name must have at most 100 characters, not 'xxx"),
    *((lambda d, x, shape=shape: ttsim.TensorDescription(shape), "ArgumentType: TensorDescription: ")
      for shape in (None, "ab", 5, np.array("x"), np.array(3), np.ones((2, 2), int), [1.5], {1, 2})),
    (lambda d, x: pickle.dumps(d), "ArgumentType: a device cannot be copied or pickled"),
    (lambda d, x: pickle.dumps(x.to(d)), "Device: "),
    *((lambda d, x, name=name, size=size: ttsim.onednn.conv_transpose(
        np.zeros((1, 4, 4, 1), ml_dtypes.bfloat16), np.zeros((3, 3, 1, 1), ml_dtypes.bfloat16),
        **{"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], name: [size, 1]}),
       "Argument: ConvTranspose: ") for name in ("strides", "dilations", "output_padding")
       for size in (1 << 31, 10**30)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=range(len(REFUSED)))
def test_a_wrong_argument_is_named(device, call, text):
    x = ttsim.Tensor(ONES, ttsim.bfloat16)
    error = refusal(lambda: call(device, x))
    assert error.startswith(text), error
    assert len(error) < 3000
    assert "ConvTranspose" not in text or "32-bit addresses" in error or "strides is required" in error
    assert not graph.is_graph_capture_active()


def test_any_kind_of_integer_opens_a_device():
    with ttsim.open_device(np.int64(3), l1_small_size=np.uint16(32768)) as device:
        assert (device.id(), device.machine.l1_small_bytes) == (3, 32768)
    assert type(COORD(np.int64(1), 2).x) is int


CLASSES = {
    name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.TTSimError)
}


def drawn() -> dict[str, tuple[str, tuple[str, ...]]]:
    """(parent, built-in bases) of every class, as the docstring draws them by indentation."""
    result, above = {}, [""] * 10
    for indent, name, text in re.findall(r"^((?:  )+)(\w+Error) +(.*)$", ttsim.errors.__doc__ or "", re.MULTILINE):
        depth = len(indent) // 2
        above[depth] = name
        builtin = re.search(r"\(([\w, ]+)\)$", text)
        result[name] = (above[depth - 1], tuple(builtin[1].split(", ")) if builtin else ())
    return result


def test_every_class_is_public_and_drawn_where_it_stands():
    assert all(getattr(ttsim, name) is getattr(ttsim.errors, name) is kind for name, kind in CLASSES.items())
    names = {name: tuple(base.__name__ for base in kind.__bases__) for name, kind in CLASSES.items()}
    tree = {
        name: (next((base for base in bases if base in CLASSES), ""), tuple(b for b in bases if b not in CLASSES))
        for name, bases in names.items()
    }
    assert drawn() == tree | {"TTSimError": ("", ())}


@pytest.mark.parametrize("name", CLASSES)
def test_an_error_survives_a_process_border(name):
    error = pickle.loads(pickle.dumps(CLASSES[name]("rule, value, way out")))
    assert type(error) is CLASSES[name]
    assert str(error) == "rule, value, way out"


def test_another_device_is_told_apart(device):
    with ttsim.open_device(l1_small_size=8192) as other:
        x, y = (ttsim.Tensor(ONES, ttsim.bfloat16, home, ttsim.TILE_LAYOUT) for home in (other, device))
        text = refusal(lambda: ttsim.matmul(x, y))
        assert f"(object {id(other):#x})" in text
        assert f"(object {id(device):#x})" in text


def test_a_long_value_is_cut_in_an_error():
    assert shown(LONG) == f"'{'x' * 30}'... (10000 characters)"
    assert shown([1] * 10_000) == "a list"
    assert shown(np.ones((3, 3))) == "a numpy.ndarray"
    assert shown("\x1b[31m\u202e") == "'\\x1b[31m\\u202e'"
    for call in (
        lambda: ttsim.Tensor(ONES, LONG),
        lambda: ttsim.open_device(values=LONG),
        lambda: ttsim.open_device(spec=LONG),
        lambda: ttsim.MemoryConfig(LONG),
    ):
        assert len(refusal(call)) < 600


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


def test_host_tensors_are_pickled():
    x = ttsim.Tensor(ONES, ttsim.bfloat8_b)
    again = pickle.loads(pickle.dumps(x))
    assert (again.spec, again.values().dtype) == (x.spec, x.values().dtype)
    assert not again.values().flags.writeable


@pytest.mark.parametrize("columns", [10, 13])
def test_shards_lie_on_cores_of_the_device(columns, device):
    memory = in_box(HEIGHT, (32, 32), columns)
    x = ttsim.Tensor(ONES, ttsim.bfloat16, device)
    weight = ttsim.Tensor(np.ones((32, 32, 2, 2), np.float32), ttsim.bfloat16)
    call = {"weight_tensor": weight, "kernel_size": (2, 2), "stride": (2, 2)}
    call["dram_slice_config"] = ttsim.Conv2dL1FullSliceConfig
    grid = ttsim.Conv2dConfig(shard_layout=HEIGHT, override_sharding_config=True, core_grid=memory.shard_spec.grid)
    for result in (
        lambda: ttsim.Tensor(ONES, ttsim.bfloat16).to(device, memory),
        lambda: ttsim.to_memory_config(x, memory),
        lambda: conv(device, x, ttsim.conv_transpose2d, **call, memory_config=memory),
        lambda: conv(device, x, ttsim.conv_transpose2d, **call, conv_config=grid),
    ):
        assert refusal(result).startswith("Device: Invalid shard grid: shard core (8, 0) has no L1 bank on this")
    assert place("height/32x32/8").shard_spec.num_cores() == 8


def test_a_torch_tensor_is_told_from_ours():
    torch = pytest.importorskip("torch")
    text = refusal(lambda: ttsim.to_layout(torch.zeros(2, 2), ttsim.TILE_LAYOUT))
    assert "Tensor, not a torch.Tensor" in text.splitlines()[1]
