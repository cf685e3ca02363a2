"""Steps that make tensors, and steps that move their numbers: layouts, places, shapes, parts, hosts and files."""

from math import prod
from typing import Any, Final, Literal

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import Array, round_up
from tools.random_calls.drafts import (
    BLOCKS,
    DRAM,
    INTEGERS,
    L1,
    USUAL,
    Draft,
    Expected,
    Shadow,
    Step,
    of_tensor,
    operation,
)
from tools.random_calls.references import movement_error, rounding

FILLERS: Final = {"zeros": 0.0, "ones": 1.0, "empty": None, "full": 2.5}
LIMITS: Final = {"uint8": (0, 255), "uint16": (0, 65535), "uint32": (0, 2**32 - 1), "int32": (-(2**31), 2**31 - 1)}
INTERLEAVED: Final = (DRAM, L1)


@operation("from_numpy", weight=14)
@operation("as_tensor", "from_torch", weight=0.3)
def from_numpy(draft: Draft) -> Step:
    """A tensor of random numbers."""
    return _of_numbers(draft, draft.shape(), draft.data_type(), on_device=draft.chance(0.95))


def image(draft: Draft, flat: float = 0.8) -> Step:
    """An image of random numbers, in this share of cases with all its pixels in one axis."""
    sides = (draft.pick((1, 1, 2, 3)), *draft.pair(1, 32), draft.pick((32, 1, 3, 16, 24, 33, 64, 96, 128)))
    sides = (1, 1, sides[0] * sides[1] * sides[2], sides[3]) if draft.chance(flat) else sides
    draft.function = "from_numpy"
    return _of_numbers(draft, sides, draft.pick((*USUAL, "bfloat16")), on_device=draft.chance(0.8), sharded=0.15)


def _of_numbers(draft: Draft, sides: tuple[int, ...], dtype: str, *, on_device: bool, sharded: float = 0.4) -> Step:
    layout = draft.layout(dtype)
    kind = "integers" if dtype in INTEGERS else draft.pick(("normal", "normal", "normal", "positive", "large"))
    array = f'numbers({draft.below(1000)}, {sides}, "{kind}")'
    draft.call(array, f"ttsim.{dtype}").option("layout", f"ttsim.{layout}_LAYOUT")
    if on_device:
        draft.place = draft.memory_config(sides, tiled=layout == "TILE", sharded=sharded)
        draft.option("device", "device").option("memory_config", draft.place)
    return _holds(draft, array, dtype, layout)


def _holds(draft: Draft, array: str, dtype: str, layout: str, text: str = "") -> Step:
    """The step whose result holds an array, which is computed late."""
    place = draft.required

    def expected() -> Expected:
        values = np.asarray(draft.evaluated(array), np.float64)
        bound = rounding(values, dtype) if dtype in (*BLOCKS, "bfloat16") else 0.0
        return Expected(values=values, bound=bound, dtypes=(dtype,), layout=layout, place=place)

    return draft.gives(expect=expected, text=text)


def _described(draft: Draft, sides: tuple[int, ...], dtype: str, *, sharded: float = 0.2) -> str:
    """Adds data type, layout and place of a new tensor; returns the layout."""
    layout = draft.layout(dtype)
    draft.place = draft.memory_config(sides, tiled=layout == "TILE", sharded=sharded)
    draft.option("dtype", f"ttsim.{dtype}").option("layout", f"ttsim.{layout}_LAYOUT").option("device", "device")
    draft.option("memory_config", draft.place)
    return layout


@operation(*FILLERS, weight=0.3)
def filled(draft: Draft) -> Step:
    """A tensor of one number, or of numbers that do not matter."""
    sides, dtype, number = draft.shape(), draft.data_type(), FILLERS[draft.function]
    if draft.function == "full":
        number = float(draft.pick((2, 0, 7))) if dtype in INTEGERS else draft.pick((2.5, -1.0, 0.1, 1e3))
    draft.call(sides, *([number] if draft.function == "full" else []))
    return _of_one_number(draft, sides, number, dtype, _described(draft, sides, dtype))


