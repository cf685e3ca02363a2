"""Parses questions: the fields of a line of JSON, and the call, device and state of a question."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import Any, Final, NamedTuple

from device.errors import ArgumentError, nearest, shown
from ops.sensitivity.changes import load_spec, with_changes
from ttsim.api.convolutions import conv_transpose2d
from ttsim.runtime.device import Device
from ttsim.runtime.queried import AllocationRecord, MockAllocatorState
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, default_spec
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.tensors import TensorDescription
from ttsim.study.ask.values import operation, value_of
from ttsim.study.layers.read import layer_of, merged
from ttsim.study.layers.run import Settings, planned

PROTOCOL: Final = 1  # raised when a field changes its meaning or goes
# The fields of a question, with the types of their JSON values and what they mean
FIELDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "protocol": ((int,), "version of the protocol that the asker knows"),
    "id": ((object,), "anything; the answer has the same"),
    "ask": ((str, list), "constraints, runtime, model or version, or several; constraints and runtime by default"),
    "op": ((str,), "name of an operation: relu, ttnn.relu, ttnn::relu, transformer.concatenate_heads"),
    "args": ((list,), "arguments by position"),
    "kwargs": ((dict,), "arguments by name; an argument device is filled in"),
    "layer": ((dict,), "instead of op, args and kwargs: a transposed convolution, by the keys of a file of layers"),
    "device": ((str,), "name or file of a device, perhaps with changes: n150, dram.banks=16"),
    "release": ((str,), "release of the planner's rules; that of the device by default"),
    "l1_small_size": ((int,), f"bytes of L1 kept for index tables; {USUAL_L1_SMALL_SIZE} by default"),
    "strict": ((bool,), "refuse what the real library accepts and gets wrong; true by default"),
    "state": ((list,), "what lies in memory before: objects of buffer_type, address and size_per_bank, in bytes"),
    "choose": ((list,), "candidates, each an object of fields that replace or, in kwargs and layer, add to these"),
}
WORDS: Final = {int: "an integer", str: "a text", list: "a list", dict: "an object", bool: "true or false"}
DEVICES: Final = 32  # kept open; each has caches of its own


class Call(NamedTuple):
    """The call of a question."""

    op: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    device: Device


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed line.

    Attributes:
        text: The question without protocol and id, as JSON with sorted keys: equal questions have equal texts.
        id: The id that the answer repeats; None if the line has none.
    """

    text: str
    id: Any = None


def question_of(line: bytes) -> Question:
    """The question of a line of JSON; raises ArgumentError for an invalid line."""
    read = _parsed(line)
    if not isinstance(read, dict):
        raise ArgumentError(f"a question is a JSON object, not {shown(read)}")
    given = read.pop("id", None)
    if read.pop("protocol", PROTOCOL) != PROTOCOL:
        raise WrongProtocolError(f'this is protocol {PROTOCOL}; ask {{"ask": "version"}}', given)
    try:
        json.dumps(given, allow_nan=False)  # the answer repeats it
    except ValueError:
        raise ArgumentError("id must be a JSON value, and JSON has no NaN and no infinity") from None
    return Question(json.dumps(read, sort_keys=True, separators=(",", ":")), given)


def _parsed(line: bytes) -> Any:
    """The JSON value of a line; raises ArgumentError with the place of the mistake."""
    try:
        return DECODER.decode(line.decode("utf-8-sig").strip())
    except UnicodeDecodeError as error:
        wrong = f"byte {error.start + 1} of the line is not UTF-8"
    except json.JSONDecodeError as error:
        wrong = f"{error.msg} at character {error.pos + 1}" if error.doc else "the line is empty"
    except ArgumentError:
        raise
    except RecursionError:
        wrong = "lists and objects are nested too deeply"
    except ValueError:
        wrong = "an integer has too many digits"
    raise ArgumentError(f"a question is a line of JSON: {wrong}")


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The object with these keys; raises ArgumentError for a duplicate key."""
    read = dict(pairs)
    if len(read) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(f"a question is a line of JSON: an object has the key {shown(twice)} twice")
    return read


DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique)


class WrongProtocolError(ArgumentError):
    """The question has another version of the protocol."""

    def __init__(self, text: str, given: Any) -> None:
        super().__init__(text)
        self.id = given


def checked_fields(read: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same fields; raises ArgumentError for an unknown field or a field of a wrong type."""
    for name, value in read.items():
        kinds, _ = FIELDS.get(name, ((), ""))
        if not kinds:
            raise ArgumentError(
                f"unknown field {shown(name)}{nearest(name, list(FIELDS))}; known are {', '.join(FIELDS)}"
            )
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds == (int,)):
            wanted = " or ".join(WORDS[kind] for kind in kinds)
            raise ArgumentError(f"{name} must be {wanted}, not {shown(value)}")
    return read


