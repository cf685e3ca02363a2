"""The random calls of a record: groups, how many calls each has, and which of them have values."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from tools.golden import convolutions, facts, operations, sequences
from tools.golden.calls import DEVICES, Call
from tools.golden.drawing import Draw

SEED: Final = 20261123
Drawer = Callable[[Draw], str]
ODD_GROUP: Final = "odd"  # calls of all groups with values that nobody expects for some of their arguments
ODD_CALLS: Final = 400

# group -> (what draws its calls, calls in a record of 5,000)
GROUPS: Final[Mapping[str, tuple[Drawer, int]]] = MappingProxyType(
    {
        "conv_transpose2d": (partial(convolutions.convolution, function="conv_transpose2d"), 850),
        "conv2d": (partial(convolutions.convolution, function="conv2d"), 500),
        "conv1d": (partial(convolutions.convolution, function="conv1d"), 100),
        "prepare_conv_transpose2d_weights": (
            partial(convolutions.preparation, function="prepare_conv_transpose2d_weights"),
            50,
        ),
        "prepare_conv_transpose2d_bias": (
            partial(convolutions.preparation, function="prepare_conv_transpose2d_bias"),
            30,
        ),
        "prepare_conv_weights": (partial(convolutions.preparation, function="prepare_conv_weights"), 50),
        "prepare_conv_bias": (partial(convolutions.preparation, function="prepare_conv_bias"), 30),
        "query_op_constraints": (partial(convolutions.question, function="query_op_constraints"), 70),
        "estimate_cycles": (partial(convolutions.question, function="estimate_cycles"), 50),
        "matmul": (partial(operations.matrices, function="matmul"), 180),
        "linear": (partial(operations.matrices, function="linear"), 180),
        "max_pool2d": (operations.max_pool2d, 200),
        "upsample": (operations.upsample, 100),
        "fold": (operations.fold, 60),
        "unary": (operations.unary, 220),
        "binary": (operations.binary, 260),
        "concat": (operations.concat, 130),
        "pad": (operations.pad, 100),
        "permute": (operations.permute, 80),
        "transpose": (operations.transpose, 60),
        "reshape": (operations.reshape, 90),
        "slice": (operations.cut, 120),
        "conversion": (operations.conversion, 270),
        "tiles": (operations.tiles, 140),
        "creation": (operations.creation, 120),
        "facts": (facts.facts, 80),
        "network": (sequences.network, 200),
        "repeated": (sequences.repeated, 80),
        "trace": (sequences.trace, 20),
        "onednn": (sequences.onednn, 180),
    }
)
ALL: Final = sum(count for _, count in GROUPS.values()) + ODD_CALLS
VALUES_EVERY: Final = 33  # calls of a group of which the first one is drawn small and its values are computed


def drawn_calls(count: int = ALL, seed: int = SEED) -> list[Call]:
    """About so many random calls, dealt to the groups as in a whole record, at least one of each."""
    return [
        _drawn(group, number, seed, small=number % VALUES_EVERY == 0)
        for group, share in dealt(count).items()
        for number in range(share)
    ]


def dealt(count: int) -> dict[str, int]:
    """How many calls each group has in a record of so many."""
    usual = {ODD_GROUP: ODD_CALLS, **{group: usual for group, (_, usual) in GROUPS.items()}}
    return {group: max(1, round(calls * count / ALL)) for group, calls in usual.items()}


def _drawn(group: str, number: int, seed: int, *, small: bool) -> Call:
    draw = Draw(seed, group, number, small=small)
    drawer = group
    if group == ODD_GROUP:
        drawer, draw.odd = draw.pick(list(GROUPS)), 1.0
    text = GROUPS[drawer][0](draw)
    values = (DEVICES[number % len(DEVICES)],) if small and group != ODD_GROUP else ()
    return Call(name=f"{group}/{number:04}", given="\n".join(draw.given), text=text, values=values)