@of_tensor(*(f"{name}_like" for name in FILLERS), weight=0.3)
def like(draft: Draft, model: Shadow) -> Step:
    """The same in the shape, layout and data type of another tensor."""
    number = FILLERS[draft.function.removesuffix("_like")]
    draft.call(model, *([number] if draft.function == "full_like" else [])).typed(0.2, ("bfloat16", "float32"))
    draft.placed(model.shape, tiled=model.tiled, probability=0.2)
    dtype = draft.dtype or model.dtype
    number = int(number) if number is not None and dtype in INTEGERS else number
    return _of_one_number(draft, model.shape, number, dtype, model.layout)


def _of_one_number(draft: Draft, sides: tuple[int, ...], number: float | None, dtype: str, layout: str) -> Step:
    values = None if number is None else np.full(sides, float(number))
    bound = 0.0 if values is None else rounding(values, dtype) * (number not in (0.0, 1.0))
    return draft.gives(values, bound, shape=sides, dtypes=(dtype,), layout=layout)


@operation("arange", weight=0.3)
def arange(draft: Draft) -> Step:
    """Numbers in order."""
    start, count, step = draft.between(-3, 3), draft.pick((32, 7, 100)), draft.pick((1, 2, -1))
    dtype = draft.pick(("bfloat16", "float32", "int32"))
    draft.call(start, start + count * step, step)
    layout = _described(draft, (count,), dtype, sharded=0.1)
    values = np.arange(start, start + count * step, step).astype(np.float64)
    return draft.gives(values, rounding(values, dtype) * (dtype == "bfloat16"), dtypes=(dtype,), layout=layout)


@operation("rand", weight=0.3)
def rand(draft: Draft) -> Step:
    """Evenly distributed numbers, which must lie within their limits."""
    sides, dtype = draft.shape(), draft.pick(USUAL)
    low, high = draft.pick(((0.0, 1.0), (-2.0, 2.0)))
    draft.call(sides).option("low", low).option("high", high).option("seed", draft.below(100))
    layout, reach = _described(draft, sides, dtype), (high - low) / 2
    return draft.gives(np.full(sides, low + reach), reach + reach * 2.0**-6, dtypes=(dtype,), layout=layout)


@operation("allocate_tensor_on_device")
def allocate_tensor_on_device(draft: Draft) -> Step:
    """A tensor without numbers, which a host tensor fills."""
    sides, dtype = draft.shape(), draft.data_type(rare=0.0)
    layout = draft.layout(dtype)
    draft.place = draft.memory_config(sides, tiled=layout == "TILE")
    spec, array = (f"ttsim.{dtype}", f"ttsim.{layout}_LAYOUT"), f"numbers({draft.below(1000)}, {sides})"
    text = f"ttsim.allocate_tensor_on_device({', '.join(map(str, (sides, *spec, 'device', draft.place)))})\n"
    text += f"ttsim.copy_host_to_device_tensor(ttsim.from_numpy({array}, {spec[0]}, layout={spec[1]}), {draft.name})"
    return _holds(draft, array, dtype, layout, text)


@of_tensor("allocate_tensor_on_host")
def allocate_tensor_on_host(draft: Draft, x: Shadow) -> Step:
    """A host tensor that takes the numbers of a device tensor."""
    text = f"ttsim.allocate_tensor_on_host({x}.spec, device)\nttsim.copy_device_to_host_tensor({x}, {draft.name})"
    return draft.gives(x.values, dtypes=(x.dtype,), layout=x.layout, text=text)


@operation("filled L1")
def filled_l1(draft: Draft) -> Step:
    """Much of L1 is taken by a tensor in shards, so that later calls have less room."""
    x, y = draft.pick(((0, 0), (1, 0), (0, 3)))
    high = 32 * draft.pick((2, 8, 20, 30, 36))
    sides = (1, 1, high * (x + 1) * (y + 1), 512)
    where = f'shards("HEIGHT", ({high}, 512), (0, 0, {x}, {y}))'
    text = f"{draft.name} = ttsim.zeros({sides}, dtype=ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device, "
    expected = Expected(shape=sides, dtypes=("bfloat16",), layout="TILE", place=draft.evaluated(where))
    return Step(text=f"{text}memory_config={where})", results={draft.name: lambda: expected}, opaque=(draft.name,))


