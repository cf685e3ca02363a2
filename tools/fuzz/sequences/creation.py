"""Steps that make tensors of numbers, on the host or on the device."""

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from tools.fuzz.sequences.elementwise import FUNCTIONS, function_error
from tools.fuzz.sequences.references import rounding
from tools.fuzz.sequences.state import (
    BLOCKS,
    DRAM,
    INTEGERS,
    Draft,
    Expected,
    Shadow,
    Step,
    asked,
    dtype,
    layout,
    maybe_place,
    named,
    of_tensor,
    operand,
    place,
    shape,
)

FILLERS: Final = {"zeros": 0.0, "ones": 1.0, "empty": None, "full": 2.5}


def from_numpy(draft: Draft, function: str = "from_numpy") -> Step:
    """A tensor of random numbers."""
    choices, sides, data_type = draft.choices, shape(draft), dtype(draft)
    held = layout(draft, data_type)
    kind = "integers" if data_type in INTEGERS else choices.pick(("normal", "normal", "normal", "positive", "large"))
    array = f'numbers({choices.below(1000)}, {sides}, "{kind}")'
    on_device = choices.chance(0.95)
    where = place(draft, sides, tiled=held == "TILE_LAYOUT") if on_device else ""
    how = f"{array}, ttsim.{data_type}, layout=ttsim.{held}"
    how += named(device="device" if on_device else "", memory_config=where)

    def result() -> Expected:
        values = np.asarray(draft.evaluated(array), np.float64)
        bound = rounding(values, data_type) if data_type in (*BLOCKS, "bfloat16") else 0.0
        return Expected(
            values=values,
            bound=bound,
            dtypes=(data_type,),
            layout=held.removesuffix("_LAYOUT"),
            place=asked(draft, where),
        )

    return Step(text=f"{draft.name} = ttsim.{function}({how})", results={draft.name: result})


def filled(draft: Draft, function: str) -> Step:
    """A tensor of one number, or of numbers that do not matter."""
    choices, sides, data_type = draft.choices, shape(draft), dtype(draft)
    held = layout(draft, data_type)
    where = place(draft, sides, tiled=held == "TILE_LAYOUT", sharded=0.2)
    number = FILLERS[function]
    if function == "full":
        number = float(choices.pick((2, 0, 7))) if data_type in INTEGERS else choices.pick((2.5, -1.0, 0.1, 1e3))
    given = f"{sides}, {number}" if function == "full" else f"{sides}"
    how = f"{given}, dtype=ttsim.{data_type}, layout=ttsim.{held}, device=device" + named(memory_config=where)
    values = None if number is None else np.full(sides, number)
    bound = 0.0 if values is None else rounding(values, data_type) * (number not in (0.0, 1.0))
    made = Expected(
        values=values,
        shape=sides,
        bound=bound,
        dtypes=(data_type,),
        layout=held.removesuffix("_LAYOUT"),
        place=asked(draft, where),
    )
    return Step(text=f"{draft.name} = ttsim.{function}({how})", results={draft.name: lambda: made})


@of_tensor()
def like(draft: Draft, model: Shadow, function: str) -> Step:
    """The same in the shape, layout and data type of another tensor."""
    choices = draft.choices
    data_type = choices.pick(("bfloat16", "float32")) if choices.chance(0.2) else model.dtype
    where = maybe_place(draft, model.shape, tiled=model.tiled, probability=0.2)
    number = FILLERS[function]
    given = f"{model.name}, {number}" if function == "full" else model.name
    how = given + named(dtype="" if data_type == model.dtype else f"ttsim.{data_type}", memory_config=where)
    values = None if number is None else np.full(model.shape, int(number) if data_type in INTEGERS else number)
    made = Expected(
        values=values,
        shape=model.shape,
        bound=0.0 if values is None else rounding(values, data_type) * (number not in (0.0, 1.0)),
        dtypes=(data_type,),
        layout=model.layout,
        place=asked(draft, where),
    )
    return Step(text=f"{draft.name} = ttsim.{function}_like({how})", results={draft.name: lambda: made})


