"""Steps that move numbers: layouts, places, shapes, parts, hosts and files."""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import Array, round_up
from tools.fuzz.sequences.references import moving, rounding
from tools.fuzz.sequences.state import (
    BLOCKS,
    DRAM,
    L1,
    Draft,
    Expected,
    Shadow,
    Step,
    asked,
    dtype,
    in_rows,
    maybe_place,
    named,
    of_tensor,
    place,
    shards,
    twin,
)


def _moved(
    draft: Draft,
    source: Shadow,
    call: str,
    values: Array,
    *,
    dtypes: Sequence[str] = (),
    exact: bool = False,
    where: str = "",
    layout: str | None = None,
    frees: tuple[str, ...] = (),
) -> Step:
    """A step whose result holds the numbers of one tensor in another order."""
    allowed = tuple(dtypes) or (source.dtype,)
    coarsest = source.dtype if source.dtype in allowed or not source.is_block else allowed[0]
    bound = np.zeros(values.shape) if exact else moving(values, coarsest)
    made = Expected(values=values, bound=bound, dtypes=allowed, place=asked(draft, where), layout=layout)
    return Step(text=f"{draft.name} = {call}", results={draft.name: lambda: made}, frees=frees)


def _target(draft: Draft, source: Shadow, call: str, step: Step) -> Step:
    """The step, perhaps with a live tensor that takes the result."""
    target = twin(draft, source)
    if target is None:
        return step
    made = next(iter(step.results.values()))()
    plain = Expected(values=made.values, bound=made.bound, shape=made.shape, dtypes=made.dtypes, layout=made.layout)
    text = call[:-1] + f", output_tensor={target.name})"
    return Step(text=text, results={target.name: lambda: plain})


@of_tensor()
def to_layout(draft: Draft, source: Shadow) -> Step:
    """Tiles or rows."""
    wanted = draft.choices.pick(("ROW_MAJOR", "TILE"))
    data_type = ""
    if source.is_float and draft.choices.chance(0.2):
        data_type = draft.choices.pick(("bfloat16", "float32", "bfloat8_b"))
    made = data_type or source.dtype
    made = in_rows(made) if wanted == "ROW_MAJOR" else made
    where = maybe_place(draft, source.shape, tiled=wanted == "TILE", probability=0.25)
    call = f"ttsim.to_layout({source.name}, ttsim.{wanted}_LAYOUT"
    call += named(dtype=data_type and f"ttsim.{data_type}", memory_config=where) + ")"
    bound = moving(source.values, source.dtype, regrouped=False)
    bound = bound + rounding(source.values, data_type or made) * ((data_type or made) != source.dtype)
    if wanted == source.layout:  # nothing is done, whatever else is asked for
        made, bound, where = source.dtype, np.zeros(source.shape), ""
    expected = Expected(values=source.values, bound=bound, dtypes=(made,), layout=wanted, place=asked(draft, where))
    return Step(text=f"{draft.name} = {call}", results={draft.name: lambda: expected})


@of_tensor()
def to_memory_config(draft: Draft, source: Shadow) -> Step:
    """Another place."""
    where = place(draft, source.shape, tiled=source.tiled, sharded=0.65)
    data_type = draft.choices.pick(("bfloat16", "float32")) if source.is_float and draft.choices.chance(0.1) else ""
    call = f"ttsim.to_memory_config({source.name}, {where}" + named(dtype=data_type and f"ttsim.{data_type}") + ")"
    if data_type and data_type != source.dtype:
        bound = moving(source.values, source.dtype, regrouped=False) + rounding(source.values, data_type)
        if source.tensor.memory_config() == draft.evaluated(where):  # nothing is done, the data type stays
            data_type, bound = source.dtype, np.zeros(source.shape)
        made = Expected(values=source.values, bound=bound, dtypes=(data_type,), place=asked(draft, where))
        return Step(text=f"{draft.name} = {call}", results={draft.name: lambda: made})
    step = _moved(draft, source, call, source.values, exact=True, where=where, layout=source.layout)
    return step if data_type else _target(draft, source, call, step)


