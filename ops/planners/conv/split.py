"""Lowerings that split a transposed convolution into several calls of ttnn, by groups or by images.

Every part slices the image in DRAM and runs ttnn's conv_transpose2d on the slice; one concat joins the outputs in DRAM.
The planners of these three calls write all steps, so a script of ttnn could make the same calls; no function of ttnn
does. Parts of groups have whole tiles of channels, and dense weights only within a part. Parts of the batch are the
smallest number of equal parts that fit L1, by the sizes of a part's buffers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, lcm
from typing import TypeAlias

from device.errors import ArgumentError, DeviceError
from device.memory.memory_config import TILE, BufferType
from device.plan import Allocate, Decision, Free, Operation, Plan
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.concat import plan_concat
from ops.planners.conv.arguments import CONV_TRANSPOSE2D, ConvCall, Lowering, Operand, refuse_first
from ops.planners.shape.slice import plan_slice
from ops.programs.conv2d.weights import PrepareBand, PrepareBias, PrepareWeights

PlanPart: TypeAlias = Callable[[ConvCall], Plan]  # the plan of a call of ttnn


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a call."""

    images: range
    ins: range  # Channels of the input
    outs: range  # Channels of the output
    groups: int

    def call(self, call: ConvCall, source: Operand) -> ConvCall:
        """The call of ttnn that computes this part of a call, of a slice of its input."""
        weight, bias = call.weight.spec, call.bias
        own = replace(call.weight, spec=weight.changed(shape=(len(self.ins), *weight.shape[1:])))
        if bias is not None:
            bias = replace(bias, spec=bias.spec.changed(shape=(1, 1, 1, len(self.outs))))
        return replace(
            call,
            rules=CONV_TRANSPOSE2D,
            input=source,
            weight=own,
            bias=bias,
            in_channels=len(self.ins),
            out_channels=len(self.outs),
            batch_size=len(self.images),
            groups=self.groups,
            out_format=call.output_format,
            compute_config=call.compute,
        )


