"""Steps that make tensors, and steps that move their numbers: layouts, places, shapes, parts, hosts and files."""

from math import prod
from typing import Any, Final

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


@operation("from_numpy", "as_tensor", "from_torch")
def from_numpy(draft: Draft) -> Step:
    """A tensor of random numbers."""
    return _of_numbers(draft, draft.shape(), draft.data_type(), on_device=draft.chance(0.95))


def image(draft: Draft, flat: float = 0.8) -> Step:
    """An image of random numbers, in this share of cases with all its pixels in one axis."""
    sides = (draft.pick((1, 1, 2, 3)), *draft.pair(1, 32), draft.pick((32, 1, 3, 16, 24, 33, 64, 96, 128)))
    sides = (1, 1, prod(sides[:3]), sides[3]) if draft.chance(flat) else sides
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


@operation(*FILLERS, "arange", "rand")
def created(draft: Draft) -> Step:
    """A tensor of one number, of numbers in order or within limits, or of numbers that do not matter."""
    function, dtype, sides = draft.function, draft.data_type(), draft.shape()
    values: Array | None = None
    bound: Array | float = 0.0
    if function == "rand":
        dtype, (low, high) = draft.pick(USUAL), draft.pick(((0.0, 1.0), (-2.0, 2.0)))
        draft.call(sides).option("low", low).option("high", high).option("seed", draft.below(100))
        values, bound = np.full(sides, (low + high) / 2), (high - low) * (0.5 + 2.0**-7)
    elif function == "arange":
        start, step, dtype = draft.between(-3, 3), draft.pick((1, 2, -1)), draft.pick(("bfloat16", "float32", "int32"))
        sides = (draft.pick((32, 7, 100)),)
        draft.call(start, start + sides[0] * step, step)
        values = np.arange(start, start + sides[0] * step, step).astype(np.float64)
        bound = rounding(values, dtype) * (dtype == "bfloat16")
    else:
        number = FILLERS[function]
        if function == "full":
            number = float(draft.pick((2, 0, 7))) if dtype in INTEGERS else draft.pick((2.5, -1.0, 0.1, 1e3))
        draft.call(sides, *([number] if function == "full" else []))
        values, bound = _of_one_number(sides, number, dtype)
    layout = draft.layout(dtype)
    draft.place = draft.memory_config(sides, tiled=layout == "TILE", sharded=0.2)
    draft.option("dtype", f"ttsim.{dtype}").option("layout", f"ttsim.{layout}_LAYOUT").option("device", "device")
    return draft.option("memory_config", draft.place).gives(values, bound, shape=sides, dtypes=(dtype,), layout=layout)


@of_tensor(*(f"{name}_like" for name in FILLERS))
def like(draft: Draft, model: Shadow) -> Step:
    """A tensor of one number in the shape, layout and data type of another tensor."""
    number = FILLERS[draft.function.removesuffix("_like")]
    draft.call(model, *([number] if draft.function == "full_like" else [])).typed(0.2, ("bfloat16", "float32"))
    draft.placed(model.shape, tiled=model.tiled, probability=0.2)
    dtype = draft.dtype or model.dtype
    number = int(number) if number is not None and dtype in INTEGERS else number
    values, bound = _of_one_number(model.shape, number, dtype)
    return draft.gives(values, bound, shape=model.shape, dtypes=(dtype,), layout=model.layout)


def _of_one_number(sides: tuple[int, ...], number: float | None, dtype: str) -> tuple[Array | None, Array | float]:
    values = None if number is None else np.full(sides, float(number))
    return values, 0.0 if values is None else rounding(values, dtype) * (number not in (0.0, 1.0))


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


@operation("command_queue")
def command_queue(draft: Draft) -> Step:
    """A tensor that is made within the block of a queue."""
    operand = draft.operand("q", (1, 1, 32, 32), "bfloat16", where=DRAM)
    return Step(text=f"with ttsim.command_queue(0):\n    {operand.text.strip()}", results=draft.operand_results)


def in_rows(dtype: str) -> str:
    """The data type that a tensor has in rows: block floats become bfloat16."""
    return "bfloat16" if dtype in BLOCKS else dtype


def moved(draft: Draft, x: Shadow, values: Array, *, copied: bool = False, split: bool = False, **more: Any) -> Step:
    """A step whose result holds the numbers of a tensor, perhaps in another order or data type.

    Numbers that are not ``copied`` pass through the device's registers, unless the data type stays. ``split``: block
    floats may be taken apart to bfloat16.
    """
    dtype, bound = draft.dtype or x.dtype, np.zeros(values.shape)
    if not copied or dtype != x.dtype:
        bound = movement_error(values, x.dtype)
    if dtype != x.dtype:
        bound = bound + rounding(values, dtype)
    dtypes = (dtype, "bfloat16") if split and dtype in BLOCKS else (dtype,)
    return draft.gives(values, **{"bound": bound, "dtypes": dtypes, "layout": x.layout} | more)