@of_tensor(lambda one: not one.tensor.is_sharded())
def interleaved_to_sharded(draft: Draft, source: Shadow) -> Step:
    """Shards of an interleaved tensor."""
    where = shards(draft, source.shape, tiled=source.tiled)
    data_type = draft.choices.pick(("bfloat16", "float32", "bfloat8_b")) if draft.choices.chance(0.15) else ""
    return _converted(draft, source, f"ttsim.interleaved_to_sharded({source.name}, {where}", data_type, where)


@of_tensor(lambda one: one.tensor.is_sharded())
def sharded_to_interleaved(draft: Draft, source: Shadow) -> Step:
    """An interleaved copy of shards."""
    where = draft.choices.pick(("ttsim.DRAM_MEMORY_CONFIG", "ttsim.L1_MEMORY_CONFIG"))
    data_type = draft.choices.pick(("bfloat16", "float32", "bfloat8_b")) if draft.choices.chance(0.15) else ""
    return _converted(draft, source, f"ttsim.sharded_to_interleaved({source.name}, {where}", data_type, where)


def _converted(draft: Draft, source: Shadow, call: str, data_type: str, where: str) -> Step:
    """A copy that may change the data type on its way."""
    made = data_type or source.dtype
    bound = rounding(source.values, made) if made != source.dtype else 0.0
    if made != source.dtype:
        bound = bound + moving(source.values, source.dtype, regrouped=False)
    expected = Expected(
        values=source.values, bound=bound, dtypes=(made,), place=asked(draft, where), layout=source.layout
    )
    text = f"{draft.name} = {call}" + named(output_dtype=data_type and f"ttsim.{data_type}") + ")"
    return Step(text=text, results={draft.name: lambda: expected})


@of_tensor(lambda one: one.tensor.is_sharded())
def reshard(draft: Draft, source: Shadow) -> Step:
    """Other shards."""
    where = shards(draft, source.shape, tiled=source.tiled)
    call = f"ttsim.reshard({source.name}, {where})"
    step = _moved(draft, source, call, source.values, exact=True, where=where, layout=source.layout)
    return _target(draft, source, call, step)


@of_tensor()
def elsewhere(draft: Draft, source: Shadow, function: str) -> Step:
    """The tensor released and allocated again, by either name of the function."""
    where = maybe_place(draft, source.shape, tiled=source.tiled)
    call = f"ttsim.{function}({source.name}{named(memory_config=where)})"
    freed = tuple(shadow.name for shadow in draft.state.sharing(source.name))
    known = "" if source.tensor.is_sharded() else where  # the library leaves shards in their shape
    return _moved(draft, source, call, source.values, exact=True, where=known, layout=source.layout, frees=freed)


def deallocate(draft: Draft) -> Step | None:
    """The tensor released, with all that share its buffer."""
    source = draft.shadow(lambda one: True)
    if source is None:
        return None
    freed = [shadow.name for shadow in draft.state.sharing(source.name)]
    how = draft.choices.below(3)
    if how == 0:
        return Step(text=f"ttsim.deallocate({source.name})", frees=tuple(freed))
    if how == 1:  # a buffer that other tensors share stays
        sharers = {id(shadow.tensor) for shadow in draft.state.sharing(source.name)}
        return Step(text=f"{source.name}.deallocate()", frees=tuple(freed) if len(sharers) == 1 else ())
    return Step(text=f"del {source.name}", frees=(source.name,))


TILIZING: Final = ("tilize", "tilize_with_val_padding", "tilize_with_zero_padding")


