"""Every exported operation is drawn by random sequences, and accepted."""

import contextlib
import inspect
import re

import numpy as np
import pytest

import ttsim
from tools.fuzz.sequences import Fault, Run
from tools.random_calls.drafts import Draft, Expected, Step
from tools.random_calls.operations import NOT_DRAWN, OPERATIONS

MODULES = {
    **{"": ttsim, "experimental.": ttsim.experimental, "transformer.": ttsim.transformer},
    **{"kv_cache.": ttsim.kv_cache, "onednn.": ttsim.onednn, "graph.": ttsim.graph},
}
# Operations that draw one of several functions, or a rare argument: draws until all of them were called.
DRAWS = {"question": 300, "onednn": 30, "conv2d": 100, "conv_transpose2d": 100}


def exported():
    """Every function of the library by its name after `ttsim.`."""
    for prefix, module in MODULES.items():
        names = vars(module) if prefix == "graph." else module.__all__
        for name in names:
            function = getattr(module, name)
            elsewhere = prefix in ("", "experimental.", "kv_cache.", "transformer.")
            own = elsewhere or inspect.getmodule(function) is module
            if inspect.isfunction(function) and own and not name.startswith("_"):
                yield prefix + name


def begun():
    """A run that begins with tensors of many kinds."""
    going = Run("l1_small_size=32768")
    tiles, rows = "ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device", "ttsim.float32, device=device"
    sharded = f'{tiles}, memory_config=shards("HEIGHT", (32, 64), (0, 0, 0, 0))'
    image, matrix = (1, 4, 8, 32), (1, 1, 32, 64)
    kinds = [((32, 32), "ttsim.bfloat16"), (image, tiles), (image, rows), (matrix, tiles), (matrix, rows)]
    for number, (shape, how) in enumerate([*kinds, ((32, 64), sharded)]):
        text = f't{number} = ttsim.from_numpy(numbers(1, {shape}, "positive"), {how})'
        made = Expected(values=going.state.names["numbers"](1, shape, "positive"), bound=0.02)
        going.carry_out("from_numpy", Step(text=text, results={f"t{number}": lambda made=made: made}))
    return going


@pytest.fixture(scope="module")
def calls():
    """The texts of drawn calls of every operation, and whether one of them was accepted."""
    return {name: drawn(name) for name in OPERATIONS}


def drawn(name):
    generator, texts, accepted = np.random.default_rng(1), [], 0
    for number in range(100, 500):
        if number % 10 == 0:
            going = begun()
        step = OPERATIONS[name](Draft(generator, going.state, number))
        if step is not None:
            texts.append(step.text)
            if not accepted:
                with contextlib.suppress(Fault):  # here it is enough that some call is right
                    going.carry_out(name, step)
                accepted = going.accepted[name]
        if accepted and len(texts) >= DRAWS.get(name, 8):
            break
    return texts, accepted


def test_every_operation_is_accepted(calls):
    assert [name for name, (_, accepted) in calls.items() if not accepted] == []


def test_every_exported_function_is_called_or_named_with_a_reason(calls):
    text = "\n".join(text for texts, _ in calls.values() for text in texts)
    called = set(re.findall(r"\bttsim\.((?:\w+\.)?[a-z]\w*)\(", text))
    assert set(exported()) - called - set(NOT_DRAWN) == set()
    assert set(NOT_DRAWN) & called == set()
    assert set(NOT_DRAWN) - set(exported()) <= {"onednn.run"}
