"""Steps that convolve: the three convolutions, their rare arguments, and the functions that prepare weights.

Arguments that people rarely write are drawn one or two at a time, beside ordinary ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from device.numbers.formats import Array
from tools.fuzz.sequences.elementwise import FUNCTIONS, compute_config, function_error, norm
from tools.fuzz.sequences.references import Pair, Sides, convolved, framed, regrouped, sum_error, zeros_between
from tools.fuzz.sequences.state import (
    BLOCKS,
    DRAM,
    INTEGERS,
    KINDS,
    UNSPECIFIED,
    Draft,
    Expected,
    Operand,
    Shadow,
    Step,
    named,
    operand,
    place,
    rectangles,
)

CHANNELS: Final = (32, 1, 3, 8, 16, 24, 33, 64, 96, 128)
MOST_PRODUCTS: Final = 8_000_000
RARE_ACTIVATIONS: Final = (
    "exp", "sqrt", "log", "abs", "neg", "square", "relu6", "hardsigmoid", "hardswish", "softplus", "recip", "mish",
    "sin", "erf", "power", "hardtanh", "identity", "sign", "rsqrt", "selu", "softsign", "celu", "threshold", "floor",
)  # fmt: skip
PARAMETERS: Final = MappingProxyType(
    {
        "leaky_relu": (0.125,),
        "elu": (1.0,),
        "power": (2.0,),
        "celu": (1.0,),
        "hardtanh": (-1.0, 1.0),
        "threshold": (0.5, 1.0),
        "selu": (1.67, 1.05),
        "softplus": (1.0, 20.0),
    }
)
FLAGS: Final = (
    "deallocate_activation",
    "enable_act_double_buffer",
    "enable_weights_double_buffer",
    "config_tensors_in_dram",
    "transpose_shards",
    "full_inner_dim",
    "reshard_if_not_optimal",
    "force_split_reader",
    "enable_activation_reuse",
    "enable_kernel_stride_folding",
    "override_output_sharding_config",
)


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
    output_padding: Pair  # Of a transposed convolution
    groups: int
    mirrored: bool = True  # Weights are in the order of the definition; otherwise they are mirrored already
    config: dict[str, str] = field(default_factory=dict)  # Fields of the Conv2dConfig as text
    rest: dict[str, str] = field(default_factory=dict)  # Other keyword arguments as text
    out: str = "bfloat16"  # Data type of the result
    weights_dtype: str = "bfloat16"  # What the weights are prepared as
    activation: str = ""  # At the end; empty for none
    bias: bool = False  # Whether there is a bias
    contradictory: str = ""  # Why the call has no right result

    @property
    def transposed(self) -> bool:
        """Whether it is a transposed convolution."""
        return self.function == "conv_transpose2d"

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """Of the weights on the host."""
        first, second = self.channels if self.transposed else self.channels[::-1]
        taps = self.kernel[1:] if self.function == "conv1d" else self.kernel
        return (first, second // self.groups, *taps)

    @property
    def depth(self) -> int:
        """Products of one output."""
        return self.channels[0] // self.groups * self.kernel[0] * self.kernel[1]

    @property
    def output_size(self) -> Pair:
        """Height and width of the result."""
        reach = [apart * (taps - 1) for apart, taps in zip(self.dilation, self.kernel, strict=True)]
        rings = (self.sides.top + self.sides.bottom, self.sides.left + self.sides.right)
        if self.transposed:
            made = [
                (size - 1) * step - ring + far + extra + 1
                for size, step, ring, far, extra in zip(
                    self.size, self.stride, rings, reach, self.output_padding, strict=True
                )
            ]
        else:
            made = [
                (size + ring - far - 1) // step + 1
                for size, step, ring, far in zip(self.size, self.stride, rings, reach, strict=True)
            ]
        return made[0], made[1]

    def result(self, image: Array, weights: Array) -> Array:
        """float64 [N, OH, OW, O] without bias and activation."""
        image = image.reshape(self.batch, *self.size, self.channels[0])
        replicate = "Replicate" in self.config.get("padding_mode", "")
        if not self.transposed:
            kernels = weights.reshape(weights.shape[0], weights.shape[1], *self.kernel)
            framed_image = framed(image, self.sides, replicate=replicate)
            return convolved(framed_image, kernels, self.stride, self.dilation, self.groups)
        spread = zeros_between(image, self.stride)
        reach = [apart * (taps - 1) for apart, taps in zip(self.dilation, self.kernel, strict=True)]
        extra = self.output_padding
        around = Sides(
            reach[0] - self.sides.top,
            reach[0] - self.sides.bottom + extra[0],
            reach[1] - self.sides.left,
            reach[1] - self.sides.right + extra[1],
        )
        first, per_group = weights.shape[:2]
        parted = weights.reshape(self.groups, first // self.groups, per_group, *self.kernel).swapaxes(1, 2)
        kernels = parted.reshape(-1, first // self.groups, *self.kernel)
        kernels = kernels[:, :, ::-1, ::-1] if self.mirrored else kernels
        return convolved(framed(spread, around, replicate=replicate), kernels, (1, 1), self.dilation, self.groups)

    def expected(self, image: Array, input_dtype: str, weights: Array, bias: Array | None) -> Expected:
        """What the call must give."""
        values, terms = self.result(image, weights), self.result(np.abs(image), np.abs(weights))
        squares = self.result(image**2, weights**2)
        weights_error = 0.5 * regrouped(weights, self.weights_dtype) if self.weights_dtype in BLOCKS else 0.0
        image_error = regrouped(image, self.out) if self.out in BLOCKS and input_dtype != self.out else 0.0
        spoiled = np.sqrt(self.result(np.full(image.shape, image_error**2), weights**2))
        spoiled = spoiled + np.sqrt(self.result(image**2, np.full(weights.shape, weights_error**2)))
        if bias is not None:
            values, terms, squares = values + bias.ravel(), terms + np.abs(bias).ravel(), squares + bias.ravel() ** 2
        flat = (1, 1, -1, self.channels[1])
        low = "LoFi" in self.rest.get("compute_config", "") or self.weights_dtype in BLOCKS
        values, terms, squares = values.reshape(flat), terms.reshape(flat), squares.reshape(flat)
        error = sum_error(values, terms, squares, self.depth, self.out, low_fidelity=low)
        error = error + 4 * spoiled.reshape(flat)
        if bias is not None:
            error = error + regrouped(bias, self.weights_dtype) + np.abs(bias).ravel() * 2.0**-7
        limit = norm(input_dtype, self.out, self.weights_dtype, low_fidelity=low)
        if self.activation in FUNCTIONS:
            plain = values
            with np.errstate(all="ignore"):
                values = np.asarray(FUNCTIONS[self.activation](plain), np.float64)
                error = 1.2 * error + function_error(self.activation, values, plain, self.out)
            steep = self.activation in ("exp", "square", "sqrt", "log")
            error = np.full(error.shape, np.inf) if steep else error
        elif self.activation:
            error = np.full(error.shape, np.inf)
        return Expected(
            values=np.nan_to_num(values),
            bound=error,
            dtypes=(self.out,),
            norm=None if self.activation not in ("", "relu") else limit,
        )

    def arguments(self) -> str:
        """Keyword arguments as text, but for the operands."""
        sizes = {"in_channels": self.channels[0], "out_channels": self.channels[1], "batch_size": self.batch}
        pairs: dict[str, object]
        if self.function == "conv1d":
            pairs = {"input_length": self.size[1], "kernel_size": self.kernel[1], "stride": self.stride[1]}
            pairs |= {"padding": self.sides.left, "dilation": self.dilation[1]}
        else:
            padding = (self.sides.top, self.sides.left)
            whole = self.sides if (self.sides.bottom, self.sides.right) != padding else padding
            pairs = {"input_height": self.size[0], "input_width": self.size[1], "kernel_size": self.kernel}
            pairs |= {"stride": self.stride, "padding": tuple(whole), "dilation": self.dilation}
        if self.transposed:
            pairs |= {"output_padding": self.output_padding, "mirror_kernel": self.mirrored}
        parts = {name: str(number) for name, number in (sizes | pairs | {"groups": self.groups}).items()}
        parts |= self.rest
        if self.config:
            kind = "Conv1dConfig" if self.function == "conv1d" and "shard_layout" in self.config else "Conv2dConfig"
            fields = ", ".join(f"{name}={text}" for name, text in self.config.items())
            parts["conv_config"] = f"ttsim.{kind}({fields})"
        return named(**parts)


def drawn(function: str, draft: Draft, source: Shadow) -> Convolution | None:
    """A convolution of a tensor; None if the tensor is no image."""
    choices = draft.choices
    sides = source.shape
    if len(sides) == 4 and sides[:2] != (1, 1):
        batch, height, width, channels = sides
    else:  # rows of any images, in two to five axes
        *most, channels = sides
        rows = int(np.prod(most))
        batch = choices.pick([number for number in (1, 2, 3) if rows % number == 0])
        heights = [side for side in range(1, rows // batch + 1) if rows // batch % side == 0]
        height = choices.pick(heights)
        width = rows // batch // height
    if function == "conv1d":
        height, width = 1, height * width
    transposed = function == "conv_transpose2d"
    kernel = (choices.between(1, 4), choices.between(1, 4))
    stride = (choices.between(1, 3), choices.between(1, 3))
    dilation = (1, 1) if choices.chance(0.85) else (choices.between(1, 3), choices.between(1, 3))
    if choices.chance(0.04):  # large windows
        kernel, stride = (choices.between(1, 9), choices.between(1, 9)), (choices.between(1, 7), choices.between(1, 7))
    if function == "conv1d":
        kernel, stride, dilation = (1, kernel[1]), (1, stride[1]), (1, dilation[1])
    reach = [apart * (taps - 1) for apart, taps in zip(dilation, kernel, strict=True)]
    rings = [choices.between(0, min(far, 4)) if choices.chance(0.6) else 0 for far in reach for _ in range(2)]
    if choices.chance(0.8):
        rings[1], rings[3] = rings[0], rings[2]
    padding = Sides(*rings)
    if function == "conv1d":
        padding = Sides(0, 0, rings[2], rings[2])
    extra = (0, 0)
    if transposed and choices.chance(0.25):
        extra = (choices.below(stride[0]), choices.below(stride[1]))
    out_channels = choices.pick(CHANNELS)
    groups = 1
    if choices.chance(0.2):
        out_channels = choices.pick((channels, out_channels, 2 * channels))
        groups = choices.pick([n for n in range(1, channels + 1) if channels % n == 0 and out_channels % n == 0])
    made = Convolution(
        function=function,
        batch=batch,
        size=(height, width),
        channels=(channels, out_channels),
        kernel=kernel,
        stride=stride,
        sides=padding,
        dilation=dilation,
        output_padding=extra,
        groups=groups,
        bias=choices.chance(0.4),
    )
    high, wide = made.output_size
    if high < 1 or wide < 1 or batch * high * wide * made.depth * out_channels > MOST_PRODUCTS:
        return None
    return made


def configured(draft: Draft, made: Convolution, source: Shadow) -> Convolution:
    """The convolution with configs, most of them ordinary."""
    choices = draft.choices
    config: dict[str, str] = {}
    rest: dict[str, str] = {}
    held = "bfloat16" if source.dtype != "float32" else choices.pick(("float32", "bfloat16"))
    if choices.chance(0.4):
        kept = choices.pick(("bfloat16", "float32", "bfloat8_b", "bfloat4_b"))
        config["weights_dtype"] = f"ttsim.{kept}"
        held = kept
    if choices.chance(0.4):
        config["shard_layout"] = f"ttsim.TensorMemoryLayout.{choices.pick(KINDS)}_SHARDED"
    if choices.chance(0.2):
        config["act_block_h_override"] = str(32 * choices.pick((1, 2, 3, 5, 16)))
    out = source.dtype
    if choices.chance(0.25):
        out = choices.pick(("bfloat16", "float32", "bfloat8_b"))
        rest["dtype"] = f"ttsim.{out}"
    if choices.chance(0.25):
        config["output_layout"] = "ttsim.ROW_MAJOR_LAYOUT"
    for name in choices.some(FLAGS, 0.07):
        config[name] = "True" if choices.chance(0.8) else "False"
    if choices.chance(0.1):
        config["reallocate_halo_output"] = "False"
    if choices.chance(0.1):
        config["act_block_w_div"] = str(choices.pick((2, 1, 3, 4, 8)))
    if choices.chance(0.1):
        config["core_grid"] = f"cores({', '.join(map(str, rectangles(draft)))})"
        config["override_sharding_config"] = "True" if choices.chance(0.9) else "False"
    if choices.chance(0.05):
        config["padding_mode"] = f'"{choices.pick(("Replicate", "Zeros"))}"'
    activation = ""
    if choices.chance(0.2):
        activation = choices.pick(("relu", "relu", "relu", "silu", "gelu", "sigmoid", "tanh", "leaky_relu"))
    elif choices.chance(0.04):
        activation = choices.pick(RARE_ACTIVATIONS)
    if activation:
        parameters = "".join(f", {number}" for number in PARAMETERS.get(activation, ()))
        config["activation"] = f"ttsim.UnaryWithParam(ttsim.UnaryOpType.{activation.upper()}{parameters})"
    text = compute_config(draft)
    if text:
        rest["compute_config"] = text
    if choices.chance(0.15):
        side = (1, 1, made.batch * made.output_size[0] * made.output_size[1], made.channels[1])
        tiled = "output_layout" not in config
        rest["memory_config"] = (
            choices.pick(UNSPECIFIED) if choices.chance(0.3) else place(draft, side, tiled=tiled, sharded=0.5)
        )
    if choices.chance(0.3):
        kind = choices.pick(("Conv2dDRAMSliceHeight", "Conv2dDRAMSliceWidth", "Conv2dL1Full"))
        count = choices.pick(("", ", num_slices=2", ", num_slices=0", ", num_slices=3", ", num_slices=5"))
        name = "dram_slice_config" if made.transposed else "slice_config"
        rest[name] = f"ttsim.Conv2dSliceConfig(slice_type=ttsim.{kind}{count})"
    return replace(
        made,
        config=config,
        rest=rest,
        out=out,
        weights_dtype=held,
        activation=activation,
        mirrored=not made.transposed or choices.chance(0.7),
    )


def raw_weights(draft: Draft, made: Convolution) -> tuple[Operand, Operand | None, str]:
    """Weights and bias, rarely odd ones, and why they are impossible if they are."""
    choices = draft.choices
    dtype = choices.pick(("bfloat16", "bfloat16", "float32"))
    shape, layout, where, problem = made.weights_shape, "ROW_MAJOR", None, ""
    if choices.chance(0.05):
        form = choices.below(5)
        if form == 0:
            layout = "TILE"
        elif form == 1:
            where, layout = DRAM, choices.pick(("ROW_MAJOR", "TILE"))
        elif form == 2:
            layout, dtype = "TILE", choices.pick(BLOCKS)
        elif form == 3:
            other = choices.pick((shape[::-1], (shape[0] + 1, *shape[1:]), shape[1:], (1, *shape)))
            problem = "weights of another shape" if other != shape else ""
            shape = other
        else:
            dtype = choices.pick(INTEGERS)
            problem = "weights of integers"
    weights = operand(draft, "w", shape, dtype, layout=layout, where=where)
    bias = None
    if made.bias:
        columns = made.channels[1]
        row: tuple[int, ...] = (1, 1, 1, columns)
        held, layout, where = ("bfloat16" if dtype in INTEGERS else dtype), "ROW_MAJOR", None
        if choices.chance(0.08):
            form = choices.below(4)
            if form == 0:
                held = choices.pick(("float32", "bfloat16", "bfloat8_b"))
                layout = "TILE" if held in BLOCKS else layout
            elif form == 1:
                row = choices.pick(
                    ((columns,), (1, columns), (1, 1, columns), (1, 1, 1, columns + 1), (1, 1, 32, columns))
                )
                problem = problem or ("a bias of another size" if int(np.prod(row)) != columns else "")
            elif form == 2:
                layout = "TILE"
            else:
                layout, where = choices.pick(("ROW_MAJOR", "TILE")), DRAM
        layout = "TILE" if held in BLOCKS else layout
        bias = operand(draft, "b", row, held, layout=layout, where=where)
    return weights, bias, problem


def convolution(function: str, draft: Draft) -> Step | None:
    """A convolution of a live tensor, perhaps with weights that are prepared by a function or by the call."""
    choices = draft.choices
    integers = choices.chance(0.02)
    source = draft.tensor(lambda one: (len(one.shape) == 4 or choices.chance(0.05)) and one.is_float != integers)
    if source is None:
        return None
    plain = drawn(function, draft, source)
    if plain is None:
        return None
    made = configured(draft, plain, source)
    weights, bias, problem = raw_weights(draft, made)
    problem = "an input of integers" if integers else problem
    if weights.dtype == "float32" and "weights_dtype" not in made.config:
        made = replace(made, weights_dtype="float32")
    elif "weights_dtype" not in made.config:
        made = replace(made, weights_dtype=weights.dtype)
    returned = choices.pick(("", "size", "weights", "both")) if choices.chance(0.4) else ""
    results: dict[str, Callable[[], Expected]] = {}
    if bias is not None:
        results[bias.name] = bias.result
    results[weights.name] = weights.result
    text = weights.text + (bias.text if bias is not None else "")
    used_weights, used_bias, opaque = weights.name, bias.name if bias is not None else "", []
    if choices.chance(0.12) and function != "conv1d" and not problem:
        prepared = prepared_by_function(draft, made, source, weights.name, used_bias)
        text += prepared
        used_weights = f"{draft.name}p"
        opaque = [used_weights]
        if used_bias:
            used_bias = f"{draft.name}q"
            opaque.append(used_bias)
    text += f"{_names(draft.name, returned, bias=bias is not None)} = "
    text += call_text(made, source.name, used_weights, used_bias, returned)
    if returned in ("weights", "both"):
        opaque += [f"{draft.name}v", f"{draft.name}c"][: 1 + (bias is not None)]
    if problem:
        return Step(text=text, results=results, contradictory=problem, frees=_freed(draft, made, source))
    results[draft.name] = lambda: made.expected(
        source.values, source.dtype, weights.values, None if bias is None else bias.values
    )
    facts: dict[str, object] = {}
    if returned in ("size", "both"):
        size: object = made.output_size[1] if function == "conv1d" else list(made.output_size)
        facts = {f"{draft.name}s": size}
    for name in opaque:
        results[name] = Expected
    if returned in ("weights", "both") and not made.activation:
        draft.state.prepared[f"{draft.name}v"] = Prepared(
            made, weights.values, bias.values if bias else None, draft.name
        )
    return Step(text=text, results=results, facts=facts, opaque=tuple(opaque), frees=_freed(draft, made, source))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that returned the weights that it prepared."""

    call: Convolution
    weights: Array
    bias: Array | None
    name: str


