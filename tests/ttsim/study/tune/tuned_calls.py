"""Small calls for the tests of the tuner, each on a device of its own."""

from functools import cache

import ttsim
from ttsim.study.tune.tune import Question, question_of

L1, DRAM = ttsim.L1_MEMORY_CONFIG, ttsim.DRAM_MEMORY_CONFIG


def options(memory=L1, *, channels=64, outputs=32, side=8, kernel=2, stride=2, padding=0, **more):
    """Keyword arguments of a transposed convolution of a square image."""
    return {
        "input_tensor": ttsim.TensorDescription((1, 1, side * side, channels), memory_config=memory),
        "weight_tensor": ttsim.TensorDescription((channels, outputs, kernel, kernel)),
        "in_channels": channels,
        "out_channels": outputs,
        "batch_size": 1,
        "input_height": side,
        "input_width": side,
        "kernel_size": (kernel, kernel),
        "stride": (stride, stride),
        "padding": (padding, padding),
        **more,
    }


def conv2d_options(memory=L1):
    """Keyword arguments of a 3x3 convolution."""
    given = options(memory, kernel=3, stride=1, padding=1)
    return given | {"weight_tensor": ttsim.TensorDescription((32, 64, 3, 3))}


@cache
def question(kind) -> Question:
    """A question about one of three calls: "l1", "dram" or "conv2d"."""
    device = ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off")
    function = ttsim.conv2d if kind == "conv2d" else ttsim.conv_transpose2d
    given = {"l1": options, "dram": lambda: options(DRAM), "conv2d": conv2d_options}[kind]()
    return question_of(function, given, device)


def placements(space, every=1):
    """Some placements of a space, with the call whose bound holds for all of its scheme."""
    some = list(space.schemes())[:: (every + 1) // 2]
    return [(placed, largest) for chosen, largest in some for placed in list(space.placements(chosen))[::every]]


def families(space):
    """The first member of every family of a space."""
    return [first for placed, _ in placements(space) for first in space.families(placed)]
