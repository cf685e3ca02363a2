"""What the functions of convolutions share: their tensors as arguments of plans, and results as they hand them back."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from device.errors import ArgumentError, OutOfMemoryError
from device.plan import Plan, ProgramKey
from ops.planners.conv.arguments import ConvCall, Operand, describe_no_outputs, plans_without_outputs
from ops.planners.conv.checks import claimed_volume
from ttsim.runtime.device import Device
from ttsim.runtime.execution import free_l1_bytes
from ttsim.runtime.tensor import Tensor


def operand(tensor: Tensor) -> Operand:
    """A tensor as an argument of a plan."""
    return Operand(spec=tensor.spec, on_host=tensor.device() is None, made_by=tensor.made_by)


def named(input_tensor: Tensor, weight_tensor: Tensor, bias_tensor: Tensor | None) -> dict[str, Tensor]:
    """A call's tensors by their names in its plan."""
    tensors = {"input": input_tensor, "weight": weight_tensor}
    return tensors if bias_tensor is None else {**tensors, "bias": bias_tensor}


@dataclass(frozen=True, slots=True)
class Planning:
    """A call that is to be planned; `planning` makes it."""

    # Plans a valid call on a spec; a strict one refuses plans that would give wrong results
    planner: Callable[..., Plan]
    call: ConvCall
    device: Device
    returns_weights: bool  # Prepared weights and bias are asked for
    key: ProgramKey  # All that decides the plan, but for the device's spec

    @property
    def is_kept(self) -> bool:
        """Whether the plan is there, of an equal call, which was valid then."""
        return self.device.plans.holds(self.key, self.device.spec)

    def plan(self) -> Plan:
        """The plan, of those that are kept if an equal call came before; raises what the planner raises."""
        return self.device.plans.plan_of(self.key, self.device.spec, self._planned)

    def _planned(self) -> Plan:
        return self.planner(
            self.call,
            self.device.spec,
            free_l1_bytes=free_l1_bytes(self.device),
            returns_weights=self.returns_weights,
            strict=self.device.strict,
        )


def planning(
    planner: Callable[..., Plan], call: ConvCall, device: Device, *, reads_free_l1: bool, returns_weights: bool
) -> Planning:
    """A call that is to be planned; it need not be known to be valid yet.

    Args:
        planner: As of `Planning`, like all that is not said here.
        call: The call.
        device: Where.
        reads_free_l1: Whether the free bytes of L1 can change the plan.
        returns_weights: Prepared weights and bias are asked for.
    """
    free = free_l1_bytes(device) if reads_free_l1 else None
    numbers = repr(call.conv_config.activation)  # the only fractions of a call: 0.0 and -0.0 are equal, not the same
    key = ProgramKey((planner, call, numbers, free, returns_weights, device.strict))
    return Planning(planner, call, device, returns_weights, key)


def misfit_shape(call: ConvCall, input_tensor: Tensor) -> tuple[int, int] | None:
    """Sticks and channels that a call says its input has, where the input has other ones."""
    claimed = claimed_volume(call)
    return None if claimed == input_tensor.logical_volume() else (claimed // call.in_channels, call.in_channels)


@contextmanager
def told_lost_outputs(call: ConvCall) -> Iterator[None]:
    """Adds to an OutOfMemoryError of a call without outputs that there are none."""
    try:
        yield
    except OutOfMemoryError as error:
        if not plans_without_outputs(call):
            raise
        raise ArgumentError(f"{str(error).splitlines()[0]}\n{describe_no_outputs(call)}") from error


def handed_back(
    results: Mapping[str, Tensor], *, output_dim: tuple[int, int] | int | None, weights_and_bias: bool
) -> Any:
    """The output; or (output, (OH, OW)) (of rows (output, OL)), or (output, (weights, bias)), or all three."""
    returned: list[Any] = [results["output"]]
    if output_dim is not None:
        returned.append(output_dim)
    if weights_and_bias:
        returned.append((results["weight"], results.get("bias")))
    return returned[0] if len(returned) == 1 else tuple(returned)
