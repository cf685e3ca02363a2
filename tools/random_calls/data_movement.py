"""Steps that move numbers: layouts, places, shapes, parts, hosts and files."""

from math import prod
from typing import Any, Final, Literal

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import Array, round_up
from tools.random_calls.drafts import BLOCKS, DRAM, L1, CallText, Draft, Shadow, Step, of_tensor
from tools.random_calls.references import movement_error, rounding

LIMITS: Final = {"uint8": (0, 255), "uint16": (0, 65535), "uint32": (0, 2**32 - 1), "int32": (-(2**31), 2**31 - 1)}


def in_rows(dtype: str) -> str:
    """The data type that a tensor has in rows: block floats become bfloat16."""
    return "bfloat16" if dtype in BLOCKS else dtype


def moved(
    call: CallText,
    x: Shadow,
    values: Array,
    bits: Literal["same", "grouped", "regrouped"] = "regrouped",
    *,
    split: bool = False,
    **more: Any,
) -> Step:
    """A step whose result holds the numbers of a tensor, perhaps in another order or data type.

    ``bits`` says what happens on the way without another data type: nothing, or a pass through the device's registers
    in which block floats keep their neighbors or get others. ``split``: block floats may be taken apart to bfloat16.
    """
    dtype = call.dtype or x.dtype
    bound = np.zeros(values.shape)
    if bits != "same" or dtype != x.dtype:
        bound = movement_error(values, x.dtype, regrouped=bits == "regrouped")
    if dtype != x.dtype:
        bound = bound + rounding(values, dtype)
    dtypes = (dtype, "bfloat16") if split and dtype in BLOCKS else (dtype,)
    return call.gives(values, **{"bound": bound, "dtypes": dtypes, "layout": x.layout} | more)


@of_tensor()
def to_layout(draft: Draft, x: Shadow) -> Step:
    """Tiles or rows."""
    layout = draft.pick(("ROW_MAJOR", "TILE"))
    call = draft.call("to_layout", x, f"ttsim.{layout}_LAYOUT").typed(0.2, allowed=x.is_float)
    call.placed(x.shape, tiled=layout == "TILE", probability=0.25)
    if layout == x.layout:  # nothing is done, whatever else is asked for
        return call.gives(x.values, dtypes=(x.dtype,), layout=layout, place=None)
    dtype = call.dtype or x.dtype
    result = in_rows(dtype) if layout == "ROW_MAJOR" else dtype
    bound = movement_error(x.values, x.dtype, regrouped=False)
    bound = bound + rounding(x.values, call.dtype or result) * ((call.dtype or result) != x.dtype)
    return call.gives(x.values, bound, dtypes=(result,), layout=layout)


@of_tensor()
def to_memory_config(draft: Draft, x: Shadow) -> Step:
    """Another place."""
    where = draft.place(x.shape, tiled=x.tiled, sharded=0.65)
    call = draft.call("to_memory_config", x, where).typed(0.1, USUAL_IN_ROWS, allowed=x.is_float)
    place = draft.evaluated(where)
    if call.dtype and x.tensor.memory_config() == place:  # nothing is done, the data type stays
        return call.gives(x.values, dtypes=(x.dtype,), place=place)
    return _into(call, x, place) if not call.dtype else moved(call, x, x.values, "grouped", place=place, layout=None)


USUAL_IN_ROWS: Final = ("bfloat16", "float32")


def _into(call: CallText, x: Shadow, place: Any) -> Step:
    """A copy, perhaps into a live tensor."""
    call.taken_by_twin(x)
    return moved(call, x, x.values, "same", place=place if call.target is None else None)


@of_tensor(lambda x: x.tensor.is_sharded())
def reshard(draft: Draft, x: Shadow) -> Step:
    """Other shards."""
    where = draft.shards(x.shape, tiled=x.tiled)
    return _into(draft.call("reshard", x, where), x, draft.evaluated(where))


@of_tensor(lambda x: not x.tensor.is_sharded())
def interleaved_to_sharded(draft: Draft, x: Shadow) -> Step:
    """Shards of an interleaved tensor."""
    return _converted(draft, x, "interleaved_to_sharded", draft.shards(x.shape, tiled=x.tiled))


@of_tensor(lambda x: x.tensor.is_sharded())
def sharded_to_interleaved(draft: Draft, x: Shadow) -> Step:
    """An interleaved copy of shards."""
    return _converted(draft, x, "sharded_to_interleaved", draft.pick((DRAM, L1)))


def _converted(draft: Draft, x: Shadow, function: str, where: str) -> Step:
    call = draft.call(function, x, where).typed(0.15, name="output_dtype")
    return moved(call, x, x.values, "grouped" if call.dtype else "same", place=draft.evaluated(where))


