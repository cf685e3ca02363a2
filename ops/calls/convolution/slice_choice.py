"""How many slices a call is cut into where the caller does not say, and along which axis (docs/planning.md, Slices).

The smallest number of which each fits the free L1, as the real library estimates it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from device.errors import ArgumentError, OutOfMemoryError
from device.memory.memory_config import Layout
from device.numbers.integers import div_up
from device.plan import Decision
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution.arguments import ConvArguments, SliceConfig, SliceType
from ops.calls.convolution.output_lengths import output_lengths, plans_without_outputs
from ops.calls.convolution.problem import frame_of, takes_l1_path
from ops.calls.convolution.slicing import (
    most_slices_of,
    output_slices,
    rounding_of,
    slice_l1_bytes,
    sliced_length,
    too_many_line,
)
from ops.frame.axis import NoWindowError
from ops.frame.frame import Frame

WIDE_IMAGE = 200  # tiled outputs of narrower images are cut along the height
TALL_RATIO = 3  # row-major outputs of images taller than this times their width too


def guess_slice_type(call: ConvArguments) -> SliceType:
    """Along which axis a call is cut if the caller does not say."""
    if call.conv_config.output_layout is Layout.ROW_MAJOR:
        tall = call.input_height > TALL_RATIO * call.input_width
    else:
        tall = call.input_width < WIDE_IMAGE or call.input_height > call.input_width
    return SliceType.DRAM_HEIGHT if tall else SliceType.DRAM_WIDTH


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSlices:
    """Slices that the library chose."""

    config: SliceConfig  # Axis and number
    decision: Decision  # What decided, for whoever asks


def _chosen(config: SliceConfig, refused: Sequence[tuple[SliceConfig, int]], free_l1_bytes: int) -> ChosenSlices:
    """Slices, and the counts that were refused before, each with the L1 that its first slice too many takes."""
    count = config.num_slices
    text = f"{slices_told(config)}, the least number that fits by the library's estimate: "
    limits = [("free_l1_bytes", free_l1_bytes)]
    if refused:
        other, needed = refused[-1]
        limits.insert(0, ("needed_l1_bytes", needed))
        text += f"{slices_told(other)} would take {needed:,} B of a core's L1, and {free_l1_bytes:,} B are free"
    else:
        text += f"{free_l1_bytes:,} B of a core's L1 are free"
    return ChosenSlices(
        config=config, decision=Decision(name="num_slices", value=count, text=text, limits=tuple(limits))
    )


def slices_told(config: SliceConfig) -> str:
    """Number and axis in words."""
    if config.num_slices == 1:
        return "one slice"
    return f"{config.num_slices} slices of {'rows' if config.slice_type is SliceType.DRAM_HEIGHT else 'columns'}"


def choose_slices(
    call: ConvArguments, device_spec: DeviceSpec, *, free_l1_bytes: int, frame: Frame | None = None
) -> ChosenSlices:
    """The smallest number of slices that fit the free L1, along the given axis or the better guess, then the other.

    Args:
        free_l1_bytes: Of every L1 bank.
        frame: The call's, where it is at hand.

    Raises:
        OutOfMemoryError: No number of slices fits, with the real library's text.
    """
    kinds = _kinds(call)
    need = cache(
        lambda part, several: slice_l1_bytes(call, part, device_spec, slices=1 + several)
    )  # most slices are alike
    frame, refused = frame or frame_of(call), list[tuple[SliceConfig, int]]()
    for kind in kinds:
        for count in range(1, most_slices_of(call, frame, kind) + 1):
            config = SliceConfig(slice_type=kind, num_slices=count)
            parts = (part for part in output_slices(call, config, frame) if not part.is_empty)
            excess = _excess(call, (need(part.at_origin, count > 1) for part in parts), free_l1_bytes)
            if excess is None:
                return _chosen(config, refused, free_l1_bytes)
            if excess:
                refused.append((config, excess))
    most, length = most_slices_of(call, frame, kinds[-1]), sliced_length(frame, kinds[-1])
    raise OutOfMemoryError(
        f"{_none_found(kinds[-1], most, length, free_l1_bytes)}\n"
        "conv_config: a smaller act_block_h_override, weights_dtype=bfloat8_b, no double buffering or another "
        "shard_layout take less; other live L1 tensors may be released first"
    )


def require_outputs(
    call: ConvArguments,
    refusal: str | None,
    free_l1_bytes: int | None,
    *,
    folded: tuple[int, int] | None = None,
) -> None:
    """Raises ArgumentError for a call without outputs, with the real library's first line where it has one.

    Where the real library runs out of DRAM for it, which only its plan shows, nothing is raised here.

    Args:
        refusal: What we say of a call without outputs; None if it has some.
        free_l1_bytes: Of every L1 bank; None where nothing is computed yet.
        folded: Height and width of the output where windows become channels, so that the plan is of another call.
    """
    if refusal is None:
        return
    if free_l1_bytes is None:
        raise ArgumentError(refusal)
    if folded is None and plans_without_outputs(call):
        return
    first = _slices_of_nothing(call, folded or output_lengths(call, unsigned=True), free_l1_bytes)
    raise ArgumentError(refusal if first is None else f"{first}\n{refusal}")


def _slices_of_nothing(call: ConvArguments, outputs: tuple[int, int], free_l1_bytes: int) -> str | None:
    """What the real library says of a call without outputs: that it finds no slices. None where it crashes instead.

    It says so where the axis that is cut has no outputs, and, if it is to choose the axis, where neither has.
    """
    if takes_l1_path(call) or min(outputs) < 0:
        return None
    kinds, given = _kinds(call), call.slice_config.num_slices if call.slice_config is not None else 0
    lengths = [outputs[kind is SliceType.DRAM_WIDTH] for kind in kinds]
    if given:
        most = div_up(lengths[0], rounding_of(call, kinds[0]))
        return too_many_line(given, most) if given > most else None
    return None if any(lengths) else _none_found(kinds[-1], 0, 0, free_l1_bytes)


def _kinds(call: ConvArguments) -> list[SliceType]:
    """The axes along which slices are looked for, in order."""
    if call.slice_config is not None:
        return [call.slice_config.slice_type]
    guess = guess_slice_type(call)
    return [guess, SliceType.DRAM_WIDTH if guess is SliceType.DRAM_HEIGHT else SliceType.DRAM_HEIGHT]


def _none_found(kind: SliceType, most: int, length: int, free_l1_bytes: int) -> str:
    axis = "height" if kind is SliceType.DRAM_HEIGHT else "width"
    return (
        f"DRAM Auto slice could not find valid slice configuration. Tried up to {most} slices for {axis}-slicing "
        f"on output dimension {length}. Available L1: {free_l1_bytes} bytes. "
        "Operation requires more memory than available even with maximum slicing."
    )


def _excess(call: ConvArguments, needs: Iterable[int], free_l1_bytes: int) -> int | None:
    """L1 of the first slice that does not fit; None if all do.

    One without outputs of its own, where the real search can crash, does not fit: 0.

    Args:
        needs: L1 of each of them.
        free_l1_bytes: What they have.

    Raises:
        DeviceError: The blocks of a slice are refused. Only given blocks can be: without any, the first slice that does
            not fit ends the search.
    """
    try:
        if call.conv_config.act_block_h_override:
            needs = list(needs)
        return next((need_bytes for need_bytes in needs if need_bytes > free_l1_bytes), None)
    except NoWindowError:
        return 0
