"""The arguments of a convolution that change its plan but not its result (docs/reference/planning.md, Arguments).

A *placement* is a call with fixed slices, scheme and cores. Its *families* also fix blocks and readers (if the library
chooses the cores, blocks may use fewer of them). The *members* of a family differ in double buffering, reallocation of
the halo, and output layout; the lower bounds of its first member in cycles and L1 (`ops.planners.conv.lower_bounds`)
hold for all members.

Other arithmetic also changes the result: it is faster and less precise. To measure its error, a small image with the
call's channels, kernel and formats is computed bit for bit and compared with float64. Shards and blocks change the sums
over K blocks slightly; this difference is ignored.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, Final

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import ArgumentError, DeviceError, shown
from device.memory.memory_config import TILE, BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, div_up
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import (
    CONV_TRANSPOSE2D,
    LOWERINGS,
    ConvCall,
    ConvConfig,
    ConvRules,
    Lowering,
    SliceConfig,
    SliceType,
)
from ops.planners.conv.lower_bounds import l1_path_calls
from ops.planners.conv.operands import PartitionedConv, partition_call
from ops.planners.conv.slicing import most_slices
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.window import NoWindowError
from ttsim.runtime.types.configs import WormholeComputeKernelConfig
from ttsim.runtime.types.layer import Layer
from ttsim.runtime.types.tensors import DataType
from ttsim.study.layers.run import Settings, accuracy_of, call as make_call, exact_output, make_inputs, place

SCHEMES: Final = (HEIGHT, BLOCK, WIDTH)
MOST_SLICES: Final = 32  # along an axis
# Fields that decide the result or belong to the caller; a search never changes them.
FIXED: Final = (
    *("weights_format", "activation", "replicate_padding", "deallocate_activation", "config_tensors_in_dram"),
    "enable_kernel_stride_folding",
)
# Searched fields; a caller may keep each of them.
SEARCHED: Final = (
    *("slices", "shard_layout", "core_grid", "transpose_shards", "act_block_h_override", "act_block_w_div"),
    *("full_inner_dim", "enable_activation_reuse", "force_split_reader", "enable_act_double_buffer"),
    *("enable_weights_double_buffer", "reallocate_halo_output", "output_layout"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The space of a search."""

    call: ConvCall  # The call as it is given
    spec: DeviceSpec
    free_l1_bytes: int  # Free bytes of every L1 bank when the call begins
    keep: frozenset[str] = frozenset()  # Fields of `SEARCHED` that stay as they are given

    def plain(self) -> ConvCall:
        """The call with all searched fields left to the library, even those in `keep`."""
        original = self.call.conv_config
        config = ConvConfig(**{name: getattr(original, name) for name in FIXED})
        slices = self.call.slice_config if self.call.takes_l1_path else None
        return replace(self.call, conv_config=config, slice_config=slices)

    def schemes(self) -> Iterator[tuple[ConvCall, ConvCall | None]]:
        """Every slicing with every scheme, the library's choice first, paired with the same call on all cores.

        The second call is None if other placements use more cores for rows.
        """
        schemes = SCHEMES if "shard_layout" not in self.keep else filter(None, [self.call.conv_config.shard_layout])
        place = self.call.input.spec.memory_config
        anew = not self.call.input.on_host and place.is_sharded() and place.buffer_type is BufferType.L1
        for call in self._slicings():
            yield call, None
            for scheme in schemes:
                turned = (False, True) if scheme is BLOCK and "transpose_shards" not in self.keep else (False,)
                for transposed in turned:
                    chosen = _with(
                        call,
                        shard_layout=scheme,
                        transpose_shards=transposed or call.conv_config.transpose_shards,
                        reshard_if_not_optimal=anew or call.conv_config.reshard_if_not_optimal,
                    )
                    yield chosen, next(self._grids(chosen), None)

    def placements(self, chosen: ConvCall) -> Iterator[ConvCall]:
        """A call on the library's cores, and on every rectangle of cores."""
        yield chosen
        if chosen.conv_config.shard_layout is not None:
            yield from self._grids(chosen)

    def _grids(self, call: ConvCall) -> Iterator[ConvCall]:
        """A call on every rectangle of cores from (0, 0), the largest first; empty for automatic slices."""
        automatic = call.slice_config is None and not call.takes_l1_path
        if "core_grid" in self.keep or call.is_matmul or automatic:
            return
        for rows, cols in product(range(self.spec.grid.rows, 0, -1), range(self.spec.grid.cols, 0, -1)):
            grid = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(cols - 1, rows - 1)))
            yield _with(call, override_sharding_config=True, core_grid=grid)

    def families(self, placed: ConvCall) -> Iterator[ConvCall]:
        """The first member of every family of a placement: every block size that makes a difference, every reader."""
        yield placed
        place = placed.input.spec.memory_config
        sharded = not placed.input.on_host and place.is_sharded()
        if placed.conv_config.shard_layout is None and "shard_layout" not in self.keep and not sharded:
            return  # the library takes one of the schemes, which have families of their own
        yield from islice(self.blocks(placed), 1, None)

    def keeps_cores(self, placed: ConvCall) -> bool:
        """Whether all families of a placement run on the same cores; otherwise block heights determine the cores."""
        given = not placed.takes_l1_path or placed.conv_config.override_sharding_config
        return given or placed.conv_config.shard_layout is WIDTH

    def listed(self) -> tuple[str, ...]:
        """The searched fields and their values, in words."""
        grid, rules, one = self.spec.grid, self.call.rules, len(list(islice(self._slicings(), 2))) == 1
        cut = "no grid where the library cuts the input" if not one else ""
        values = {
            "slices": "" if one else f"automatic, none, all numbers up to {MOST_SLICES} along each axis",
            "shard_layout": "automatic, HEIGHT, BLOCK, WIDTH",
            "core_grid": ", ".join(filter(None, ["automatic", f"{grid.cols * grid.rows} rectangles from (0, 0)", cut])),
            "transpose_shards": "both for BLOCK",
            "act_block_h_override": "0, all heights that change blocks or cores",
            "act_block_w_div": "all divisors for WIDTH",
            "full_inner_dim": "" if rules.transposed else "both for BLOCK",
            "enable_activation_reuse": "both for HEIGHT" if rules.reuses_activations else "",
            "force_split_reader": "automatic, true, false",
            "output_layout": "TILE, ROW_MAJOR",
        }
        fields = ((name, values.get(name, "both")) for name in SEARCHED if name not in self.keep)
        return tuple(f"{name} ({value})" for name, value in fields if value)

    def members(self, first: ConvCall) -> Iterator[ConvCall]:
        """All calls of a family, from its first member."""
        whole = first.takes_l1_path
        layout = self.call.conv_config.output_layout
        choices: dict[str, Iterable[Any]] = {
            "output_layout": (layout, *(other for other in (Layout.TILE, Layout.ROW_MAJOR) if other is not layout)),
            "reallocate_halo_output": (True, False) if whole else (True,),
            "enable_act_double_buffer": (False, True),
            "enable_weights_double_buffer": (False, True),
        }
        if not whole and first.slice_config is not None and first.slice_config.slice_type is not SliceType.L1_FULL:
            choices["output_layout"] = (first.conv_config.output_layout,)
        return self._varied(first, choices)

    def _varied(self, call: ConvCall, choices: Mapping[str, Iterable[Any]]) -> Iterator[ConvCall]:
        """The call with every combination of values of the fields not in `keep`; the unchanged call comes first."""
        free = {name: values for name, values in choices.items() if name not in self.keep}
        for values in product(*free.values()):
            yield _with(call, **dict(zip(free, values, strict=True)))

    def _slicings(self) -> Iterator[ConvCall]:
        """The call with every slicing, and the rest of the config as in the first member of a family."""
        original = self.call.conv_config
        fixed = {name: getattr(original, name) for name in (*FIXED, *self.keep & set(ConvConfig.__dataclass_fields__))}
        if "core_grid" in self.keep:
            fixed["override_sharding_config"] = original.override_sharding_config
        base = replace(self.call, conv_config=ConvConfig(**fixed))
        if "slices" in self.keep or replace(base, slice_config=None).takes_l1_path or base.is_matmul:
            yield base
            return
        layouts = [base.conv_config.output_layout]
        if "output_layout" not in self.keep:
            layouts += [other for other in (Layout.TILE, Layout.ROW_MAJOR) if other is not layouts[0]]
        yield replace(base, slice_config=None)
        yield replace(base, slice_config=SliceConfig(slice_type=SliceType.L1_FULL))
        for layout, kind in product(layouts, (SliceType.DRAM_HEIGHT, SliceType.DRAM_WIDTH)):
            cut = _with(base, output_layout=layout)
            for count in _slice_counts(cut, kind):
                yield replace(cut, slice_config=SliceConfig(slice_type=kind, num_slices=count))

    def blocks(self, call: ConvCall) -> Iterator[ConvCall]:
        """Every block size that makes a difference, with one reader and with two; the call itself first."""
        yield call
        try:
            calls = l1_path_calls(call, self.spec, free_l1_bytes=self.free_l1_bytes)
            partitioned = [partition_call(piece(), self.spec) for piece, _ in calls]
        except (DeviceError, NoWindowError):
            return
        if not partitioned:
            return
        largest = max(partitioned, key=lambda piece: piece.layout.shards.out_rows)
        if self.keeps_cores(call):  # the planner lowers a height to a divisor of the rows
            shares = {piece.layout.shards.out_rows // TILE for piece in partitioned}
            heights = sorted({tiles for share in shares for tiles in _divisors(share)} - {max(shares)})
        else:
            heights = _heights_and_cores(largest)
        # Higher blocks do not fit, once tilized
        most = self.spec.l1.usable_bytes // (largest.layout.blocks.act_w_tiles * largest.problem.out_format.tile_bytes)
        heights = [tiles for tiles in heights if tiles <= most]
        choices: dict[str, Iterable[Any]] = {"act_block_h_override": (0, *(TILE * tiles for tiles in heights))}
        match largest.layout.scheme:
            case TensorMemoryLayout.WIDTH_SHARDED:
                choices["act_block_w_div"] = _divisors(largest.layout.blocks.act_w_tiles)
            case TensorMemoryLayout.BLOCK_SHARDED:
                choices["force_split_reader"] = (None, False)
                if not call.rules.transposed:
                    choices["full_inner_dim"] = (False, True)
            case TensorMemoryLayout.HEIGHT_SHARDED:
                choices["force_split_reader"] = (None, True, False)
                if call.rules.reuses_activations:
                    choices["enable_activation_reuse"] = (False, True)
        yield from islice(self._varied(call, choices), 1, None)


def _heights_and_cores(piece: PartitionedConv) -> list[int]:
    """Block heights in tiles that cut a core's rows or use fewer cores."""
    share, rows = piece.layout.shards.out_row_tiles, div_up(piece.problem.out_rows, TILE)
    fewer = {div_up(rows, cores) for cores in range(1, piece.layout.config.nhw_cores)}
    return sorted({*range(1, share), *fewer} - {share})


def _with(call: ConvCall, **changes: Any) -> ConvCall:
    return replace(call, conv_config=replace(call.conv_config, **changes))


def _slice_counts(call: ConvCall, kind: SliceType) -> list[int]:
    """Slice counts whose largest slice is smaller than with fewer slices."""
    try:
        most = most_slices(call, kind)
    except NoWindowError:
        return []
    return [count for count in range(2, min(most, MOST_SLICES) + 1) if div_up(most, count) < div_up(most, count - 1)]


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


ALLOWED: Final = ("math_fidelity", "fp32_dest_acc_en", "packer_l1_acc", "weights_dtype", "dtype", "lowering")
SHORT: Final = {"fidelity": ("math_fidelity",), "dtypes": ("weights_dtype", "dtype")}
SIDE: Final = 4  # rows and columns of the small image
OUTPUTS: Final = 32  # its output channels: the columns of a tile


def allowed(names: Collection[str]) -> frozenset[str]:
    """Fields that may change, from names and short names; raises ArgumentError if a name is unknown."""
    for name in names:
        if name not in ALLOWED and name not in SHORT:
            raise ArgumentError(f"tune: allow takes {', '.join((*ALLOWED, *SHORT))}, not {shown(name)}")
    return frozenset(field for name in names for field in SHORT.get(name, (name,)))


def arithmetics(call: ConvCall, allow: Collection[str]) -> Iterator[ConvCall]:
    """The call with every allowed arithmetic, the original first."""
    if allow and not call.rules.transposed:
        raise ArgumentError(
            "tune: allow changes the arithmetic of conv_transpose2d alone, whose accuracy is measured; leave it out"
        )
    compute = call.compute
    choices: dict[str, list[Any]] = {
        "math_fidelity": [compute.fidelity_phases, *range(compute.fidelity_phases - 1, 0, -1)],
        "fp32_dest_acc_en": [compute.fp32_dest, not compute.fp32_dest],
        "packer_l1_acc": [compute.packer_l1_acc, not compute.packer_l1_acc],
        "weights_dtype": _formats(call.weight_format) if call.weight.on_host else [call.weight_format],
        "dtype": _formats(call.output_format),
        "lowering": list(_lowerings(call)),
    }
    values = product(*(choices[name] if name in allow else choices[name][:1] for name in ALLOWED))
    for number, (phases, fp32, l1_acc, weights, output, rules) in enumerate(values):
        if not number:
            yield call
            continue
        yield replace(
            call,
            rules=rules,
            compute_config=replace(compute, fidelity_phases=phases, fp32_dest=fp32, packer_l1_acc=l1_acc),
            conv_config=replace(call.conv_config, weights_format=weights),
            out_format=output,
        )


def _lowerings(call: ConvCall) -> Iterator[ConvRules]:
    """The call's rules, and for ttnn's conv_transpose2d the rules of other lowerings that can change the call."""
    yield call.rules
    differs = {Lowering.PHASE: True, Lowering.GROUPED: call.groups > 1, Lowering.SAMPLES: call.batch_size > 1}
    if call.rules == CONV_TRANSPOSE2D:
        yield from (LOWERINGS[name] for name, can in differs.items() if can)


def _formats(data_format: Any) -> list[Any]:
    return [data_format, *(other for other in (BFLOAT16, BFLOAT8_B) if other.element_bits < data_format.element_bits)]


def measured_error(call: ConvCall, spec: DeviceSpec) -> float:
    """RMS error of a small image's output against float64, relative to the output's standard deviation."""
    layer = _small(call)
    settings = Settings(spec=spec, suggestions=False, lowering=call.rules.lowering.value)
    inputs = make_inputs(layer)
    placed = place(layer, inputs, settings)
    with placed.device:
        accuracy = accuracy_of(make_call(placed).output, exact_output(layer, inputs))
    if accuracy is None:
        raise AssertionError("a small image has values")
    return accuracy.rms_error / accuracy.exact_std if accuracy.exact_std else 0.0


def _small(call: ConvCall) -> Layer:
    """A layer with a small image, without padding so that outputs exist."""
    compute = WormholeComputeKernelConfig.of(call.compute)
    source, weights, output = (
        DataType.of(data_format).name.lower()
        for data_format in (call.input.spec.data_format, call.weight.spec.data_format, call.output_format)
    )
    return Layer(
        in_channels=call.in_channels,
        out_channels=min(call.out_channels, OUTPUTS) if call.groups == 1 else call.out_channels,
        input_height=min(call.input_height, SIDE),
        input_width=min(call.input_width, SIDE),
        kernel_size=call.kernel_size,
        stride=call.stride,
        dilation=call.dilation,
        groups=call.groups,
        bias=call.bias is not None,
        input_dtype=source,
        input_layout="TILE" if call.input.spec.data_format.is_block else "ROW_MAJOR",
        weights_dtype=weights if weights == "float32" else "bfloat16",
        dtype=output,
        config={"weights_dtype": DataType.of(call.weight_format).name},
        compute={
            "math_fidelity": compute.math_fidelity.name,
            "fp32_dest_acc_en": compute.fp32_dest_acc_en,
            "packer_l1_acc": compute.packer_l1_acc,
        },
    )
