"""A call that ttsim does not simulate, computed by the host in float32: values, but neither a plan nor cycles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from device.numbers.formats import Array
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_model import Ends, ModeledOp, NoModelError, ValuesContext, given

NAME = "HostFallback"  # of the operation in plans and reports


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFallback(ModeledOp):
    """A function of ttnn that runs on the host."""

    function: str  # The function's name in ttnn
    computed_by: str  # What computes the function, such as "torch.nn.functional.grid_sample"
    # The arrays of the outputs, in storage of their formats, from the arrays of the inputs
    compute: Callable[[Sequence[Array]], tuple[Array, ...]] = field(compare=False)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, ...]:
        """The arrays of the outputs."""
        return self.compute([given(array) for array in inputs])

    def cycles(self, ends: Ends, spec: DeviceSpec) -> OperationCycles:
        """Raises NoModelError, which reports quote: the time of the host says nothing about a device."""
        raise NoModelError(f"ttnn.{self.function} ran on the host in float32 by {self.computed_by}: no plan, no time")
