"""Steps that make tensors of numbers, on the host or on the device."""

from typing import Final

import numpy as np

from tools.fuzz.sequences.bounds import rounding
from tools.fuzz.sequences.places import asked, dtype, layout, maybe_place, named, place, shape
from tools.fuzz.sequences.state import BLOCKS, INTEGERS, Draft
from tools.fuzz.sequences.steps import Expected, Step

FILLERS: Final = {"zeros": 0.0, "ones": 1.0, "empty": None, "full": 2.5}


def from_numpy(draft: Draft, function: str = "from_numpy") -> Step:
    """A tensor of random numbers."""
    choices, sides, data_type = draft.choices, shape(draft), dtype(draft)
    held = layout(draft, data_type)
    kind = "integers" if data_type in INTEGERS else choices.pick(("normal", "normal", "normal", "positive", "large"))
    array = f'numbers({choices.below(1000)}, {sides}, "{kind}")'
    on_device = choices.chance(0.95)
    where = place(draft, sides, tiled=held == "TILE_LAYOUT") if on_device else ""
    how = f"{array}, ttsim.{data_type}, layout=ttsim.{held}"
    how += named(device="device" if on_device else "", memory_config=where)

    def result() -> Expected:
        values = np.asarray(draft.evaluated(array), np.float64)
        bound = rounding(values, data_type) if data_type in (*BLOCKS, "bfloat16") else 0.0
        return Expected(
            values=values,
            bound=bound,
            dtypes=(data_type,),
            layout=held.removesuffix("_LAYOUT"),
            place=asked(draft, where),
        )

    return Step(text=f"{draft.name} = ttsim.{function}({how})", results={draft.name: result})


def as_tensor(draft: Draft) -> Step:
    """The same by another function."""
    return from_numpy(draft, "as_tensor")


def from_torch(draft: Draft) -> Step:
    """The same by another function, which takes numpy arrays as well."""
    return from_numpy(draft, "from_torch")


def _filled(draft: Draft, function: str) -> Step:
    choices, sides, data_type = draft.choices, shape(draft), dtype(draft)
    held = layout(draft, data_type)
    where = place(draft, sides, tiled=held == "TILE_LAYOUT", sharded=0.2)
    number = FILLERS[function]
    if function == "full":
        number = float(choices.pick((2, 0, 7))) if data_type in INTEGERS else choices.pick((2.5, -1.0, 0.1, 1e3))
    given = f"{sides}, {number}" if function == "full" else f"{sides}"
    how = f"{given}, dtype=ttsim.{data_type}, layout=ttsim.{held}, device=device" + named(memory_config=where)
    values = None if number is None else np.full(sides, number)
    bound = 0.0 if values is None else rounding(values, data_type) * (number not in (0.0, 1.0))
    made = Expected(
        values=values,
        shape=sides,
        bound=bound,
        dtypes=(data_type,),
        layout=held.removesuffix("_LAYOUT"),
        place=asked(draft, where),
    )
    return Step(text=f"{draft.name} = ttsim.{function}({how})", results={draft.name: lambda: made})


def zeros(draft: Draft) -> Step:
    """A tensor of zeros."""
    return _filled(draft, "zeros")


def ones(draft: Draft) -> Step:
    """A tensor of ones."""
    return _filled(draft, "ones")


def empty(draft: Draft) -> Step:
    """A tensor whose numbers do not matter."""
    return _filled(draft, "empty")


def full(draft: Draft) -> Step:
    """A tensor of one number."""
    return _filled(draft, "full")


def _like(draft: Draft, function: str) -> Step | None:
    model = draft.tensor()
    if model is None:
        return None
    choices = draft.choices
    data_type = choices.pick(("bfloat16", "float32")) if choices.chance(0.2) else model.dtype
    where = maybe_place(draft, model.shape, tiled=model.tiled, probability=0.2)
    number = FILLERS[function]
    given = f"{model.name}, {number}" if function == "full" else model.name
    how = given + named(dtype="" if data_type == model.dtype else f"ttsim.{data_type}", memory_config=where)
    values = None if number is None else np.full(model.shape, int(number) if data_type in INTEGERS else number)
    made = Expected(
        values=values,
        shape=model.shape,
        bound=0.0 if values is None else rounding(values, data_type) * (number not in (0.0, 1.0)),
        dtypes=(data_type,),
        layout=model.layout,
        place=asked(draft, where),
    )
    return Step(text=f"{draft.name} = ttsim.{function}_like({how})", results={draft.name: lambda: made})


