"""The plan of a call with one tensor."""

from collections.abc import Callable

from device.memory.layouts import TensorSpec
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.op_models import OP_MODELS


def plan_of(
    source: TensorSpec,
    spec: DeviceSpec,
    write: Callable[[PlanBuilder, PlanTensor], PlanTensor],
    *,
    attempts: bool = False,
) -> Plan:
    """The plan of what ``write`` writes of the tensor "input", whose result is "output".

    With ``attempts``, steps before a DeviceError run and the plan ends in the error; otherwise the error is raised.
    """
    builder = PlanBuilder(spec, {"input": source})
    tensor = builder.tensor("input")
    result = builder.attempt(lambda: write(builder, tensor), tensor) if attempts else write(builder, tensor)
    return builder.finish({"output": result.name}, {result.name: result.spec}, known_works=OP_MODELS)
