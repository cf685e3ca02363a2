"""Random words of which calls are drawn: tensors, memory configs, shards, and now and then an odd argument."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np

T = TypeVar("T")
Arguments = dict[str, str]  # of a call: keyword -> Python; keywords that begin with _ stand for arguments by position

DTYPES: Final = ("bfloat16",) * 6 + ("float32", "float32", "bfloat8_b", "bfloat8_b")
RARE_DTYPES: Final = ("bfloat4_b", "uint32", "int32", "uint16", "uint8")
LAYOUTS: Final = ("TILE_LAYOUT", "ROW_MAJOR_LAYOUT")
INTEGERS: Final = frozenset({"uint32", "int32", "uint16", "uint8"})
PLACES: Final = ("DRAM_MEMORY_CONFIG", "DRAM_MEMORY_CONFIG", "L1_MEMORY_CONFIG")
SCHEMES: Final = ("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED")
ODD: Final = (
    *("None", "True", "0", "-1", "7", "31", "1 << 33", "2.5", "2 + 1j", "float('nan')", "'x'", "'relu'", "''", "b'ab'"),
    *("()", "[]", "{}", "(1,)", "(0, 0)", "(2, 0)", "(-1, 1)", "(1, 2, 3)", "(1, 1, 1, 1)", "(65536, 65536)"),
    *("[None, 1]", "range(2)", "np.int64(3)", "np.float32(2)", "np.zeros(0)", "np.array([1, 1])", "len", "..."),
    *("ttnn.bfloat4_b", "ttnn.uint8", "ttnn.ROW_MAJOR_LAYOUT", "ttnn.L1_MEMORY_CONFIG", "ttnn.Conv2dConfig()"),
    *("ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG", "ttnn.CoreCoord(0, 0)", "ttnn.BufferType.L1", "device"),
)


class Draw:
    """Draws the words of one call: always the same of a seed, a group and a number."""

    def __init__(self, seed: int, group: str, number: int, *, small: bool = False) -> None:
        self.rng = np.random.default_rng([seed, number, *group.encode()])
        self.small = small
        self.given: list[str] = []
        self.odd: float | None = None  # share of calls with an odd argument, whatever a call says

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return bool(self.rng.random() < share)

    def number(self, least: int, most: int) -> int:
        """An integer, both ends included."""
        return int(self.rng.integers(least, most + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self.number(0, len(choices) - 1)]

    def pair(self, least: int, most: int) -> tuple[int, int]:
        """Two numbers, in two of three cases the same."""
        first = self.number(least, most)
        return (first, first) if self.chance(0.7) else (first, self.number(least, most))

    def side(self) -> int:
        """Rows or columns of a matrix, in half of the cases a multiple of 32."""
        most = 2 if self.small else 12
        return 32 * self.number(1, most) if self.chance(0.5) else self.number(1, 32 * most)

    def shape(self) -> list[int]:
        """Of a tensor, of rank 4 as a rule."""
        rank = self.pick((4, 4, 4, 4, 2, 3))
        batches = [self.pick((1, 1, 1, 2, 3)) for _ in range(rank - 2)]
        return [*batches, self.side(), self.side()]

    def dtype(self, *, rare: float = 0.06) -> str:
        """Name of a data type."""
        return self.pick(RARE_DTYPES) if self.chance(rare) else self.pick(DTYPES)

    def place(self) -> str:
        """An interleaved memory config."""
        return f"ttnn.{self.pick(PLACES)}"

    def shards(self, shape: Sequence[int], scheme: str | None = None, *, tiled: bool = True) -> str:
        """A memory config of shards that hold a tensor, of whole tiles as a rule, on a grid that may be too large."""
        scheme = scheme or self.pick(SCHEMES)
        unit = 32 if tiled else 1
        height, width = (-(-size // unit) * unit for size in shape[-2:])
        rows = int(np.prod(shape[:-2])) * height
        down, across = self.number(1, 8), self.number(1, 8)
        counts = {"HEIGHT_SHARDED": (down * across, 1), "WIDTH_SHARDED": (1, down * across)}.get(scheme, (down, across))
        units = (unit, unit if tiled else self.pick((8, 32)) if counts[1] > 1 else 1)
        parts = zip((rows, width), counts, units, strict=True)
        high, wide = (-(-size // count // each) * each if count > 1 else size for size, count, each in parts)
        if self.chance(0.05):
            high += self.pick((1, 32))
        cores = f"ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord({across - 1}, {down - 1}))"
        order = "ROW_MAJOR" if self.chance(0.9) else "COL_MAJOR"
        spec = f"ttnn.ShardSpec(ttnn.CoreRangeSet([{cores}]), [{high}, {wide}], ttnn.ShardOrientation.{order})"
        return f"ttnn.MemoryConfig(ttnn.TensorMemoryLayout.{scheme}, ttnn.BufferType.L1, {spec})"

    def memory(self, shape: Sequence[int], *, sharded: float = 0.25, tiled: bool = True) -> str:
        """A memory config, of shards in this share of cases."""
        return self.shards(shape, tiled=tiled) if self.chance(sharded) else self.place()

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        *,
        dtype: str | None = None,
        layout: str | None = None,
        memory: str | None = None,
        host: float = 0.03,
    ) -> str:
        """Adds a tensor to what is given; returns its name."""
        dtype = dtype or self.dtype()
        if layout is None or (dtype.endswith("_b") and self.chance(0.95)):  # block floats have tiles alone
            layout = (
                "TILE_LAYOUT" if dtype.endswith("_b") else self.pick(("TILE_LAYOUT", "TILE_LAYOUT", "ROW_MAJOR_LAYOUT"))
            )
        kind = "integers" if dtype in INTEGERS else "normal"
        made = f"ttnn.Tensor({kind}({self.number(0, 999)}, {tuple(shape)}), ttnn.{dtype}, layout=ttnn.{layout})"
        moved = (
            "" if self.chance(host) else f".to(device, {memory or self.memory(shape, tiled=layout == 'TILE_LAYOUT')})"
        )
        self.given.append(f"{name} = {made}{moved}")
        return name

    def maybe(self, share: float, name: str, *choices: str) -> Arguments:
        """An argument in this share of cases."""
        return {name: self.pick(choices)} if self.chance(share) else {}

    def compute(self, name: str, share: float = 0.5) -> Arguments:
        """A compute kernel config in this share of cases."""
        if not self.chance(share):
            return {}
        fields = f"math_fidelity=ttnn.MathFidelity.{self.pick(('LoFi', 'HiFi2', 'HiFi3', 'HiFi4'))}"
        fields += f", fp32_dest_acc_en={self.chance(0.5)}, packer_l1_acc={self.chance(0.5)}"
        return {name: f"ttnn.init_device_compute_kernel_config(device.arch(), {fields})"}

    def call(self, function: str, arguments: Mapping[str, str], *, odd: float = 0.06) -> str:
        """A call as Python; in this share of cases with odd values for one or two of its arguments."""
        given = dict(arguments)
        if given and self.chance(odd if self.odd is None else self.odd):
            for _ in range(self.pick((1, 1, 1, 2))):
                given[self.pick(list(given))] = self.pick(ODD)
        text = ", ".join(value if name.startswith("_") else f"{name}={value}" for name, value in given.items())
        return f"y = ttnn.{function}({text})"


DUMPED: Final = """\
import hashlib, pathlib, tempfile
with tempfile.TemporaryDirectory(prefix="golden-") as folder:
    path = pathlib.Path(folder, "x.tensorbin")
    ttnn.dump_tensor(path, x.cpu())
    y = [hashlib.sha256(path.read_bytes()).hexdigest()[:20], ttnn.load_tensor(path)]"""
SHARDED: Final = """\
kinds = (ttnn.ShardStrategy.HEIGHT, ttnn.ShardStrategy.WIDTH, ttnn.ShardStrategy.BLOCK)
grid = ttnn.CoreGrid(x=4, y=2)
y = [ttnn.create_sharded_memory_config((1, 1, {rows}, 256), core_grid=grid, strategy=kind) for kind in kinds]"""


def facts(draw: Draw) -> str:
    """One thing that is said about the tensor x, done with it, or asked of the library."""
    draw.tensor("x", draw.shape())
    grid = "device.compute_with_storage_grid_size()"
    return draw.pick(
        (
            "y = repr(x)",
            "y = [ttnn.is_sharded(x), ttnn.has_tile_padding(x), ttnn.get_memory_config(x), x.layout]",
            "y = [x.shape, x.padded_shape, x.dtype, x.volume(), x.storage_type()]",
            f"y = ttnn.{draw.pick(('tile_size', 'element_size'))}(x.dtype)",
            f"y = ttnn.get_conv_output_dim({draw.number(8, 64)}, 3, 2, 1)",
            f"y = x.reshape({draw.pick(('1, 1, -1, 32', '-1', '7, 7'))})",
            f"y = x.cpu().to(ttnn.{draw.pick(LAYOUTS)})",
            f"y = x[..., : {draw.number(1, 40)}]",
            "y = x * 2.0 - x",
            "ttnn.deallocate(x)\ny = x.buffer_address()",
            "y = [ttnn.load_spec(name).to_dict() for name in ttnn.device_names()]",
            SHARDED.format(rows=32 * draw.number(1, 9)),
            f"y = ttnn.num_cores_to_corerangeset({draw.number(1, 70)}, {grid}, row_wise={draw.chance(0.5)})",
            DUMPED,
            "y = ttnn.allocate_tensor_on_device(x.spec, device)\nttnn.copy_host_to_device_tensor(x.cpu(), y)",
        )
    )


CHANNELS: Final = (1, 3, 8, 16, 24, 32, 33, 48, 64, 96, 128, 256)
SMALL_CHANNELS: Final = (1, 3, 8, 16, 32, 33)
SHARDS: Final = tuple(f"ttnn.TensorMemoryLayout.{one}_SHARDED" for one in ("HEIGHT", "HEIGHT", "BLOCK", "WIDTH"))
SLICES: Final = ("Conv2dDRAMSliceHeight", "Conv2dDRAMSliceWidth")
ACTIVATIONS: Final = ("RELU", "RELU", "RELU6", "GELU", "SILU", "SIGMOID", "TANH")
FIELDS: Final = {
    "output_layout": (0.25, "ttnn.ROW_MAJOR_LAYOUT"),
    "deallocate_activation": (0.15, "True"),
    "act_block_h_override": (0.12, "32", "64", "96"),
    "enable_act_double_buffer": (0.1, "True"),
    "enable_weights_double_buffer": (0.1, "True"),
    "reshard_if_not_optimal": (0.06, "True"),
    "reallocate_halo_output": (0.06, "False"),
    "config_tensors_in_dram": (0.06, "True"),
    "transpose_shards": (0.06, "True"),
    "act_block_w_div": (0.04, "2"),
    "full_inner_dim": (0.06, "True"),
    "enable_activation_reuse": (0.03, "True"),
    "enable_kernel_stride_folding": (0.03, "True", "False"),
    "force_split_reader": (0.03, "True"),
    "padding_mode": (0.02, "ttnn.PaddingMode.Replicate"),
    "override_sharding_config": (0.02, "True"),
}


def convolution(draw: Draw, function: str) -> str:
    """A call of conv_transpose2d, conv2d or conv1d."""
    arguments = _arguments(draw, function) | {"device": "device"}
    if function == "conv_transpose2d":
        arguments |= draw.maybe(0.1, "mirror_kernel", "False") | draw.maybe(0.08, "lowering", "'phase'")
    arguments |= draw.maybe(0.2, "return_output_dim", "True") | draw.maybe(0.2, "return_weights_and_bias", "True")
    arguments |= draw.maybe(0.08, "memory_config", "ttnn.DRAM_MEMORY_CONFIG", "ttnn.L1_MEMORY_CONFIG")
    return draw.call(function, arguments, odd=0.04)


PREPARATIONS: Final = tuple(
    f"prepare_{kind}_{operand}" for kind in ("conv_transpose2d", "conv") for operand in ("weights", "bias")
)


def preparation(draw: Draw, function: str) -> str:
    """A call of a function that prepares weights or bias of a convolution."""
    transposed, weights = "transpose" in function, function.endswith("weights")
    made = _arguments(draw, "conv_transpose2d" if transposed else "conv2d")
    gone = {"input_tensor", "weight_tensor", "bias_tensor", "dtype", *(["output_padding"] if not weights else [])}
    arguments = {name: text for name, text in made.items() if name not in gone}
    arguments |= {"input_memory_config": draw.place(), "input_layout": "ttnn.ROW_MAJOR_LAYOUT"}
    arguments |= {"input_dtype": "ttnn.bfloat16", "device": "device"}
    if weights:
        order = "'IOHW'" if transposed else "'OIHW'"
        arguments |= {"weight_tensor": "w", "weights_format": order, "has_bias": str("bias_tensor" in made)}
    else:
        draw.given.append(f"b = {_host(draw, (1, 1, 1, int(made['out_channels'])), 'bfloat16')}")
        arguments |= {"bias_tensor": "b"}
    return draw.call(function, arguments)


def question(draw: Draw, function: str) -> str:
    """What a convolution would need or take, without making it."""
    made = _arguments(draw, "conv_transpose2d", described=True)
    if function == "query_op_constraints":
        return draw.call(function, {"spec": "device.spec", "strict": "device.strict", **made})
    more = {"_": "ttnn.conv_transpose2d", "device": "device", "suggestions": str(draw.chance(0.2))}
    return draw.call(function, more | made, odd=0)


def _arguments(draw: Draw, function: str, *, described: bool = False) -> Arguments:
    """The arguments that all convolutions share; their tensors are given."""
    line = function == "conv1d"
    sizes = _sizes(draw, line=line)
    height, width, channels, outputs = sizes["height"], sizes["width"], sizes["channels"], sizes["outputs"]
    groups, kernel, stride = sizes["groups"], draw.pair(1, 4), draw.pair(1, 3 if not draw.small else 2)
    dilation = (1, 1) if draw.chance(0.85) else draw.pair(1, 3)
    padding = tuple(draw.number(0, step * (taps - 1)) for step, taps in zip(dilation, kernel, strict=True))
    if draw.chance(0.3):
        padding = (0, 0)
    arguments: Arguments = {
        "in_channels": f"{channels}",
        "out_channels": f"{outputs}",
        "batch_size": f"{sizes['batch']}",
    }
    if line:
        arguments |= {"input_length": f"{width}", "kernel_size": f"{kernel[1]}", "stride": f"{stride[1]}"}
        arguments |= {"padding": f"{padding[1]}", "dilation": f"{dilation[1]}"}
    else:
        arguments |= {"input_height": f"{height}", "input_width": f"{width}", "kernel_size": f"{kernel}"}
        arguments |= {"stride": f"{stride}", "padding": f"{padding}", "dilation": f"{dilation}"}
    arguments["groups"] = f"{groups}"
    if function == "conv_transpose2d" and draw.chance(0.2):
        arguments["output_padding"] = f"{tuple(draw.number(0, step - 1) for step in stride)}"
    taps = (kernel[1],) if line else kernel
    first, second = (channels, outputs // groups) if function == "conv_transpose2d" else (outputs, channels // groups)
    held = draw.pick(("bfloat16", "bfloat16", "float32"))
    pixels = sizes["batch"] * height * width
    flat = (1, 1, pixels, channels)
    shape = flat if draw.chance(0.8) else (sizes["batch"], height, width, channels)
    if described:
        weights, bias = (first, second, *taps), (1, 1, 1, outputs)
        arguments["input_tensor"] = f"ttnn.TensorDescription({shape}, memory_config={draw.place()})"
        arguments["weight_tensor"] = f"ttnn.TensorDescription({weights}, ttnn.{held})"
        arguments |= draw.maybe(0.5, "bias_tensor", f"ttnn.TensorDescription({bias}, ttnn.{held})")
    else:
        arguments |= {"input_tensor": _input(draw, shape), "weight_tensor": "w"}
        scale = round((first * second * taps[0]) ** -0.5, 4)
        draw.given.append(f"w = {_host(draw, (first, second, *taps), held, scale)}")
        if draw.chance(0.5):
            draw.given.append(f"b = {_host(draw, (1, 1, 1, outputs), held)}")
            arguments["bias_tensor"] = "b"
    arguments |= _config(draw) | draw.compute("compute_config")
    if draw.chance(0.3):
        cut = f"slice_type=ttnn.{draw.pick(SLICES)}" + (f", num_slices={draw.number(1, 6)}" if draw.chance(0.7) else "")
        full = draw.chance(0.25)
        name = "dram_slice_config" if function == "conv_transpose2d" else "slice_config"
        arguments[name] = "ttnn.Conv2dL1FullSliceConfig" if full else f"ttnn.Conv2dSliceConfig({cut})"
    return arguments | draw.maybe(0.2, "dtype", "ttnn.bfloat16", "ttnn.float32", "ttnn.bfloat8_b")


def _sizes(draw: Draw, *, line: bool) -> dict[str, int]:
    """Sizes of a convolution whose definition has a bounded number of products."""
    sides = (4, 5, 8, 12) if draw.small else (1, 4, 7, 8, 14, 16, 20, 24, 28, 32, 33, 48, 56, 64, 80, 96, 128)
    while True:
        groups = draw.pick((1, 1, 1, 1, 1, 1, 2, 4))
        chosen = SMALL_CHANNELS if draw.small else CHANNELS
        channels, outputs = groups * draw.pick(chosen), groups * draw.pick(chosen)
        height, width, batch = 1 if line else draw.pick(sides), draw.pick(sides), draw.pick((1, 1, 1, 2, 3))
        if batch * height * width * max(channels, outputs) <= (40_000 if draw.small else 1_500_000):
            found = {"height": height, "width": width, "channels": channels, "outputs": outputs}
            return {**found, "groups": groups, "batch": batch}


def _input(draw: Draw, shape: tuple[int, ...]) -> str:
    dtype = draw.pick(("bfloat16", "bfloat16", "bfloat16", "float32", "bfloat8_b"))
    layout = "TILE_LAYOUT" if dtype == "bfloat8_b" or draw.chance(0.4) else "ROW_MAJOR_LAYOUT"
    return draw.tensor(
        "x",
        shape,
        dtype=dtype,
        layout=layout,
        memory=draw.memory(shape, sharded=0.12, tiled=layout == "TILE_LAYOUT"),
        host=0.15,
    )


def _host(draw: Draw, shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> str:
    scaled = "" if scale == 1 else f", scales=[{scale}]"
    return f"ttnn.Tensor(normal({draw.number(0, 999)}, {shape}{scaled}), ttnn.{dtype})"


def _config(draw: Draw) -> Arguments:
    """A Conv2dConfig, unless all its fields are the default's."""
    fields: Arguments = {}
    fields |= draw.maybe(0.4, "weights_dtype", "ttnn.bfloat16", "ttnn.bfloat8_b", "ttnn.float32")
    fields |= draw.maybe(0.6, "shard_layout", *SHARDS)
    for name, (share, *choices) in FIELDS.items():
        fields |= draw.maybe(float(share), name, *map(str, choices))
    if draw.chance(0.2):
        fields["activation"] = f"ttnn.UnaryWithParam(ttnn.UnaryOpType.{draw.pick(ACTIVATIONS)})"
    text = ", ".join(f"{name}={value}" for name, value in fields.items())
    return {"conv_config": f"ttnn.Conv2dConfig({text})"} if fields else {}
