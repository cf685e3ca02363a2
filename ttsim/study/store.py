"""Rows of a study, one for each point, and a file of rows that survives a killed process."""

import json
import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import le
from pathlib import Path
from typing import Any, Final, Self

from device.errors import ArgumentError, shown
from device.time.energy import JOULE, static_femtojoules
from device.time.stages import nanoseconds
from ttsim.runtime.types.layer import Setting


class Verdict(StrEnum):
    """Whether a call runs; the values appear in files and tables."""

    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    REFUSED = "refused"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of a call, or the reason why it does not run; independent of the time and place of evaluation.

    Figures are None if the call does not run, or they were not requested.
    """

    key: str
    layer: str
    device: str
    # "fits"; "does not fit": not enough memory; "refused": wrong arguments; "failed": an internal error of ttsim;
    # "lost": the worker process died twice
    verdict: Verdict
    # All other settings of the point, flat: "in_channels", "config.shard_layout", "lowering" ..
    inputs: Mapping[str, Setting | None] = field(default_factory=dict)
    error: str = ""  # Why it does not run; empty if it does
    arguments: str = ""  # The config that a search found, as Python; empty for the layer's own
    # The calls of a network that a search changed, as `ttsim.study.networks.replay.written_changes` writes them
    changes: Mapping[str, Any] = field(default_factory=dict)
    given_cycles: int | None = None  # Of a tuned point with the layer's own config; None if that does not run
    plan_key: str | None = None  # Equal for equal plans
    shard_layout: str | None = None  # How the convolution was sharded
    grid_rules: str = ""  # What rules of the planner do to its cores, a line each; empty where a config names them
    l1_peak_bytes: int | None = None  # Of a core: circular buffers and buffers together
    l1_headroom_bytes: int | None = None  # Between circular buffers and buffers, of the tightest device operation
    cycles: int | None = None  # Of all device operations that have a model
    bound_by: str | None = None  # The stages that bind most cycles, with their shares
    clock_hz: int | None = None  # Clock of the device
    # Expected error of the cycles; None without a measurement
    cycles_error_share: float | None = None
    cycles_unmeasured_share: float | None = None  # Share of the cycles in operations without a measurement
    untimed_operations: int | None = None  # Device operations without a model, which `cycles` leaves out
    dram_read_bytes: int | None = None
    dram_written_bytes: int | None = None
    noc_bytes: int | None = None  # Bytes that leave a core over a network; a multicast counts once
    # Energy of all actions, by a table that nothing validates (docs/how-to/energy.md); without static power
    action_femtojoules: int | None = None
    static_milliwatts: int | None = None  # Of the device, at any time
    pcc: float | None = None  # Correlation of the output with float64
    max_abs_error: float | None = None  # Largest difference to it
    rms_error: float | None = None  # Root of the mean squared difference

    @property
    def nanoseconds(self) -> float | None:
        """The time of the point by its device's clock; None without cycles."""
        return None if self.cycles is None or self.clock_hz is None else nanoseconds(self.cycles, self.clock_hz)

    @property
    def own_cycles(self) -> int | None:
        """Cycles with the layer's own config, also of a tuned point; None if it does not run."""
        return self.given_cycles if self.inputs.get("tune") else self.cycles

    @property
    def own_nanoseconds(self) -> float | None:
        """Time in ns with the layer's own config; None if it does not run."""
        cycles = self.own_cycles
        return None if cycles is None or self.clock_hz is None else nanoseconds(cycles, self.clock_hz)

    @property
    def energy_femtojoules(self) -> int | None:
        """The energy of all actions plus static power over all cycles; None if either is unknown."""
        actions, power, cycles, clock_hz = self.action_femtojoules, self.static_milliwatts, self.cycles, self.clock_hz
        if actions is None or power is None or cycles is None or clock_hz is None:
            return None
        return actions + static_femtojoules(power, cycles, clock_hz)

    @property
    def energy_joules(self) -> float | None:
        """`energy_femtojoules` in joules."""
        return None if self.energy_femtojoules is None else self.energy_femtojoules / JOULE

    @property
    def average_watts(self) -> float | None:
        """Mean power while kernels run."""
        taken, energy = self.nanoseconds, self.energy_joules
        return energy / taken * 1e9 if taken and energy is not None else None

    @property
    def energy_delay_joule_seconds(self) -> float | None:
        """Energy times time."""
        taken, energy = self.nanoseconds, self.energy_joules
        return None if taken is None or energy is None else energy * taken / 1e9

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the names of their fields."""
        return asdict(self) | {"verdict": self.verdict.value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The row of these figures; raises TypeError or ValueError for others."""
        return cls(**{**values, "verdict": Verdict(values.get("verdict", ""))})


ROWS_OF_A_BLOCK: Final = 64
BLOCKS_READ: Final = 8  # blocks that stay decompressed, because rows are read about in the order in which they came


