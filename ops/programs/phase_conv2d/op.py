"""What one program of output phases computes, as data for the readings of values and of cycles."""

from collections.abc import Sequence
from dataclasses import dataclass

from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat
from device.plan import DeviceOp
from ops.programs.conv2d.buffers import BufferRequest, ConvBuffers, buffer_requests
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.parallel_config import ConvOptions, ConvProblem
from ops.programs.conv2d.partition import ConvPartition
from ops.window import PaddedInput


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOutputs:
    """One output phase."""

    frame: PaddedInput  # Its windows over the image, and where its outputs lie in the call's
    weights: range  # Rows of the prepared weights that are its matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePart:
    """Output phases that meet the same inputs, computed together."""

    # The micro-op over their windows, as many as the core with most of them has, in whole tiles. A core's output is as
    # wide as all its phases together, one beside the other. Without taps it has no K blocks, and gives the bias or
    # zeros.
    conv: Conv2dOp
    phases: tuple[PhaseOutputs, ...]  # The phases, row by row
    beside: int  # How many of them a row has, whose sticks of one window lie beside each other in the output

    def conv_of(self, phase: PhaseOutputs) -> Conv2dOp:
        """The micro-op over the windows of one phase."""
        return self.conv.with_problem(frame=phase.frame)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseConv2dOp(DeviceOp):
    """One program of output phases."""

    layout: ConvPartition  # The call as a convolution over the frame with inserted zeros
    parts: tuple[PhasePart, ...]  # All output phases, in the order in which they are computed

    @property
    def problem(self) -> ConvProblem:
        """Sizes and formats of the call."""
        return self.layout.problem

    @property
    def options(self) -> ConvOptions:
        """The caller's choices."""
        return self.layout.options

    @property
    def sticks_format(self) -> DataFormat:
        """What finished sticks are held in until they are in their places."""
        return sticks_format(self.problem)


def sticks_format(problem: ConvProblem) -> DataFormat:
    """What finished sticks are held in: the output's format, or bfloat16 where that has no sticks."""
    return FLOAT32 if problem.out_format == FLOAT32 else BFLOAT16


def phase_buffer_requests(phases: Sequence[ConvBuffers], layout: ConvPartition) -> list[BufferRequest]:
    """What a program asks for."""
    sticks, tiled = sticks_format(layout.problem), not layout.options.untilize_out
    largest: dict[str, BufferRequest] = {}
    for conv in phases:
        for one in buffer_requests(conv):
            known = largest.setdefault(one.name, one)
            largest[one.name] = max(known, one, key=lambda request: request.size_bytes)
    height, width = layout.shards.out_row_tiles, layout.shards.out_col_tiles
    block = max(conv.layout.blocks.act_h_tiles * conv.layout.shards.out_col_tiles for conv in phases)
    own = [BufferRequest("out_sticks", block * sticks.tile_bytes, sticks.tile_bytes, sticks)]
    if tiled:
        own.append(BufferRequest("out_rows", height * width * sticks.tile_bytes, sticks.tile_bytes, sticks))
    out = largest["out"]
    largest["out"] = out._replace(size_bytes=height * width * out.page_bytes)
    if "bias" in largest:  # every phase of a group adds the same
        largest["bias"] = largest["bias"]._replace(size_bytes=width * largest["bias"].page_bytes)
    made = list(largest.values())
    place = made.index(largest["out"])
    return [*made[:place], *own, *made[place:]]
