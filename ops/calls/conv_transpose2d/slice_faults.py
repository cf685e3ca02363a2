"""Slices that the real library's own arithmetic cuts wrongly (docs/planning.md, Faulty slices).

Near the end of a padded image a slice can come out with fewer outputs than it stands for, with none (the real library
crashes), or with an empty window (what follows it is never written).
"""

from device.errors import ArgumentError
from device.plan import Operation, Plan
from ops.calls.conv_transpose2d.validation import output_size
from ops.calls.convolution.arguments import ConvArguments, SliceType
from ops.calls.convolution.paths import is_matmul, takes_l1_path
from ops.calls.convolution.problem import frame_of
from ops.calls.convolution.slicing import most_slices, output_slices, slice_call
from ops.frame.axis import NoWindowError
from ops.programs.conv2d.work import ConvWork
from ops.programs.movement.work import SliceWrite, Window

WAY_OUT = "give another number of slices, cut along the other axis, or leave dram_slice_config out"


def require_possible_slices(call: ConvArguments) -> None:
    """Refuses a number of slices that the real library crashes on.

    Raises:
        ArgumentError: A slice has no outputs of its own.
    """
    config = call.slice_config
    if config is None or config.slice_type is SliceType.L1_FULL or takes_l1_path(call) or is_matmul(call):
        return
    if not 1 < config.num_slices <= most_slices(call, config.slice_type):
        return
    for index, part in enumerate(output_slices(call, config)):
        if part.is_empty:
            continue
        try:
            frame_of(slice_call(call, part))
        except NoWindowError:
            raise ArgumentError(
                f"conv_transpose2d: dram_slice_config: slice {index} of {config.num_slices} has no outputs of its own, "
                f"which the real library crashes on; {WAY_OUT}"
            ) from None


def slice_fault(plan: Plan, call: ConvArguments) -> str | None:
    """What is wrong with a call whose slices do not write every output once; None if nothing is.

    Args:
        plan: The plan of the call, with the number of slices that was given or found.
        call: The call.
    """
    height, width = output_size(call)
    written = 0
    computed = (0, 0)
    for step in plan.steps:
        work = step.work if isinstance(step, Operation) else None
        if isinstance(work, ConvWork):
            computed = work.problem.frame.rows.outputs, work.problem.frame.columns.outputs
        elif isinstance(work, SliceWrite):
            wanted = _size(work.window)
            written += wanted[0] * wanted[1]
            if computed[0] != wanted[0] or computed[1] < wanted[1]:
                return (
                    f"conv_transpose2d: dram_slice_config: a slice that stands for {wanted[0]} x {wanted[1]} outputs "
                    f"computes {computed[0]} x {computed[1]}, so that wrong ones come out, as of the real library; "
                    f"{WAY_OUT}"
                )
    if written in (0, height * width):
        return None
    return (
        f"conv_transpose2d: dram_slice_config: {height * width - written} of {height * width} outputs are never "
        f"written, because a slice reads no input, as in the real library; {WAY_OUT}"
    )


def _size(window: Window) -> tuple[int, int]:
    """Rows and columns of a window of an image."""
    return window.ends[1] - window.begins[1], window.ends[2] - window.begins[2]
