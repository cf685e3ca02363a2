"""Slices that the real library's own arithmetic cuts wrongly (docs/planning.md, Faulty slices).

Near the end of a padded image a slice can come out with fewer outputs than it stands for, with none (the real library
crashes), or with an empty window (what follows it is never written).
"""

from device.plan import Operation, Plan
from ops.calls.convolution.arguments import ConvTranspose2dArguments, SliceType
from ops.calls.convolution.problem import frame_of, is_matmul
from ops.calls.convolution.slicing import most_slices, output_slices, slice_call
from ops.calls.convolution.strictness import output_size
from ops.calls.convolution.validation import ArgumentError, takes_l1_path
from ops.programs.conv2d.work import ConvWork
from ops.programs.movement.work import SliceWrite, Window

WAY_OUT = "give another number of slices, cut along the other axis, or leave dram_slice_config out"


def require_possible_slices(a: ConvTranspose2dArguments) -> None:
    """Refuses a number of slices that the real library crashes on.

    Raises:
        ArgumentError: A slice has no outputs of its own.
    """
    config = a.slice_config
    if config is None or config.slice_type is SliceType.L1_FULL or takes_l1_path(a) or is_matmul(a):
        return
    if not 1 < config.num_slices <= most_slices(a, config.slice_type):
        return
    for index, part in enumerate(output_slices(a, config)):
        if part.is_empty:
            continue
        try:
            frame_of(slice_call(a, part))
        except ValueError:
            raise ArgumentError(
                f"conv_transpose2d: dram_slice_config: slice {index} of {config.num_slices} has no outputs of its own, "
                f"which the real library crashes on; {WAY_OUT}"
            ) from None


def slice_fault(plan: Plan, a: ConvTranspose2dArguments) -> str | None:
    """What is wrong with a call whose slices do not write every output once; None if nothing is.

    Args:
        plan: The plan of the call, with the number of slices that was given or found.
        a: The call.
    """
    height, width = output_size(a)
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