def candidate(read: Mapping[str, Any], changes: Any) -> dict[str, Any]:
    """The question of a candidate: its fields replace the question's; kwargs and layer are merged by key."""
    if not isinstance(changes, dict):
        raise ArgumentError(f"a candidate is an object of fields, not {shown(changes)}")
    for name in checked_fields(changes):
        if name in ("protocol", "id", "ask", "choose"):
            raise ArgumentError(f"a candidate has no field {name}")
    added = {name: merged(read.get(name, {}), changes[name]) for name in ("layer",) if name in changes}
    if "kwargs" in changes:
        added["kwargs"] = {**read.get("kwargs", {}), **changes["kwargs"]}
    return {**{name: value for name, value in read.items() if name not in ("ask", "choose")}, **changes, **added}


def call_of(read: Mapping[str, Any]) -> Call:
    """The call of a question; raises TTSimError for an invalid call."""
    if "layer" in read:
        other = next((name for name in ("op", "args", "kwargs") if name in read), None)
        if other:
            raise ArgumentError(f"give layer or {other}, not both")
        return _of_layer(read)
    if "op" not in read:
        raise ArgumentError('op or layer is missing; ask for the call of an operation, such as "op": "relu"')
    op, device = operation(read["op"]), device_of(read)
    kwargs = {name: value_of(value) for name, value in read.get("kwargs", {}).items()}
    if "device" not in kwargs and has_device(op):
        kwargs["device"] = device
    return Call(op, value_of(read.get("args", [])), kwargs, device)


def _of_layer(read: Mapping[str, Any]) -> Call:
    layer, device = layer_of(read["layer"]), device_of(read)
    settings = Settings(
        spec=device.spec, values="off", strict=device.strict, suggestions=False,
        l1_small_size=device.machine.l1_small_bytes,
    )  # fmt: skip
    with planned(layer, settings) as (_, arguments):
        described = {name: _described(value) for name, value in arguments.items()}
    return Call(conv_transpose2d, (), {**described, "device": device}, device)


def _described(value: Any) -> Any:
    """The description of a tensor; any other value unchanged."""
    if not isinstance(value, Tensor):
        return value
    place = None if value.device() is None else value.spec.memory_config
    return TensorDescription(value.spec.shape, value.dtype, value.layout, place)


@lru_cache
def has_device(op: Callable[..., Any]) -> bool:
    """Whether an operation has an argument ``device``."""
    return "device" in signature(op).parameters


def device_of(read: Mapping[str, Any]) -> Device:
    """The empty device of a question; raises SpecError."""
    changes = [f"release={read['release']}"] if "release" in read else []
    name = with_changes(read.get("device") or default_spec(), changes)
    return _device(name, read.get("l1_small_size", USUAL_L1_SMALL_SIZE), read.get("strict", True))


@lru_cache(DEVICES)
def _device(name: str, l1_small_size: int, strict: bool) -> Device:
    return Device(load_spec(name), l1_small_size=l1_small_size, values="off", strict=strict, suggestions=False)


def state_of(records: Sequence[Any]) -> MockAllocatorState:
    """The state of memory of a question; raises ArgumentError or ArgumentTypeError for a wrong record."""
    return MockAllocatorState().with_allocations(map(_record, records))


def _record(written: Any) -> AllocationRecord:
    names = AllocationRecord._fields
    if isinstance(written, list) and len(written) == len(names):
        written = dict(zip(names, written, strict=True))
    if not isinstance(written, dict) or sorted(written) != sorted(names):
        raise ArgumentError(f"a record of state has {', '.join(names)}, not {shown(written)}")
    return AllocationRecord(**{**written, "buffer_type": value_of(written["buffer_type"])})