class PackedRows(Mapping[str, Row]):
    """Rows by key in compressed blocks, because the inputs of consecutive rows are similar and take 2.4 KB per row."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}  # Block times its rows, plus the place in the block
        self._blocks: list[bytes] = []
        self._last: list[Row] = []  # The block that is not full
        self._read: dict[int, list[Row]] = {}  # Blocks read last

    def add(self, rows: Iterable[Row]) -> None:
        """Adds rows; a row replaces an earlier one of the same key."""
        for row in rows:
            self._places[row.key] = len(self._blocks) * ROWS_OF_A_BLOCK + len(self._last)
            self._last.append(row)
            if len(self._last) == ROWS_OF_A_BLOCK:
                self._blocks.append(zlib.compress(pickle.dumps(self._last), 1))
                self._last = []

    def __getitem__(self, key: str) -> Row:
        block, place = divmod(self._places[key], ROWS_OF_A_BLOCK)
        if block == len(self._blocks):
            return self._last[place]
        if block not in self._read:
            if len(self._read) == BLOCKS_READ:
                del self._read[next(iter(self._read))]
            self._read[block] = pickle.loads(zlib.decompress(self._blocks[block]))
        return self._read[block][place]

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def front(costs: Sequence[Sequence[float]]) -> tuple[int, ...]:
    """Indices of the Pareto front of candidates by costs (smaller is better), sorted by cost.

    Of equal candidates, only the first is on the front; all candidates have the same number of costs.
    """
    best: list[int] = []
    for place in sorted(range(len(costs)), key=lambda place: tuple(costs[place])):
        # In this order, no candidate beats an earlier one
        if not any(all(map(le, costs[other], costs[place])) for other in best):
            best.append(place)
    return tuple(best)


PACKAGES: Final = ("device", "ops", "ttsim")
KINDS: Final = (".py", ".toml")  # code, and figures of devices and of expected errors
VERSION_DIGITS: Final = 16


@cache
def model_version() -> str:
    """The first digits of a SHA-256 over names and contents of all sources; computed once per process.

    Any change of a source counts, even in a comment, so that rows of two models never mix; line endings are ignored.
    """
    return version_of((name, files(name)) for name in PACKAGES)


def version_of(packages: Iterable[tuple[str, Traversable]]) -> str:
    """The version of some packages by their names and folders."""
    digest = sha256()
    for path, text in (source for package in packages for source in sorted(_sources(*package))):
        digest.update(f"{path}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()[:VERSION_DIGITS]


def _sources(path: str, folder: Traversable) -> Iterator[tuple[str, bytes]]:
    """Path and contents of each source under a folder, unordered."""
    for entry in folder.iterdir():
        inner = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _sources(inner, entry)
        elif entry.name.endswith(KINDS):
            yield inner, entry.read_bytes().replace(b"\r\n", b"\n")


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT: Final = 1  # raised when a field of `Row` changes its meaning or goes
UNLOCKED: Final = "this system has no file locks that ttsim knows: let no two sweeps write to {path} at once"


class Store:
    """An open file of rows, one JSON value per line; a context manager that closes the file.

    The first line identifies the file and the model version. Lines are only appended; opening the file removes an
    unfinished last line. Only one process can open the file at a time.
    """

    def __init__(self, path: Path, model: str) -> None:
        """Opens or creates the file; raises ArgumentError if it is locked, not a file of rows, or of another model."""
        self.path = path
        self.rows = PackedRows()  # Rows of the file, by key
        # A note about the file; empty if there is none
        self.note = "" if fcntl is not None else UNLOCKED.format(path=path)
        self._file = path.open("a+b")
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._recover(_line({"ttsim_rows": FORMAT, "model": model}))
        except BaseException as error:
            self._file.close()
            if not isinstance(error, BlockingIOError):
                raise
            text = f"{path} is being written by another process; wait until it ends, or give another file"
            raise ArgumentError(text) from error

    def append(self, rows: Iterable[Row]) -> None:
        """Writes rows so that they survive the end of the process; raises OSError."""
        added = list(rows)
        self._write(b"".join(_line(row.to_dict()) for row in added))
        self.rows.add(added)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _recover(self, head: bytes) -> None:
        """Reads the rows, removes an unfinished line, and writes the first line of a new file."""
        self._file.seek(0)
        first = self._file.readline()
        if first != head and head.startswith(first):  # a new file, or an unfinished first line
            self._file.truncate(0)
            self._write(head)
            return
        if first != head:
            if "ttsim_rows" not in _loaded(first):
                raise ArgumentError(f"{self.path} is there and no file of rows of ttsim; give another name")
            raise ArgumentError(
                f"{self.path} has rows of another version of ttsim: it begins with {shown(first.decode().strip())}, "
                f"and this version writes {head.decode().strip()}; rows are not mixed: give another file, or delete "
                "this one"
            )
        size, wrong = len(head), 0  # bytes of whole rows, and the number of a line that is no row
        for number, line in enumerate(self._file, start=2):
            if not line.endswith(b"\n"):
                break
            if wrong:
                raise ArgumentError(f"{self.path}: line {wrong} is no row; delete that line, or the file")
            try:
                self.rows.add([Row.from_dict(_loaded(line))])
                size += len(line)
            except (TypeError, ValueError):
                wrong = number
        self._file.truncate(size)

    def _write(self, text: bytes) -> None:
        self._file.write(text)
        self._file.flush()


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _loaded(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; empty if the line holds none."""
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    return values if isinstance(values, dict) else {}
