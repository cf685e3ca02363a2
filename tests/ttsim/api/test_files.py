from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import ttsim


@pytest.mark.parametrize("dtype", [ttsim.bfloat16, ttsim.bfloat8_b, ttsim.float32, ttsim.int32])
def test_a_tensor_comes_back(tmp_path: Path, dtype: ttsim.DataType) -> None:
    tensor = ttsim.Tensor(np.arange(64).reshape(2, 32), dtype, layout=ttsim.TILE_LAYOUT)
    ttsim.dump_tensor(tmp_path / "x.tensorbin", tensor)
    with ttsim.open_device() as device:
        again = ttsim.load_tensor(tmp_path / "x.tensorbin", device)
        assert (again.spec, again.device()) == (tensor.spec, device)
        assert (again.to_numpy() == tensor.to_numpy()).all()


@pytest.mark.parametrize("content", [b"", b"something else", b"PK\x03\x04 of a zip file"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.tensorbin").write_bytes(content)
    with pytest.raises(ValueError, match=r"no file of ttsim\.dump_tensor"):
        ttsim.load_tensor(tmp_path / "x.tensorbin")


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tensorbin"
    ttsim.dump_tensor(path, ttsim.Tensor(np.arange(64), ttsim.int32))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ttsim.ArgumentError, match=r"no file of ttsim\.dump_tensor"):
        ttsim.load_tensor(path)


@pytest.mark.parametrize("of", ["values", "kind"])
def test_a_file_that_claims_more_than_it_holds_takes_no_memory(tmp_path: Path, of: str) -> None:
    """A terabyte of values, or of words, in a file of some hundred bytes."""
    path = tmp_path / "x.tensorbin"
    ttsim.dump_tensor(path, ttsim.Tensor(np.arange(64), ttsim.int32))
    with np.load(path) as read:
        arrays = {name: read[name] for name in read.files}
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                header = np.lib.format.header_data_from_array_1_0(array)
                np.lib.format.write_array_header_1_0(
                    member, header | {"shape": (10**6, 10**6)} if name == of else header
                )
                member.write(array.tobytes())
    with pytest.raises(
        ttsim.ArgumentError, match=rf"claims {of} of the shape \[1000000, 1000000\], [\d,]+ bytes, and has"
    ):
        ttsim.load_tensor(path)
