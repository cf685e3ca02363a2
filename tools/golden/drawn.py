"""Random calls of a record: steps of random sequences, drawn on a device without values."""

from functools import cache
from typing import Any, Final

import numpy as np

import ttsim
from tools.golden.calls import DEVICES, Call
from tools.random_calls.device_calls import REFERENCE
from tools.random_calls.drafts import PRELUDE, Draft, Shadow, State, Step
from tools.random_calls.odd_values import spoiled
from tools.random_calls.operations import OPERATIONS, WEIGHTS
from tools.random_calls.tensors import image

SEED: Final = 20261123
ODD: Final = "odd"  # calls of all operations with values that nobody expects for some of their arguments
NETWORK: Final = "network"  # several steps one after the other
LENGTH: Final = 8  # steps of a network
TENSORS: Final = 2  # that a call finds
TRIES: Final = 12  # until an operation finds tensors that it takes
# Calls of each group in a whole record.
GROUPS: Final = {name: round(32 * weight) for name, weight in WEIGHTS.items()} | {
    **{"conv_transpose2d": 850, "conv2d": 500, "matmul": 180, "linear": 180, "onednn": 180, ODD: 400, NETWORK: 400}
}
ALL: Final = sum(GROUPS.values())
# How often all pixels of an image stand in one axis, for the operations that take images.
FLAT: Final = {
    **dict.fromkeys(("conv_transpose2d", "conv2d", "conv1d", NETWORK, "max_pool2d"), 0.8),
    **dict.fromkeys(("upsample", "fold"), 0.0),
}
VALUES_EVERY: Final = 33  # calls of a group of which the values of the first one are computed


def drawn_calls(count: int = ALL, seed: int = SEED) -> list[Call]:
    """About so many random calls, dealt to the groups as in a whole record, at least one of each."""
    dealt = {group: max(1, round(calls * count / ALL)) for group, calls in GROUPS.items()}
    return [drawn_call(group, number, seed) for group, share in dealt.items() for number in range(share)]


@cache
def _device() -> ttsim.Device:
    return ttsim.open_device(l1_small_size=32768, values="off", strict=False)


def drawn_call(group: str, number: int, seed: int) -> Call:
    """A call of a group: always the same of a seed and a number."""
    generator = np.random.default_rng([seed, number, *group.encode()])
    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    names["device"] = _device()
    state = State(names)
    name = str(generator.choice(list(OPERATIONS))) if group == ODD else group
    statements = [_tensor(generator, state, at, name) for at in range(TENSORS)]
    texts, result = list[str](), "None"
    for at in range(TENSORS, TENSORS + LENGTH if group == NETWORK else TENSORS + 1):
        drawn = str(generator.choice(list(OPERATIONS))) if group == NETWORK else name
        step = None
        for more in range(TRIES):  # while the operation takes none of the tensors, others are made
            step = OPERATIONS[drawn](Draft(generator, state, at * TRIES))
            if step is not None:
                break
            statements.append(_tensor(generator, state, at * TRIES + more + 1, drawn))
        if step is None:
            continue
        text = step.text.partition(REFERENCE)[0]
        text = spoiled(text, names, Draft(generator, state, 0)) if group == ODD else text
        if group != NETWORK or _carried_out(step, state):
            texts.append(text)
            result = _result(step, f"t{at * TRIES}")
    state.shadows.clear()
    names.clear()
    _device().clear_program_cache()
    return Call(
        name=f"{group.replace(' ', '_')}/{number:04}",
        given="\n".join(filter(None, statements)),
        text="\n".join([*texts, f"y = {result}"]),
        values=(DEVICES[number % len(DEVICES)],) if number % VALUES_EVERY == 0 and group != ODD else (),
    )


def _tensor(generator: np.random.Generator, state: State, at: int, name: str) -> str:
    """Makes a tensor for a call; the statement, empty if it is refused."""
    draft = Draft(generator, state, at)
    step = image(draft, FLAT[name]) if name in FLAT else OPERATIONS["from_numpy"](draft)
    return step.text if step is not None and _carried_out(step, state) else ""


def _carried_out(step: Step, state: State) -> bool:
    """Whether a step runs on the device without values; its tensors may be taken by later steps."""
    try:
        exec(step.text, state.names)
    except ttsim.TTSimError:
        return False
    for name in step.frees:
        state.shadows.pop(name, None)
    for name in step.results:
        tensor = state.names.get(name)
        if isinstance(tensor, ttsim.Tensor) and tensor.is_allocated():
            zeros = np.broadcast_to(np.float64(0), tuple(tensor.shape))
            state.shadows[name] = Shadow(name, tensor, zeros, name in step.opaque)
    return True


def _result(step: Step, own: str) -> str:
    """The results of a step: its tensor, prepared weights and other answers; else the tensor that it wrote."""
    names = [name for name in step.results if name == own] + [*step.opaque, *step.facts]
    names = names or list(step.results)[-1:]
    return f"[{', '.join(names)}]" if len(names) > 1 else names[0] if names else "None"
