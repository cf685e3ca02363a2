"""Common parts of the plans of ttnn.sort and ttnn.topk: four axes for their program, and the axis moved back."""

from collections.abc import Sequence
from math import prod

from device.memory.memory_config import MemoryConfig
from device.plan import TARGET
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.shape.permute import RANK, transposed_by
from ops.planners.shape.slice import cut_by
from ops.programs.data_movement.placement import viewed

ROLES = "values", "indices"
TARGETS = tuple(f"{TARGET}.{role}" for role in ROLES)  # names of the caller's tensors for both results


def four_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape as the library cuts it: with axes of 1 in front, or with the first axes put together."""
    more = max(0, len(shape) - RANK + 1)
    return (*[1] * (RANK - len(shape)), *([prod(shape[:more])] if more > 1 else shape[:more]), *shape[more:])


def swapped(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """A shape with an axis exchanged for the last."""
    sides = list(shape)
    sides[axis], sides[-1] = sides[-1], sides[axis]
    return tuple(sides)


def put_back(
    builder: PlanBuilder,
    made: Sequence[PlanTensor],
    shape: tuple[int, ...],
    axis: int,
    place: MemoryConfig,
    *,
    cut_place: MemoryConfig | None = None,
    kept: Sequence[PlanTensor] = (),
) -> dict[str, PlanTensor]:
    """Values and indices from a program along the last of four axes: sliced to a shape, with the axis moved back.

    Args:
        builder: The plan.
        made: Values and indices of the program, of four axes.
        shape: Their shape without padding, with the axis at the end.
        axis: Original position of the axis, from the front.
        place: The memory for moving the axis back.
        cut_place: The memory for slicing; None for their current memory.
        kept: Tensors of the plan that are not freed.
    """
    boxes, last = [], len(shape) - 1
    for role, result in zip(ROLES, made, strict=True):
        box = cut_by(builder, result, four_axes(shape), f"{role}.box", place=cut_place)
        builder.free_own(result, keep=[box, *kept])
        boxes.append(PlanTensor(box.name, viewed(box.spec, shape, builder.device_spec)))
    results = dict(zip(ROLES, boxes, strict=True))
    for role, box in results.items() if axis != last else ():
        results[role] = transposed_by(builder, box, (axis, last), place, role)
        builder.free_own(box, keep=[results[role], *kept])
    return results
