"""Random convolutions, and what prepares or asks about them."""

from typing import Final

from tools.golden.drawing import Arguments, Draw

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
