"""One transposed convolution as a table of fields for layer files, flags and sweeps, with checks.

Fields with the names of parameters of conv_transpose2d are its arguments; a layer has no tensors and no device.
"""

from argparse import ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from device.errors import ArgumentError, shown

Setting = bool | int | float | str


def _whole(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def whole_number(text: str) -> int:
    """A whole number; raises ArgumentTypeError for anything else."""
    return integers(text, most=1)[0]


def integers(text: str, most: int = 4) -> tuple[int, ...]:
    """Comma-separated integers; raises ArgumentTypeError for anything else."""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not 0 < len(numbers) <= most:
        wanted = "a whole number, such as 2" if most == 1 else "whole numbers with commas between, such as 2,2"
        raise ArgumentTypeError(f"give {wanted}, not {shown(text)}")
    return numbers


def setting(text: str) -> tuple[str, Setting]:
    """Parses FIELD=VALUE, with true, false and numbers; raises ArgumentTypeError without a field or a value."""
    key, _, value = text.partition("=")
    if not key or not value:
        raise ArgumentTypeError(f"give FIELD=VALUE, such as shard_layout=HEIGHT_SHARDED, not {shown(text)}")
    words: dict[str, Setting] = {"true": True, "false": False}
    if value.lower() in words:
        return key, words[value.lower()]
    return key, int(value) if value.lstrip("-").isdecimal() else value


@dataclass(frozen=True, slots=True)
class FieldKind:
    """The values that a field of a layer may have, in a file and as a flag."""

    wanted: str  # How a message names it
    accepts: Callable[[Any], bool]
    flag: Mapping[str, Any]  # What argparse is told
    plain: Callable[[Any], Any] = lambda value: value  # The value in its plain form, before it is looked at


def _spread(value: Any) -> Any:
    """Two integers; a single integer stands for two equal ones."""
    return (value, value) if _whole(value, -(1 << 62)) else tuple(value) if isinstance(value, list) else value


def _at_least(least: int) -> FieldKind:
    flag = {"type": whole_number, "metavar": "N"}
    return FieldKind(f"an integer of at least {least}", lambda value: _whole(value, least), flag)


def _sizes(*lengths: int) -> FieldKind:
    return FieldKind(
        f"{' or '.join(map(str, lengths))} integers of at least 0",
        lambda value: isinstance(value, tuple) and len(value) in lengths and all(map(_whole, value)),
        {"type": integers, "metavar": "N,N"},
        _spread,
    )


def _one_of(*names: str) -> FieldKind:
    return FieldKind(f"one of {', '.join(names)}", lambda value: value in names, {"choices": names})


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(setting, Setting) for setting in value.values())


SIZE: Final = _at_least(1)
PAIR: Final = _sizes(2)
TEXT: Final = FieldKind("a str", lambda value: isinstance(value, str), {})
CHOICE: Final = FieldKind("a bool", lambda value: isinstance(value, bool), {"action": BooleanOptionalAction})
SWITCH: Final = FieldKind(CHOICE.wanted, CHOICE.accepts, {"action": "store_const", "const": True})
_KEYED: Final = {"action": "append", "type": setting, "metavar": "FIELD=VALUE"}
TABLE: Final = FieldKind("a table of plain values", _is_table, _KEYED)


def _field(kind: FieldKind, help: str | None = None, **default: Any) -> Any:
    """Declares a field of a layer: its kind, the help text of its flag, and optionally a default."""
    return field(metadata={"kind": kind, "help": help}, **default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A call of conv_transpose2d on random numbers."""

    name: str = _field(TEXT, "what reports call it", default="conv_transpose2d")
    source: str = _field(TEXT, default="")  # Where its figures come from
    batch_size: int = _field(SIZE, default=1)
    in_channels: int = _field(SIZE, "C")
    out_channels: int = _field(SIZE, "O; C if left out")
    input_height: int = _field(SIZE)
    input_width: int = _field(SIZE)
    kernel_size: tuple[int, ...] = _field(PAIR, "rows,columns; one number for both", default=(2, 2))
    stride: tuple[int, ...] = _field(PAIR, default=(1, 1))
    padding: tuple[int, ...] = _field(_sizes(2, 4), "rows,columns or top,bottom,left,right", default=(0, 0))
    output_padding: tuple[int, ...] = _field(PAIR, default=(0, 0))  # Added at the bottom and the right
    dilation: tuple[int, ...] = _field(PAIR, default=(1, 1))
    groups: int = _field(SIZE, default=1)
    bias: bool = _field(CHOICE, default=True)
    mirror_kernel: bool = _field(CHOICE, default=True)  # The operation flips the kernel itself
    input_dtype: str = _field(_one_of("bfloat16", "float32", "bfloat8_b"), default="bfloat16")
    input_layout: str = _field(_one_of("ROW_MAJOR", "TILE"), default="ROW_MAJOR")
    input_memory: str = _field(_one_of("dram", "l1", "host"), default="dram")  # Both on the device are interleaved
    input_4d: bool = _field(SWITCH, "input of shape [N, H, W, C]", default=False)  # Instead of [1, 1, N*H*W, C]
    weights_dtype: str = _field(
        _one_of("bfloat16", "float32"),
        "of the weights on the host; --config weights_dtype=... for what they are prepared as",
        default="bfloat16",
    )
    dtype: str | None = _field(_one_of("bfloat16", "float32", "bfloat8_b"), default=None)  # Of the output
    slice: str | None = _field(TEXT, "l1_full, or H:n or W:n for n DRAM slices (0: as few as fit)", default=None)
    # Enumerations by their member's name, core_grid as "8x4" (columns by rows)
    config: Mapping[str, Setting] = _field(
        TABLE, "a field of Conv2dConfig, such as shard_layout=HEIGHT_SHARDED; may be repeated", default_factory=dict
    )
    compute: Mapping[str, Setting] = _field(  # None is passed where nothing is set
        TABLE, "a field of the compute config, such as math_fidelity=LoFi; may be repeated", default_factory=dict
    )
    seed: int = _field(_at_least(0), "of the random numbers", default=0)


FIELDS: Final = {field.name: field for field in fields(Layer)}
KINDS: Final[Mapping[str, FieldKind]] = {name: field.metadata["kind"] for name, field in FIELDS.items()}
SETTINGS: Final = tuple(name for name, kind in KINDS.items() if kind is TABLE)
SEVERAL: Final = tuple(name for name, kind in KINDS.items() if kind.flag.get("type") is integers)


def checked(where: str, name: str, value: Any) -> Any:
    """The value of a field in canonical form; raises ArgumentError, which says what the field accepts."""
    kind = KINDS[name]
    plain = kind.plain(value)
    if not kind.accepts(plain):
        raise ArgumentError(f"{where}: {name} must be {kind.wanted}, not {shown(value)}")
    return plain
