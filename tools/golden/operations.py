"""Random calls of the operations that networks have around their convolutions."""

from typing import Final

from tools.golden.drawing import LAYOUTS, Arguments, Draw

UNARY: Final = (
    *("abs", "exp", "gelu", "hardsigmoid", "hardswish", "log", "neg", "relu", "relu6", "sigmoid"),
    *("sigmoid_accurate", "silu", "sqrt", "square", "tanh", "elu", "leaky_relu"),
)
BINARY: Final = ("add", "sub", "subtract", "mul", "multiply", "add_", "sub_", "subtract_", "mul_", "multiply_")
LIKE: Final = ("zeros_like", "ones_like", "empty_like", "full_like")


def unary(draw: Draw) -> str:
    """A function of each element."""
    function, shape = draw.pick(UNARY), draw.shape()
    arguments = {"_x": draw.tensor("x", shape), **to(draw, shape)}
    if function in ("elu", "leaky_relu"):
        name = {"elu": "alpha", "leaky_relu": "negative_slope"}[function]
        arguments |= draw.maybe(0.9, name, "0.5", "0.01", "1.0")
    if function == "gelu":
        arguments |= draw.maybe(0.4, "fast_and_approximate_mode", "True", "False")
    if draw.chance(0.08):
        arguments["output_tensor"] = draw.tensor("z", shape)
    return draw.call(function, arguments)


def binary(draw: Draw) -> str:
    """Two tensors, with broadcasts and activations, or a tensor and a number."""
    function, shape = draw.pick(BINARY), draw.shape()
    dtype = draw.dtype()
    other = [size if draw.chance(0.8) else 1 for size in shape] if draw.chance(0.4) else shape
    arguments = {"_x": draw.tensor("x", shape, dtype=dtype)}
    arguments["_z"] = (
        draw.pick(("2", "0.5", "-1.0"))
        if draw.chance(0.12)
        else draw.tensor("z", other, dtype=dtype if draw.chance(0.8) else None)
    )
    relu = "[ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU)]"
    if not function.endswith("_"):
        arguments |= to(draw, shape) | draw.maybe(0.12, "dtype", "ttnn.bfloat16", "ttnn.float32", "ttnn.bfloat8_b")
    arguments |= draw.maybe(0.1, "activations", relu) | draw.maybe(0.05, "input_tensor_a_activations", relu)
    return draw.call(function, arguments)


def to(draw: Draw, shape: list[int], share: float = 0.3) -> Arguments:
    """A memory config in this share of cases."""
    return {"memory_config": draw.memory(shape, sharded=0.4)} if draw.chance(share) else {}


def matrices(draw: Draw, function: str) -> str:
    """Matmul or linear."""
    rows, depth, columns = draw.side(), draw.side(), draw.side()
    batches = [draw.pick((1, 1, 1, 2)), draw.pick((1, 1, 1, 3))]
    more = batches if draw.chance(0.3) else [1, 1]
    left, right = [depth, rows], [columns, depth]
    turned = [draw.chance(0.08), draw.chance(0.15)]
    shapes = [side if turn else side[::-1] for side, turn in zip((left, right), turned, strict=True)]
    layout = "TILE_LAYOUT" if draw.chance(0.95) else None
    arguments = {
        "_a": draw.tensor("a", [*batches, *shapes[0]], layout=layout, memory=draw.memory(shapes[0], sharded=0.12)),
        "_b": draw.tensor("b", [*more, *shapes[1]], layout=layout, memory=draw.memory(shapes[1], sharded=0.08)),
    }
    arguments |= {name: "True" for name, turn in zip(("transpose_a", "transpose_b"), turned, strict=True) if turn}
    if function == "linear" and draw.chance(0.7):
        arguments["bias"] = draw.tensor("c", [1, 1, 1, columns], layout="TILE_LAYOUT", memory="ttnn.DRAM_MEMORY_CONFIG")
    sharded = tuple(f"ttnn.L1_{one}_SHARDED_MEMORY_CONFIG" for one in ("HEIGHT", "WIDTH", "BLOCK"))
    arguments |= draw.maybe(0.35, "memory_config", "ttnn.L1_MEMORY_CONFIG", "ttnn.DRAM_MEMORY_CONFIG", *sharded)
    arguments |= draw.maybe(0.2, "dtype", "ttnn.bfloat16", "ttnn.float32", "ttnn.bfloat8_b")
    arguments |= draw.maybe(0.2, "activation", "'relu'", "'gelu'", "'silu'")
    arguments |= draw.maybe(0.04, "core_grid", "ttnn.CoreGrid(x=4, y=4)", "ttnn.CoreGrid(x=8, y=7)")
    return draw.call(function, arguments | draw.compute("compute_kernel_config"))


