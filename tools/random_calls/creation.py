"""Steps that make tensors of numbers, on the host or on the device."""

from typing import Final

import numpy as np

from tools.random_calls.drafts import BLOCKS, DRAM, INTEGERS, USUAL, CallText, Draft, Expected, Shadow, Step, of_tensor
from tools.random_calls.references import rounding

FILLERS: Final = {"zeros": 0.0, "ones": 1.0, "empty": None, "full": 2.5}


def from_numpy(draft: Draft, function: str = "from_numpy") -> Step:
    """A tensor of random numbers."""
    return of_numbers(draft, function, draft.shape(), draft.dtype(), on_device=draft.chance(0.95))


def image(draft: Draft, flat: float = 0.8) -> Step:
    """An image of random numbers, in this share of cases with all its pixels in one axis."""
    sides = (draft.pick((1, 1, 2, 3)), *draft.pair(1, 32), draft.pick((32, 1, 3, 16, 24, 33, 64, 96, 128)))
    sides = (1, 1, sides[0] * sides[1] * sides[2], sides[3]) if draft.chance(flat) else sides
    dtype = draft.pick((*USUAL, "bfloat16"))
    return of_numbers(draft, "from_numpy", sides, dtype, on_device=draft.chance(0.8), sharded=0.15)


def of_numbers(
    draft: Draft, function: str, sides: tuple[int, ...], dtype: str, *, on_device: bool, sharded: float = 0.4
) -> Step:
    """A tensor of random numbers of a shape and a data type."""
    layout = draft.layout(dtype)
    kind = "integers" if dtype in INTEGERS else draft.pick(("normal", "normal", "normal", "positive", "large"))
    array = f'numbers({draft.below(1000)}, {sides}, "{kind}")'
    call = draft.call(function, array, f"ttsim.{dtype}").option("layout", f"ttsim.{layout}_LAYOUT")
    if on_device:
        call.option("device", "device").place = draft.place(sides, tiled=layout == "TILE", sharded=sharded)
        call.option("memory_config", call.place)
    return _gives(call, array, dtype, layout)


def _gives(call: CallText, array: str, dtype: str, layout: str, text: str = "") -> Step:
    place = call.draft.required(call.place)

    def expected() -> Expected:
        values = np.asarray(call.draft.evaluated(array), np.float64)
        bound = rounding(values, dtype) if dtype in (*BLOCKS, "bfloat16") else 0.0
        return Expected(values=values, bound=bound, dtypes=(dtype,), layout=layout, place=place)

    return call.gives(expect=expected, text=text)


def _described(call: CallText, sides: tuple[int, ...], dtype: str, *, sharded: float = 0.2) -> str:
    """Adds data type, layout and place of a new tensor; returns the layout."""
    layout = call.draft.layout(dtype)
    call.place = call.draft.place(sides, tiled=layout == "TILE", sharded=sharded)
    call.option("dtype", f"ttsim.{dtype}").option("layout", f"ttsim.{layout}_LAYOUT").option("device", "device")
    call.option("memory_config", call.place)
    return layout


def filled(draft: Draft, function: str) -> Step:
    """A tensor of one number, or of numbers that do not matter."""
    sides, dtype = draft.shape(), draft.dtype()
    number = FILLERS[function]
    if function == "full":
        number = float(draft.pick((2, 0, 7))) if dtype in INTEGERS else draft.pick((2.5, -1.0, 0.1, 1e3))
    call = draft.call(function, sides, *([number] if function == "full" else []))
    return _of_one_number(call, sides, number, dtype, _described(call, sides, dtype))


@of_tensor()
def like(draft: Draft, model: Shadow, function: str) -> Step:
    """The same in the shape, layout and data type of another tensor."""
    number = FILLERS[function]
    call = draft.call(f"{function}_like", model, *([number] if function == "full" else []))
    call.typed(0.2, ("bfloat16", "float32")).placed(model.shape, tiled=model.tiled, probability=0.2)
    dtype = call.dtype or model.dtype
    if number is not None and dtype in INTEGERS:
        number = int(number)
    return _of_one_number(call, model.shape, number, dtype, model.layout)


