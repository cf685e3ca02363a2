"""Steps that convolve: the three convolutions, one or two of their rare arguments at a time, and weight preparation."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

import ttsim
from device.numbers.formats import Array
from tools.random_calls.drafts import (
    BLOCKS,
    DRAM,
    INTEGERS,
    KINDS,
    UNSPECIFIED,
    USUAL,
    Draft,
    Expected,
    Operand,
    Shadow,
    Step,
    named,
    operation,
)
from tools.random_calls.elementwise import FUNCTIONS, applied
from tools.random_calls.products import compute_config, norm
from tools.random_calls.references import (
    Pair,
    Sides,
    convolved,
    framed,
    regrouped_error,
    sum_error,
    sums,
    zeros_between,
)

CHANNELS: Final = (32, 1, 3, 8, 16, 24, 33, 64, 96, 128)
MOST_PRODUCTS: Final = 10_000_000
MOST_OUTPUTS: Final = 400_000
ACTIVATIONS: Final = ("relu", "relu", "relu", "silu", "gelu", "sigmoid", "tanh", "leaky_relu")
RARE_ACTIVATIONS: Final = (
    "exp", "sqrt", "log", "abs", "neg", "square", "relu6", "hardsigmoid", "hardswish", "softplus", "recip", "mish",
    "sin", "erf", "power", "hardtanh", "identity", "sign", "rsqrt", "selu", "softsign", "celu", "threshold", "floor",
)  # fmt: skip
PARAMETERS: Final = {
    **{"leaky_relu": (0.125,), "elu": (1.0,), "power": (2.0,), "celu": (1.0,), "hardtanh": (-1.0, 1.0)},
    **{"threshold": (0.5, 1.0), "selu": (1.67, 1.05), "softplus": (1.0, 20.0)},
}
SCHEMES: Final = tuple(f"ttsim.TensorMemoryLayout.{kind}_SHARDED" for kind in KINDS)
RARELY: Final = (0.07, "True", "True", "True", "True", "False")
# How often a field of the Conv2dConfig is given, and its values.
FIELDS: Final[Mapping[str, tuple[Any, ...]]] = {
    "weights_dtype": (0.4, *(f"ttsim.{dtype}" for dtype in (*USUAL, "bfloat4_b"))),
    "shard_layout": (0.4, *SCHEMES),
    "act_block_h_override": (0.2, 32, 64, 96, 160, 512),
    "output_layout": (0.25, "ttsim.ROW_MAJOR_LAYOUT"),
    "reallocate_halo_output": (0.1, "False"),
    "act_block_w_div": (0.1, 2, 1, 3, 4, 8),
    "padding_mode": (0.05, "ttsim.PaddingMode.Replicate", "ttsim.PaddingMode.Zeros"),
    **dict.fromkeys(("enable_kernel_stride_folding", "force_split_reader"), RARELY),
    **{name: RARELY for name, usual in vars(ttsim.Conv2dConfig()).items() if usual is False},
    "override_sharding_config": (0.0, "False"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A call of a convolution but for its operands."""

    function: str
    batch: int
    size: Pair  # Height and width of an image
    channels: Pair
    kernel: Pair  # Height and width
    stride: Pair  # Down and across
    sides: Sides
    dilation: Pair  # Down and across
    output_padding: Pair = (0, 0)  # Of a transposed convolution
    groups: int = 1
    mirrored: bool = True  # Weights are in the order of the definition; otherwise they are mirrored already
    config: Mapping[str, object] = field(default_factory=dict)  # Fields of the Conv2dConfig as text
    rest: Mapping[str, str] = field(default_factory=dict)  # Other keyword arguments as text
    out: str = "bfloat16"  # Data type of the result
    weights_dtype: str = "bfloat16"  # What the weights are prepared as
    activation: str = ""  # At the end; empty for none

    @property
    def transposed(self) -> bool:
        """Whether this is a transposed convolution."""
        return self.function == "conv_transpose2d"

    @property
    def slicing(self) -> str:
        """The keyword that cuts the call into slices."""
        return "dram_slice_config" if self.transposed else "slice_config"

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """Of the weights on the host."""
        first, second = self.channels if self.transposed else self.channels[::-1]
        return (first, second // self.groups, *(self.kernel[1:] if self.function == "conv1d" else self.kernel))

    @property
    def depth(self) -> int:
        """Products of one output."""
        return self.channels[0] // self.groups * self.kernel[0] * self.kernel[1]

    @property
    def reach(self) -> Pair:
        """Rows and columns from the first tap of a window to the last."""
        return self.dilation[0] * (self.kernel[0] - 1), self.dilation[1] * (self.kernel[1] - 1)

    @property
    def output_size(self) -> Pair:
        """Height and width of the result."""
        size, step, far, extra = map(np.array, (self.size, self.stride, self.reach, self.output_padding))
        ring = np.add(self.sides[::2], self.sides[1::2])
        whole = (size - 1) * step - ring + far + extra if self.transposed else (size + ring - far - 1) // step
        return int(whole[0]) + 1, int(whole[1]) + 1

    def result(self, image: Array, weights: Array) -> Array:
        """float64 [1, 1, N * OH * OW, O] without bias and activation."""
        image = image.reshape(self.batch, *self.size, self.channels[0])
        replicate = "Replicate" in str(self.config.get("padding_mode", ""))
        around, stride, kernels = self.sides, self.stride, weights.reshape(*weights.shape[:2], *self.kernel)
        if self.transposed:
            image, stride = zeros_between(image, self.stride), (1, 1)
            (top, bottom, left, right), (down, across), extra = self.sides, self.reach, self.output_padding
            around = Sides(down - top, down - bottom + extra[0], across - left, across - right + extra[1])
            depth = len(weights) // self.groups
            kernels = kernels.reshape(self.groups, depth, -1, *self.kernel).swapaxes(1, 2)
            kernels = kernels.reshape(-1, depth, *self.kernel)
            kernels = kernels[:, :, ::-1, ::-1] if self.mirrored else kernels
        whole = convolved(framed(image, around, replicate=replicate), kernels, stride, self.dilation, self.groups)
        return whole.reshape(1, 1, -1, self.channels[1])

    def expected(self, image: Array, input_dtype: str, weights: Array, bias: Array | None) -> Expected:
        """What the call must give."""
        values, terms, squares = sums(self.result, image, weights, bias)
        weights_error = 0.5 * regrouped_error(weights, self.weights_dtype) if self.weights_dtype in BLOCKS else 0.0
        image_error = regrouped_error(image, self.out) if self.out in BLOCKS and input_dtype != self.out else 0.0
        spoiled = np.sqrt(self.result(np.full(image.shape, image_error**2), weights**2))
        spoiled = spoiled + np.sqrt(self.result(image**2, np.full(weights.shape, weights_error**2)))
        low = "LoFi" in self.rest.get("compute_config", "") or self.weights_dtype in BLOCKS
        bound = sum_error(values, terms, squares, self.depth, self.out, low_fidelity=low) + 4 * spoiled
        if bias is not None:
            bound = bound + regrouped_error(bias, self.weights_dtype) + np.abs(bias).ravel() * 2.0**-7
        limit: float | None = norm(input_dtype, self.out, self.weights_dtype, low_fidelity=low)
        if self.activation:
            limit = limit if self.activation == "relu" else None
            if self.activation in FUNCTIONS:
                values, more = applied(self.activation, values, self.out)
                bound = 1.2 * bound + more
            if self.activation not in FUNCTIONS or self.activation in ("exp", "square", "sqrt", "log"):
                bound = np.full(values.shape, np.inf)
        return Expected(values=np.nan_to_num(values), bound=bound, dtypes=(self.out,), norm=limit)

    def keywords(self) -> dict[str, str]:
        """Keyword arguments as text, but for the operands."""
        numbers: dict[str, object] = {"in_channels": self.channels[0], "out_channels": self.channels[1]}
        numbers |= {"batch_size": self.batch, "groups": self.groups}
        windows = {"kernel_size": self.kernel, "stride": self.stride, "dilation": self.dilation}
        if self.function == "conv1d":
            numbers |= {"input_length": self.size[1], "padding": self.sides.left}
            numbers |= {name: columns for name, (_, columns) in windows.items()}
        else:
            before, after = self.sides[::2], self.sides[1::2]
            numbers |= {"input_height": self.size[0], "input_width": self.size[1], **windows}
            numbers["padding"] = before if before == after else tuple(self.sides)
        if self.transposed:
            numbers |= {"output_padding": self.output_padding, "mirror_kernel": self.mirrored}
        if self.config:
            kind = "Conv1dConfig" if self.function == "conv1d" and "shard_layout" in self.config else "Conv2dConfig"
            numbers["conv_config"] = f"ttsim.{kind}({named(**self.config)[2:]})"
        return {name: f"{value}" for name, value in numbers.items()} | dict(self.rest)

    def text(self, x: object, operands: Sequence[object], **more: str) -> str:
        """The call with an input, and with weights and a bias, which may be empty."""
        weights, bias = operands
        start = f"input_tensor={x}, weight_tensor={weights}, device=device"
        return f"ttsim.{self.function}({start}{named(bias_tensor=bias, **self.keywords(), **more)})"

    def prepared(self, x: object, operand: str, **own: str) -> str:
        """A call of the function that prepares "weights" or "bias" for this convolution; ``own`` arguments count."""
        name = f"prepare_{'conv_transpose2d' if self.transposed else 'conv'}_{operand}"
        known = inspect.signature(getattr(ttsim, name)).parameters
        texts = {key: text for key, text in self.keywords().items() if key in known}
        texts |= {"input_memory_config": f"{x}.memory_config()", "input_layout": f"{x}.layout"}
        texts |= {"input_dtype": f"{x}.dtype", "device": "device", "output_dtype": self.rest.get("dtype", "")}
        return f"ttsim.{name}({named(**texts | own)[2:]})"


def window(function: str, draft: Draft, x: Shadow) -> Convolution | None:
    """A convolution of a tensor without configs; None if its result is empty, or for too many products."""
    batch, height, width, channels = x.shape if len(x.shape) == 4 else (1, 1, 0, x.shape[-1])
    if (batch, height) == (1, 1):  # rows of any images, in two to five axes
        rows = int(np.prod(x.shape[:-1]))
        batch = draft.pick([number for number in (1, 2, 3) if rows % number == 0])
        height = draft.pick([side for side in range(1, rows // batch + 1) if rows // batch % side == 0])
        width = rows // batch // height
    kernel, stride = draft.pair(1, 4), draft.pair(1, 3)
    dilation = (1, 1) if draft.chance(0.85) else draft.pair(1, 3)
    if draft.chance(0.04):  # large windows
        kernel, stride = draft.pair(1, 9), draft.pair(1, 7)
    if function == "conv1d":
        height, width = 1, height * width
        kernel, stride, dilation = (1, kernel[1]), (1, stride[1]), (1, dilation[1])
    reach = [step * (size - 1) for step, size in zip(dilation, kernel, strict=True)]
    rings = [draft.between(0, min(far, 4)) if draft.chance(0.6) else 0 for far in reach for _ in range(2)]
    if function == "conv1d" or draft.chance(0.8):
        rings[1], rings[3] = rings[0], rings[2]
    out_channels, groups = draft.pick(CHANNELS), 1
    if draft.chance(0.2):
        out_channels = draft.pick((channels, out_channels, 2 * channels))
        groups = draft.pick([n for n in range(1, channels + 1) if channels % n == out_channels % n == 0])
    transposed = function == "conv_transpose2d"
    extra = transposed and draft.chance(0.25)
    call = Convolution(
        function=function,
        batch=batch,
        size=(height, width),
        channels=(channels, out_channels),
        kernel=kernel,
        stride=stride,
        sides=Sides(*rings),
        dilation=dilation,
        output_padding=(draft.below(stride[0]), draft.below(stride[1])) if extra else (0, 0),
        groups=groups,
        mirrored=not transposed or draft.chance(0.7),
    )
    outputs = batch * int(np.prod(call.output_size)) * out_channels
    fits = min(call.output_size) > 0 and outputs <= MOST_OUTPUTS and outputs * call.depth <= MOST_PRODUCTS
    return call if fits else None


def configured(draft: Draft, call: Convolution, x: Shadow) -> Convolution:
    """The convolution with configs, most of them ordinary."""
    config: dict[str, object] = {}
    for name, (share, *choices) in FIELDS.items():
        if draft.chance(share):
            config[name] = draft.pick(choices)
    if draft.chance(0.1):
        config["core_grid"] = f"cores({', '.join(map(str, draft.rectangles()))})"
        config["override_sharding_config"] = draft.chance(0.9)
    activation = draft.pick(ACTIVATIONS) if draft.chance(0.2) else ""
    activation = draft.pick(RARE_ACTIVATIONS) if not activation and draft.chance(0.04) else activation
    if activation:
        parameters = "".join(f", {number}" for number in PARAMETERS.get(activation, ()))
        config["activation"] = f"ttsim.UnaryWithParam(ttsim.UnaryOpType.{activation.upper()}{parameters})"
    out = draft.pick(USUAL) if draft.chance(0.25) else ""
    rest = {"dtype": out and f"ttsim.{out}", "compute_config": compute_config(draft)}
    if draft.chance(0.15):
        side = (1, 1, call.batch * call.output_size[0] * call.output_size[1], call.channels[1])
        place = draft.memory_config(side, tiled="output_layout" not in config, sharded=0.5)
        rest["memory_config"] = draft.pick(UNSPECIFIED) if draft.chance(0.3) else place
    if draft.chance(0.3):
        rest[call.slicing] = _slices(draft)
    rest = {name: text for name, text in rest.items() if text}
    return replace(call, config=config, rest=rest, out=out or x.dtype, activation=activation)


def _slices(draft: Draft) -> str:
    kind = draft.pick(("Conv2dDRAMSliceHeight", "Conv2dDRAMSliceWidth", "Conv2dL1Full"))
    count = draft.pick(("", ", num_slices=2", ", num_slices=0", ", num_slices=3", ", num_slices=5"))
    return f"ttsim.Conv2dSliceConfig(slice_type=ttsim.{kind}{count})"


_ODD_PLACES: Final = ({"layout": "TILE"}, {"where": DRAM, "layout": "ROW_MAJOR"}, {"where": DRAM, "layout": "TILE"})


def raw_weights(draft: Draft, call: Convolution) -> tuple[Operand, str]:
    """Weights, rarely odd ones, and why they are impossible if they are."""
    dtype, shape, problem = draft.pick(("bfloat16", "bfloat16", "float32")), call.weights_shape, ""
    odd = draft.pick(("place", "block", "shape", "integers")) if draft.chance(0.05) else ""
    if odd == "shape":
        shape = draft.pick((shape[::-1], (shape[0] + 1, *shape[1:]), shape[1:], (1, *shape)))
        problem = "weights of another shape" if shape != call.weights_shape else ""
    elif odd:
        dtype = {"place": dtype, "block": draft.pick(BLOCKS), "integers": draft.pick(INTEGERS)}[odd]
        problem = "weights of integers" if odd == "integers" else ""
    place = draft.pick(_ODD_PLACES) if odd == "place" else {"layout": "ROW_MAJOR"}
    return draft.operand("w", shape, dtype, **place), problem


def raw_bias(draft: Draft, call: Convolution, dtype: str) -> tuple[Operand, str]:
    """A bias beside weights of a data type, rarely an odd one, and why it is impossible if it is."""
    columns, problem = call.channels[1], ""
    row: tuple[int, ...] = (1, 1, 1, columns)
    dtype = "bfloat16" if dtype in INTEGERS else dtype
    odd = draft.pick(("dtype", "place", "shape")) if draft.chance(0.08) else ""
    if odd == "dtype":
        dtype = draft.pick(("float32", "bfloat16", "bfloat8_b"))
    elif odd == "shape":
        row = draft.pick(((columns,), (1, columns), (1, 1, columns), (1, 1, 1, columns + 1), (1, 1, 32, columns)))
        problem = "a bias of another size" if int(np.prod(row)) != columns else ""
    place = draft.pick(_ODD_PLACES) if odd == "place" else {"layout": "ROW_MAJOR"}
    return draft.operand("b", row, dtype, **place), problem


@operation("conv_transpose2d", "conv2d", "conv1d")
def convolution(draft: Draft) -> Step | None:
    """A convolution of a live tensor, perhaps with weights that are prepared by a function or by the call."""
    integers, state, function, name = draft.chance(0.02), draft.state, draft.function, draft.name
    x = draft.tensor(lambda x: len(x.shape) > 1 and x.is_float != integers, anywhere=True)
    if x is None or (len(x.shape) != 4 and not draft.chance(0.05)):
        return None
    plain = window(function, draft, x) or window(function, draft, x) or window(function, draft, x)
    if plain is None:
        return None
    call = configured(draft, plain, x)
    weights, problem = raw_weights(draft, call)
    bias, of_bias = raw_bias(draft, call, weights.dtype) if draft.chance(0.4) else (None, "")
    problem = "an input of integers" if integers else problem or of_bias
    weights_dtype = str(call.config.get("weights_dtype", "")).removeprefix("ttsim.") or weights.dtype
    call = replace(call, weights_dtype=weights_dtype)
    frees = state.sharing(x) if call.config.get("deallocate_activation") == "True" else ()
    operands, opaque, more = [str(weights), str(bias or "")], list[str](), dict[str, str]()
    text, targets = "".join(operand.text for operand in draft.operands), [name]
    facts: dict[str, object] = {}
    if x.on_device and draft.chance(0.12) and function != "conv1d" and not problem:
        order = '"IOHW"' if call.transposed else '"OIHW"'
        preparing = {"weight_tensor": weights.name, "weights_format": order, "has_bias": f"{bias is not None}"}
        text += f"{name}p = {call.prepared(x, 'weights', **preparing)}\n"
        if bias:
            text += f"{name}q = {call.prepared(x, 'bias', bias_tensor=bias.name)}\n"
        operands = [f"{name}p", f"{name}q" if bias else ""]
        opaque = [operand for operand in operands if operand]
    if draft.chance(0.2):
        more["return_output_dim"] = "True"
        targets.append(f"{name}s")
        facts = {f"{name}s": call.output_size[1] if function == "conv1d" else list(call.output_size)}
    if draft.chance(0.2):
        more["return_weights_and_bias"] = "True"
        targets.append(f"({name}v, {name}c)" if bias else f"({name}v, _)")
        opaque += [f"{name}v", f"{name}c"] if bias else [f"{name}v"]
    text += f"{', '.join(targets)} = {call.text(x, operands, **more)}"
    if problem:
        return Step(text=text, results=draft.operand_results, contradictory=problem, frees=frees)
    results = {
        **draft.operand_results,
        name: lambda: call.expected(x.values, x.dtype, weights.values, bias.values if bias else None),
        **dict.fromkeys(opaque, Expected),
    }
    return Step(text=text, results=results, facts=facts, opaque=tuple(opaque), frees=frees)