def again(draft: Draft) -> Step | None:
    """A convolution with weights that an earlier call prepared, which may be another one in a few arguments."""
    choices, prepared = draft.choices, draft.state.prepared
    weights = draft.shadow(lambda one: one.name in prepared)
    if weights is None:
        return None
    first: Prepared = prepared[weights.name]
    bias = f"{first.name}c" if first.bias is not None else ""
    if bias and bias not in draft.state.shadows:
        return None
    made = first.call
    if choices.chance(0.25):
        made = replace(made, size=(made.size[0] + (made.function != "conv1d"), made.size[1] + 1))
    if choices.chance(0.15):
        made = replace(made, batch=made.batch % 3 + 1)
    if choices.chance(0.15):
        made = replace(made, config=made.config | {"act_block_h_override": "32"})
    if choices.chance(0.15):
        shards = f"ttsim.TensorMemoryLayout.{choices.pick(KINDS)}_SHARDED"
        made = replace(made, config=made.config | {"shard_layout": shards})
    if choices.chance(0.1):
        other = choices.pick(("bfloat16", "float32", "bfloat8_b"))
        made = replace(made, config=made.config | {"weights_dtype": f"ttsim.{other}"})
    made = replace(made, rest={name: text for name, text in made.rest.items() if name != "memory_config"})
    high, wide = made.output_size
    if high < 1 or wide < 1:
        return None
    rows = made.batch * made.size[0] * made.size[1]
    dtype, layout = choices.pick((("bfloat16", "ROW_MAJOR"), ("bfloat16", "TILE"), ("float32", "TILE")))
    if "dtype" not in made.rest:
        made = replace(made, out=dtype)
    image = operand(draft, "a", (1, 1, rows, made.channels[0]), dtype, layout=layout, where=DRAM)
    text = f"{image.text}{draft.name} = {call_text(made, image.name, weights.name, bias, '')}"
    freed = (image.name,) if made.config.get("deallocate_activation") == "True" else ()
    return Step(
        text=text,
        results={
            image.name: image.result,
            draft.name: lambda: made.expected(image.values, dtype, first.weights, first.bias),
        },
        frees=freed,
    )