def zeros_like(draft: Draft) -> Step | None:
    """Zeros in the shape of another tensor."""
    return _like(draft, "zeros")


def ones_like(draft: Draft) -> Step | None:
    """Ones in the shape of another tensor."""
    return _like(draft, "ones")


def empty_like(draft: Draft) -> Step | None:
    """Numbers that do not matter, in the shape of another tensor."""
    return _like(draft, "empty")


def full_like(draft: Draft) -> Step | None:
    """One number in the shape of another tensor."""
    return _like(draft, "full")


def arange(draft: Draft) -> Step:
    """Numbers in order."""
    choices = draft.choices
    start, count, step = choices.between(-3, 3), choices.pick((32, 7, 100)), choices.pick((1, 2, -1))
    data_type = choices.pick(("bfloat16", "float32", "int32"))
    held = layout(draft, data_type)
    where = place(draft, (count,), tiled=held == "TILE_LAYOUT", sharded=0.1)
    values = np.arange(start, start + count * step, step).astype(np.float64)
    how = f"{start}, {start + count * step}, {step}, dtype=ttsim.{data_type}, device=device, layout=ttsim.{held}"
    made = Expected(
        values=values,
        bound=rounding(values, data_type) if data_type == "bfloat16" else 0.0,
        dtypes=(data_type,),
        layout=held.removesuffix("_LAYOUT"),
        place=asked(draft, where),
    )
    text = f"{draft.name} = ttsim.arange({how}{named(memory_config=where)})"
    return Step(text=text, results={draft.name: lambda: made})


def rand(draft: Draft) -> Step:
    """Evenly distributed numbers, which must lie within their limits."""
    choices, sides = draft.choices, shape(draft)
    data_type = choices.pick(("bfloat16", "float32", "bfloat8_b"))
    held = layout(draft, data_type)
    where = place(draft, sides, tiled=held == "TILE_LAYOUT", sharded=0.2)
    low, high = choices.pick(((0.0, 1.0), (-2.0, 2.0)))
    how = f"{sides}, device, dtype=ttsim.{data_type}, layout=ttsim.{held}, low={low}, high={high}"
    how += f", seed={choices.below(100)}" + named(memory_config=where)
    middle, reach = (low + high) / 2, (high - low) / 2
    made = Expected(
        values=np.full(sides, middle),
        bound=reach + reach * 2.0**-6,
        dtypes=(data_type,),
        layout=held.removesuffix("_LAYOUT"),
        place=asked(draft, where),
    )
    return Step(text=f"{draft.name} = ttsim.rand({how})", results={draft.name: lambda: made})


def allocate_tensor_on_device(draft: Draft) -> Step:
    """A tensor without numbers, which a host tensor fills."""
    sides, data_type = shape(draft), dtype(draft, rare=0.0)
    held = layout(draft, data_type)
    where = place(draft, sides, tiled=held == "TILE_LAYOUT")
    spec = f"{sides}, ttsim.{data_type}, ttsim.{held}"
    array = f"numbers({draft.choices.below(1000)}, {sides})"
    host = f"ttsim.from_numpy({array}, ttsim.{data_type}, layout=ttsim.{held})"
    text = f"{draft.name} = ttsim.allocate_tensor_on_device({spec}, device, {where})\n"
    text += f"ttsim.copy_host_to_device_tensor({host}, {draft.name})"

    def result() -> Expected:
        values = np.asarray(draft.evaluated(array), np.float64)
        bound = rounding(values, data_type) if data_type != "float32" else 0.0
        return Expected(values=values, bound=bound, dtypes=(data_type,), place=asked(draft, where))

    return Step(text=text, results={draft.name: result})


def allocate_tensor_on_host(draft: Draft) -> Step | None:
    """A host tensor that takes the numbers of a device tensor."""
    source = draft.tensor()
    if source is None:
        return None
    text = f"{draft.name} = ttsim.allocate_tensor_on_host({source.name}.spec, device)\n"
    text += f"ttsim.copy_device_to_host_tensor({source.name}, {draft.name})"
    made = Expected(values=source.values, dtypes=(source.dtype,), layout=source.layout)
    return Step(text=text, results={draft.name: lambda: made})
