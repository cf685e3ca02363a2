"""Steps that the plans of all three directions share: uploads and results."""

from collections.abc import Sequence
from math import prod

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import FLOAT32, DataFormat
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.onednn.problem import Deconvolution
from ops.programs.patch_matmul.host_work import PrepareBias, PrepareSticks, PrepareTaps
from ops.programs.patch_matmul.plan import bias_spec, result_spec, sticks_spec, weights_spec
from ops.programs.patch_matmul.work import Patches

# What the tensors of a plan are on the host does not matter to it: each is prepared as its work says.
HOST_TENSOR = TensorSpec((1,), FLOAT32, Layout.ROW_MAJOR)


def image_sticks(
    builder: PlanBuilder, d: Deconvolution, source: str, spatial: Sequence[int], channels: int, *, parts: int
) -> PlanTensor:
    """An image as rows of channels.

    Args:
        source: Name of the host tensor.
        parts: Parts of every number.
    """
    made = sticks_spec(d.batch * prod(spatial), channels, d.slicing, parts)
    return builder.upload(f"{source}.sticks", made, source, PrepareSticks(d.channels_last))


def tap_matrices(
    builder: PlanBuilder,
    d: Deconvolution,
    name: str,
    taps: Sequence[range],
    patches: Patches,
    channels: int,
    *,
    back: bool,
) -> PlanTensor:
    """The weights of some taps.

    Args:
        name: Name of the new tensor.
        taps: Which taps of every axis.
        patches: The patches they are multiplied with.
        back: From destination channels to source channels.
    """
    work = PrepareTaps(weights_format=d.weights_format, groups=d.groups, taps=tuple(taps), towards_source=back)
    return builder.upload(name, weights_spec(patches, channels, d.slicing), "weights", work)


def bias_row(builder: PlanBuilder, channels: int) -> PlanTensor:
    """The bias in float32."""
    return builder.upload("bias.row", bias_spec(channels), "bias", PrepareBias())


def result_sticks(
    builder: PlanBuilder, name: str, positions: int, channels: int, data_format: DataFormat
) -> PlanTensor:
    """A result that programs are going to write into."""
    return builder.allocate(name, result_spec(positions, channels, data_format))
