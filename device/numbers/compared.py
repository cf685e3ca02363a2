"""What was compared, bit for bit, with recordings of the real kernels, and what never was.

One table, from which docstrings, docs/values.md (Activation) and the reports of calls derive. Nobody knows the last
places of a function that is not in it: its kernel is followed step by step where docs/values.md says so, and no output
of that kernel was ever seen.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from device.numbers.activations import FUNCTIONS

NARROW: Final = 16  # bits of Dst: bfloat16 and block floats
WIDE: Final = 32  # float32, or any format under fp32_dest_acc_en

COMPARED: Final[Mapping[str, frozenset[int]]] = MappingProxyType(
    {
        "relu": frozenset({NARROW, WIDE}),
        "leaky_relu": frozenset({NARROW, WIDE}),
        "exp": frozenset({NARROW}),
        "gelu": frozenset({NARROW}),
        "relu6": frozenset({NARROW}),
        "sigmoid": frozenset({NARROW}),
        "silu": frozenset({NARROW}),
        "sqrt": frozenset({NARROW}),
    }
)
UNCOMPARED_CALLS: Final = frozenset({"conv1d", "add_", "subtract_", "multiply_", "sub_", "mul_"})


def comparison(name: str) -> str:
    """A sentence for the documentation of a function: in which formats it was compared."""
    widths = COMPARED.get(name, frozenset())
    if not widths:
        return "Its numbers were never compared with recordings of the real kernel."
    if WIDE in widths:
        return "Its bits were compared with recordings of the real kernel."
    return "Its bits were compared with recordings of the real kernel in bfloat16 and block floats, never in float32."


def uncompared(names: Iterable[str], *, fp32_dest: bool, fused_into: str = "") -> str | None:
    """Part of a sentence that names the functions of an operation that were never compared; None if all were.

    Args:
        names: The functions; what only fills or moves is left out.
        fp32_dest: Whether Dst is 32 bits wide.
        fused_into: An operation of two tensors that applies them; none of these was compared.
    """
    width = WIDE if fp32_dest else NARROW
    told = [name for name in names if name in FUNCTIONS or name == "relu"]
    told = [name for name in told if fused_into or width not in COMPARED.get(name, ())]
    if not told:
        return None
    where = f" fused into {fused_into}" if fused_into else f" in a {width}-bit Dst"
    return f"numbers of {' and '.join(told)}{where} never compared with the real kernel's"