@of_tensor("to_layout")
def to_layout(draft: Draft, x: Shadow) -> Step:
    """Tiles or rows."""
    layout = draft.pick(("ROW_MAJOR", "TILE"))
    draft.call(x, f"ttsim.{layout}_LAYOUT").typed(0.2, allowed=x.is_float)
    only = INTERLEAVED if layout == "ROW_MAJOR" else None  # shards get the rows of whole tiles
    draft.placed(x.shape, tiled=layout == "TILE", probability=0.25, only=only)
    if layout == x.layout:  # nothing is done, whatever else is asked for
        return draft.gives(x.values, dtypes=(x.dtype,), layout=layout, place=None)
    dtype = draft.dtype or x.dtype
    draft.dtype = draft.dtype or in_rows(dtype) if layout == "ROW_MAJOR" else dtype
    return moved(draft, x, x.values, dtypes=(in_rows(dtype) if layout == "ROW_MAJOR" else dtype,), layout=layout)


@of_tensor("to_memory_config")
def to_memory_config(draft: Draft, x: Shadow) -> Step:
    """Another place."""
    where = draft.memory_config(x.shape, tiled=x.tiled, sharded=0.65)
    draft.call(x, where).typed(0.1, ("bfloat16", "float32"), allowed=x.is_float)
    place = draft.evaluated(where)
    if draft.dtype and x.tensor.memory_config() == place:  # nothing is done, the data type stays
        return draft.gives(x.values, dtypes=(x.dtype,), place=place)
    return moved(draft, x, x.values, place=place, layout=None) if draft.dtype else _into(draft, x, place)


def _into(draft: Draft, x: Shadow, place: Any) -> Step:
    """A copy, perhaps into a live tensor."""
    draft.taken_by_twin(x)
    return moved(draft, x, x.values, copied=True, place=None if draft.target else place)


@of_tensor("reshard", "sharded_to_interleaved", accept=lambda x: x.tensor.is_sharded())
@of_tensor("interleaved_to_sharded", accept=lambda x: not x.tensor.is_sharded())
def converted(draft: Draft, x: Shadow) -> Step:
    """Other shards, or from or to an interleaved tensor."""
    interleaved = draft.function == "sharded_to_interleaved"
    where = draft.pick(INTERLEAVED) if interleaved else draft.shards(x.shape, tiled=x.tiled)
    draft.call(x, where)
    if draft.function == "reshard":
        return _into(draft, x, draft.evaluated(where))
    draft.typed(0.15, name="output_dtype")
    return moved(draft, x, x.values, copied=True, place=draft.evaluated(where))


@of_tensor("move", "reallocate")
def elsewhere(draft: Draft, x: Shadow) -> Step:
    """The tensor released and allocated again, by either name of the function."""
    only = () if x.tensor.is_sharded() else None  # the library leaves shards in their shape
    draft.call(x).placed(x.shape, tiled=x.tiled, only=only)
    return moved(draft, x, x.values, copied=True, frees=draft.state.sharing(x))


@operation("deallocate")
def deallocate(draft: Draft) -> Step | None:
    """The tensor released, with all that share its buffer."""
    x = draft.tensor(anywhere=True)
    if x is None:
        return None
    sharing = draft.state.sharing(x)
    sharers = {id(draft.state.shadows[name].tensor) for name in sharing}
    return draft.pick(
        (
            Step(text=f"ttsim.deallocate({x})", frees=sharing),
            # a buffer that other tensors share stays
            Step(text=f"{x}.deallocate()", frees=sharing if len(sharers) == 1 else ()),
            Step(text=f"del {x}", frees=(x.name,)),
        )
    )


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
    x = draft.tensor(lambda x: x.tiled or draft.chance(0.05))
    if x is None:
        return None
    values, whole = x.values, draft.function == "untilize"
    draft.call(x)
    if not whole:
        ends = [
            draft.below(side) if draft.chance(0.1 * (axis == 0) + 0.5 * (axis >= len(x.shape) - 2)) else side - 1
            for axis, side in enumerate(x.shape)
        ]
        values = values[tuple(slice(end + 1) for end in ends)]
        draft.arguments.append(f"{ends}")
    draft.placed(values.shape, tiled=False, only=INTERLEAVED)  # shards get the rows of whole tiles
    draft.sometimes(0.15 * whole, "use_multicore", "False")
    return moved(draft, x, values, copied=x.dtype in BLOCKS, dtypes=(in_rows(x.dtype),), layout="ROW_MAJOR")


