"""Files of measured rows: which rows are predicted by whom, and which are not. A new kind of rows is one more entry.

A validator takes a row and gives a prediction; it raises `NotPredictedError` for a row that it can not or should not
predict. The name of the file, without folders and ending, says which one it is.
"""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from device.errors import TTSimError
from tools.validate.asked import predict_matmul, predict_operation
from tools.validate.conv import predict_conv, predict_halo
from tools.validate.dispatch import predict_dispatch, predict_transfers
from tools.validate.gemm import predict_gemm
from tools.validate.layout_ops import predict_layout_op
from tools.validate.prediction import NotPredictedError, Prediction, Row

MEASURED: Final = Path(__file__).resolve().parents[2] / "tests" / "data" / "measured"
Validator = Callable[[Row], Prediction]
Skipped = tuple[Row, str]  # a row without a prediction, and why
VALIDATORS: Final[Mapping[str, Validator]] = {
    "conv": predict_conv,
    "halo": predict_halo,
    "gemm": predict_gemm,
    "layout_ops": predict_layout_op,
    "ops": predict_operation,
    "matmul": predict_matmul,
    "dispatch": predict_dispatch,
    "dram_noc": predict_transfers,
}
LARGEST: Final = 1 << 20  # of a size in a row; larger ones are no measurement, and would be planned for ever
COUNTS: Final = frozenset({  # columns of which there is at least one
    "M", "K", "N", "batch", "cores", "cores_nhw", "cores_c", "cores_c_in", "in_h", "in_w", "in_c", "out_c", "k", "k_h",
    "k_w", "s_h", "s_w", "d_h", "d_w", "groups", "num_transactions", "transaction_bytes", "subordinates",
})  # fmt: skip
LONGEST: Final = 12  # digits of a number that an error shows
UNBOUNDED: Final = ("value", "row", "commit")  # a measurement, the number of a row, and a hash that may be digits alone


def validator_name(path: Path) -> str:
    """What a file's rows measure, by its name: conv for conv.csv and conv_anything.csv; empty for an unknown one."""
    fitting = [name for name in VALIDATORS if path.stem == name or path.stem.startswith(f"{name}_")]
    return max(fitting, key=len, default="")


def validator_of(path: Path) -> Validator:
    """The validator of a file; raises ValueError if there is none for its name."""
    name = validator_name(path)
    if name:
        return VALIDATORS[name]
    known = ", ".join(f"{name}.csv" for name in VALIDATORS)
    raise ValueError(
        f"{path}: no validator for rows of that name; name it {known}, or NAME_anything.csv after one of them"
    )


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file; raises ValueError if it has none, or is no text."""
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except csv.Error as error:
        raise ValueError(f"{path}: no CSV file: {error}") from error
    if not rows:
        raise ValueError(f"{path}: there are no rows under its header; give a file with measured rows")
    return rows


def validate(path: Path) -> tuple[list[Prediction], list[Skipped]]:
    """Predicts all rows of a file that can be predicted; raises what the simulator raises."""
    predicted, skipped = understood_rows(path)
    for prediction in predicted:  # worked out here, where what a model raises is no row that is not understood
        if not prediction.predicted_ns > 0:
            name = " ".join(prediction.configuration)
            raise AssertionError(f"{path}: {name} is predicted to take {prediction.predicted_ns} ns")
    return predicted, skipped


def understood_rows(path: Path) -> tuple[list[Prediction], list[Skipped]]:
    """The rows of a file that are understood and measured a time, and the others."""
    validator, predicted, skipped = validator_of(path), list[Prediction](), list[Skipped]()
    for row in read_rows(path):
        try:
            require_plausible(row)
            prediction = validator(row)
            if not 0 < prediction.measured_ns < float("inf"):
                text = f"the measured time must be a positive number of ns, not {prediction.measured_ns}"
                raise NotPredictedError(text)
            predicted.append(prediction)
        except NotPredictedError as error:
            skipped.append((row, str(error)))
        except (TTSimError, ValueError, LookupError, ArithmeticError) as error:
            skipped.append((row, f"the row is not understood: {type(error).__name__}: {error}"))
    return predicted, skipped


def require_plausible(row: Row) -> None:
    """Refuses a row without a field, with a size larger than any that was ever measured, or with none of something."""
    for name, value in row.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise NotPredictedError("the row has more or fewer fields than the header")
        bounded = value.isdecimal() and not (name.endswith("_ns") or name in UNBOUNDED)
        if bounded and (len(value) > LONGEST or int(value) > LARGEST):
            raise NotPredictedError(f"{name} must be at most {LARGEST}, not {value[:LONGEST]}")
        if name in COUNTS and (value.startswith("-") or value.strip("0") == "" != value):
            raise NotPredictedError(f"{name} must be at least 1, not {value[:LONGEST]}")