def max_pool2d(draw: Draw) -> str:
    """A pool of windows."""
    sides = (4, 7, 8, 12) if draw.small else (4, 7, 8, 14, 16, 28, 32, 56, 112)
    batch, height, width = draw.pick((1, 1, 1, 2, 4)), draw.pick(sides), draw.pick(sides)
    channels = draw.pick((3, 8, 16, 32) if draw.small else (3, 8, 16, 32, 40, 64, 96, 128, 256))
    kernel = draw.pick(((2, 2), (2, 2), (3, 3), (3, 2), (5, 5), (7, 7), (1, 1)))
    padding = tuple(draw.number(0, taps // 2) for taps in kernel) if draw.chance(0.5) else (0, 0)
    shape = [1, 1, batch * height * width, channels]
    arguments = {"input_tensor": draw.tensor("x", shape, layout=draw.pick(LAYOUTS))}
    arguments |= {"batch_size": f"{batch}", "input_h": f"{height}", "input_w": f"{width}", "channels": f"{channels}"}
    arguments |= {
        "kernel_size": f"{kernel}",
        "stride": f"{draw.pick(((2, 2), (1, 1), kernel))}",
        "padding": f"{padding}",
    }
    arguments |= {"dilation": "(1, 1)" if draw.chance(0.85) else "(2, 2)"} | draw.maybe(0.3, "ceil_mode", "True")
    schemes = tuple(f"ttnn.TensorMemoryLayout.{one}_SHARDED" for one in ("HEIGHT", "BLOCK", "WIDTH"))
    arguments |= draw.maybe(0.35, "applied_shard_scheme", *schemes) | draw.maybe(0.12, "deallocate_input", "True")
    arguments |= draw.maybe(0.1, "dtype", "ttnn.bfloat16", "ttnn.bfloat8_b") | draw.maybe(
        0.06, "return_indices", "True"
    )
    arguments |= draw.maybe(0.1, "output_layout", *(f"ttnn.{one}" for one in LAYOUTS))
    arguments |= draw.maybe(0.2, "memory_config", "ttnn.DRAM_MEMORY_CONFIG", "ttnn.L1_MEMORY_CONFIG")
    return draw.call("max_pool2d", arguments)


def upsample(draw: Draw) -> str:
    """Nearest, or refused."""
    sides, channels = (4, 7, 8, 16, 28, 32), (3, 8, 16, 32, 40, 64, 128)
    shape = [draw.pick((1, 1, 2)), draw.pick(sides), draw.pick(sides), draw.pick(channels)]
    scale = draw.pick(("2", "2", "3", "4", "[2, 2]", "[2, 3]", "(1, 2)", "1.5"))
    arguments = {"_x": draw.tensor("x", shape, layout=draw.pick((*LAYOUTS, "ROW_MAJOR_LAYOUT"))), "_scale": scale}
    return draw.call("upsample", arguments | draw.maybe(0.4, "mode", "'nearest'", "'bilinear'") | to(draw, shape, 0.15))


def fold(draw: Draw) -> str:
    """Windows into channels."""
    stride = draw.pick(((2, 2), (2, 2), (4, 4), (1, 2), (3, 3)))
    shape = [draw.pick((1, 2)), *(side * draw.number(1, 24) for side in stride), draw.pick((3, 4, 8, 16, 32))]
    x = draw.tensor("x", shape, layout=draw.pick((*LAYOUTS, "ROW_MAJOR_LAYOUT")))
    return draw.call("fold", {"_x": x, "_down": f"{stride[0]}", "_across": f"{stride[1]}"})


def concat(draw: Draw) -> str:
    """Two or three tensors along a dimension."""
    shape, dtype = draw.shape(), draw.dtype()
    dim, layout, names = draw.number(0, len(shape) - 1), draw.pick(LAYOUTS), ("x", "z", "v")[: draw.number(2, 3)]
    for name in names:
        sides = [draw.side() if index == dim else size for index, size in enumerate(shape)]
        memory = draw.memory(sides, sharded=0.06, tiled=layout == "TILE_LAYOUT")
        draw.tensor(name, sides, dtype=dtype, layout=layout if draw.chance(0.95) else None, memory=memory)
    dims = f"{dim - len(shape) if draw.chance(0.4) else dim}"
    return draw.call("concat", {"_list": f"[{', '.join(names)}]", "dim": dims, **to(draw, shape)})


def pad(draw: Draw) -> str:
    """Zeros or another number around a tensor."""
    shape = draw.shape()
    front = draw.chance(0.15)
    sides = [(draw.number(0, 8) if front else 0, 32 * draw.number(0, 2)) for _ in shape[-2:]]
    padding = f"[{', '.join(str(side) for side in [(0, 0)] * (len(shape) - 2) + sides)}]"
    value = draw.pick(("0.0", "0.0", "1.0", "-3.5"))
    return draw.call("pad", {"_x": draw.tensor("x", shape), "_padding": padding, "value": value, **to(draw, shape)})


def permute(draw: Draw) -> str:
    """Dimensions in another order."""
    shape = draw.shape()
    order = [int(dim) for dim in draw.rng.permutation(len(shape))]
    return draw.call("permute", {"_x": draw.tensor("x", shape), "_dims": f"{tuple(order)}", **to(draw, shape, 0.15)})


def transpose(draw: Draw) -> str:
    """Two dimensions exchanged."""
    shape = draw.shape()
    dims = {"_first": f"{draw.number(-2, 1)}", "_second": f"{draw.pick((-1, -2, 2, 1))}"}
    return draw.call("transpose", {"_x": draw.tensor("x", shape), **dims, **to(draw, shape, 0.15)})


def reshape(draw: Draw) -> str:
    """The same elements in another shape; squeeze and unsqueeze, too."""
    shape = draw.shape()
    x = draw.tensor("x", shape)
    function = draw.pick(("reshape", "reshape", "reshape", "squeeze", "unsqueeze", "unsqueeze_to_4D"))
    if function == "unsqueeze_to_4D":
        return draw.call(function, {"_x": x})
    if function != "reshape":
        return draw.call(function, {"_x": x, "_dim": f"{draw.number(-2, 2)}"})
    rows, columns = shape[-2:]
    choices = [[*shape[:-2], columns, rows], [1, 1, -1, columns], [1, rows, -1, columns], [-1]]
    if rows % 2 == 0:
        choices.append([*shape[:-2], rows // 2, columns * 2])
    return draw.call("reshape", {"_x": x, "_shape": f"{draw.pick(choices)}", **to(draw, shape, 0.15)})


def cut(draw: Draw) -> str:
    """A slice, with steps now and then."""
    shape = draw.shape()
    starts = [32 * draw.number(0, (size - 1) // 32) if draw.chance(0.3) else 0 for size in shape]
    ends = [
        draw.number(begin + 1, size) if draw.chance(0.5) else size for begin, size in zip(starts, shape, strict=True)
    ]
    steps = [2 if draw.chance(0.5) else 1 for _ in shape] if draw.chance(0.15) else [1] * len(shape)
    arguments = {"_x": draw.tensor("x", shape), "_starts": f"{starts}", "_ends": f"{ends}", "_steps": f"{steps}"}
    return draw.call("slice", arguments | to(draw, shape, 0.2))


def conversion(draw: Draw) -> str:
    """Another layout, memory, shards or data type."""
    shape = [1, 1, *(32 * draw.number(1, 12) for _ in range(2))] if draw.chance(0.6) else draw.shape()
    function = draw.pick(
        (
            *("to_layout", "to_memory_config", "to_memory_config", "reshard", "reshard", "interleaved_to_sharded"),
            *("interleaved_to_sharded", "sharded_to_interleaved", "sharded_to_interleaved", "typecast", "typecast"),
            *("to_dtype", "move", "reallocate", "from_device", "to_device", "experimental.convert_to_hwc"),
        )
    )
    sharded = function in ("reshard", "sharded_to_interleaved")
    x = draw.tensor(
        "x", shape, memory=draw.shards(shape) if sharded else None, host=0.5 if function == "to_dtype" else 0
    )
    arguments: Arguments = {"_x": x}
    if function == "to_layout":
        arguments |= {"_layout": f"ttnn.{draw.pick(LAYOUTS)}"} | to(draw, shape, 0.2)
        arguments |= draw.maybe(0.15, "dtype", "ttnn.bfloat16", "ttnn.bfloat8_b", "ttnn.float32")
    elif function in ("typecast", "to_dtype"):
        arguments |= {"_dtype": f"ttnn.{draw.dtype(rare=0.2)}"} | (
            to(draw, shape, 0.2) if function == "typecast" else {}
        )
    elif function == "to_memory_config":
        arguments |= {"_to": draw.memory(shape, sharded=0.6)} | draw.maybe(0.1, "dtype", "ttnn.bfloat8_b")
    elif function in ("reshard", "interleaved_to_sharded"):
        arguments |= {"_to": draw.shards(shape)}
    elif function in ("sharded_to_interleaved", "move", "reallocate"):
        arguments |= {"memory_config": draw.place()} if draw.chance(0.6) else {}
    elif function == "to_device":
        arguments |= {"_device": "device"} | to(draw, shape, 0.5)
    return draw.call(function, arguments)


def tiles(draw: Draw) -> str:
    """Into tiles and out of them."""
    shape = draw.shape()
    function = draw.pick(
        (
            *("tilize", "tilize_with_val_padding", "tilize_with_zero_padding"),
            *("untilize", "untilize", "untilize_with_unpadding"),
        )
    )
    if function in ("tilize", "untilize") and draw.chance(0.8):
        shape[-2:] = [32 * draw.number(1, 12), 32 * draw.number(1, 12)]
    layout = "ROW_MAJOR_LAYOUT" if function.startswith("tilize") else "TILE_LAYOUT"
    arguments = {"_x": draw.tensor("x", shape, layout=layout if draw.chance(0.95) else None)}
    whole = [*shape[:-2], *(-(-size // 32) * 32 for size in shape[-2:])]
    if function == "tilize_with_val_padding":
        arguments |= {"_shape": f"{whole}", "_value": draw.pick(("0.0", "1.5"))}
    if function == "untilize_with_unpadding":
        arguments |= {"_end": f"{[size - 1 for size in shape]}"}
    if function.startswith("tilize"):
        arguments |= draw.maybe(0.15, "dtype", "ttnn.bfloat16", "ttnn.bfloat8_b")
    return draw.call(function, arguments | to(draw, whole) | draw.maybe(0.15, "use_multicore", "True", "False"))


def creation(draw: Draw) -> str:
    """New tensors."""
    function, shape = draw.pick(("zeros", "ones", "empty", "full", "arange", "rand", *LIKE)), draw.shape()
    placed = to(draw, shape) | draw.maybe(0.5, "layout", *(f"ttnn.{one}" for one in LAYOUTS))
    if function in LIKE:
        value = {"_value": "1.5"} if function == "full_like" else {}
        return draw.call(function, {"_x": draw.tensor("x", shape), **value, **draw.maybe(0.3, "dtype", "ttnn.float32")})
    if function == "arange":
        ends = {"_start": "0", "_end": f"{draw.number(1, 2000)}", "_step": draw.pick(("1", "1", "2"))}
        return draw.call(
            function, {**ends, "device": "device", **draw.maybe(0.5, "dtype", "ttnn.float32", "ttnn.int32")}
        )
    arguments = {"_shape": f"{shape}", **({"_value": "2.5"} if function == "full" else {}), "device": "device"}
    arguments |= (
        {"dtype": f"ttnn.{draw.dtype()}"} | placed | (draw.maybe(0.5, "seed", "7") if function == "rand" else {})
    )
    return draw.call(function, arguments)
