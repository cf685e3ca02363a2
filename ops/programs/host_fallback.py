"""A call that ttsim does not simulate, computed by the host in float32: values, but neither a plan nor cycles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from device.numbers.formats import Array
from device.plan import DeviceOp
from ops.op_model import OpModel, ValuesContext, given

NAME = "HostFallback"  # of the operation in plans and reports


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFallback(DeviceOp):
    """A function of ttnn that runs on the host."""

    # The arrays of the outputs, in storage of their formats, from the arrays of the inputs
    compute: Callable[[Sequence[Array]], tuple[Array, ...]] = field(compare=False)
    computed_by: str  # What computes the function, such as "torch.nn.functional.grid_sample"


def _values(op: HostFallback, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, ...]:
    return op.compute([given(array) for array in inputs])


OP_MODELS = (
    OpModel(op=HostFallback, values=_values, no_model="the host computed it in float32: it has no plan and no time"),
)
