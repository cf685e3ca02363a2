"""The frame of plans: named tensors in, steps, one tensor out."""

from collections.abc import Callable, Mapping

from device.memory.layouts import TensorSpec
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.op_models import OP_MODELS


def plan_of(
    sources: TensorSpec | Mapping[str, TensorSpec | None],
    spec: DeviceSpec,
    write: Callable[..., PlanTensor],
    *,
    attempts: bool = False,
) -> Plan:
    """The plan of what ``write`` writes of the named sources that are there, or of one "input"; its result is "output".

    ``write`` takes the builder and the tensors in order. With ``attempts``, steps before a DeviceError run and the plan
    ends in the error; otherwise the error is raised.
    """
    named = {"input": sources} if isinstance(sources, TensorSpec) else sources
    builder = PlanBuilder(spec, {name: source for name, source in named.items() if source is not None})
    tensors = [builder.tensor(name) for name, source in named.items() if source is not None]
    result = builder.attempt(lambda: write(builder, *tensors), tensors[0]) if attempts else write(builder, *tensors)
    return builder.finish({"output": result.name}, {result.name: result.spec}, known_works=OP_MODELS)