@of_tensor()
def elsewhere(draft: Draft, x: Shadow, function: str) -> Step:
    """The tensor released and allocated again, by either name of the function."""
    call = draft.call(function, x).placed(x.shape, tiled=x.tiled)
    if x.tensor.is_sharded():  # the library leaves shards in their shape
        call.place = ""
    return moved(call, x, x.values, "same", frees=draft.state.sharing(x))


def deallocate(draft: Draft) -> Step | None:
    """The tensor released, with all that share its buffer."""
    x = draft.shadow()
    if x is None:
        return None
    sharing = draft.state.sharing(x)
    match draft.below(3):
        case 0:
            return Step(text=f"ttsim.deallocate({x})", frees=sharing)
        case 1:  # a buffer that other tensors share stays
            sharers = {id(draft.state.shadows[name].tensor) for name in sharing}
            return Step(text=f"{x}.deallocate()", frees=sharing if len(sharers) == 1 else ())
    return Step(text=f"del {x}", frees=(x.name,))


TILIZING: Final = ("tilize", "tilize_with_val_padding", "tilize_with_zero_padding")


def tilized(draft: Draft, function: str) -> Step | None:
    """Rows as tiles."""
    x = None
    if function == "tilize":  # mostly of whole tiles, as other rows are refused
        x = draft.tensor(lambda x: not (x.tiled or x.shape[-1] % TILE or len(x.shape) < 2 or x.shape[-2] % TILE))
    if x is None or draft.chance(0.2):
        x = draft.tensor(lambda x: not x.tiled) if draft.chance(0.95) else draft.tensor()
    if x is None:
        return None
    call = draft.call(function, x)
    if function == "tilize_with_val_padding":
        *most, rows, columns = (1, *x.shape) if len(x.shape) == 1 else x.shape
        padded = [*most, round_up(rows, TILE) + TILE * draft.chance(0.15), round_up(columns, TILE)]
        call.arguments += [f"{padded if len(x.shape) > 1 else padded[1:]}", f"{draft.pick((0.0, 3.0))}"]
    call.typed(0.2, allowed=function != "tilize_with_zero_padding" and x.is_float)
    call.placed(x.shape, tiled=True).sometimes(0.15, "use_multicore", "False")
    call.place = call.place if call.place in (DRAM, L1) else ""  # WIDTH shards stay as they are
    dtype = call.dtype or x.dtype
    dtypes = (dtype, x.dtype) if x.tiled else (dtype,)  # tiles are returned as they are
    return moved(call, x, x.values, dtypes=dtypes, layout="TILE")


def untilized(draft: Draft, function: str) -> Step | None:
    """Tiles as rows; of `untilize_with_unpadding` the first rows and columns."""
    x = draft.tensor(lambda x: x.tiled) if draft.chance(0.95) else draft.tensor()
    if x is None:
        return None
    call, values = draft.call(function, x), x.values
    if function == "untilize_with_unpadding":
        ends = [side - 1 for side in x.shape]
        for axis in range(max(0, len(ends) - 2), len(ends)):
            if draft.chance(0.5):
                ends[axis] = draft.below(x.shape[axis])
        if draft.chance(0.1):
            ends[0] = draft.below(x.shape[0])
        values = values[tuple(slice(end + 1) for end in ends)]
        call.arguments.append(f"{ends}")
    call.placed(values.shape, tiled=False)
    if function == "untilize":
        call.sometimes(0.15, "use_multicore", "False")
    call.place = call.place if call.place in (DRAM, L1) else ""  # shards get the rows of whole tiles
    return moved(call, x, values, "same" if x.is_block else "grouped", dtypes=(in_rows(x.dtype),), layout="ROW_MAJOR")


@of_tensor()
def permute(draft: Draft, x: Shadow) -> Step:
    """Axes in another order."""
    left, order = list(range(len(x.shape))), []
    while left:
        order.append(left.pop(draft.below(len(left))))
    if len(order) == 4 and draft.chance(0.4):
        order = list(draft.pick(((0, 3, 1, 2), (0, 2, 3, 1), (0, 2, 1, 3), (0, 1, 3, 2))))
    values = x.values.transpose(order)
    call = draft.call("permute", x, tuple(order)).placed(values.shape, tiled=x.tiled, probability=0.25)
    return moved(call, x, values, split=True)


@of_tensor()
def transpose(draft: Draft, x: Shadow) -> Step:
    """Two axes swapped."""
    rank = len(x.shape)
    axes = (-2, -1) if rank > 1 and draft.chance(0.4) else draft.pair(-rank, rank - 1)
    values = x.values.swapaxes(*axes)
    call = draft.call("transpose", x, *axes).placed(values.shape, tiled=x.tiled, probability=0.25)
    return moved(call, x, values, split=True)


