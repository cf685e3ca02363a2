"""The calls that a record asks about: Python over public names of ttsim, kept as data beside the answers."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = "calls.jsonl"
DEVICES: Final = ("wormhole_n150", "blackhole_p150")
CHUNK: Final = 50  # calls of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a user might write, in two pieces.

    The text knows ``ttnn`` (ttsim), ``np``, ``device`` (open, of the device that is asked), and of
    `tools.golden.arrays.Numbers` the functions ``normal`` and ``integers``.

    Attributes:
        name: Group and number: "conv2d/0017".
        given: Statements before it: tensors, as a rule. A capture does not see these.
        text: Statements that are captured; the last ones assign ``y``.
        values: Whether its values are computed, too, and on which devices: names; none for no values.
        l1_small_size: Bytes, of the device.
    """

    name: str
    given: str
    text: str
    values: tuple[str, ...] = ()
    l1_small_size: int = 32768

    @property
    def group(self) -> str:
        """The group of the name."""
        return self.name.split("/")[0]

    @property
    def number(self) -> int:
        """The number in the group."""
        return int(self.name.split("/")[1])

    @property
    def chunk(self) -> str:
        """The file of its answers: the group, and which calls of the group, by their numbers."""
        return f"{self.group}-{self.number // CHUNK:03}"


def write_calls(folder: Path, calls: Iterable[Call]) -> None:
    """Writes the calls of a record into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(call), sort_keys=True) for call in sorted(calls, key=lambda one: one.name)]
    (folder / FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def read_calls(folder: Path) -> list[Call]:
    """The calls of a record.

    Raises:
        ValueError: The folder holds no calls, or a line that is no call.
    """
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
        return [_call(json.loads(line)) for line in lines]
    except FileNotFoundError:
        raise ValueError(f"{folder} holds no {FILE}, so it is no record; name the folder of a whole record") from None
    except (TypeError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder / FILE} has a line that is no call: {error}") from None


def _call(fields: dict[str, Any]) -> Call:
    return Call(**{**fields, "values": tuple(fields["values"])})