@operation("command_queue", weight=0.3)
def command_queue(draft: Draft) -> Step:
    """A tensor that is made within the block of a queue."""
    operand = draft.operand("q", (1, 1, 32, 32), "bfloat16", where=DRAM)
    return Step(text=f"with ttsim.command_queue(0):\n    {operand.text.strip()}", results=draft.operand_results)


def in_rows(dtype: str) -> str:
    """The data type that a tensor has in rows: block floats become bfloat16."""
    return "bfloat16" if dtype in BLOCKS else dtype


def moved(
    draft: Draft,
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
    dtype, bound = draft.dtype or x.dtype, np.zeros(values.shape)
    if bits != "same" or dtype != x.dtype:
        bound = movement_error(values, x.dtype, regrouped=bits == "regrouped")
    if dtype != x.dtype:
        bound = bound + rounding(values, dtype)
    dtypes = (dtype, "bfloat16") if split and dtype in BLOCKS else (dtype,)
    return draft.gives(values, **{"bound": bound, "dtypes": dtypes, "layout": x.layout} | more)


@of_tensor("to_layout", weight=2)
def to_layout(draft: Draft, x: Shadow) -> Step:
    """Tiles or rows."""
    layout = draft.pick(("ROW_MAJOR", "TILE"))
    draft.call(x, f"ttsim.{layout}_LAYOUT").typed(0.2, allowed=x.is_float)
    draft.placed(x.shape, tiled=layout == "TILE", probability=0.25)
    if layout == x.layout:  # nothing is done, whatever else is asked for
        return draft.gives(x.values, dtypes=(x.dtype,), layout=layout, place=None)
    dtype = draft.dtype or x.dtype
    result = in_rows(dtype) if layout == "ROW_MAJOR" else dtype
    bound = movement_error(x.values, x.dtype, regrouped=False)
    bound = bound + rounding(x.values, draft.dtype or result) * ((draft.dtype or result) != x.dtype)
    return draft.gives(x.values, bound, dtypes=(result,), layout=layout)


@of_tensor("to_memory_config", weight=2)
def to_memory_config(draft: Draft, x: Shadow) -> Step:
    """Another place."""
    where = draft.memory_config(x.shape, tiled=x.tiled, sharded=0.65)
    draft.call(x, where).typed(0.1, ("bfloat16", "float32"), allowed=x.is_float)
    place = draft.evaluated(where)
    if draft.dtype and x.tensor.memory_config() == place:  # nothing is done, the data type stays
        return draft.gives(x.values, dtypes=(x.dtype,), place=place)
    return _into(draft, x, place) if not draft.dtype else moved(draft, x, x.values, "grouped", place=place, layout=None)


def _into(draft: Draft, x: Shadow, place: Any) -> Step:
    """A copy, perhaps into a live tensor."""
    draft.taken_by_twin(x)
    return moved(draft, x, x.values, "same", place=None if draft.target else place)


@of_tensor("reshard", accept=lambda x: x.tensor.is_sharded())
def reshard(draft: Draft, x: Shadow) -> Step:
    """Other shards."""
    where = draft.shards(x.shape, tiled=x.tiled)
    return _into(draft.call(x, where), x, draft.evaluated(where))


@of_tensor("interleaved_to_sharded", accept=lambda x: not x.tensor.is_sharded())
def interleaved_to_sharded(draft: Draft, x: Shadow) -> Step:
    """Shards of an interleaved tensor."""
    return _converted(draft, x, draft.shards(x.shape, tiled=x.tiled))


@of_tensor("sharded_to_interleaved", accept=lambda x: x.tensor.is_sharded())
def sharded_to_interleaved(draft: Draft, x: Shadow) -> Step:
    """An interleaved copy of shards."""
    return _converted(draft, x, draft.pick(INTERLEAVED))


def _converted(draft: Draft, x: Shadow, where: str) -> Step:
    draft.call(x, where).typed(0.15, name="output_dtype")
    return moved(draft, x, x.values, "grouped" if draft.dtype else "same", place=draft.evaluated(where))


@of_tensor("move", "reallocate")
def elsewhere(draft: Draft, x: Shadow) -> Step:
    """The tensor released and allocated again, by either name of the function."""
    only = () if x.tensor.is_sharded() else None  # the library leaves shards in their shape
    draft.call(x).placed(x.shape, tiled=x.tiled, only=only)
    return moved(draft, x, x.values, "same", frees=draft.state.sharing(x))


@operation("deallocate")
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


@operation("tilize", "tilize_with_val_padding", "tilize_with_zero_padding")
def tilized(draft: Draft) -> Step | None:
    """Rows as tiles."""
    x, function = None, draft.function
    if function == "tilize":  # mostly of whole tiles, as other rows are refused
        x = draft.tensor(lambda x: not (x.tiled or x.shape[-1] % TILE or len(x.shape) < 2 or x.shape[-2] % TILE))
    if x is None or draft.chance(0.2):
        x = draft.tensor(lambda x: not x.tiled) if draft.chance(0.95) else draft.tensor()
    if x is None:
        return None
    draft.call(x)
    if function == "tilize_with_val_padding":
        *most, rows, columns = (1, *x.shape) if len(x.shape) == 1 else x.shape
        padded = [*most, round_up(rows, TILE) + TILE * draft.chance(0.15), round_up(columns, TILE)]
        draft.arguments += [f"{padded if len(x.shape) > 1 else padded[1:]}", f"{draft.pick((0.0, 3.0))}"]
    draft.typed(0.2, allowed=function != "tilize_with_zero_padding" and x.is_float)
    draft.placed(x.shape, tiled=True, only=INTERLEAVED)  # WIDTH shards stay as they are
    draft.sometimes(0.15, "use_multicore", "False")
    dtype = draft.dtype or x.dtype
    dtypes = (dtype, x.dtype) if x.tiled else (dtype,)  # tiles are returned as they are
    return moved(draft, x, x.values, dtypes=dtypes, layout="TILE")


@operation("untilize", "untilize_with_unpadding")
def untilized(draft: Draft) -> Step | None:
    """Tiles as rows; of `untilize_with_unpadding` the first rows and columns."""
    x = draft.tensor(lambda x: x.tiled) if draft.chance(0.95) else draft.tensor()
    if x is None:
        return None
    values, whole = x.values, draft.function == "untilize"
    draft.call(x)
    if not whole:
        last = len(x.shape) - 1
        shares = [0.1 * (axis == 0) + 0.5 * (axis >= last - 1) for axis in range(last + 1)]
        ends = [
            draft.below(side) if draft.chance(share) else side - 1 for side, share in zip(x.shape, shares, strict=True)
        ]
        values = values[tuple(slice(end + 1) for end in ends)]
        draft.arguments.append(f"{ends}")
    draft.placed(values.shape, tiled=False, only=INTERLEAVED)  # shards get the rows of whole tiles
    draft.sometimes(0.15 * whole, "use_multicore", "False")
    dtypes = (in_rows(x.dtype),)
    return moved(draft, x, values, "same" if x.dtype in BLOCKS else "grouped", dtypes=dtypes, layout="ROW_MAJOR")


@of_tensor("permute", weight=2)
def permute(draft: Draft, x: Shadow) -> Step:
    """Axes in another order."""
    left = list(range(len(x.shape)))
    order = tuple(left.pop(draft.below(len(left))) for _ in x.shape)
    if len(order) == 4 and draft.chance(0.4):
        order = draft.pick(((0, 3, 1, 2), (0, 2, 3, 1), (0, 2, 1, 3), (0, 1, 3, 2)))
    values = x.values.transpose(order)
    return moved(draft.call(x, order).placed(values.shape, tiled=x.tiled, probability=0.25), x, values, split=True)


@of_tensor("transpose")
def transpose(draft: Draft, x: Shadow) -> Step:
    """Two axes swapped."""
    rank = len(x.shape)
    axes = (-2, -1) if rank > 1 and draft.chance(0.4) else draft.pair(-rank, rank - 1)
    values = x.values.swapaxes(*axes)
    return moved(draft.call(x, *axes).placed(values.shape, tiled=x.tiled, probability=0.25), x, values, split=True)


@of_tensor("reshape", anywhere=True, weight=2)
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
    draft.call(x, sides)
    if draft.below(10) == 0 or not x.on_device:
        return moved(draft, x, values, text=f"{x}.reshape({sides})")
    draft.placed(
        wanted, tiled=x.tiled, probability=0.15, only=INTERLEAVED
    )  # the library may deal shards in another way
    return moved(draft, x, values)


@of_tensor("squeeze")
def squeeze(draft: Draft, x: Shadow) -> Step:
    """Without sides of 1."""
    axis: Any = draft.pick((None, 0, -1, 1))
    gone = range(len(x.shape)) if axis is None else [axis % len(x.shape)]
    shape = [side for place, side in enumerate(x.shape) if side != 1 or place not in gone]
    return moved(draft.call(x, *() if axis is None else (axis,)), x, x.values.reshape(shape))


@of_tensor("unsqueeze")
def unsqueeze(draft: Draft, x: Shadow) -> Step:
    """With another side of 1."""
    axis = draft.between(-len(x.shape) - 1, len(x.shape))
    return moved(draft.call(x, axis), x, np.expand_dims(x.values, axis))


@of_tensor("unsqueeze_to_4D", accept=lambda x: len(x.shape) < 5)
def unsqueeze_to_4d(draft: Draft, x: Shadow) -> Step:
    """Four axes."""
    return moved(draft.call(x), x, x.values.reshape((1,) * (4 - len(x.shape)) + x.shape))


@of_tensor("slice", weight=2)
def slice_(draft: Draft, x: Shadow) -> Step:
    """A box of a tensor."""
    begins = [draft.pick((0, 0, 0, 1)) and draft.below(side) for side in x.shape]
    if len(begins) > 1 and draft.chance(0.3):
        begins[-2:] = [begin // TILE * TILE for begin in begins[-2:]]
    pairs = zip(begins, x.shape, strict=True)
    ends = [side if draft.chance(0.5) else draft.between(begin + 1, side) for begin, side in pairs]
    steps = [draft.pick((1, 2, 3)) for _ in begins] if draft.chance(0.25) else [1] * len(begins)
    values = x.values[tuple(map(slice, begins, ends, steps))]
    draft.call(x, begins, ends, *([steps] if max(steps) > 1 or draft.chance(0.1) else []))
    return moved(draft.placed(values.shape, tiled=x.tiled, probability=0.2), x, values, split=True)


@of_tensor("Tensor.__getitem__", anywhere=True)
def index(draft: Draft, x: Shadow) -> Step | None:
    """A part by brackets."""
    indices = []
    for side in x.shape[: draft.between(1, len(x.shape))]:
        form, end = draft.below(3), draft.between(1, side)
        indices.append((":", f":{end}", str(end - 1))[form])
    values = np.asarray(eval(f"values[{', '.join(indices)}]", {"values": x.values}))
    return moved(draft, x, values, split=True, text=f"{x}[{', '.join(indices)}]") if values.ndim else None


@of_tensor("pad", weight=2)
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
    values, added = (np.pad(inside, around, constant_values=number) for inside in (x.values, np.zeros(x.shape)))
    draft.call(x, tuple(around), number).placed(values.shape, tiled=x.tiled, probability=0.2)
    bound = movement_error(values, x.dtype) + rounding(added, x.dtype) * (added != 0)  # the number itself is rounded
    return moved(draft, x, values, bound=bound, place=None)  # within a tile the library leaves it in its place


@of_tensor("concat", weight=2.5)
def concat(draft: Draft, x: Shadow) -> Step:
    """Tensors one behind the other."""
    rank = len(x.shape)
    axis = draft.between(-rank, rank - 1)

    def traits(tensor: Shadow) -> object:
        sides = [side for place, side in enumerate(tensor.shape) if place != axis % rank]
        return tensor.dtype, tensor.layout, len(tensor.shape), sides

    tensors = _with_others(draft, x, 3, lambda other: traits(other) == traits(x))
    values = np.concatenate([tensor.values for tensor in tensors], axis)
    draft.call(f"[{', '.join(map(str, tensors))}]", axis).placed(values.shape, tiled=x.tiled, probability=0.35)
    return moved(draft, x, values, split=True)


@of_tensor("stack")
def stack(draft: Draft, x: Shadow) -> Step:
    """Tensors of one shape along a new axis."""
    axis = draft.between(-len(x.shape) - 1, len(x.shape))
    traits = (x.dtype, x.layout, x.shape)
    tensors = _with_others(draft, x, 2, lambda other: (other.dtype, other.layout, other.shape) == traits)
    values = np.stack([tensor.values for tensor in tensors], axis)
    return moved(draft.call(f"[{', '.join(map(str, tensors))}]", axis), x, values, split=True, place=None)


def _with_others(draft: Draft, x: Shadow, most: int, accept: Any) -> list[Shadow]:
    others = [draft.tensor(accept) for _ in range(draft.between(0, most))]
    return [x, *(other for other in others if other is not None)]


@of_tensor("typecast")
def typecast(draft: Draft, x: Shadow) -> Step:
    """Another data type."""
    dtype = draft.data_type(rare=0.06)
    draft.call(x, f"ttsim.{dtype}").placed(x.shape, tiled=x.tiled, probability=0.2)
    return _cast(draft, x, dtype)


@operation("to_dtype")
def to_dtype(draft: Draft) -> Step | None:
    """Another data type, on the host; rarely of a device tensor, which is refused."""
    x = draft.shadow(lambda x: not x.opaque and not x.on_device)
    x = draft.tensor() if x is None or draft.chance(0.1) else x
    if x is None:
        return None
    dtype = draft.data_type(rare=0.0)
    return _cast(draft.call(x, f"ttsim.{dtype}"), x, dtype)


def _cast(draft: Draft, x: Shadow, dtype: str) -> Step:
    bound = 2 * rounding(x.values, dtype) + movement_error(x.values, x.dtype, regrouped=False)
    bound = np.zeros(x.shape) if x.dtype == dtype else bound
    if dtype in LIMITS:  # cut or rounded to an integer within its range
        least, most = LIMITS[dtype]
        bound = np.where((x.values >= least) & (x.values <= most), 1.0, np.inf)
    return draft.gives(x.values, bound, dtypes=(dtype,))


@of_tensor("from_device")
def from_device(draft: Draft, x: Shadow) -> Step:
    """To the host."""
    return moved(draft.call(x), x, x.values, "same", text=draft.pick(("", f"{x}.cpu()")))


@of_tensor("to_device", anywhere=True)
def to_device(draft: Draft, x: Shadow) -> Step:
    """To the device, from the host or the device itself."""
    where = draft.memory_config(x.shape, tiled=x.tiled)
    here = f"{x}.cpu()" if x.on_device and draft.chance(0.5) else x
    text = draft.pick(("", f"{here}.to(device, {where})"))
    draft.call(here, "device", where)
    return moved(draft, x, x.values, "same", place=draft.evaluated(where), text=text)


@of_tensor("dump_tensor", anywhere=True, weight=0.3)
def dump_tensor(draft: Draft, x: Shadow) -> Step:
    """To a file and back."""
    text = "with tempfile.TemporaryDirectory() as folder:\n"
    text += f'    ttsim.dump_tensor(f"{{folder}}/x.tensorbin", {x})\n'
    text += f'    {draft.name} = ttsim.load_tensor(f"{{folder}}/x.tensorbin"{", device" if draft.chance(0.7) else ""})'
    return moved(draft, x, x.values, "same", whole=text)


@of_tensor("copy.copy")
def copies(draft: Draft, x: Shadow) -> Step:
    """A copy that shares the buffer, or one of its own."""
    text = f"copy.{draft.pick(('copy', 'deepcopy'))}({x})"
    return moved(draft, x, x.values, "same", place=x.tensor.memory_config(), text=text)
