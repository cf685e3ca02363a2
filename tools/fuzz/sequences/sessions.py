"""Steps around calls: the program cache, traces, captures, estimates and plain questions, which change no tensor."""

import re
from collections.abc import Callable
from typing import Final

from tools.fuzz.sequences.elementwise import FUNCTIONS, function_error
from tools.fuzz.sequences.operands import operand
from tools.fuzz.sequences.places import DRAM
from tools.fuzz.sequences.state import Draft, Shadow
from tools.fuzz.sequences.steps import Expected, Step


def program_cache(draft: Draft) -> Step:
    """The programs are forgotten, or no longer kept, or kept again."""
    methods = ("clear_program_cache", "clear_program_cache", "enable_program_cache", "disable_and_clear_program_cache")
    return Step(text=f"device.{draft.choices.pick(methods)}()")


def trace(draft: Draft) -> Step | None:
    """A function of a tensor, captured and carried out again."""
    source = draft.tensor(lambda one: one.is_float)
    if source is None:
        return None
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


def capture(draft: Draft) -> Step | None:
    """A graph capture, with or without dispatch, of a function of a tensor."""
    source = draft.tensor(lambda one: one.is_float)
    if source is None:
        return None
    mode = draft.choices.pick(("NORMAL", "NO_DISPATCH"))
    text = (
        f"ttsim.graph.begin_graph_capture(ttsim.graph.RunMode.{mode})\n"
        "try:\n"
        f"    ttsim.neg({source.name})\n"
        "finally:\n"
        f"    {draft.name}n = len(ttsim.graph.end_graph_capture()) > 0"
    )
    return Step(text=text, facts={f"{draft.name}n": True})


def estimate_cycles(draft: Draft) -> Step | None:
    """An estimate, which is made on a copy of the device's memory."""
    source = draft.tensor(lambda one: one.is_float)
    if source is None:
        return None
    function = draft.choices.pick(("relu", "neg", "square"))
    call = f"ttsim.estimate_cycles(ttsim.{function}, {source.name}, device=device)"
    return Step(text=f"{draft.name}n = {call} is not None", facts={f"{draft.name}n": True})


def profile(draft: Draft) -> Step | None:
    """A profile of a function of a tensor."""
    source = draft.tensor(lambda one: one.is_float)
    if source is None:
        return None
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


def question(draft: Draft) -> Step | None:
    """What a tensor or the device says of itself."""
    source = draft.shadow(lambda one: not one.opaque)
    if source is None:
        return None
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
