"""Other ways to make a call that does not fit, the smallest first (docs/reference/planning.md, Running out of L1).

The caller finds out whether an alternative fits, by planning and allocating it.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple

from device.errors import DeviceError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, BufferType
from device.numbers.formats import BFLOAT8_B, div_up
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, ConvConfig, SliceConfig, SliceType
from ops.planners.conv.operands import partition_call
from ops.planners.conv.slicing import OTHER_AXIS, guess_slice_type, most_slices, output_slices, slice_l1_bytes
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.window import NoWindowError

TOGETHER: Final = "together"  # the kind of several changes at once
MOST_SLICES: Final = 32  # more of them are not looked at: each is a plan of its own
# Settings without what only saves time
LIGHTER: Final = {
    "reallocate_halo_output": True, "enable_weights_double_buffer": False, "enable_act_double_buffer": False
}  # fmt: skip


class Alternative(NamedTuple):
    """A call that computes the same, and may fit."""

    kind: str  # The changed setting; the first alternative of a kind that fits is the nearest
    arguments: ConvCall


def alternatives(call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Iterator[Alternative]:
    """Other ways to make a call that ran out of memory."""
    if not call.conv_config.act_block_w_div:  # which HEIGHT and BLOCK shards do not look at
        call = replace(call, conv_config=replace(call.conv_config, act_block_w_div=1))
    smaller = [*_lighter(call), *_smaller_blocks(call, device_spec), *_lighter_weights(call)]
    others = list(_other_schemes(call, device_spec))
    least = list(_least(call, device_spec))
    if call.in_one_piece:
        yield from (*smaller, *others)
    yield from _sliced(Alternative("slices", call), device_spec, free_l1_bytes)
    if call.in_one_piece:
        yield from least
    bases = least if call.in_one_piece else [*smaller, *others, *least]
    for base in bases:
        yield from _sliced(base, device_spec, free_l1_bytes)


def automatic(call: ConvCall) -> Iterator[Alternative]:
    """The call with all settings left to the library, with its input in place and in DRAM; then each scheme in DRAM."""
    config = ConvConfig(weights_format=call.weight_format, activation=call.conv_config.activation)
    plain = replace(call, conv_config=config, slice_config=None, memory_config=None)
    lying = [plain] if call.input.spec.memory_config.is_sharded() or not _in_l1(plain) else [plain, _from_dram(plain)]
    for base in lying:
        yield Alternative("automatic", base)
        yield _with(base, "automatic", config_tensors_in_dram=True)
        for lighter in _lighter_weights(base):
            yield lighter
            yield _with(lighter.arguments, "automatic", config_tensors_in_dram=True)
    for scheme in (HEIGHT, BLOCK, WIDTH):
        yield _with(_from_dram(plain), "automatic", shard_layout=scheme, config_tensors_in_dram=True)


def index_tensors_in_dram(call: ConvCall) -> Alternative | None:
    """The call with its index tensors out of L1_SMALL; None if they are out of it."""
    if call.conv_config.config_tensors_in_dram:
        return None
    return _with(call, "config_tensors_in_dram", config_tensors_in_dram=True)


def costs(call: ConvCall, other: ConvCall) -> tuple[str, ...]:
    """The costs of an alternative to a call, beyond time."""
    before, after = call.conv_config, other.conv_config
    texts = []
    if _in_l1(other) and after.deallocate_activation and not before.deallocate_activation:
        texts.append("the input is gone after the call")
    lighter = other.weight_format != call.weight_format
    if lighter:
        texts.append("the weights lose precision")
    laid_out_anew = after.shard_layout is not before.shard_layout or other.slice_config != call.slice_config
    if not call.weight.on_host and (laid_out_anew or lighter):
        texts.append("weights and bias must be prepared with it")
    return tuple(texts)


def _with(call: ConvCall, kind: str, **changes: Any) -> Alternative:
    return Alternative(kind, replace(call, conv_config=replace(call.conv_config, **changes)))


def _in_l1(call: ConvCall) -> bool:
    return not call.input.on_host and call.input.spec.memory_config.buffer_type is BufferType.L1


def _lighter(call: ConvCall) -> Iterator[Alternative]:
    """The call without options that only save time, or keep the input."""
    for name, value in (LIGHTER | ({"deallocate_activation": True} if _in_l1(call) else {})).items():
        if getattr(call.conv_config, name) is not value:
            yield _with(call, name, **{name: value})


def _smaller_blocks(call: ConvCall, device_spec: DeviceSpec) -> Iterator[Alternative]:
    """Activation blocks of half the height, a quarter, and so on; then K blocks in more parts."""
    try:
        tiles = partition_call(call, device_spec).layout.blocks.act_h_tiles
    except DeviceError:
        tiles = call.conv_config.act_block_h_override // TILE
    while tiles > 1:
        tiles = div_up(tiles, 2)
        yield _with(call, "act_block_h_override", act_block_h_override=tiles * TILE)
    if call.conv_config.shard_layout is WIDTH:  # the only scheme whose K blocks can be cut into parts
        for times in (2, 4):
            yield _with(call, "act_block_w_div", act_block_w_div=times * call.conv_config.act_block_w_div)


def _lighter_weights(call: ConvCall) -> Iterator[Alternative]:
    if not call.weight_format.is_block:
        yield _with(call, "weights_dtype", weights_format=BFLOAT8_B)


def _other_schemes(call: ConvCall, device_spec: DeviceSpec) -> Iterator[Alternative]:
    now = call.conv_config.shard_layout
    if now is None:
        with suppress(DeviceError):  # it cannot be partitioned
            now = partition_call(call, device_spec).layout.scheme
    reshard = call.conv_config.reshard_if_not_optimal or call.input.spec.memory_config.is_sharded()
    for scheme in (HEIGHT, BLOCK, WIDTH):
        if scheme is not now:
            yield _with(call, "shard_layout", shard_layout=scheme, reshard_if_not_optimal=reshard)


def _least(call: ConvCall, device_spec: DeviceSpec) -> Iterator[Alternative]:
    """Several changes at once: the smallest blocks, then lighter weights too, then other schemes."""
    deallocates = call.conv_config.deallocate_activation or _in_l1(call)
    first = _with(call, TOGETHER, **LIGHTER, act_block_h_override=TILE, deallocate_activation=deallocates)
    lighter = [alternative._replace(kind=TOGETHER) for alternative in _lighter_weights(first.arguments)]
    yield from (first, *lighter)
    for scheme in _other_schemes((lighter or [first])[-1].arguments, device_spec):
        yield scheme._replace(kind=TOGETHER)


def _sliced(base: Alternative, device_spec: DeviceSpec, free_l1_bytes: int) -> Iterator[Alternative]:
    """A call in slices: along one axis, then the other."""
    if base.arguments.is_matmul:
        return
    call = _from_dram(base.arguments)
    guess = guess_slice_type(call)
    slice_type = call.slice_config.slice_type if call.slice_config is not None else guess
    first = guess if slice_type is SliceType.L1_FULL else slice_type
    for kind in (first, OTHER_AXIS[first]):
        for count in _slice_counts(call, kind, device_spec, free_l1_bytes):
            yield Alternative(base.kind, replace(call, slice_config=SliceConfig(slice_type=kind, num_slices=count)))


def _from_dram(call: ConvCall) -> ConvCall:
    """The call with its input in DRAM, where slices are cut."""
    if not _in_l1(call):
        return call
    spec = call.input.spec
    moved = spec.changed(memory_config=DRAM_MEMORY_CONFIG)
    config = replace(call.conv_config, deallocate_activation=False)
    return replace(call, input=replace(call.input, spec=moved), conv_config=config, memory_config=None)


def _slice_counts(call: ConvCall, kind: SliceType, device_spec: DeviceSpec, free_l1_bytes: int) -> Iterator[int]:
    """The smallest larger count whose first slice fits as far as it is estimated, and twice that count."""

    def fits(slices: int) -> bool:
        part = next(output_slices(call, SliceConfig(slice_type=kind, num_slices=slices)))
        with suppress(DeviceError, NoWindowError):
            return not part.is_empty and slice_l1_bytes(call, part, device_spec, slices=slices) <= free_l1_bytes
        return False

    config = call.slice_config
    low = config.num_slices if config is not None and config.slice_type is kind and config.num_slices > 1 else 1
    most, high = min(MOST_SLICES, most_slices(call, kind)), 2 * low
    while high <= most and not fits(high):
        low, high = high, 2 * high
    if high > most:
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    yield from (count for count in (high, 2 * high) if count <= most)