def tilized(draft: Draft, function: str) -> Step | None:
    """Rows as tiles."""
    source = None
    if function == "tilize":  # mostly of whole tiles, as other rows are refused
        source = draft.tensor(lambda one: not one.tiled and one.values.shape[-1] % TILE == 0 and _rows(one) % TILE == 0)
    if source is None or draft.choices.chance(0.2):
        source = draft.tensor(lambda one: not one.tiled) if draft.choices.chance(0.95) else draft.tensor()
    if source is None:
        return None
    choices = draft.choices
    arguments = source.name
    if function == "tilize_with_val_padding":
        *most, rows, columns = (1, *source.shape) if len(source.shape) == 1 else source.shape
        padded = [*most, round_up(rows, TILE) + TILE * choices.chance(0.15), round_up(columns, TILE)]
        padded = padded if len(source.shape) > 1 else padded[1:]
        arguments += f", {padded}, {choices.pick((0.0, 3.0))}"
    data_type = ""
    if function != "tilize_with_zero_padding" and source.is_float and choices.chance(0.2):
        data_type = choices.pick(("bfloat16", "float32", "bfloat8_b"))
    where = maybe_place(draft, source.shape, tiled=True)
    made = data_type or source.dtype
    how = named(dtype=data_type and f"ttsim.{data_type}", memory_config=where)
    how += ", use_multicore=False" if choices.chance(0.15) else ""
    bound = moving(source.values, source.dtype) + rounding(source.values, made) * (made != source.dtype)
    known = where if where in (DRAM, L1) else ""  # WIDTH shards stay as they are
    dtypes = (made, source.dtype) if source.tiled else (made,)  # tiles are returned as they are
    expected = Expected(values=source.values, bound=bound, dtypes=dtypes, layout="TILE", place=asked(draft, known))
    return Step(text=f"{draft.name} = ttsim.{function}({arguments}{how})", results={draft.name: lambda: expected})


def _rows(shadow: Shadow) -> int:
    """The side before the last one; 1 of a vector."""
    return shadow.shape[-2] if len(shadow.shape) > 1 else 1


def untilize(draft: Draft) -> Step | None:
    """Tiles as rows."""
    source = draft.tensor(lambda one: one.tiled) if draft.choices.chance(0.95) else draft.tensor()
    if source is None:
        return None
    where = maybe_place(draft, source.shape, tiled=False)
    call = f"ttsim.untilize({source.name}{named(memory_config=where)}"
    call += ", use_multicore=False)" if draft.choices.chance(0.15) else ")"
    return _untilized(draft, source, call, source.values, where)


def untilize_with_unpadding(draft: Draft) -> Step | None:
    """The first rows and columns of tiles."""
    source = draft.tensor(lambda one: one.tiled) if draft.choices.chance(0.95) else draft.tensor()
    if source is None:
        return None
    ends = [side - 1 for side in source.shape]
    for axis in range(max(0, len(ends) - 2), len(ends)):
        if draft.choices.chance(0.5):
            ends[axis] = draft.choices.below(source.shape[axis])
    if draft.choices.chance(0.1):
        ends[0] = draft.choices.below(source.shape[0])
    values = source.values[tuple(slice(end + 1) for end in ends)]
    where = maybe_place(draft, values.shape, tiled=False)
    call = f"ttsim.untilize_with_unpadding({source.name}, {ends}{named(memory_config=where)})"
    return _untilized(draft, source, call, values, where)


def _untilized(draft: Draft, source: Shadow, call: str, values: Array, where: str) -> Step:
    bound = moving(values, source.dtype, regrouped=False) if not source.is_block else np.zeros(values.shape)
    dtypes = (in_rows(source.dtype),)
    known = where if where in (DRAM, L1) else ""  # shards get the rows of whole tiles
    made = Expected(values=values, bound=bound, dtypes=dtypes, layout="ROW_MAJOR", place=asked(draft, known))
    return Step(text=f"{draft.name} = {call}", results={draft.name: lambda: made})