def parts_of(call: ConvCall, count: int) -> tuple[Part, ...]:
    """The parts of a call: of groups as few as fill tiles, or ``count`` of its batch."""
    images, ins, outs = range(call.batch_size), range(call.in_channels), range(call.out_channels)
    if call.rules.lowering is Lowering.SAMPLES:
        size = call.batch_size // count
        return tuple(
            Part(images=images[at : at + size], ins=ins, outs=outs, groups=call.groups) for at in images[::size]
        )
    sizes = [channels // call.groups for channels in (call.in_channels, call.out_channels)]
    together = lcm(*(TILE // gcd(TILE, size) for size in sizes))
    return tuple(
        Part(
            images=images,
            ins=ins[at * sizes[0] : (at + together) * sizes[0]],
            outs=outs[at * sizes[1] : (at + together) * sizes[1]],
            groups=min(together, call.groups - at),
        )
        for at in range(0, call.groups, together)
    )


def undivided(call: ConvCall, plan_whole: PlanPart, free_l1_bytes: int) -> Plan | None:
    """The plan of ttnn's own call, if the lowering has no reason to split it, or cannot; else None."""
    whole = replace(call, rules=CONV_TRANSPOSE2D)
    if call.rules.lowering is Lowering.GROUPED:
        return plan_whole(whole) if len(parts_of(call, 1)) == 1 else None
    if call.batch_size == 1:
        return plan_whole(whole)
    return _plan_that_fits(partial(plan_whole, whole), free_l1_bytes)


def _plan_that_fits(plan: Callable[[], Plan], free_l1_bytes: int) -> Plan | None:
    """A plan that fits L1; None if it does not fit or cannot be made, for example if no number of slices fits."""
    try:
        made = plan()
    except DeviceError:
        return None
    return made if not made.refused and l1_peak_bytes(made) <= free_l1_bytes else None


def check_split(call: ConvCall, *, returns_weights: bool) -> None:
    """Raises ArgumentError for settings that a split call does not support."""
    refuse_first(call, (_not_split,), f'conv_transpose2d, lowering="{call.rules.lowering}"')
    if returns_weights:
        raise ArgumentError(
            f'conv_transpose2d, lowering="{call.rules.lowering}": return_weights_and_bias is not known to this '
            "lowering, whose parts prepare weights of their own; leave it out"
        )


def _not_split(call: ConvCall) -> Iterator[str]:
    """Settings that no part can have."""
    place, config = call.input.spec.memory_config, call.conv_config
    if not call.input.on_host and (place.is_sharded() or place.buffer_type is not BufferType.DRAM):
        yield "input_tensor must lie on the host or interleaved in DRAM, from where parts are cut; move it there"
    if call.input.spec.volume != call.claimed_volume:
        yield f"input_tensor must have as many elements as the call says ({call.claimed_shape})"
    for name, operand in (("weight", call.weight), ("bias", call.bias)):
        if operand is not None and not operand.on_host:
            yield f"{name}_tensor must be raw and on the host, from where every part prepares its own"
    if call.slice_config is not None:
        yield "dram_slice_config is not known to this lowering, whose parts choose their own slices; leave it out"
    if call.memory_config is not None:
        yield "memory_config is not known to this lowering, whose output lies in DRAM; leave it out"
    if config.deallocate_activation:
        yield "conv_config.deallocate_activation is not known to this lowering (parts read one input); leave it out"


def split_path(
    builder: PlanBuilder, call: ConvCall, image: PlanTensor, plan_part: PlanPart, *, free_l1_bytes: int
) -> PlanTensor:
    """Steps from the image in DRAM to the joined outputs in DRAM; the image where a part is refused."""
    planned: dict[Part, Plan] = {}

    def plan_of(part: Part) -> Plan:
        """The plan of a part with its slice at the origin, shared by equal parts."""
        like = replace(part, images=range(len(part.images)), ins=range(len(part.ins)), outs=range(len(part.outs)))
        if like not in planned:
            shape = (len(part.images), call.input_height, call.input_width, len(part.ins))
            source = Operand(spec=image.spec.changed(shape=shape), on_host=False)
            planned[like] = plan_part(part.call(call, source))
        return planned[like]

    parts = _fitting(call, plan_of, free_l1_bytes)
    samples = call.rules.lowering is Lowering.SAMPLES
    count, size = len(parts), len(parts[0].images) if samples else parts[0].groups
    noun = f"{size} of {call.batch_size} images" if samples else f"up to {size} of {call.groups} groups"
    builder.decide(Decision(name="parts", value=count, text=f"{count} calls of {noun} each"))
    outputs = []
    for number, part in enumerate(parts):
        prefix = f"part{number}."
        begins = part.images[0], 0, 0, part.ins[0]
        ends = part.images[-1] + 1, call.input_height, call.input_width, part.ins[-1] + 1
        cut = plan_slice(image.spec, begins, ends, None, builder.device_spec)
        source = builder.call(cut, {"input": image}, f"{prefix}slice.").get("output", image)
        if builder.refused:
            return image
        result = builder.call(_of_part(plan_of(part), call, part), {"input": source}, prefix)
        if builder.refused:
            return image
        builder.free_own(source)
        outputs.append(result["output"])
    joined = plan_concat([output.spec for output in outputs], 2 if samples else 3, builder.device_spec)
    inputs = {f"input_{number}": output for number, output in enumerate(outputs)}
    output = builder.call(joined, inputs, "joined.")
    builder.free_own(*outputs)
    return image if builder.refused else output["output"]


def _fitting(call: ConvCall, plan_of: Callable[[Part], Plan], free_l1_bytes: int) -> tuple[Part, ...]:
    """The parts: groups that fill tiles, or the smallest number of equal parts of the batch that fit L1."""
    if call.rules.lowering is not Lowering.SAMPLES:
        return parts_of(call, 1)
    counts = (count for count in range(2, call.batch_size + 1) if call.batch_size % count == 0)
    divisions = (parts_of(call, count) for count in counts)
    fits = (parts for parts in divisions if _plan_that_fits(partial(plan_of, parts[0]), free_l1_bytes) is not None)
    return next(fits, parts_of(call, call.batch_size))


def l1_peak_bytes(plan: Plan) -> int:
    """The most bytes of an L1 bank that a plan's own buffers and circular buffers take together."""
    live: dict[str, int] = {}
    peak = 0

    def hold(steps: Sequence[Allocate]) -> None:
        in_l1 = (step for step in steps if step.buffer.buffer_type is BufferType.L1)
        live.update({step.tensor: step.buffer.bank_bytes for step in in_l1})

    for step in plan.steps:
        match step:
            case Allocate():
                hold((step,))
            case Free(tensor=tensor):
                live.pop(tensor, None)
            case Operation():
                hold(step.outputs)
                own = sum(buffer.size_bytes for buffer in step.circular_buffers if buffer.view_of is None)
                peak = max(peak, sum(live.values()) + own)
    return peak


def _of_part(plan: Plan, call: ConvCall, part: Part) -> Plan:
    """The plan of a part whose weights and bias are read from the whole call's."""
    if part.groups == call.groups:
        return plan
    steps = []
    for step in plan.steps:
        if isinstance(step, Allocate) and isinstance(step.op, PrepareWeights | PrepareBias):
            is_bias = isinstance(step.op, PrepareBias)
            band = PrepareBand(step.op, 3 if is_bias else 0, part.outs if is_bias else part.ins)
            step = step._replace(op=band)
        steps.append(step)
    return replace(plan, steps=tuple(steps))
