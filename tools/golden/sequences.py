"""Random sequences of calls on one device: chains of a network, repeated calls, traces; and oneDNN's calls."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from tools.golden import drawing, operations
from tools.golden.calls import DEVICES, Call
from tools.golden.drawing import Arguments, Draw

LINKS: Final = (
    "conv_transpose2d",
    "conv2d",
    "conv2d",
    "relu",
    "add",
    "concat",
    "max_pool2d",
    "to_memory_config",
    "permute",
)


def network(draw: Draw) -> str:
    """A chain of calls, each on the result of the one before; some results are freed on the way."""
    height, width = draw.pick((8, 16, 24, 32)), draw.pick((8, 16, 24, 32))
    channels = draw.pick((16, 32, 64))
    draw.tensor("y", [1, 1, height * width, channels], dtype="bfloat16", memory=draw.place(), host=0)
    lines = []
    for index in range(draw.number(2, 6)):
        link, size = draw.pick(LINKS), f"{height * width}"
        lines.append(f"x{index} = y")
        if link.startswith("conv"):
            transposed = link == "conv_transpose2d" and height * width <= 4096
            outputs = draw.pick((16, 32, 64))
            first, second = (channels, outputs) if transposed else (outputs, channels)
            taps = 2 if transposed else 3
            draw.given.append(
                f"w{index} = ttnn.Tensor(normal({index}, ({first}, {second}, {taps}, {taps})), ttnn.bfloat16)"
            )
            lines.append(_link(draw, f"w{index}", transposed, channels, outputs, height, width))
            height, width, channels = height * (1 + transposed), width * (1 + transposed), outputs
        elif link == "concat" and channels <= 64:
            lines.append("y = ttnn.concat([y, y], dim=3, memory_config=ttnn.DRAM_MEMORY_CONFIG)")
            channels *= 2
        elif link == "max_pool2d" and height % 2 == width % 2 == 0:
            window = f"batch_size=1, input_h={height}, input_w={width}, channels={channels}"
            lines.append(f"y = ttnn.max_pool2d(y, {window}, kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))")
            height, width = height // 2, width // 2
        elif link == "to_memory_config":
            lines.append(f"y = ttnn.to_memory_config(y, {draw.memory([1, 1, height * width, channels])})")
        elif link == "permute":
            lines.append("y = ttnn.permute(ttnn.permute(y, (0, 1, 3, 2)), (0, 1, 3, 2))")
        else:
            lines.append(f"y = ttnn.{'add(y, y)' if link == 'add' else 'relu(y)'}  # of {size} rows")
        if draw.chance(0.4):
            lines.append(f"ttnn.deallocate(x{index})")
    return "\n".join(lines)


def _link(draw: Draw, weights: str, transposed: bool, channels: int, outputs: int, height: int, width: int) -> str:
    fields = {
        **draw.maybe(0.4, "shard_layout", *(f"ttnn.TensorMemoryLayout.{one}_SHARDED" for one in ("HEIGHT", "BLOCK"))),
        **draw.maybe(0.3, "deallocate_activation", "True"),
        **draw.maybe(0.3, "weights_dtype", "ttnn.bfloat8_b"),
    }
    arguments: Arguments = {"input_tensor": "y", "weight_tensor": weights, "device": "device"}
    arguments |= {"in_channels": f"{channels}", "out_channels": f"{outputs}", "batch_size": "1"}
    arguments |= {"input_height": f"{height}", "input_width": f"{width}"}
    more = (
        {"kernel_size": "(2, 2)", "stride": "(2, 2)"} if transposed else {"kernel_size": "(3, 3)", "padding": "(1, 1)"}
    )
    text = ", ".join(f"{name}={value}" for name, value in fields.items())
    arguments |= more | ({"conv_config": f"ttnn.Conv2dConfig({text})"} if fields else {})
    return draw.call("conv_transpose2d" if transposed else "conv2d", arguments, odd=0)


def repeated(draw: Draw) -> str:
    """The same call again and again, so that programs come from the cache, with less of the L1 free in between."""
    shape = [1, 1, 32 * draw.number(1, 16), 32 * draw.number(1, 8)]
    x = draw.tensor("x", shape, host=0)
    call = draw.pick(
        (
            f"ttnn.relu({x})",
            f"ttnn.add({x}, {x})",
            f"ttnn.to_memory_config({x}, {draw.shards(shape)})",
            f"ttnn.permute({x}, (0, 1, 3, 2))",
            f"ttnn.concat([{x}, {x}], dim=2)",
            f"ttnn.to_layout({x}, ttnn.ROW_MAJOR_LAYOUT)",
        )
    )
    lines = []
    for index in range(draw.number(2, 4)):
        lines.append(f"y{index} = {call}")
        if draw.chance(0.5):
            rows = 32 * draw.number(4, 24)
            cores = "ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, 0))])"
            shards = "ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, "
            shards += f"ttnn.ShardSpec({cores}, [{rows}, 512], ttnn.ShardOrientation.ROW_MAJOR))"
            draw.given.append(f"f{index} = ttnn.Tensor(normal(0, (1, 1, {rows}, 512)), ttnn.bfloat16)")
            draw.given[-1] = draw.given[-1].removesuffix(")") + ", layout=ttnn.TILE_LAYOUT)"
            lines.append(f"f{index} = f{index}.to(device, {shards})")
        if draw.chance(0.5):
            lines.append(f"del y{index}")
    return "\n".join([*lines, f"y = {call}"])


def trace(draw: Draw) -> str:
    """A captured trace that is executed twice."""
    x = draw.tensor("x", [1, 1, 64, 64], dtype="bfloat16", layout="TILE_LAYOUT", host=0, memory=draw.place())
    body = draw.pick((f"ttnn.relu({x})", f"ttnn.add({x}, {x})", f"ttnn.relu(ttnn.multiply({x}, {x}))"))
    return f"""z = {body}
