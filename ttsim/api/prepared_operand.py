"""What the preparations of weights and bias have in common: the call to come, and the upload out of its plan."""

from dataclasses import replace
from typing import Protocol

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Allocate, Plan
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, Operand, is_matmul, takes_l1_path
from ops.planners.conv.slicing import most_slices
from ops.programs.movement.placement import whole_shards
from ttsim.runtime.device import Device
from ttsim.runtime.execution import free_l1_bytes, run
from ttsim.runtime.tensor import Tensor
from ttsim.types.tensors import DataType


class Planner(Protocol):
    """Plans a call, with operands by their roles as results."""

    def __call__(self, call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
        """The plan."""
        ...


def future_input(
    image_shape: tuple[int, int, int, int], dtype: DataType, layout: Layout, place: MemoryConfig
) -> Operand:
    """The input that the call will have; shards are left to the call where the config names none.

    Rows of block floats, which no tensor has, can be described all the same, and mean rows of bfloat16. So can shards
    that the image does not fit: nothing but their cores and their width is asked.
    """
    batch, height, width, channels = image_shape
    config = place if place.shard_spec is not None or not place.is_sharded() else DRAM_MEMORY_CONFIG
    data_format = BFLOAT16 if dtype.format.is_block and layout is Layout.ROW_MAJOR else dtype.format
    shape = (1, 1, batch * height * width, channels)
    try:
        spec = TensorSpec(shape, data_format, layout, config)
    except DeviceError:
        if config.shard_spec is None:
            raise
        spec = TensorSpec(shape, data_format, layout, config, (1, 1, *whole_shards(config)))
    return Operand(spec=spec, on_host=False)


def as_prepared(call: ConvCall) -> ConvCall:
    """The call as its operands are prepared: what its own checks refuse of its cores is left to them."""
    config = call.conv_config
    if config.core_grid is None:
        call = replace(call, conv_config=replace(config, override_sharding_config=False))
    return call


def within_reach(call: ConvCall) -> ConvCall:
    """The call with an input that slices can be cut out of, and no more slices than there can be."""
    config = call.slice_config
    if config is None or takes_l1_path(call) or is_matmul(call):
        return call
    spec = call.input.spec
    image = replace(call.input, spec=TensorSpec(spec.shape, spec.data_format, spec.layout, DRAM_MEMORY_CONFIG))
    fewer = min(config.num_slices, most_slices(call, config.slice_type))
    return replace(call, input=image, slice_config=replace(config, num_slices=fewer))


def placeholder(shape: tuple[int, ...]) -> Operand:
    """A host tensor whose shape alone matters."""
    return Operand(spec=TensorSpec(shape, FLOAT32, Layout.ROW_MAJOR), on_host=True)


def prepared_operand(
    arguments: ConvCall,
    planned: Planner,
    role: str,
    tensor: Tensor,
    device: Device,
    function: str,
    *,
    before: Plan | None = None,
) -> Tensor:
    """Carries out, of the plan of a preparation, only the upload of one tensor.

    Args:
        arguments: The call to come, validated.
        planned: Plans the preparation, or the call itself.
        role: "weight" or "bias".
        tensor: On the host.
        device: Where.
        function: Of the library.
        before: What the preparation allocates, and releases, before that.
    """
    plan = planned(arguments, device.spec, free_l1_bytes=free_l1_bytes(device))
    steps, tensors = ((), {}) if before is None else (before.steps, before.tensors)
    if plan.refused:  # raised once what the preparation does before has run
        with device.function(f"ttnn.{function}"):
            run(Plan(steps=(*steps, plan.steps[-1]), tensors=tensors), {}, device)
    name = plan.results[role]
    upload = tuple(step for step in plan.steps if isinstance(step, Allocate) and step.tensor == name)
    part = Plan(steps=(*steps, *upload), tensors={**tensors, name: plan.tensors[name]}, results={role: name})
    with device.function(f"ttnn.{function}"):
        return run(part, {role: tensor}, device)[role]