@of_tensor()
def permute(draft: Draft, source: Shadow) -> Step:
    """Axes in another order."""
    left, order = list(range(len(source.shape))), []
    while left:
        order.append(left.pop(draft.choices.below(len(left))))
    if len(order) == 4 and draft.choices.chance(0.4):
        order = list(draft.choices.pick(((0, 3, 1, 2), (0, 2, 3, 1), (0, 2, 1, 3), (0, 1, 3, 2))))
    values = source.values.transpose(order)
    where = maybe_place(draft, values.shape, tiled=source.tiled, probability=0.25)
    call = f"ttsim.permute({source.name}, {tuple(order)}{named(memory_config=where)})"
    return _moved(draft, source, call, values, where=where, dtypes=_kept(source), layout=source.layout)


@of_tensor()
def transpose(draft: Draft, source: Shadow) -> Step:
    """Two axes swapped."""
    rank = len(source.shape)
    if rank > 1 and draft.choices.chance(0.4):
        first, second = -2, -1
    else:
        first, second = draft.choices.between(-rank, rank - 1), draft.choices.between(-rank, rank - 1)
    values = source.values.swapaxes(first, second)
    where = maybe_place(draft, values.shape, tiled=source.tiled, probability=0.25)
    call = f"ttsim.transpose({source.name}, {first}, {second}{named(memory_config=where)})"
    return _moved(draft, source, call, values, where=where, dtypes=_kept(source), layout=source.layout)


def _kept(source: Shadow) -> tuple[str, ...]:
    """The data types that a rearranged tensor may have: block floats may be taken apart."""
    return (source.dtype, "bfloat16") if source.dtype in BLOCKS else (source.dtype,)


