"""Recorded runs of the real ttnn.conv_transpose2d: reading them, and remaking their inputs."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Record = Mapping[str, Any]

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
PEAK_FIELDS = ("peak_cb", "peak_l1", "peak_total")


@dataclass(slots=True)
class Outcome:
    """What ttsim did in one run, in the record's own words; `error` is None when the call came back."""

    fields: dict[str, Any] = field(default_factory=dict)
    values: Floats | None = None
    error: str | None = None


def read_records(source: Path = DATA) -> list[Record]:
    """All records of a file, or of the one in a directory, in file order.

    Raises:
        OSError: There is no such file, or it is no gzip file.
        ValueError: It holds something else than records.
    """
    path = source
    if source.is_dir():
        named = source / "recorded_runs.jsonl.gz"
        path = named if named.exists() else source / "cases.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        try:
            return [json.loads(line) for line in lines]
        except EOFError as error:
            raise ValueError(f"{path}: the file is cut short") from error


class Outputs:
    """The recorded output arrays of a directory, read one by one."""

    def __init__(self, directory: Path = DATA) -> None:
        """Opens the archive beside the records."""
        name = "recorded_outputs.npz" if (directory / "recorded_outputs.npz").exists() else "outputs.npz"
        self._archive = np.load(directory / name)

    def of(self, record: Record) -> Floats | None:
        """The recorded output as float32 (bfloat16 is stored as the upper half of its bits), None without one."""
        key = record.get("output_array")
        if key is None:
            return None
        stored: npt.NDArray[Any] = self._archive[key]
        if stored.dtype == np.uint16:
            stored = (stored.astype(np.uint32) << 16).view(np.float32)
        return np.asarray(stored, dtype=np.float32)


def pair(value: Any) -> list[int]:
    """An int as [int, int], a sequence as a list."""
    return [value, value] if isinstance(value, int) else list(value)


def inputs(case: Mapping[str, Any]) -> tuple[Floats, Floats, Floats]:
    """The seeded inputs of a case, in float32 but of the precision the call had.

    Returns: x [N, H, W, C], w [C, O/groups, KH, KW], b [1, 1, 1, O].
    """
    channels, outputs, groups = case["in_channels"], case["out_channels"], case.get("groups", 1)
    kernel = pair(case["kernel"])
    rng = np.random.default_rng(case.get("seed", 0))
    x = rng.standard_normal((case.get("batch", 1), case["H"], case["W"], channels)).astype(np.float32)
    scale = case.get("w_scale")
    scale = 1 / np.sqrt(channels // groups * kernel[0] * kernel[1]) if scale is None else scale
    w = (rng.standard_normal((channels, max(outputs // groups, 1), *kernel)) * scale).astype(np.float32)
    b = rng.standard_normal((1, 1, 1, outputs)).astype(np.float32)
    if case.get("input_dtype", "bfloat16") != "float32":
        x = to_bfloat16(x)
    if case.get("weights_in_dtype", "bfloat16") != "float32":
        w, b = to_bfloat16(w), to_bfloat16(b)
    return x, w, b


def to_bfloat16(values: Floats) -> Floats:
    """Rounded to bfloat16, kept as float32."""
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)