t = ttnn.begin_trace_capture(device, cq_id=0)
y = {body}
ttnn.end_trace_capture(device, t, cq_id=0)
ttnn.execute_trace(device, t, cq_id=0, blocking={draw.chance(0.5)})
ttnn.execute_trace(device, t, cq_id=0)
ttnn.release_trace(device, t)"""


def onednn(draw: Draw) -> str:
    """ConvTranspose or one of its gradients, in one to three dimensions."""
    dims = draw.pick((1, 2, 2, 2, 3))
    least, most = (1, 8) if dims == 3 or draw.small else (1, 24)
    image = [draw.number(least, most) for _ in range(dims)]
    kernel, strides = [draw.number(1, 4) for _ in image], [draw.number(1, 3) for _ in image]
    dilations = [1 if draw.chance(0.8) else 2 for _ in image]
    groups = draw.pick((1, 1, 1, 2, 4))
    inputs, outputs = (groups * draw.pick((1, 2, 3, 8, 16, 20)) for _ in range(2))
    spans = [(taps - 1) * apart + 1 for taps, apart in zip(kernel, dilations, strict=True)]
    begin, end = ([draw.number(0, (span - 1) // 2) for span in spans] for _ in range(2))
    batch = draw.pick((1, 1, 2))
    whole = [
        (size - 1) * step + span - before - after
        for size, step, span, before, after in zip(image, strides, spans, begin, end, strict=True)
    ]
    while min(whole) < 1:
        whole[whole.index(min(whole))] = 1
    draw.given.append(f"src = normal(1, {(batch, *image, inputs)})")
    draw.given.append(f"dst = normal(2, {(batch, *whole, outputs)})")
    draw.given.append(f"weights = normal(3, {(*kernel, outputs // groups, inputs)})")
    draw.given.append(f"bias = normal(4, ({outputs},))")
    settings = {"strides": f"{strides}", "pads_begin": f"{begin}", "pads_end": f"{end}", "device": "device"}
    settings |= {"dilations": f"{dilations}", "groups": f"{groups}"}
    settings |= draw.maybe(0.3, "precision", "'ieee'", "'device'", "'float64'")
    function = draw.pick(
        ("conv_transpose", "conv_transpose", "conv_transpose_backward_data", "conv_transpose_backward_weights")
    )
    if function == "conv_transpose":
        more = draw.maybe(0.5, "_bias", "bias") | settings | draw.maybe(0.2, "lowering", "'phase'")
        more |= draw.maybe(0.1, "auto_pad", "'same_upper'", "'valid'")
        return draw.call(f"onednn.{function}", {"_src": "src", "_weights": "weights"} | more)
    if function == "conv_transpose_backward_data":
        return draw.call(f"onednn.{function}", {"_dst": "dst", "_weights": "weights"} | settings)
    shape = f"{[*kernel, outputs // groups, inputs]}"
    return draw.call(f"onednn.{function}", {"_src": "src", "_dst": "dst", "_shape": shape} | settings)


SEED: Final = 20261123
Drawer = Callable[[Draw], str]
ODD_GROUP: Final = "odd"  # calls of all groups with values that nobody expects for some of their arguments
ODD_CALLS: Final = 400

# group -> (what draws its calls, calls in a record of 5,000)
GROUPS: Final[Mapping[str, tuple[Drawer, int]]] = MappingProxyType(
    {
        "conv_transpose2d": (partial(drawing.convolution, function="conv_transpose2d"), 850),
        "conv2d": (partial(drawing.convolution, function="conv2d"), 500),
        "conv1d": (partial(drawing.convolution, function="conv1d"), 100),
        **{
            name: (partial(drawing.preparation, function=name), 50 if name.endswith("weights") else 30)
            for name in drawing.PREPARATIONS
        },
        "query_op_constraints": (partial(drawing.question, function="query_op_constraints"), 70),
        "estimate_cycles": (partial(drawing.question, function="estimate_cycles"), 50),
        "matmul": (partial(operations.matrices, function="matmul"), 180),
        "linear": (partial(operations.matrices, function="linear"), 180),
        "max_pool2d": (operations.max_pool2d, 200),
        "upsample": (operations.upsample, 100),
        "fold": (operations.fold, 60),
        "unary": (operations.unary, 220),
        "binary": (operations.binary, 260),
        "concat": (operations.concat, 130),
        "pad": (operations.pad, 100),
        "permute": (operations.permute, 80),
        "transpose": (operations.transpose, 60),
        "reshape": (operations.reshape, 90),
        "slice": (operations.cut, 120),
        "conversion": (operations.conversion, 270),
        "tiles": (operations.tiles, 140),
        "creation": (operations.creation, 120),
        "facts": (drawing.facts, 80),
        "network": (network, 200),
        "repeated": (repeated, 80),
        "trace": (trace, 20),
        "onednn": (onednn, 180),
    }
)
ALL: Final = sum(count for _, count in GROUPS.values()) + ODD_CALLS
VALUES_EVERY: Final = 33  # calls of a group of which the first one is drawn small and its values are computed


def drawn_calls(count: int = ALL, seed: int = SEED) -> list[Call]:
    """About so many random calls, dealt to the groups as in a whole record, at least one of each."""
    return [
        _drawn(group, number, seed, small=number % VALUES_EVERY == 0)
        for group, share in dealt(count).items()
        for number in range(share)
    ]


def dealt(count: int) -> dict[str, int]:
    """How many calls each group has in a record of so many."""
    usual = {ODD_GROUP: ODD_CALLS, **{group: usual for group, (_, usual) in GROUPS.items()}}
    return {group: max(1, round(calls * count / ALL)) for group, calls in usual.items()}


def _drawn(group: str, number: int, seed: int, *, small: bool) -> Call:
    draw = Draw(seed, group, number, small=small)
    drawer = group
    if group == ODD_GROUP:
        drawer, draw.odd = draw.pick(list(GROUPS)), 1.0
    text = GROUPS[drawer][0](draw)
    values = (DEVICES[number % len(DEVICES)],) if small and group != ODD_GROUP else ()
    return Call(name=f"{group}/{number:04}", given="\n".join(draw.given), text=text, values=values)
