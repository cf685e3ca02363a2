"""Which file of measured rows is predicted by whom: a new kind of rows is one more entry.

A validator takes a row and gives a prediction; it raises `NotPredictedError` for a row that it can not or should not
predict. The name of the file, without folders and ending, says which one it is.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from tools.validate.conv import predict_conv, predict_halo
from tools.validate.dispatch import predict_dispatch, predict_transfers
from tools.validate.gemm import predict_gemm
from tools.validate.layout_ops import predict_layout_op
from tools.validate.prediction import Prediction, Row

Validator = Callable[[Row], Prediction]

VALIDATORS: Mapping[str, Validator] = {
    "conv": predict_conv,
    "halo": predict_halo,
    "gemm": predict_gemm,
    "layout_ops": predict_layout_op,
    "dispatch": predict_dispatch,
    "dram_noc": predict_transfers,
}


def validator_of(path: Path) -> Validator:
    """The validator of a file.

    Raises:
        ValueError: There is none for its name.
    """
    for name, validator in VALIDATORS.items():
        if path.stem == name or path.stem.startswith(f"{name}_"):
            return validator
    known = ", ".join(f"{name}.csv" for name in VALIDATORS)
    raise ValueError(
        f"{path}: no validator for rows of that name; name it {known}, or NAME_anything.csv after one of them"
    )