@of_tensor(anywhere=True)
def reshape(draft: Draft, source: Shadow) -> Step:
    """The same elements in another shape."""
    choices, sides, volume = draft.choices, source.shape, prod(source.shape)
    form = choices.below(5)
    if form == 0:
        wanted = [1, 1, volume // sides[-1], sides[-1]]
    elif form == 1:
        wanted = [volume // sides[-1], sides[-1]]
    elif form == 2:
        wanted = [1, *sides]
    elif form == 3:
        wanted = [volume]
    else:
        divisors = [number for number in range(1, min(volume, 300) + 1) if volume % number == 0]
        last = choices.pick(divisors)
        divisors = [number for number in divisors if volume // last % number == 0]
        middle = choices.pick(divisors)
        wanted = [volume // last // middle, middle, last]
    values = source.values.reshape(wanted)
    given = list(wanted)
    if choices.chance(0.2):
        given[choices.below(len(given))] = -1
    how = choices.below(10)
    if how == 0 or not source.on_device:
        return _moved(draft, source, f"{source.name}.reshape({given})", values, layout=source.layout)
    where = maybe_place(draft, wanted, tiled=source.tiled, probability=0.15)
    call = f"ttsim.reshape({source.name}, {given}{named(memory_config=where)})"
    known = where if where in (DRAM, L1) else ""  # the library may deal shards in another way than asked for
    return _moved(draft, source, call, values, where=known, layout=source.layout)


@of_tensor()
def squeeze(draft: Draft, source: Shadow) -> Step:
    """Without sides of 1."""
    axes: Any = draft.choices.pick((None, 0, -1, 1))
    gone = range(len(source.shape)) if axes is None else [axes % len(source.shape)]
    kept = [side for axis, side in enumerate(source.shape) if side != 1 or axis not in gone]
    call = f"ttsim.squeeze({source.name}{'' if axes is None else f', {axes}'})"
    return _moved(draft, source, call, source.values.reshape(kept), layout=source.layout)


@of_tensor()
def unsqueeze(draft: Draft, source: Shadow) -> Step:
    """With another side of 1."""
    axis = draft.choices.between(-len(source.shape) - 1, len(source.shape))
    values = np.expand_dims(source.values, axis)
    return _moved(draft, source, f"ttsim.unsqueeze({source.name}, {axis})", values, layout=source.layout)


def unsqueeze_to_4d(draft: Draft) -> Step | None:
    """Four axes."""
    source = draft.tensor(lambda one: len(one.shape) < 5 or draft.choices.chance(0.0))
    if source is None:
        return None
    values = source.values.reshape((1,) * (4 - len(source.shape)) + source.shape)
    return _moved(draft, source, f"ttsim.unsqueeze_to_4D({source.name})", values, layout=source.layout)


@of_tensor()
def slice_(draft: Draft, source: Shadow) -> Step:
    """A box of a tensor."""
    choices = draft.choices
    begins = [choices.pick((0, 0, 0, 1)) and choices.below(side) for side in source.shape]
    if len(begins) > 1 and choices.chance(0.3):
        begins[-2:] = [begin // TILE * TILE for begin in begins[-2:]]
    ends = [
        side if choices.chance(0.5) else choices.between(begin + 1, side)
        for begin, side in zip(begins, source.shape, strict=True)
    ]
    steps = [choices.pick((1, 2, 3)) for _ in begins] if choices.chance(0.25) else [1] * len(begins)
    values = source.values[tuple(slice(*corner) for corner in zip(begins, ends, steps, strict=True))]
    where = maybe_place(draft, values.shape, tiled=source.tiled, probability=0.2)
    given = f", {steps}" if max(steps) > 1 or choices.chance(0.1) else ""
    call = f"ttsim.slice({source.name}, {begins}, {ends}{given}{named(memory_config=where)})"
    return _moved(draft, source, call, values, where=where, dtypes=_kept(source), layout=source.layout)


@of_tensor(anywhere=True)
def index(draft: Draft, source: Shadow) -> Step | None:
    """A part by brackets."""
    choices, parts = draft.choices, []
    for side in source.shape[: choices.between(1, len(source.shape))]:
        form = choices.below(3)
        end = choices.between(1, side)
        parts.append(":" if form == 0 else f":{end}" if form == 1 else str(end - 1))
    text = f"{source.name}[{', '.join(parts)}]"
    values = np.asarray(eval(f"values[{', '.join(parts)}]", {"values": source.values}))
    if not values.ndim:
        return None
    return _moved(draft, source, text, values, dtypes=_kept(source), layout=source.layout)


@of_tensor()
def pad(draft: Draft, source: Shadow) -> Step:
    """A number around a tensor."""
    choices, rank = draft.choices, len(source.shape)
    around = [(0, 0)] * rank
    for axis in range(rank):
        if choices.chance(0.4 if axis >= rank - 2 else 0.15):
            before = choices.pick((0, 1, 2, 32)) if choices.chance(0.3 if source.tiled else 0.5) else 0
            around[axis] = (before, choices.pick((1, 0, 2, 5, 16, 32)))
    number = choices.pick((0.0, 0.0, 1.5, -2.0, 0.1)) if source.is_float else float(choices.pick((0, 3)))
    values = np.pad(source.values, around, constant_values=number)
    where = maybe_place(draft, values.shape, tiled=source.tiled, probability=0.2)
    call = f"ttsim.pad({source.name}, {tuple(around)}, {number}{named(memory_config=where)})"
    step = _moved(draft, source, call, values, layout=source.layout)  # within a tile the library leaves it in its place
    made = step.results[draft.name]()
    inside = np.pad(np.zeros(source.shape), around, constant_values=number)  # the number itself is rounded
    bound = np.asarray(made.bound) + rounding(inside, source.dtype) * (inside != 0)
    whole = Expected(values=values, bound=bound, dtypes=made.dtypes, layout=made.layout)
    return Step(text=step.text, results={draft.name: lambda: whole})


@of_tensor()
def concat(draft: Draft, source: Shadow) -> Step:
    """Tensors one behind the other."""
    choices, rank = draft.choices, len(source.shape)
    axis = choices.between(-rank, rank - 1)

    def fits(other: Shadow) -> bool:
        if (other.dtype, other.layout, len(other.shape)) != (source.dtype, source.layout, rank):
            return False
        pairs = zip(source.shape, other.shape, strict=True)
        return all(first == second or place == axis % rank for place, (first, second) in enumerate(pairs))

    chosen = [source]
    for _ in range(choices.between(0, 3)):
        other = draft.tensor(fits)
        chosen += [other] if other is not None else []
    values = np.concatenate([one.values for one in chosen], axis)
    where = maybe_place(draft, values.shape, tiled=source.tiled, probability=0.35)
    listed = ", ".join(one.name for one in chosen)
    call = f"ttsim.concat([{listed}], {axis}{named(memory_config=where)})"
    return _moved(draft, source, call, values, where=where, dtypes=_kept(source), layout=source.layout)


@of_tensor()
def typecast(draft: Draft, source: Shadow) -> Step:
    """Another data type."""
    data_type = dtype(draft, rare=0.06)
    where = maybe_place(draft, source.shape, tiled=source.tiled, probability=0.2)
    call = f"ttsim.typecast({source.name}, ttsim.{data_type}{named(memory_config=where)})"
    return _cast(draft, source, call, data_type, where)


def to_dtype(draft: Draft) -> Step | None:
    """Another data type, on the host; rarely of a device tensor, which is refused."""
    source = draft.shadow(lambda one: not one.opaque and not one.on_device)
    source = draft.tensor() if source is None or draft.choices.chance(0.1) else source
    if source is None:
        return None
    data_type = dtype(draft, rare=0.0)
    return _cast(draft, source, f"ttsim.to_dtype({source.name}, ttsim.{data_type})", data_type, "")


def _cast(draft: Draft, source: Shadow, call: str, data_type: str, where: str) -> Step:
    values = source.values
    bound: Array | float = 2 * rounding(values, data_type) + moving(values, source.dtype, regrouped=False)
    if source.dtype == data_type:
        bound = 0.0
    if data_type not in (*BLOCKS, "bfloat16", "float32"):  # cut or rounded to an integer within its range
        limits = {"uint8": (0, 255), "uint16": (0, 65535), "uint32": (0, 2**32 - 1), "int32": (-(2**31), 2**31 - 1)}
        inside = (values >= limits[data_type][0]) & (values <= limits[data_type][1])
        bound = np.where(inside, 1.0, np.inf)
    made = Expected(values=values, bound=bound, dtypes=(data_type,), place=asked(draft, where))
    return Step(text=f"{draft.name} = {call}", results={draft.name: lambda: made})


@of_tensor()
def from_device(draft: Draft, source: Shadow) -> Step:
    """To the host."""
    call = draft.choices.pick((f"ttsim.from_device({source.name})", f"{source.name}.cpu()"))
    return _moved(draft, source, call, source.values, exact=True, layout=source.layout)


@of_tensor(anywhere=True)
def to_device(draft: Draft, source: Shadow) -> Step:
    """To the device, from the host or the device itself."""
    where = place(draft, source.shape, tiled=source.tiled)
    here = source.name + (".cpu()" if source.on_device and draft.choices.chance(0.5) else "")
    call = draft.choices.pick((f"ttsim.to_device({here}, device, {where})", f"{here}.to(device, {where})"))
    return _moved(draft, source, call, source.values, exact=True, where=where, layout=source.layout)


@of_tensor(anywhere=True)
def dump_tensor(draft: Draft, source: Shadow) -> Step:
    """To a file and back."""
    where = ", device" if draft.choices.chance(0.7) else ""
    text = f'ttsim.dump_tensor("fuzz.tensorbin", {source.name})\n'
    text += f'{draft.name} = ttsim.load_tensor("fuzz.tensorbin"{where})'
    made = Expected(values=source.values, dtypes=(source.dtype,), layout=source.layout)
    return Step(text=text, results={draft.name: lambda: made})


@of_tensor()
def copies(draft: Draft, source: Shadow) -> Step:
    """A copy that shares the buffer, or one of its own."""
    function = draft.choices.pick(("copy", "deepcopy"))
    place_kept = source.tensor.memory_config()
    made = Expected(values=source.values, dtypes=(source.dtype,), layout=source.layout, place=place_kept)
    return Step(text=f"{draft.name} = copy.{function}({source.name})", results={draft.name: lambda: made})