def _of_one_number(call: CallText, sides: tuple[int, ...], number: float | None, dtype: str, layout: str) -> Step:
    values = None if number is None else np.full(sides, float(number))
    bound = 0.0 if values is None else rounding(values, dtype) * (number not in (0.0, 1.0))
    return call.gives(values, bound, shape=sides, dtypes=(dtype,), layout=layout)


def arange(draft: Draft) -> Step:
    """Numbers in order."""
    start, count, step = draft.between(-3, 3), draft.pick((32, 7, 100)), draft.pick((1, 2, -1))
    dtype = draft.pick(("bfloat16", "float32", "int32"))
    call = draft.call("arange", start, start + count * step, step)
    layout = _described(call, (count,), dtype, sharded=0.1)
    values = np.arange(start, start + count * step, step).astype(np.float64)
    bound = rounding(values, dtype) if dtype == "bfloat16" else 0.0
    return call.gives(values, bound, dtypes=(dtype,), layout=layout)


def rand(draft: Draft) -> Step:
    """Evenly distributed numbers, which must lie within their limits."""
    sides, dtype = draft.shape(), draft.pick(USUAL)
    low, high = draft.pick(((0.0, 1.0), (-2.0, 2.0)))
    call = draft.call("rand", sides).option("low", low).option("high", high).option("seed", draft.below(100))
    layout = _described(call, sides, dtype)
    reach = (high - low) / 2
    return call.gives(np.full(sides, low + reach), reach + reach * 2.0**-6, dtypes=(dtype,), layout=layout)


def allocate_tensor_on_device(draft: Draft) -> Step:
    """A tensor without numbers, which a host tensor fills."""
    sides, dtype = draft.shape(), draft.dtype(rare=0.0)
    layout = draft.layout(dtype)
    spec = (f"ttsim.{dtype}", f"ttsim.{layout}_LAYOUT")
    where = draft.place(sides, tiled=layout == "TILE")
    call = draft.call("allocate_tensor_on_device", sides, *spec, "device", where)
    call.place = where
    array = f"numbers({draft.below(1000)}, {sides})"
    text = f"ttsim.allocate_tensor_on_device({', '.join(call.arguments)})\n"
    text += f"ttsim.copy_host_to_device_tensor(ttsim.from_numpy({array}, {spec[0]}, layout={spec[1]}), {draft.name})"
    return _gives(call, array, dtype, layout, text)


@of_tensor()
def allocate_tensor_on_host(draft: Draft, x: Shadow) -> Step:
    """A host tensor that takes the numbers of a device tensor."""
    text = f"ttsim.allocate_tensor_on_host({x}.spec, device)\nttsim.copy_device_to_host_tensor({x}, {draft.name})"
    return draft.call("").gives(x.values, dtypes=(x.dtype,), layout=x.layout, text=text)


def filled_l1(draft: Draft) -> Step:
    """Much of L1 is taken by a tensor in shards, so that later calls have less room."""
    x, y = draft.pick(((0, 0), (1, 0), (0, 3)))
    high = 32 * draft.pick((2, 8, 20, 30, 36))
    sides = (1, 1, high * (x + 1) * (y + 1), 512)
    call = draft.call("zeros", sides).option("dtype", "ttsim.bfloat16").option("layout", "ttsim.TILE_LAYOUT")
    call.place = f'shards("HEIGHT", ({high}, 512), (0, 0, {x}, {y}))'
    call.option("device", "device").option("memory_config", call.place)
    step = call.gives(shape=sides, dtypes=("bfloat16",), layout="TILE")
    return Step(text=step.text, results=step.results, opaque=(draft.name,))


def command_queue(draft: Draft) -> Step:
    """A tensor that is made within the block of a queue."""
    operand = draft.operand("q", (1, 1, 32, 32), "bfloat16", where=DRAM)
    return Step(text=f"with ttsim.command_queue(0):\n    {operand.text.strip()}", results=operand.result)
