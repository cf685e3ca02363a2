"""Compare what ttsim did with what the real library did, aspect by aspect."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.recorded.records import PEAK_FIELDS, Floats, Outcome, Record
from ttsim.report.accuracy import measure

ASPECTS = ("values", "specs", "ops", "cbs", "buffers", "peaks", "error")
CB_OPERATIONS = ("HaloDeviceOperation", "Conv2dDeviceOperation", "MatmulDeviceOperation")
BUFFER_FIELDS = ("ev", "type", "address", "size", "page_size", "layout", "max_size_per_bank")
LEAST_PCC = 0.999


def compare(record: Record, outcome: Outcome, recorded: Floats | None) -> dict[str, str | None]:
    """The aspects of a run that can be compared, each with what is wrong or None."""
    if "error" in record:
        want = reason(record["error"])
        equal = outcome.error is not None and want[:60] in plain(outcome.error)
        return {"error": None if equal else f"want {want!r}, got {outcome.error!r}"}
    if outcome.error is not None:
        return {} if record.get("defect") else {"error": outcome.error}
    result = {
        "ops": difference(device_operations(record), device_operations(outcome.fields)),
        "cbs": difference(circular_buffers(record), circular_buffers(outcome.fields)),
        "buffers": buffer_difference(record["buffers"], outcome.fields["buffers"]),
    }
    if record.get("resource_per_core"):
        want_peaks = {key: record["resource_per_core"][key] for key in PEAK_FIELDS}
        result["peaks"] = difference(want_peaks, outcome.fields["resource_per_core"])
    if not record.get("defect"):
        result["specs"] = difference(specs(record), specs(outcome.fields))
        if recorded is not None:
            result["values"] = value_difference(outcome.values, recorded)
    return result


def value_difference(have: Floats | None, recorded: Floats) -> str | None:
    """The difference of the values, bit for bit."""
    if have is None or have.shape != recorded.shape:
        return f"shape {None if have is None else have.shape}, want {recorded.shape}"
    same = np.ascontiguousarray(have).view(np.uint32) == np.ascontiguousarray(recorded).view(np.uint32)
    return None if same.all() else f"{1 - same.mean():.2%} of the elements differ"


def distance_from_float64(record: Record, have: Floats, definition: npt.NDArray[np.float64]) -> str | None:
    """The error of values that need not be exact: they must follow float64 as closely as the recorded ones do."""
    least = min(LEAST_PCC, record["accuracy"]["pcc"] - (1 - LEAST_PCC))
    pcc = measure(have, definition).pcc
    return None if pcc >= least else f"PCC {pcc:.6f} with float64, at least {least:.6f} is wanted"


def reason(text: str) -> str:
    """The first line of an error's reason, without the source position."""
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"\s*(TT_FATAL|TT_THROW|info:)", line)]
    return plain(lines[0]) if lines else ""


def plain(text: str) -> str:
    """One line, and no running number of a program."""
    return re.sub(r"\s+", " ", re.sub(r"program \d+", "program N", text)).strip()


def device_operations(fields: Mapping[str, Any]) -> list[str]:
    """Names of the device programs in order."""
    return [name.strip() for name in fields.get("ops") or () if name.strip().endswith("DeviceOperation")]


def circular_buffers(fields: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The circular buffers of the operations that compute."""
    return [
        (row["op"], int(row["size"]), int(row["address"]), row["cores"], str(row["globally_allocated"]))
        for row in fields["cbs"]
        if row.get("kind", "circular_buffer_allocate") == "circular_buffer_allocate" and row["op"] in CB_OPERATIONS
    ]


def specs(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Output, prepared weight and prepared bias; the part of a memory config that names later features is cut."""
    result = {"output_hw": fields["output_hw"]}
    for key in ("output", "weight_prepared", "bias_prepared"):
        info = fields.get(key)
        if info is not None:
            result[key] = {name: info[name] for name in ("shape", "padded_shape", "dtype", "layout")}
            result[key]["memory_config"] = re.sub(r",nd_shard_spec=.*$", ")", info["memory_config"])
    return result


def difference(want: Any, got: Any) -> str | None:
    """None if equal, else the first thing that differs."""
    if want == got:
        return None
    if isinstance(want, dict):
        key = next(key for key in want if want[key] != got.get(key))
        return f"{key}: want {want[key]}, got {got.get(key)}"
    at = next((i for i, (a, b) in enumerate(zip(want, got, strict=False)) if a != b), min(len(want), len(got)))
    return f"{len(want)} wanted, {len(got)} got; at {at} want {want[at : at + 1]}, got {got[at : at + 1]}"


def buffer_difference(want: list[dict[str, Any]], got: list[dict[str, Any]]) -> str | None:
    """The `difference` of the fields that a recorded buffer has."""
    rows = [{key: str(row[key]) for key in BUFFER_FIELDS if row.get(key) is not None} for row in want]
    have = [
        {key: str(row.get(key)) for key in (rows[i] if i < len(rows) else BUFFER_FIELDS)} for i, row in enumerate(got)
    ]
    return difference(rows, have)