@of_tensor("permute", "transpose", "squeeze", "unsqueeze", "slice", "concat", "stack")
@of_tensor("unsqueeze_to_4D", accept=lambda x: len(x.shape) < 5)
def rearranged(draft: Draft, x: Shadow) -> Step:
    """The numbers of one or several tensors in other axes."""
    rank, function = len(x.shape), draft.function
    axis = draft.between(-rank, rank - 1)
    match function:
        case "permute":
            order = tuple(draft.generator.permutation(rank).tolist())
            if rank == 4 and draft.chance(0.4):
                order = draft.pick(((0, 3, 1, 2), (0, 2, 3, 1), (0, 2, 1, 3), (0, 1, 3, 2)))
            draft.call(x, order)
            values = x.values.transpose(order)
        case "transpose":
            axes = (-2, -1) if rank > 1 and draft.chance(0.4) else (axis, draft.between(-rank, rank - 1))
            draft.call(x, *axes)
            values = x.values.swapaxes(*axes)
        case "squeeze":
            gone: Any = draft.pick((None, 0, -1, 1))
            places = range(rank) if gone is None else [gone % rank]
            draft.call(x, *() if gone is None else (gone,))
            values = x.values.reshape([side for at, side in enumerate(x.shape) if side != 1 or at not in places])
        case "unsqueeze":
            draft.call(x, axis)
            values = np.expand_dims(x.values, axis)
        case "unsqueeze_to_4D":
            draft.call(x)
            values = x.values.reshape((1,) * (4 - rank) + x.shape)
        case "slice":
            values = _box(draft, x)
        case _:
            tensors = [x]
            traits = _traits(x, axis if function == "concat" else None)
            for _ in range(draft.between(0, 3)):
                other = draft.tensor(lambda y: _traits(y, axis if function == "concat" else None) == traits)
                tensors += [other] if other else []
            draft.call(f"[{', '.join(map(str, tensors))}]", axis)
            values = (np.concatenate if function == "concat" else np.stack)([x.values for x in tensors], axis)
    if function in ("permute", "transpose", "slice", "concat"):
        draft.placed(values.shape, tiled=x.tiled, probability=0.25)
    return moved(draft, x, values, split=True)


def _is_matrix_apart(x: Shadow) -> bool:
    """Whether a tensor has two axes or more and lies in no shards."""
    return len(x.shape) > 1 and not x.tensor.is_sharded()


@of_tensor("repeat", "expand", "repeat_interleave", "roll", "clone", "assign", accept=_is_matrix_apart)
def again(draft: Draft, x: Shadow) -> Step:
    """The numbers of an interleaved tensor several times, in a ring, or once more."""
    rank, values = len(x.shape), x.values
    axis, count = draft.between(0, rank - 1), draft.between(1, 3)
    match draft.function:
        case "repeat":
            counts = [count if at == axis else 1 for at in range(rank)]
            draft.call(x, counts)
            values = np.tile(values, counts)
        case "expand":
            draft.call(x, [count, *([-1] * rank)])
            values = np.broadcast_to(values, (count, *x.shape)).copy()
        case "repeat_interleave":
            draft.call(x, count, axis)
            values = np.repeat(values, count, axis)
        case "roll":
            draft.call(x, count, axis)
            values = np.roll(values, count, axis)
        case "clone":
            draft.call(x)
        case _:
            draft.call(x).arguments.append(f"memory_config={draft.pick((DRAM, L1))}")
    return moved(draft, x, values, split=True)


def _traits(x: Shadow, axis: int | None) -> object:
    """What tensors that are joined along an axis, None for a new one, must have in common."""
    sides = [side for place, side in enumerate(x.shape) if axis is None or place != axis % len(x.shape)]
    return x.dtype, x.layout, len(x.shape), sides


