"""The plan of ttnn.topk. Rules: ttnn 0.81.1, compared with its plans.

The axis is put last and rows are padded to 64 columns; the results are cut, and the axis is put back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from device.cores import CoreRange, CoreRangeSet
from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, GROUP, INT32, UINT16, UINT32, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.ordered import ROLES, TARGETS, four_axes, put_back
from ops.planners.shape.pad import fill_padding, padded_by
from ops.planners.shape.permute import RANK, seen, transposed_by
from ops.planners.to_config import placed
from ops.programs.buffer_shapes import page_cores, require_cores
from ops.programs.reduction.topk import TopK, may_share, split_of, topk_buffers
from ops.programs.reduction.topk_route import MOST_PICKED, PLACES, Part, PickMany, part_buffers, rows_between

FORMATS = (BFLOAT16, BFLOAT8_B, FLOAT32)
LEAST_COLUMNS = 64  # of rows that are sorted; shorter rows are padded
SMALL_COLUMNS = 1 << 16  # up to which places are uint16
MOST = 64  # elements of rows of bfloat16, beyond which some devices take other programs, ...
MOST_COLUMNS = 4096  # ... and from this number of columns on


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKArguments:
    """A call."""

    count: int
    dim: int = -1  # As the caller counts it
    largest: bool = True
    stable: bool = False  # Equal elements are in the order of their places in any case
    place: MemoryConfig | None = None
    cores: CoreRangeSet | None = None  # That may be used; None for all
    targets: tuple[TensorSpec, TensorSpec] | None = None  # The caller's tensors `TARGETS` for the results
    labels: TensorSpec | None = None  # Of the tensor "labels": numbers of elements, which are given instead of places


def plan_topk(source: TensorSpec, call: TopKArguments, spec: DeviceSpec) -> Plan:
    """Plan the results "values" and "indices" of the tensor "input"; raises DeviceError for a call it refuses."""
    rank = len(source.shape)
    axis = _checked_axis(source, call)
    if call.targets is not None:
        _check_targets(source, call.targets, call, axis)
    if call.labels is not None:
        _check_labels(source, call.labels, call, axis)
    named = dict(zip(TARGETS, call.targets or (None, None), strict=True))
    builder = PlanBuilder(spec, {"input": source, "labels": call.labels, **named})
    tensor = builder.tensor("input")
    if not source.volume:  # both results have the tensor's data type
        sides = (*source.shape[:axis], call.count, *source.shape[axis + 1 :])
        result = source.changed(shape=sides, padded_shape=None, memory_config=call.place)
        return builder.finish({role: builder.allocate(role, result) for role in ROLES})
    is_last, new = axis == rank - 1, call.targets is None
    if is_last and new and call.labels is None and takes_route(source, call, spec):
        return builder.finish(_routed(builder, tensor, call))
    turned = _turned(builder, tensor, axis, "turned")
    read = [_filled(builder, turned, -inf if call.largest else inf)]
    if call.labels is not None:
        read.append(_wide(builder, builder.tensor("labels"), 0.0, "labels"))
    held = [] if new else [_turned(builder, builder.tensor(name), axis, f"{name}.turned") for name in TARGETS]
    exact = is_last and rank == RANK
    count = call.count if not new or exact else round_up(call.count, TILE)
    made = _selected(builder, read, turned.spec.shape, call, count, held)
    wanted = (*turned.spec.shape[:-1], call.count)
    cut_again = not new and not exact and call.count % TILE  # as the library does, even into the same shape
    cut_place = (call.place or source.memory_config) if cut_again else None
    results = put_back(builder, made, wanted, axis, source.memory_config, cut_place=cut_place, kept=held)
    builder.free_own(*held, keep=[*results.values()])
    builder.free_own(*read, keep=[turned])
    builder.free_own(turned)
    return builder.finish(results)


def _turned(builder: PlanBuilder, tensor: PlanTensor, axis: int, name: str) -> PlanTensor:
    """A tensor with an axis exchanged for the last."""
    last = len(tensor.spec.shape) - 1
    return tensor if axis == last else transposed_by(builder, tensor, (axis, last), tensor.spec.memory_config, name)


def _check_labels(source: TensorSpec, labels: TensorSpec, call: TopKArguments, axis: int) -> None:
    """Raises DeviceError for labels of elements that no call accepts."""
    rank, text = len(source.shape), None
    if labels.shape != source.shape:
        shapes = f"Got : Shape({list(labels.shape)}), expected: Shape({list(source.shape)})"
        text = f"Indices tensor has incorrect shape! {shapes}"
    elif axis != rank - 1:
        only = "Indices tensor is only supported for a reduction on the last dimension"
        text = f"{only}, got dim={call.dim} for rank {rank}"
    elif rank < RANK and source.shape[-1] < LEAST_COLUMNS:
        text = "ttnn.pad: padding len can't be larger than input tensor rank"
    if text is not None:
        raise DeviceError(
            f"{text}\nindices_tensor: leave it out, or give numbers of the elements of rows of a rank of 4"
        )


def _check_targets(source: TensorSpec, targets: tuple[TensorSpec, TensorSpec], call: TopKArguments, axis: int) -> None:
    """Raises DeviceError for targets of another shape than the results."""
    shape = (*source.shape[:axis], call.count, *source.shape[axis + 1 :])
    for role, target in zip(ROLES, targets, strict=True):
        if target.shape != shape:
            raise DeviceError(
                f"Preallocated {role} tensor has incorrect shape! Got : Shape({list(target.shape)}), expected: "
                f"Shape({list(shape)})\noutput_tensor: give two tensors of that shape"
            )


def _require_labels(source: TensorSpec, labels: TensorSpec, target: TensorSpec | None) -> None:
    """Raises DeviceError for labels of elements that the program cannot read, or cannot write into a target."""
    forms = [tensor.data_format for tensor in (labels, target or labels)]
    names = [f"DataType::{form.name.upper()}" for form in forms]
    text = None
    if labels.layout is not Layout.TILE:
        text = "in tiled format, got: Layout::ROW_MAJOR"
    elif labels.data_format not in (UINT16, UINT32, INT32):
        text = f"UINT16, UINT32, or INT32, got: {names[0]}"
    elif source.data_format == FLOAT32 and labels.data_format == UINT16:
        text = "UINT32 when input tensor is FLOAT32, got UINT16"
    elif forms[0].element_bytes != forms[1].element_bytes:
        text = f"the same width as the output indices dtype {names[1]}, got: {names[0]}"
    if text is not None:
        raise DeviceError(f"Optional indices tensor must be {text}\nindices_tensor: give tiles of uint32")


def _check_forms(source: TensorSpec, values: TensorSpec, indices: TensorSpec, *, wide: bool) -> None:
    """Raises DeviceError for targets that the program cannot write; ``wide`` indices have 32 bits."""
    names = [tensor.data_format.name.upper() for tensor in (source, values, indices)]
    for role, tensor in (("output", values), ("indices", indices)):
        if tensor.layout is not Layout.TILE:
            raise DeviceError(
                f"Preallocated {role} tensor must be in tiled format, got: Layout::ROW_MAJOR\n"
                "output_tensor: give two tensors in TILE_LAYOUT"
            )
    faults = {
        f"output tensor must be BFLOAT16, BFLOAT8_B, or FLOAT32 got: DataType::{names[1]}": (
            values.data_format not in FORMATS
        ),
        f"indices tensor must be UINT16, UINT32, or INT32 got: DataType::{names[2]}": (
            indices.data_format not in (UINT16, UINT32, INT32)
        ),
        f"output tensor dtype must match input tensor dtype. Got output: DataType::{names[1]}, input: "
        f"DataType::{names[0]}": values.data_format != source.data_format,
        f"indices tensor must be 32-bit (UINT32 or INT32) for this input, got: DataType::{names[2]}": (
            wide and indices.data_format == UINT16
        ),
    }
    for text, found in faults.items():
        if found:
            raise DeviceError(f"Preallocated {text}\noutput_tensor: give two tensors like the results")


def require_kept_numbers(source: TensorSpec, call: TopKArguments) -> None:
    """Raises for block floats that share exponents with infinite padding, so that they become zeros."""
    columns = source.shape[call.dim]
    if source.data_format.is_block and columns % GROUP:
        raise ArgumentError(
            f"topk: the last of {columns} elements share exponents in groups of {GROUP} with padding, which the real "
            f"library makes infinite, so that they are lost; typecast the {source.data_format} tensor to bfloat16 first"
        )


def _checked_axis(source: TensorSpec, call: TopKArguments) -> int:
    """The axis, counted from the first."""
    rank = len(source.shape)
    if not -rank <= call.dim < rank:
        raise DeviceError(
            f"Dimension for topk is out of range (expected to be in range of [{-rank}, {rank - 1}])\n"
            f"dim: the tensor has no axis {call.dim}"
        )
    if (size := source.shape[call.dim]) < call.count:
        raise DeviceError(
            f"K cannot be larger than the dimension size! K={call.count}, dimension size={size}\ntopk: ask for fewer"
        )
    if not call.count and source.volume:
        raise NotSimulatedError("topk: k=0 is not simulated; ask for 1 or more")
    return call.dim % rank


def _wide(builder: PlanBuilder, tensor: PlanTensor, filler: float, name: str) -> PlanTensor:
    """A tensor with four axes and rows that are sorted; all cores pad bfloat16 in DRAM alone."""
    spec = tensor.spec
    around = (*[(0, 0)] * (RANK - 1), (0, max(0, LEAST_COLUMNS - spec.shape[-1])))
    by_one_core = spec.data_format != BFLOAT16 or spec.memory_config.buffer_type is BufferType.L1
    four = seen(tensor, four_axes(spec.shape))
    return padded_by(builder, four, around, filler, f"{name}.padded", by_one_core=by_one_core)


def _filled(builder: PlanBuilder, turned: PlanTensor, filler: float) -> PlanTensor:
    """The tensor with four axes and padding that is never among the best."""
    padded = _wide(builder, turned, filler, "input")
    if padded.spec.layout is not Layout.TILE:
        if any(side % TILE for side in padded.spec.shape[-2:]):
            raise DeviceError("FillPad should only be used for tile layout\ntopk: bring the tensor into TILE_LAYOUT")
        return padded
    read = fill_padding(builder, padded, filler, "filled", seen=turned.spec.data_format.is_block)
    builder.free_own(padded, keep=[read, turned])
    return read


def _selected(
    builder: PlanBuilder,
    read: Sequence[PlanTensor],
    shape: tuple[int, ...],
    call: TopKArguments,
    count: int,
    targets: Sequence[PlanTensor],
) -> list[PlanTensor]:
    """The selected elements of each row, and their indices or labels, with four axes.

    The program reads rows, and labels if any; ``shape`` is the tensor's without padding.
    """
    source, spec = read[0].spec, builder.device_spec
    place = builder.tensor("input").spec.memory_config if call.place is None else call.place
    small = source.data_format != FLOAT32 and source.padded_shape[-1] <= SMALL_COLUMNS
    ragged = source.shape[-1] % TILE > 0
    held = [seen(target, four_axes(target.spec.shape)) for target in targets]
    formats = (source.data_format, UINT16 if small else UINT32)
    if held:
        specs = [target.spec for target in held]
    else:
        require_shard_spec(place, in_rows=False)
        formats = formats if call.labels is None else (source.data_format, call.labels.data_format)
        sides = (*four_axes(shape)[:-1], count)
        specs = [TensorSpec(sides, form, Layout.TILE, place) for form in formats]
    if call.labels is not None and call.stable:
        raise DeviceError(
            "TopK stable=true does not support a custom indices_tensor: tie-breaking against caller-supplied labels is "
            "not defined. Use positional indices (indices_tensor=None).\nstable: leave it out"
        )
    if place.is_sharded():
        raise DeviceError("Sharded implementation not supported yet\nmemory_config: use interleaved memory")
    if source.layout is not Layout.TILE:
        raise DeviceError("The input must be in tiled format\ntopk: bring the tensor into TILE_LAYOUT")
    if source.data_format not in FORMATS:
        raise DeviceError(
            "Input tensor must be BFLOAT16, BFLOAT8_B, or FLOAT32, got: DataType::"
            f"{source.data_format.name.upper()}\ntopk: typecast the tensor"
        )
    if call.labels is not None:
        _require_labels(source, call.labels, held[1].spec if held else None)
    if held:
        _check_forms(source, held[0].spec, held[1].spec, wide=not small)
    _check_cores(source, count, call.cores, spec)
    index_format = specs[1].data_format
    packed = small and index_format == UINT16 and call.labels is None and (call.stable or ragged)
    split = split_of(source, count, _rectangle(call, spec), packed=packed)
    op = TopK(
        shape=shape,
        count=count,
        largest=call.largest,
        index_format=index_format,
        split=split,
        allowed=call.cores,
        labelled=len(read) > 1,
        wide=call.stable and index_format != UINT16 and split is None,
    )
    buffers = topk_buffers(op, source, spec)
    if split is None and sum(buffer.size_bytes for buffer in buffers) >= spec.l1.usable_bytes:
        raise DeviceError("Not enough cores or cache size available to run TopK operation\ntopk: ask for fewer")
    made = [PlanTensor(name, form) for name, form in zip(("best", "places"), specs, strict=True)]
    builder.run("TopKDeviceOperation", op, read, made[0], buffers, more_outputs=made[1:], dataflow=split is None)
    return [builder.written_into(*pair) for pair in zip(made, held, strict=True)] if held else made


def _rectangle(call: TopKArguments, spec: DeviceSpec) -> CoreRange:
    """The first rectangle of the cores that may be used."""
    cores = call.cores if call.cores is not None and not call.cores.empty() else page_cores(spec.grid.cores, spec.grid)
    return cores.ranges[0]


def _check_cores(source: TensorSpec, count: int, cores: CoreRangeSet | None, spec: DeviceSpec) -> None:
    """Raises DeviceError for cores that cannot pick from the rows of a tensor."""
    if cores is None:
        return
    if may_share(source, count) and len(cores.ranges) != 1:
        raise DeviceError(
            f"Only one core range is supported right now, got {len(cores.ranges)}\n"
            "sub_core_grids: give a rectangle for such wide rows, which cores share"
        )
    whole = page_cores(spec.grid.cores, spec.grid)
    if not whole.contains(cores):
        raise DeviceError(
            f"TopK sub_core_grids {cores} must be contained in device compute grid {whole}\n"
            "sub_core_grids: name cores of the device"
        )
    require_cores(cores, spec, "topk")


def takes_route(source: TensorSpec, call: TopKArguments, spec: DeviceSpec) -> bool:
    """Whether three other programs pick from rows of bfloat16: on Blackhole, many elements, or few of wide rows."""
    if spec.compute.minus_one_quirk or not call.largest or call.stable or call.count > MOST_PICKED:
        return False
    if call.cores is not None or source.data_format != BFLOAT16 or source.layout is not Layout.TILE:
        return False
    if source.memory_config.is_sharded():
        return False
    if call.place is not None and call.place.is_sharded():
        return False
    if round_up(call.count, PLACES) > source.shape[-1]:
        return False
    columns = source.padded_shape[-1]
    if call.count > MOST or columns < MOST_COLUMNS:
        return call.count > MOST
    packed = columns <= SMALL_COLUMNS and source.shape[-1] % TILE > 0
    rows = seen(PlanTensor("rows", source), four_axes(source.shape)).spec
    return columns <= MOST_COLUMNS or split_of(rows, call.count, _rectangle(call, spec), packed=packed) is None


def _routed(builder: PlanBuilder, tensor: PlanTensor, call: TopKArguments) -> dict[str, PlanTensor]:
    """The best elements by the three programs, which read the padding of no row."""
    builder.leave_out_values(
        f"topk: which of equal elements come first among k={call.count} of {tensor.spec.shape[-1]} columns of bfloat16 "
        f"is not known on {builder.device_spec.name}; use float32, or ask for at most {MOST} of fewer than "
        f"{MOST_COLUMNS} columns"
    )
    spec, shape = builder.device_spec, tensor.spec.shape
    exact, where = len(shape) == RANK, tensor.spec.memory_config
    place = where if call.place is None else call.place
    four = seen(tensor, four_axes(shape))
    index_format = UINT16 if four.spec.padded_shape[-1] <= SMALL_COLUMNS else UINT32
    rows, places = (
        PlanTensor(name, made)
        for name, made in zip(("rows", "found"), rows_between(four.spec, call.count), strict=True)
    )
    sides = (*four.spec.shape[:-1], call.count if exact else round_up(call.count, TILE))
    best, indices = (
        PlanTensor(name, TensorSpec(sides, data_format, Layout.TILE, where))
        for name, data_format in (("best", BFLOAT16), ("places", index_format))
    )
    for part, read, written, more in (
        (Part.ROWS, [four], rows, ()),
        (Part.PLACES, [rows], places, ()),
        (Part.RESULTS, [rows, places], best, (indices,)),
    ):
        op = PickMany(part=part, count=call.count)
        buffers = part_buffers(op, four.spec, index_format, spec)
        builder.run(op.name, op, read, written, buffers, more_outputs=more)
    builder.free(places, rows)
    if not exact:
        wanted = (*shape[:-1], call.count)
        return put_back(builder, (best, indices), wanted, len(shape) - 1, where, cut_place=place)
    results = {role: placed(builder, made, place, role) for role, made in zip(ROLES, (best, indices), strict=True)}
    builder.free_own(best, indices, keep=list(results.values()))
    return results
