"""Steps that ask a device or a tensor, or look at calls: caches, traces, captures, estimates, profiles; and oneDNN."""

import re
from collections.abc import Callable
from typing import Final

from tools.random_calls.drafts import Draft, Shadow, Step, is_float, of_tensor, operation
from tools.random_calls.elementwise import applied


@operation("program cache")
def program_cache(draft: Draft) -> Step:
    """The programs are forgotten, or no longer kept, or kept again."""
    methods = ("clear_program_cache", "clear_program_cache", "enable_program_cache", "disable_and_clear_program_cache")
    return Step(text=f"device.{draft.pick(methods)}()")


@of_tensor("begin_trace_capture", accept=is_float)
def trace(draft: Draft, x: Shadow) -> Step:
    """A function of a tensor, captured and carried out again."""
    name = draft.name
    text = f"""\
{name}n = ttsim.begin_trace_capture(device)
try:
    {name} = ttsim.relu({x})
finally:
    ttsim.end_trace_capture(device, {name}n)
ttsim.execute_trace(device, {name}n)
ttsim.release_trace(device, {name}n)
del {name}n"""
    return draft.gives(*applied("relu", x.values, x.dtype), dtypes=(x.dtype,), layout=x.layout, whole=text)


# Statements about a function of a tensor {1}: {0} becomes True.
LOOKS: Final = {
    "graph capture": """\
ttsim.graph.begin_graph_capture(ttsim.graph.RunMode.{mode})
try:
    ttsim.{function}({1})
finally:
    {0} = len(ttsim.graph.end_graph_capture()) > 0""",
    "estimate_cycles": "{0} = ttsim.estimate_cycles(ttsim.{function}, {1}, device=device) is not None",
    "profile": "with ttsim.profile(device) as {0}:\n    ttsim.{function}({1})\n{0} = bool({0})",
}


@of_tensor(*LOOKS, accept=is_float)
def look(draft: Draft, x: Shadow) -> Step:
    """A call that is looked at: by a capture of the graph, an estimate on a copy of the device, or a profile."""
    name = f"{draft.name}n"
    mode, function = draft.pick(("NORMAL", "NO_DISPATCH")), draft.pick(("relu", "neg", "square"))
    return Step(text=LOOKS[draft.function].format(name, x, mode=mode, function=function), facts={name: True})


@operation("query_op_constraints")
def query_op_constraints(draft: Draft) -> Step:
    """What a call would need, on no device."""
    how = "in_channels=32, out_channels=32, batch_size=1, input_height=4, input_width=8, kernel_size=(2, 2)"
    text = "ttsim.query_op_constraints(spec=device.spec, strict=device.strict, "
    text += f"input_tensor=ttsim.TensorDescription((1, 1, 32, 32)), {how}).status.name"
    return draft.fact(text, "Success")