def prepared_by_function(draft: Draft, made: Convolution, source: Shadow, weights: str, bias: str) -> str:
    """Lines that prepare weights and bias by the library's functions, as `p` and `q`."""
    kind = "conv_transpose2d" if made.transposed else "conv"
    rest = {name: text for name, text in made.rest.items() if name not in ("memory_config", "dtype")}
    how = replace(made, rest=rest).arguments()
    how += f", input_memory_config={source.name}.memory_config(), input_layout={source.name}.layout"
    how += f", input_dtype={source.name}.dtype, device=device"
    how += f", output_dtype={made.rest['dtype']}" if "dtype" in made.rest else ""
    order = "IOHW" if made.transposed else "OIHW"
    for_weights = f'weight_tensor={weights}, weights_format="{order}", has_bias={bool(bias)}{how}'
    lines = f"{draft.name}p = ttsim.prepare_{kind}_weights({for_weights})\n"
    if bias:
        for_bias = how.replace(f", mirror_kernel={made.mirrored}", "").replace(
            f", output_padding={made.output_padding}", ""
        )
        lines += f"{draft.name}q = ttsim.prepare_{kind}_bias(bias_tensor={bias}{for_bias})\n"
    return lines


def call_text(made: Convolution, source: str, weights: str, bias: str, returned: str) -> str:
    """The call as text."""
    how = f"input_tensor={source}, weight_tensor={weights}, device=device" + named(bias_tensor=bias)
    how += made.arguments()
    how += ", return_output_dim=True" if returned in ("size", "both") else ""
    how += ", return_weights_and_bias=True" if returned in ("weights", "both") else ""
    return f"ttsim.{made.function}({how})"


def _names(name: str, returned: str, *, bias: bool) -> str:
    """What the call's results are called."""
    pair = f"({name}v, {name}c)" if bias else f"({name}v, _)"
    return {"": name, "size": f"{name}, {name}s", "weights": f"{name}, {pair}", "both": f"{name}, {name}s, {pair}"}[
        returned
    ]


def _freed(draft: Draft, made: Convolution, source: Shadow) -> tuple[str, ...]:
    if made.config.get("deallocate_activation") != "True":
        return ()
    return tuple(shadow.name for shadow in draft.state.sharing(source.name))


CONVOLUTIONS: Final = MappingProxyType(
    {name: partial(convolution, name) for name in ("conv_transpose2d", "conv2d", "conv1d")}
)
