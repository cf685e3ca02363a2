"""Plans of ttnn.batch_norm: images normalized with statistics, and running statistics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from device.errors import DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import page_cores, volume_tiles
from ops.programs.normalization.batch_norm import BatchNorm, RunningStatistics, batch_buffers, running_buffers


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNormArguments:
    """A call of batch_norm with the statistics of its images or running ones."""

    source: TensorSpec  # [N, C, H, W]
    mean: TensorSpec  # [1, C, 1, 1], as the others
    variance: TensorSpec
    weight: TensorSpec | None = None
    bias: TensorSpec | None = None
    target: TensorSpec | None = None  # The caller's tensor for the result
    epsilon: float = 1e-5
    place: MemoryConfig | None = None  # None for that of the images
    fidelity_phases: int = 4


def plan_batch_norm(call: BatchNormArguments, spec: DeviceSpec) -> Plan:
    """Plan a call of the tensors "input", "mean", "variance", "weight", "bias" and "target"; raises DeviceError."""
    for text in _faults(call, spec):
        raise DeviceError(text)
    inputs = {"input": call.source, "mean": call.mean, "variance": call.variance}
    inputs |= {"weight": call.weight, "bias": call.bias, "target": call.target}  # type: ignore[dict-item]

    def write(builder: PlanBuilder, *tensors: PlanTensor) -> PlanTensor:
        place = call.place or call.source.memory_config
        output = None if call.target is not None else PlanTensor("output", call.source.changed(memory_config=place))
        op = BatchNorm(
            shape=call.source.shape,
            epsilon=call.epsilon,
            data_format=call.source.data_format,
            statistics_format=call.mean.data_format,
            weight_format=None if call.weight is None else call.weight.data_format,
            bias_format=None if call.bias is None else call.bias.data_format,
            fidelity_phases=call.fidelity_phases,
            cores=page_cores(volume_tiles(call.source), spec.grid, row_wise=True),
        )
        buffers = batch_buffers(op, spec)
        return builder.run("BatchNormOperation", op, tensors, output, buffers, dataflow=True, key=("batch_norm", call))

    return plan_of(inputs, spec, write)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningArguments:
    """Running statistics, updated by a share of the statistics of a batch."""

    mean: TensorSpec  # Of the batch, [1, C, 1, 1], as the others
    variance: TensorSpec
    running_mean: TensorSpec | None = None
    running_variance: TensorSpec | None = None
    momentum: float = 0.1
    place: MemoryConfig | None = None  # None for that of the mean
    fidelity_phases: int = 4


def plan_running_statistics(call: RunningArguments, spec: DeviceSpec) -> Plan:
    """Plan an update of the tensors "running_mean" and "running_variance"; raises DeviceError."""
    for text in _running_faults(call):
        raise DeviceError(text)
    running = {"running_mean": call.running_mean, "running_variance": call.running_variance}
    builder = PlanBuilder(spec, {"mean": call.mean, "variance": call.variance} | running)
    known = [builder.tensor(name) for name, tensor in running.items() if tensor is not None]
    op = RunningStatistics(
        channels=call.mean.shape[1],
        momentum=call.momentum,
        data_format=call.mean.data_format,
        mean_format=None if call.running_mean is None else call.running_mean.data_format,
        variance_format=None if call.running_variance is None else call.running_variance.data_format,
        fidelity_phases=call.fidelity_phases,
        cores=page_cores(volume_tiles(call.mean), spec.grid, row_wise=True),
    )
    output = PlanTensor("output", call.mean.changed(memory_config=call.place or call.mean.memory_config))
    reads = [builder.tensor("mean"), builder.tensor("variance"), *known]
    buffers = running_buffers(op, spec)
    key = ("running_statistics", call)
    result = builder.run("RunningStatistics", op, reads, output, buffers, updates=known, dataflow=True, key=key)
    return builder.finish({"output": result} | {tensor.name: tensor for tensor in known})


def check_formats(parameters: Mapping[str, TensorSpec | None]) -> None:
    """Raises DeviceError where statistics, weight and bias are of several formats."""
    formats = {name: tensor.data_format for name, tensor in parameters.items() if tensor is not None}
    first = next(iter(formats.values()), None)
    for name, data_format in formats.items():
        if first is not None and data_format != first:
            raise DeviceError(
                f"batch_norm: {name} dtype (DataType::{data_format.name.upper()}) must match other parameter tensors "
                f"dtype (DataType::{first.name.upper()})\n{name}: typecast it"
            )


def _faults(call: BatchNormArguments, spec: DeviceSpec) -> Iterator[str]:
    """The errors of a call, in the real library's order."""
    source, tilize = call.source, "use to_layout(TILE_LAYOUT)"
    statistics = {"running_mean": call.mean, "running_var": call.variance, "weight": call.weight, "bias": call.bias}
    if call.target is None:
        place = call.place or source.memory_config
        require_shard_spec(place, in_rows=False)
        TensorSpec(source.shape, source.data_format, Layout.TILE, place).require_on(spec)
    if source.layout is not Layout.TILE:
        yield f"Input tensor must be must be tilized\ninput: {tilize}"
    if source.memory_config.is_sharded():
        yield "Input tensor must be interleaved\ninput: use sharded_to_interleaved"
    if (call.place or source.memory_config).memory_layout is not TensorMemoryLayout.INTERLEAVED:
        yield "Output tensor to eltwise binary must be interleaved\nmemory_config: give an interleaved one"
    names = ("batch_mean", "batch_var", "weight", "bias")
    for name, (argument, tensor) in zip(names, statistics.items(), strict=True):
        if tensor is not None and tensor.layout is not Layout.TILE:
            yield f"{name} tensor must be tilized\n{argument}: {tilize}"
        if tensor is not None and tensor.memory_config.is_sharded():
            yield f"{name} tensor must be interleaved\n{argument}: use sharded_to_interleaved"
    channels = source.shape[1]
    checked = [
        ("input", source),
        ("batch_mean", call.mean),
        ("batch_mean", call.variance),
    ]  # the library says so of both
    checked += [("output", call.target), ("weight", call.weight), ("bias", call.bias)]  # type: ignore[list-item]
    for name, tensor in checked:
        if tensor is not None:
            yield from _tensor_faults(name, tensor, channels)


def _running_faults(call: RunningArguments) -> Iterator[str]:
    """The errors of an update, in the real library's order."""
    tensors = {"batch_mean": call.mean, "batch_var": call.variance}
    tensors |= {"running_mean": call.running_mean, "running_var": call.running_variance}  # type: ignore[dict-item]
    known = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    for name, tensor in known.items():
        if tensor.layout is not Layout.TILE:
            yield f"{name} tensor must be tilized\n{name}: use to_layout(TILE_LAYOUT)"
        if tensor.memory_config.is_sharded():
            yield f"{name} tensor must be interleaved\n{name}: use sharded_to_interleaved"
    for name, tensor in known.items():
        yield from _tensor_faults(name, tensor, call.mean.shape[1])


def _tensor_faults(name: str, tensor: TensorSpec, channels: int) -> Iterator[str]:
    if tensor.data_format not in (BFLOAT16, FLOAT32):
        kind = tensor.data_format.name.upper()
        yield f"batch_norm only supports bfloat16, float32. Got: DataType::{kind}\n{name}: typecast it"
    if len(tensor.shape) != 4:
        yield f"batch_norm supports tensors of rank 4\n{name}: reshape {list(tensor.shape)}"
    if tensor.shape[1] != channels:
        yield (
            f"{name}_shape[1] must be the same as input's channel size.\n{name}: its shape {list(tensor.shape)} does "
            f"not hold {channels} channels"
        )