def arange(draft: Draft) -> Step:
    """Numbers in order."""
    choices = draft.choices
    start, count, step = choices.between(-3, 3), choices.pick((32, 7, 100)), choices.pick((1, 2, -1))
    data_type = choices.pick(("bfloat16", "float32", "int32"))
    held = layout(draft, data_type)
    where = place(draft, (count,), tiled=held == "TILE_LAYOUT", sharded=0.1)
    values = np.arange(start, start + count * step, step).astype(np.float64)
    how = f"{start}, {start + count * step}, {step}, dtype=ttsim.{data_type}, device=device, layout=ttsim.{held}"
    made = Expected(
        values=values,
        bound=rounding(values, data_type) if data_type == "bfloat16" else 0.0,
        dtypes=(data_type,),
        layout=held.removesuffix("_LAYOUT"),
        place=asked(draft, where),
    )
    text = f"{draft.name} = ttsim.arange({how}{named(memory_config=where)})"
    return Step(text=text, results={draft.name: lambda: made})


def rand(draft: Draft) -> Step:
    """Evenly distributed numbers, which must lie within their limits."""
    choices, sides = draft.choices, shape(draft)
    data_type = choices.pick(("bfloat16", "float32", "bfloat8_b"))
    held = layout(draft, data_type)
    where = place(draft, sides, tiled=held == "TILE_LAYOUT", sharded=0.2)
    low, high = choices.pick(((0.0, 1.0), (-2.0, 2.0)))
    how = f"{sides}, device, dtype=ttsim.{data_type}, layout=ttsim.{held}, low={low}, high={high}"
    how += f", seed={choices.below(100)}" + named(memory_config=where)
    middle, reach = (low + high) / 2, (high - low) / 2
    made = Expected(
        values=np.full(sides, middle),
        bound=reach + reach * 2.0**-6,
        dtypes=(data_type,),
        layout=held.removesuffix("_LAYOUT"),
        place=asked(draft, where),
    )
    return Step(text=f"{draft.name} = ttsim.rand({how})", results={draft.name: lambda: made})


def allocate_tensor_on_device(draft: Draft) -> Step:
    """A tensor without numbers, which a host tensor fills."""
    sides, data_type = shape(draft), dtype(draft, rare=0.0)
    held = layout(draft, data_type)
    where = place(draft, sides, tiled=held == "TILE_LAYOUT")
    spec = f"{sides}, ttsim.{data_type}, ttsim.{held}"
    array = f"numbers({draft.choices.below(1000)}, {sides})"
    host = f"ttsim.from_numpy({array}, ttsim.{data_type}, layout=ttsim.{held})"
    text = f"{draft.name} = ttsim.allocate_tensor_on_device({spec}, device, {where})\n"
    text += f"ttsim.copy_host_to_device_tensor({host}, {draft.name})"

    def result() -> Expected:
        values = np.asarray(draft.evaluated(array), np.float64)
        bound = rounding(values, data_type) if data_type != "float32" else 0.0
        return Expected(values=values, bound=bound, dtypes=(data_type,), place=asked(draft, where))

    return Step(text=text, results={draft.name: result})


@of_tensor()
def allocate_tensor_on_host(draft: Draft, source: Shadow) -> Step:
    """A host tensor that takes the numbers of a device tensor."""
    text = f"{draft.name} = ttsim.allocate_tensor_on_host({source.name}.spec, device)\n"
    text += f"ttsim.copy_device_to_host_tensor({source.name}, {draft.name})"
    made = Expected(values=source.values, dtypes=(source.dtype,), layout=source.layout)
    return Step(text=text, results={draft.name: lambda: made})


def program_cache(draft: Draft) -> Step:
    """The programs are forgotten, or no longer kept, or kept again."""
    methods = ("clear_program_cache", "clear_program_cache", "enable_program_cache", "disable_and_clear_program_cache")
    return Step(text=f"device.{draft.choices.pick(methods)}()")