def _box(draft: Draft, x: Shadow) -> Array:
    """Calls `slice`; returns the part of the tensor."""
    begins = [draft.pick((0, 0, 0, 1)) and draft.below(side) for side in x.shape]
    if len(begins) > 1 and draft.chance(0.3):
        begins[-2:] = [begin // TILE * TILE for begin in begins[-2:]]
    pairs = zip(begins, x.shape, strict=True)
    ends = [side if draft.chance(0.5) else draft.between(begin + 1, side) for begin, side in pairs]
    steps = [draft.pick((1, 2, 3)) for _ in begins] if draft.chance(0.25) else [1] * len(begins)
    draft.call(x, begins, ends, *([steps] if max(steps) > 1 or draft.chance(0.1) else []))
    return x.values[tuple(map(slice, begins, ends, steps))]


@of_tensor("reshape", anywhere=True)
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
    if not x.on_device or draft.chance(0.1):
        return moved(draft, x, values, text=f"{x}.reshape({sides})")
    # the library may deal shards in another way
    return moved(draft.placed(wanted, tiled=x.tiled, probability=0.15, only=INTERLEAVED), x, values)


@of_tensor("Tensor.__getitem__", anywhere=True)
def index(draft: Draft, x: Shadow) -> Step | None:
    """A part by brackets."""
    indices = []
    for side in x.shape[: draft.between(1, len(x.shape))]:
        end = draft.between(1, side)
        indices.append(draft.pick((":", f":{end}", str(end - 1))))
    values = np.asarray(eval(f"values[{', '.join(indices)}]", {"values": x.values}))
    return moved(draft, x, values, split=True, text=f"{x}[{', '.join(indices)}]") if values.ndim else None


@of_tensor("pad")
def pad(draft: Draft, x: Shadow) -> Step:
    """A number around a tensor."""
    around = []
    for axis in range(-len(x.shape), 0):
        before = draft.pick((0, 1, 2, 32)) if draft.chance(0.3 if x.tiled else 0.5) else 0
        widths = (before, draft.pick((1, 0, 2, 5, 16, 32)))
        around.append(widths if draft.chance(0.4 if axis >= -2 else 0.15) else (0, 0))
    number = draft.pick((0.0, 0.0, 1.5, -2.0, 0.1)) if x.is_float else float(draft.pick((0, 3)))
    values, added = (np.pad(inside, around, constant_values=number) for inside in (x.values, np.zeros(x.shape)))
    draft.call(x, tuple(around), number).placed(values.shape, tiled=x.tiled, probability=0.2)
    bound = movement_error(values, x.dtype) + rounding(added, x.dtype) * (added != 0)  # the number itself is rounded
    return moved(draft, x, values, bound=bound, place=None)  # within a tile the library leaves it in its place


@of_tensor("typecast", "experimental.typecast", "to_dtype", anywhere=True)
def cast(draft: Draft, x: Shadow) -> Step | None:
    """Another data type: `typecast` of a device tensor, `to_dtype` mostly of one on the host."""
    of_device = draft.function != "to_dtype"
    if x.on_device != of_device and (of_device or draft.chance(0.9)):
        return None
    dtype = draft.data_type(rare=0.06)
    draft.call(x, f"ttsim.{dtype}")
    if of_device:
        draft.placed(x.shape, tiled=x.tiled, probability=0.2)
    bound = 2 * rounding(x.values, dtype) + movement_error(x.values, x.dtype)
    bound = np.zeros(x.shape) if x.dtype == dtype else bound
    if dtype in LIMITS:  # cut or rounded to an integer within its range
        least, most = LIMITS[dtype]
        bound = np.where((x.values >= least) & (x.values <= most), 1.0, np.inf)
    return draft.gives(x.values, bound, dtypes=(dtype,))


@of_tensor("from_device", "allocate_tensor_on_host")
@of_tensor("to_device", "dump_tensor", "copy.copy", anywhere=True)
def carried(draft: Draft, x: Shadow) -> Step:
    """To the host or the device, into a file and back, or a copy that shares the buffer or has one of its own."""
    place, text, name = None, "", draft.name
    match draft.function:
        case "from_device":
            text = draft.pick((f"ttsim.from_device({x})", f"{x}.cpu()"))
        case "allocate_tensor_on_host":
            text = f"ttsim.allocate_tensor_on_host({x}.spec, device)\nttsim.copy_device_to_host_tensor({x}, {name})"
        case "to_device":
            where = draft.memory_config(x.shape, tiled=x.tiled)
            here, place = draft.pick((f"{x.name}", f"{x}.cpu()")) if x.on_device else x.name, draft.evaluated(where)
            text = draft.pick((f"ttsim.to_device({here}, device, {where})", f"{here}.to(device, {where})"))
        case "copy.copy":
            text, place = f"copy.{draft.pick(('copy', 'deepcopy'))}({x})", x.tensor.memory_config()
        case _:
            text = "with tempfile.TemporaryDirectory() as folder:\n"
            text += f'    ttsim.dump_tensor(f"{{folder}}/x.tensorbin", {x})\n'
            text += f'    {name} = ttsim.load_tensor(f"{{folder}}/x.tensorbin"{draft.pick(("", ", device"))})'
            return moved(draft, x, x.values, copied=True, whole=text)
    return moved(draft, x, x.values, copied=True, place=place, text=text)