QUESTIONS: Final[tuple[tuple[str, Callable[[Shadow], object]], ...]] = (
    ("ttsim.is_sharded({0})", lambda x: x.tensor.memory_config().is_sharded()),
    ("ttsim.is_tensor_storage_on_device({0})", lambda x: x.on_device),
    ("ttsim.has_storage_type_of({0}, ttsim.DEVICE_STORAGE_TYPE)", lambda x: x.on_device),
    ("ttsim.get_memory_config({0}) is not None", lambda x: x.on_device),
    ("ttsim.get_device_tensors({0})[0] is {0}", lambda x: True),
    ("ttsim.from_host_shards([{0}], ttsim.MeshShape(1, 1)) is {0}", lambda x: True),
    ("list({0}.shape)", lambda x: list(x.values.shape)),
    ("{0}.volume() >= {0}.logical_volume()", lambda x: True),
    ("{0}.to_list() == {0}.to_numpy().tolist()", lambda x: True),
    ("repr({0}).startswith('ttnn.Tensor(')", lambda x: True),
    ("ttsim.has_tile_padding({0}) in (True, False)", lambda x: True),
    ("ttsim.tile_size({0}.dtype) > 0", lambda x: True),
    ("ttsim.get_memory_view(device, ttsim.BufferType.L1).total_bytes_free_per_bank > 0", lambda x: True),
    ("ttsim.get_current_command_queue_id_for_thread()", lambda x: 0),
    ("ttsim.is_trace_capture_active(device)", lambda x: False),
    ("ttsim.synchronize_device(device)", lambda x: None),
    ("ttsim.wait_for_event(0, ttsim.record_event(device, 0))", lambda x: None),
    ("ttsim.get_conv_output_dim(8, 3, 1, 1)", lambda x: 8),
    ("ttsim.element_size(ttsim.bfloat16)", lambda x: 2),
    ("ttsim.num_cores_to_corerangeset(9, ttsim.CoreCoord(8, 8), True).num_cores()", lambda x: 9),
    (
        "ttsim.create_sharded_memory_config((1, 1, 64, 32), ttsim.CoreGrid(y=1, x=2), ttsim.ShardStrategy.HEIGHT)"
        ".memory_layout.name",
        lambda x: "HEIGHT_SHARDED",
    ),
)


@of_tensor("question", anywhere=True)
def question(draft: Draft, x: Shadow) -> Step:
    """What a tensor or the device says of itself."""
    text, answer = draft.pick(QUESTIONS)
    return draft.fact(text.format(x), answer(x))


REFERENCE: Final = "\nwanted = "  # what stands before the reference of a call of oneDNN


@operation("onednn")
def onednn(draft: Draft) -> Step:
    """One of oneDNN's calls on the device: numpy arrays in and out, nothing stays on the device."""
    kind, name, axes = draft.below(4), f"{draft.name}n", draft.pick((2, 2, 1, 3))
    batch, groups = draft.between(1, 2), draft.pick((1, 1, 2))
    inside, outside = groups * draft.between(1, 5), groups * draft.between(1, 5)
    sizes = [draft.between(2, 6 if axes < 3 else 3) for _ in range(axes)]
    kernel_sizes, strides = [draft.between(1, 3) for _ in sizes], [draft.between(1, 2) for _ in sizes]
    before = [draft.below(2) if count > 2 else 0 for count in kernel_sizes]
    outputs = [(s - 1) * step + t - p for s, step, t, p in zip(sizes, strides, kernel_sizes, before, strict=True)]
    image, delta = (batch, *sizes, inside), (batch, *outputs, outside)
    kernel, swapped = (*kernel_sizes, outside // groups, inside), (*kernel_sizes, inside, outside // groups)
    function, operands, shape = (
        ("conv_transpose", (image, kernel), delta),
        ("conv_transpose_backward_data", (delta, kernel), image),
        ("conv_transpose_backward_weights", (image, delta), kernel),
        ("conv_transpose_backprop_filters", (image, delta), swapped),
    )[kind]
    seed = draft.below(1000)
    arguments = [f"numbers({seed + place}, {sides})" for place, sides in enumerate(operands)]
    arguments += [f"{shape}"] if kind > 1 else []
    how = f"strides={strides}, pads_begin={before}, pads_end={[0] * axes}, dilations={[1] * axes}, groups={groups}"
    doubles = re.sub(r"(numbers\(\d+, \([\d, ]+\)\))", r"\1.astype(np.float64)", ", ".join(arguments))
    lowering = draft.pick(("", ', lowering="phase"')) if kind == 0 else ""
    text = f"{name} = ttsim.onednn.{function}({', '.join(arguments)}, {how}, device=device, "
    text += f'precision="{draft.pick(("ieee", "device"))}"{lowering})'
    text += f'{REFERENCE}ttsim.onednn.{function}({doubles}, {how}, precision="float64")\n'
    return draft.fact(f"({name}.shape, bool(np.allclose({name}, wanted, rtol=0.02, atol=0.05)))", (shape, True), text)