@of_tensor(lambda one: one.is_float)
def trace(draft: Draft, source: Shadow) -> Step:
    """A function of a tensor, captured and carried out again."""
    name = draft.name
    text = (
        f"{name}n = ttsim.begin_trace_capture(device)\n"
        "try:\n"
        f"    {name} = ttsim.relu({source.name})\n"
        "finally:\n"
        f"    ttsim.end_trace_capture(device, {name}n)\n"
        f"ttsim.execute_trace(device, {name}n)\n"
        f"ttsim.release_trace(device, {name}n)\n"
        f"del {name}n"
    )
    values = FUNCTIONS["relu"](source.values)
    bound = function_error("relu", values, source.values, source.dtype)
    made = Expected(values=values, bound=bound, dtypes=(source.dtype,), layout=source.layout)
    return Step(text=text, results={name: lambda: made})


@of_tensor(lambda one: one.is_float)
def capture(draft: Draft, source: Shadow) -> Step:
    """A graph capture, with or without dispatch, of a function of a tensor."""
    mode = draft.choices.pick(("NORMAL", "NO_DISPATCH"))
    text = (
        f"ttsim.graph.begin_graph_capture(ttsim.graph.RunMode.{mode})\n"
        "try:\n"
        f"    ttsim.neg({source.name})\n"
        "finally:\n"
        f"    {draft.name}n = len(ttsim.graph.end_graph_capture()) > 0"
    )
    return Step(text=text, facts={f"{draft.name}n": True})


@of_tensor(lambda one: one.is_float)
def estimate_cycles(draft: Draft, source: Shadow) -> Step:
    """An estimate, which is made on a copy of the device's memory."""
    function = draft.choices.pick(("relu", "neg", "square"))
    call = f"ttsim.estimate_cycles(ttsim.{function}, {source.name}, device=device)"
    return Step(text=f"{draft.name}n = {call} is not None", facts={f"{draft.name}n": True})


@of_tensor(lambda one: one.is_float)
def profile(draft: Draft, source: Shadow) -> Step:
    """A profile of a function of a tensor."""
    name = f"{draft.name}n"
    text = f"with ttsim.profile(device) as {name}:\n    ttsim.neg({source.name})\n{name} = bool({name})"
    return Step(text=text, facts={f"{draft.name}n": True})


def query_op_constraints(draft: Draft) -> Step:
    """What a call would need, on no device."""
    how = "in_channels=32, out_channels=32, batch_size=1, input_height=4, input_width=8, kernel_size=(2, 2)"
    given = "input_tensor=ttsim.TensorDescription((1, 1, 32, 32))"
    text = f"{draft.name}n = ttsim.query_op_constraints(spec=device.spec, {given}, {how}).status.name"
    return Step(text=text, facts={f"{draft.name}n": "Success"})


QUESTIONS: Final[tuple[tuple[str, Callable[[Shadow], object]], ...]] = (
    ("ttsim.is_sharded({0})", lambda one: one.tensor.memory_config().is_sharded()),
    ("ttsim.is_tensor_storage_on_device({0})", lambda one: one.on_device),
    ("ttsim.has_storage_type_of({0}, ttsim.DEVICE_STORAGE_TYPE)", lambda one: one.on_device),
    ("ttsim.get_memory_config({0}) is not None", lambda one: one.on_device),
    ("ttsim.get_device_tensors({0})[0] is {0}", lambda one: True),
    ("ttsim.from_host_shards([{0}], ttsim.MeshShape(1, 1)) is {0}", lambda one: True),
    ("list({0}.shape)", lambda one: list(one.values.shape)),
    ("{0}.volume() >= {0}.logical_volume()", lambda one: True),
    ("{0}.to_list() == {0}.to_numpy().tolist()", lambda one: True),
    ("repr({0}).startswith('ttnn.Tensor(')", lambda one: True),
    ("ttsim.has_tile_padding({0}) in (True, False)", lambda one: True),
    ("ttsim.tile_size({0}.dtype) > 0", lambda one: True),
    ("ttsim.get_memory_view(device, ttsim.BufferType.L1).total_bytes_free_per_bank > 0", lambda one: True),
    ("ttsim.get_current_command_queue_id_for_thread()", lambda one: 0),
    ("ttsim.is_trace_capture_active(device)", lambda one: False),
    ("ttsim.synchronize_device(device)", lambda one: None),
    ("ttsim.wait_for_event(0, ttsim.record_event(device, 0))", lambda one: None),
    ("ttsim.get_conv_output_dim(8, 3, 1, 1)", lambda one: 8),
    ("ttsim.element_size(ttsim.bfloat16)", lambda one: 2),
    ("ttsim.num_cores_to_corerangeset(9, ttsim.CoreCoord(8, 8), True).num_cores()", lambda one: 9),
    (
        "ttsim.create_sharded_memory_config((1, 1, 64, 32), ttsim.CoreGrid(y=1, x=2), ttsim.ShardStrategy.HEIGHT)"
        '.memory_layout.name',
        lambda one: "HEIGHT_SHARDED",
    ),
)  # fmt: skip


