"""The models of a program of output phases, by the micro-op's own rules, and of the preparation of its weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from device.host.threads import parts_of
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import Array, round_up, write_exactly
from device.plan import DeviceOp
from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.op_model import (
    Description,
    Detail,
    Ends,
    OpModel,
    ValuesContext,
    cycles_of_work,
    given,
    matrix,
    row,
    values_of_first,
)
from ops.programs.conv2d.gather import HALF, GatheredInput, Image, prepare_image
from ops.programs.conv2d.model import STAGES as CONV_STAGES, convolve_into, loop_for
from ops.programs.conv2d.weights import WeightsLayout, prepare_weights
from ops.programs.phase_conv2d.cycles import phase_cycles
from ops.programs.phase_conv2d.plan import PhaseConv2dOp, sticks_format
from ops.window import index_of


def phases_convolved(op: PhaseConv2dOp, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """The output [1, 1, N*OH*OW, O] from sticks, prepared weights and, if any, a bias.

    An output sums the taps of its phase, in the order of its K blocks.
    """
    sticks, weights, *bias = map(given, inputs)
    frame, matrices = op.problem.frame, matrix(weights)
    added = row(bias[0]) if bias else None
    stick_format = sticks_format(op.problem)
    channels, tiled = op.problem.out_channels, not op.options.untilize_out
    stored_channels = round_up(channels, HALF) if op.problem.out_format.is_block else channels
    result = np.empty((frame.batch, frame.rows.outputs, frame.columns.outputs, stored_channels), stick_format.storage)
    images: dict[bool, Image] = {}  # by what tilizing depends on, of all that phases differ in
    for part in op.parts:
        narrow = part.conv.layout.blocks.act_w_tiles == 1
        if narrow not in images:
            whole = part.conv.with_problem(frame=frame)
            images[narrow] = prepare_image(GatheredInput(whole, context.arithmetic, context.spec), matrix(sticks))
        for phase, rows in zip(part.frames, part.weights, strict=True):
            conv = GatheredInput(part.conv.with_problem(frame=phase), context.arithmetic, context.spec)
            own, loop = matrices[rows.start : rows.stop], loop_for(conv, stick_format, result.size)
            convolve_into(result, conv, images[narrow], own, added, stick_format, loop)
    values = _tilized(op, result, context)[..., :channels] if tiled else result
    return np.ascontiguousarray(values).reshape(1, 1, -1, channels)


def _tilized(op: PhaseConv2dOp, sticks: Array, context: ValuesContext) -> Array:
    """Sticks as tiles of the output's format."""
    out = op.problem.out_format
    keeps_tf32 = context.spec.compute.tilize_keeps_tf32(op.layout.shards.out_col_tiles)
    rows = sticks.reshape(-1, sticks.shape[-1])
    tiles = np.empty(rows.shape, out.storage)
    for part in parts_of(*rows.shape):
        values = rows[part].astype(np.float32)
        result = context.arithmetic.tilize(
            values, sticks_format(op.problem), out, fp32_dest=op.options.fp32_dest, keeps_tf32=keeps_tf32
        )
        write_exactly(result, tiles[part])
    return tiles.reshape(sticks.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePhaseWeights(DeviceOp):
    """Raw weights become a matrix for every class of taps that meet inputs together."""

    kernel: tuple[int, int]  # (kh, kw) of the raw weight
    mirror: bool  # Whether kh and kw are flipped here
    # Taps down and across of each class, and the layout of its matrix, from the top
    parts: tuple[tuple[tuple[range, range], WeightsLayout], ...]

    @property
    def rows(self) -> dict[tuple[range, range], range]:
        """Rows of each class by its taps."""
        result, first = {}, 0
        for taps, layout in self.parts:
            result[taps] = range(first, first + layout.rows)
            first += layout.rows
        return result

    @property
    def spec(self) -> TensorSpec:
        """The prepared tensor."""
        _, first = self.parts[0]
        rows = sum(layout.rows for _, layout in self.parts)
        shape = (1, 1, first.in_channels * self.kernel[0] * self.kernel[1], first.out_channels)
        padded = (1, 1, rows, first.padded_out_channels)
        return TensorSpec(shape, first.data_format, Layout.TILE, padded_shape=padded)


def prepared_phase_weights(op: PreparePhaseWeights, weights: Array) -> Array:
    """Raw weights [C, O / groups, kh, kw] as the matrix that a device holds."""
    kernels = weights[..., ::-1, ::-1] if op.mirror else weights
    result = [
        prepare_weights(kernels[:, :, index_of(down)][..., index_of(across)], layout)
        for (down, across), layout in op.parts
    ]
    return np.concatenate(result).reshape(op.spec.padded_shape)


STAGES: Final = MappingProxyType(
    {**CONV_STAGES, Stage.WRITER: "the second processor copies finished sticks to their rows of the output shard"}
)


def describe_phases(op: PhaseConv2dOp, ends: Ends, spec: DeviceSpec) -> Description:
    """How a program of output phases was planned."""
    layout, phases = op.layout, sum(len(part.frames) for part in op.parts)
    cores = layout.out_config.cores.num_cores()
    facts = (
        Detail("scheme", layout.scheme.name, layout.scheme.name),
        Detail("output_cores", cores, f"output on {cores} of {spec.grid.cores} cores"),
        Detail("phases", phases, f"{phases} output phases"),
        Detail("groups", len(op.parts), f"{len(op.parts)} groups of phases that meet the same inputs"),
    )
    return Description(facts=facts, stages=STAGES, composed_of="the steps of the measured convolution program")


OP_MODELS: Final = (
    OpModel(
        op=PhaseConv2dOp,
        values=phases_convolved,
        cycles=cycles_of_work(phase_cycles),
        fidelity_phases=lambda op: op.parts[0].conv.fidelity_phases,
        describe=describe_phases,
    ),
    OpModel(op=PreparePhaseWeights, values=values_of_first(prepared_phase_weights)),
)
