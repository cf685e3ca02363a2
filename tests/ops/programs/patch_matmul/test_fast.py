"""Any number of threads gives the same bytes."""

import numpy as np
import pytest

from device.host import threads
from ops.programs.patch_matmul import fast, gather
from ops.programs.patch_matmul.fast import pixel_matmul
from ops.programs.patch_matmul.float64 import _gathered
from ops.programs.patch_matmul.op import Patches
from ops.window import convolution_axis, transposed_axis


def transposed(length):
    return transposed_axis(input_length=length, kernel=3, stride=2, padding=(1, 1), output_padding=1, dilation=1)


def strided(length):
    return convolution_axis(input_length=length, kernel=3, stride=2, padding=(1, 1), dilation=1)


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    """Several runs, copies and pieces of images of a few pixels."""
    for name, value in (("RUN_BYTES", 1 << 10), ("LEAST_ROWS", 4), ("COPIED_BYTES", 256)):
        monkeypatch.setattr(gather, name, value)
    monkeypatch.setattr(threads, "cores", lambda: 2)


class DeviceOp:
    """What `fast.patch_matmul` reads of a program."""

    def __init__(self, patches):
        self.patches = patches


LAYERS = [(8, 1, 6), (8, 1, 64), (8, 2, 4), (64, 2, 64), (8, 8, 8), (8, 8, 16)]


@pytest.mark.parametrize("axis", [transposed, strided])
@pytest.mark.parametrize(("channels", "groups", "outs"), LAYERS)
@pytest.mark.parametrize("biased", [True, False])
def test_patches_do_not_tell_how_many_threads_there_were(axis, channels, groups, outs, biased):
    rng, axes = np.random.default_rng(0), (axis(7), axis(6))
    image = rng.standard_normal((3, 7, 6, channels), np.float32)
    weights = rng.standard_normal((groups, 3, 3, channels // groups, outs // groups), np.float32)
    bias = rng.standard_normal(outs, np.float32) if biased else None
    patches = Patches(batch=3, axes=axes, channels=channels, groups=groups, bundles=1)
    results = []
    for each in (threads.locked, threads.side_by_side):
        results.append(np.empty((3, *(one.outputs for one in axes), outs), np.float32))
        fast.patch_matmul(DeviceOp(patches), image, weights, bias, results[-1], each)
    assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.parametrize(("channels", "groups", "outs"), LAYERS)
def test_pixels_do_not_tell_how_many_threads_there_were(channels, groups, outs):
    rng, axes = np.random.default_rng(0), (strided(9), strided(8))
    other = rng.standard_normal((3, 9, 8, channels), np.float32)
    image = rng.standard_normal((3, *(one.outputs for one in axes), outs), np.float32)
    patches = Patches(batch=3, axes=axes, channels=channels, groups=groups, bundles=1)
    first, second = (pixel_matmul(patches, image, other, each) for each in (threads.locked, threads.side_by_side))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("storage", [np.float32, np.float16])
def test_fewer_patches_than_channels_are_turned_instead_of_the_weights(batch, biased, storage, monkeypatch):
    """12 patches of an image; weights as stored [O, C, *taps] are a matrix as they lie."""
    copied, copy = [], fast.copy_in_pieces
    monkeypatch.setattr(fast, "copy_in_pieces", lambda target, *rest: copied.append(target.size) or copy(target, *rest))
    rng, axes, outs = np.random.default_rng(0), (strided(7), strided(6)), 40
    image = rng.integers(-4, 5, (batch, 7, 6, 5)).astype(np.float32)
    stored = rng.integers(-4, 5, (outs, 5, 3, 3)).astype(np.float32)
    bias = np.arange(outs, dtype=np.float32) if biased else None
    results = []
    for weights in (stored.transpose(2, 3, 1, 0)[None], np.ascontiguousarray(stored.transpose(2, 3, 1, 0))[None]):
        results.append(np.empty((batch, *(one.outputs for one in axes), outs), storage))
        patches = Patches(batch=batch, axes=axes, channels=5, groups=1, bundles=1)
        fast.patch_matmul(DeviceOp(patches), image, weights, bias, results[-1], threads.side_by_side)
    assert copied == [batch * 12 * 5 * 9]
    wanted = np.tensordot(_gathered(image.astype(np.float64), axes), stored, ((3, 4, 5), (2, 3, 1)))
    assert np.array_equal(results[0], (wanted + (0 if bias is None else bias)).astype(storage))
    assert np.array_equal(results[0], results[1])