@of_tensor(anywhere=True)
def question(draft: Draft, source: Shadow) -> Step:
    """What a tensor or the device says of itself."""
    text, answer = draft.choices.pick(QUESTIONS)
    name = f"{draft.name}n"
    return Step(text=f"{name} = {text.format(source.name)}", facts={name: answer(source)})


def filled_l1(draft: Draft) -> Step:
    """Much of L1 is taken by a tensor in shards, so that later calls have less room."""
    choices = draft.choices
    x, y = choices.pick(((0, 0), (1, 0), (0, 3)))
    high = 32 * choices.pick((2, 8, 20, 30, 36))
    sides = (1, 1, high * (x + 1) * (y + 1), 512)
    where = f'shards("HEIGHT", ({high}, 512), (0, 0, {x}, {y}))'
    text = f"{draft.name} = ttsim.zeros({sides}, dtype=ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device"
    made = Expected(values=None, shape=sides, dtypes=("bfloat16",), layout="TILE", place=draft.evaluated(where))
    return Step(text=f"{text}, memory_config={where})", results={draft.name: lambda: made}, opaque=(draft.name,))


def onednn(draft: Draft) -> Step:
    """One of oneDNN's calls on the device: numpy arrays in and out, nothing stays on the device."""
    choices = draft.choices
    function = choices.pick(
        (
            "conv_transpose",
            "conv_transpose_backward_data",
            "conv_transpose_backward_weights",
            "conv_transpose_backprop_filters",
        )
    )
    batch, size, inside, outside = (
        choices.between(1, 2),
        choices.between(2, 6),
        choices.between(1, 5),
        choices.between(1, 5),
    )
    taps, stride = choices.between(1, 3), choices.between(1, 2)
    made = (size - 1) * stride + taps
    image, delta = (batch, size, size, inside), (batch, made, made, outside)
    kernel = (taps, taps, outside, inside)
    seed = choices.below(1000)
    how = (
        f"strides=[{stride}, {stride}], pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1], device=device, "
        f'precision="{choices.pick(("ieee", "device"))}"'
    )
    operands = {
        "conv_transpose": (image, kernel),
        "conv_transpose_backward_data": (delta, kernel),
        "conv_transpose_backward_weights": (image, delta),
        "conv_transpose_backprop_filters": (image, delta),
    }[function]
    given = ", ".join(f"numbers({seed + place}, {sides})" for place, sides in enumerate(operands))
    shape: tuple[int, ...] = {"conv_transpose": delta, "conv_transpose_backward_data": image}.get(function, kernel)
    if function.endswith("weights"):
        given += f", {kernel}"
    if function.endswith("filters"):
        shape = (taps, taps, inside, outside)
        given += f", {shape}"
    wanted = f"{draft.name}n"
    doubles = re.sub(r"(numbers\(\d+, \([\d, ]+\)\))", r"\1.astype(np.float64)", given)
    reference = f"ttsim.onednn.{function}({doubles}, {how.replace('device=device, ', '')})"
    reference = reference[: reference.index(", precision")] + ', precision="float64")'
    text = f"{wanted} = ttsim.onednn.{function}({given}, {how})\n"
    text += f"{wanted} = ({wanted}.shape, bool(np.allclose({wanted}, {reference}, rtol=0.02, atol=0.05)))"
    return Step(text=text, facts={wanted: (shape, True)})


def command_queue(draft: Draft) -> Step:
    """A tensor that is made within the block of a queue."""
    made = operand(draft, "q", (1, 1, 32, 32), "bfloat16", where=DRAM)
    return Step(text=f"with ttsim.command_queue(0):\n    {made.text.strip()}", results={made.name: made.result})