@of_tensor(anywhere=True)
def reshape(draft: Draft, x: Shadow) -> Step:
    """The same elements in another shape."""
    volume, last = prod(x.shape), x.shape[-1]
    wanted = ([1, 1, volume // last, last], [volume // last, last], [1, *x.shape], [volume], [])[draft.below(5)]
    if not wanted:
        last = draft.pick([side for side in range(1, min(volume, 300) + 1) if volume % side == 0])
        middle = draft.pick([side for side in range(1, min(volume, 300) + 1) if volume // last % side == 0])
        wanted = [volume // last // middle, middle, last]
    values, sides = x.values.reshape(wanted), list(wanted)
    if draft.chance(0.2):
        sides[draft.below(len(sides))] = -1
    call = draft.call("reshape", x, sides)
    if draft.below(10) == 0 or not x.on_device:
        return moved(call, x, values, text=f"{x}.reshape({sides})")
    call.placed(wanted, tiled=x.tiled, probability=0.15)
    call.place = call.place if call.place in (DRAM, L1) else ""  # the library may deal shards in another way
    return moved(call, x, values)


@of_tensor()
def squeeze(draft: Draft, x: Shadow) -> Step:
    """Without sides of 1."""
    axis: Any = draft.pick((None, 0, -1, 1))
    gone = range(len(x.shape)) if axis is None else [axis % len(x.shape)]
    shape = [side for place, side in enumerate(x.shape) if side != 1 or place not in gone]
    return moved(draft.call("squeeze", x, *() if axis is None else (axis,)), x, x.values.reshape(shape))


@of_tensor()
def unsqueeze(draft: Draft, x: Shadow) -> Step:
    """With another side of 1."""
    axis = draft.between(-len(x.shape) - 1, len(x.shape))
    return moved(draft.call("unsqueeze", x, axis), x, np.expand_dims(x.values, axis))


@of_tensor(lambda x: len(x.shape) < 5)
def unsqueeze_to_4d(draft: Draft, x: Shadow) -> Step:
    """Four axes."""
    return moved(draft.call("unsqueeze_to_4D", x), x, x.values.reshape((1,) * (4 - len(x.shape)) + x.shape))


@of_tensor()
def slice_(draft: Draft, x: Shadow) -> Step:
    """A box of a tensor."""
    begins = [draft.pick((0, 0, 0, 1)) and draft.below(side) for side in x.shape]
    if len(begins) > 1 and draft.chance(0.3):
        begins[-2:] = [begin // TILE * TILE for begin in begins[-2:]]
    pairs = zip(begins, x.shape, strict=True)
    ends = [side if draft.chance(0.5) else draft.between(begin + 1, side) for begin, side in pairs]
    steps = [draft.pick((1, 2, 3)) for _ in begins] if draft.chance(0.25) else [1] * len(begins)
    values = x.values[tuple(slice(*corner) for corner in zip(begins, ends, steps, strict=True))]
    call = draft.call("slice", x, begins, ends, *([steps] if max(steps) > 1 or draft.chance(0.1) else []))
    return moved(call.placed(values.shape, tiled=x.tiled, probability=0.2), x, values, split=True)


@of_tensor(anywhere=True)
def index(draft: Draft, x: Shadow) -> Step | None:
    """A part by brackets."""
    indices = []
    for side in x.shape[: draft.between(1, len(x.shape))]:
        form, end = draft.below(3), draft.between(1, side)
        indices.append((":", f":{end}", str(end - 1))[form])
    values = np.asarray(eval(f"values[{', '.join(indices)}]", {"values": x.values}))
    if not values.ndim:
        return None
    return moved(draft.call("slice", x), x, values, split=True, text=f"{x}[{', '.join(indices)}]")


@of_tensor()
def pad(draft: Draft, x: Shadow) -> Step:
    """A number around a tensor."""
    around = []
    for axis in range(-len(x.shape), 0):
        widths = (0, 0)
        if draft.chance(0.4 if axis >= -2 else 0.15):
            before = draft.pick((0, 1, 2, 32)) if draft.chance(0.3 if x.tiled else 0.5) else 0
            widths = (before, draft.pick((1, 0, 2, 5, 16, 32)))
        around.append(widths)
    number = draft.pick((0.0, 0.0, 1.5, -2.0, 0.1)) if x.is_float else float(draft.pick((0, 3)))
    values = np.pad(x.values, around, constant_values=number)
    call = draft.call("pad", x, tuple(around), number).placed(values.shape, tiled=x.tiled, probability=0.2)
    added = np.pad(np.zeros(x.shape), around, constant_values=number)  # the number itself is rounded
    bound = movement_error(values, x.dtype) + rounding(added, x.dtype) * (added != 0)
    return moved(call, x, values, bound=bound, place=None)  # within a tile the library leaves it in its place


@of_tensor()
def concat(draft: Draft, x: Shadow) -> Step:
    """Tensors one behind the other."""
    rank = len(x.shape)
    axis = draft.between(-rank, rank - 1)

    def fits(other: Shadow) -> bool:
        if (other.dtype, other.layout, len(other.shape)) != (x.dtype, x.layout, rank):
            return False
        return all(
            a == b or place == axis % rank for place, (a, b) in enumerate(zip(x.shape, other.shape, strict=True))
        )

    others = [draft.tensor(fits) for _ in range(draft.between(0, 3))]
    tensors = [x, *(other for other in others if other is not None)]
    values = np.concatenate([tensor.values for tensor in tensors], axis)
    call = draft.call("concat", f"[{', '.join(map(str, tensors))}]", axis)
    return moved(call.placed(values.shape, tiled=x.tiled, probability=0.35), x, values, split=True)


@of_tensor()
def stack(draft: Draft, x: Shadow) -> Step:
    """Tensors of one shape along a new axis."""
    axis = draft.between(-len(x.shape) - 1, len(x.shape))
    alike = (x.dtype, x.layout, x.shape)
    others = [
        draft.tensor(lambda other: (other.dtype, other.layout, other.shape) == alike)
        for _ in range(draft.between(0, 2))
    ]
    tensors = [x, *(other for other in others if other is not None)]
    values = np.stack([tensor.values for tensor in tensors], axis)
    call = draft.call("stack", f"[{', '.join(map(str, tensors))}]", axis)
    return moved(call, x, values, split=True, place=None)


@of_tensor()
def typecast(draft: Draft, x: Shadow) -> Step:
    """Another data type."""
    dtype = draft.dtype(rare=0.06)
    call = draft.call("typecast", x, f"ttsim.{dtype}").placed(x.shape, tiled=x.tiled, probability=0.2)
    return _cast(call, x, dtype)


def to_dtype(draft: Draft) -> Step | None:
    """Another data type, on the host; rarely of a device tensor, which is refused."""
    x = draft.shadow(lambda x: not x.opaque and not x.on_device)
    x = draft.tensor() if x is None or draft.chance(0.1) else x
    if x is None:
        return None
    dtype = draft.dtype(rare=0.0)
    return _cast(draft.call("to_dtype", x, f"ttsim.{dtype}"), x, dtype)


def _cast(call: CallText, x: Shadow, dtype: str) -> Step:
    bound = 2 * rounding(x.values, dtype) + movement_error(x.values, x.dtype, regrouped=False)
    bound = np.zeros(x.shape) if x.dtype == dtype else bound
    if dtype in LIMITS:  # cut or rounded to an integer within its range
        least, most = LIMITS[dtype]
        bound = np.where((x.values >= least) & (x.values <= most), 1.0, np.inf)
    return call.gives(x.values, bound, dtypes=(dtype,))


@of_tensor()
def from_device(draft: Draft, x: Shadow) -> Step:
    """To the host."""
    return moved(draft.call("from_device", x), x, x.values, "same", text=draft.pick(("", f"{x}.cpu()")))


@of_tensor(anywhere=True)
def to_device(draft: Draft, x: Shadow) -> Step:
    """To the device, from the host or the device itself."""
    where = draft.place(x.shape, tiled=x.tiled)
    here = f"{x}.cpu()" if x.on_device and draft.chance(0.5) else x
    text = draft.pick(("", f"{here}.to(device, {where})"))
    call = draft.call("to_device", here, "device", where)
    return moved(call, x, x.values, "same", place=draft.evaluated(where), text=text)


@of_tensor(anywhere=True)
def dump_tensor(draft: Draft, x: Shadow) -> Step:
    """To a file and back."""
    name, device = draft.name, ", device" if draft.chance(0.7) else ""
    text = "with tempfile.TemporaryDirectory() as folder:\n"
    text += f'    ttsim.dump_tensor(f"{{folder}}/x.tensorbin", {x})\n'
    text += f'    {name} = ttsim.load_tensor(f"{{folder}}/x.tensorbin"{device})'
    step = moved(draft.call(""), x, x.values, "same")
    return Step(text=text, results=step.results)


@of_tensor()
def copies(draft: Draft, x: Shadow) -> Step:
    """A copy that shares the buffer, or one of its own."""
    text = f"copy.{draft.pick(('copy', 'deepcopy'))}({x})"
    return moved(draft.call(""), x, x.values, "same", place=x.tensor.memory_config(), text=text)
