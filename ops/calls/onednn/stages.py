"""Steps that the plans of all three directions share: uploads, results, releases."""

from collections.abc import Sequence
from math import prod

from device.memory.layouts import TensorSpec
from device.numbers.formats import DataFormat
from device.plan import Allocate, Free, Operation, Plan, Step, Work
from device.spec.device_spec import DeviceSpec
from ops.calls.onednn.problem import Deconvolution
from ops.programs.movement.staged import UPLOADED, Staged, allocated
from ops.programs.patch_matmul.host_work import PrepareBias, PrepareSticks, PrepareTaps
from ops.programs.patch_matmul.plan import bias_spec, result_spec, sticks_spec, weights_spec
from ops.programs.patch_matmul.work import Patches


def prepared(name: str, made: TensorSpec, spec: DeviceSpec, *, source: str, work: Work) -> Staged:
    """A host tensor, prepared and uploaded."""
    step = Allocate(name, made.buffer(spec), UPLOADED, source, work)
    return Staged(name=name, spec=made, steps=(step,), tensors={name: made})


def image_sticks(
    d: Deconvolution, source: str, spatial: Sequence[int], channels: int, spec: DeviceSpec, *, parts: int
) -> Staged:
    """An image as rows of channels.

    Args:
        d: The call.
        source: Name of the host tensor.
        spatial: Its spatial sizes.
        channels: Its channels.
        spec: The device.
        parts: Parts of every number.
    """
    made = sticks_spec(d.batch * prod(spatial), channels, d.slicing, parts)
    return prepared(f"{source}.sticks", made, spec, source=source, work=PrepareSticks(d.channels_last))


def tap_matrices(
    d: Deconvolution, name: str, taps: Sequence[range], patches: Patches, channels: int, spec: DeviceSpec, *, back: bool
) -> Staged:
    """The weights of some taps.

    Args:
        d: The call.
        name: Name of the new tensor.
        taps: Which taps of every axis.
        patches: The patches they are multiplied with.
        channels: Channels of the result.
        spec: The device.
        back: From destination channels to source channels.
    """
    work = PrepareTaps(weights_format=d.weights_format, groups=d.groups, taps=tuple(taps), towards_source=back)
    made = weights_spec(patches, channels, d.slicing)
    return prepared(name, made, spec, source="weights", work=work)


def bias_row(channels: int, spec: DeviceSpec) -> Staged:
    """The bias in float32."""
    return prepared("bias.row", bias_spec(channels), spec, source="bias", work=PrepareBias())


def result_sticks(name: str, positions: int, channels: int, data_format: DataFormat, spec: DeviceSpec) -> Staged:
    """A result that programs are going to write into."""
    return allocated(name, result_spec(positions, channels, data_format), spec)


def planned(stages: Sequence[Staged], steps: Sequence[Step], result: str) -> Plan:
    """Stages, then steps; in the end all tensors but the result are released."""
    tensors = {name: made for stage in stages for name, made in stage.tensors.items()}
    before = [step for stage in stages for step in stage.steps]
    made = {one.tensor for step in steps if isinstance(step, Operation) for one in step.outputs}
    released = [Free(name) for name in (*tensors, *sorted(made - set(tensors))) if name != result]
    return Plan(steps=(*before, *steps, *released), tensors=tensors, results={"output": result})
