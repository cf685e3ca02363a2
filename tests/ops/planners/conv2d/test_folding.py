from dataclasses import replace

import pytest

from device.memory.memory_config import L1_MEMORY_CONFIG, Layout
from ops.planners.conv.arguments import ConvCall, ConvConfig, Operand
from ops.planners.conv.conv2d import CONV2D, folds
from tests.ops.planners.conv.good_call import sized_call


def call(**changes: object) -> ConvCall:
    """A patch embedding: an 8x8 image of 16 channels, windows of 4x4 side by side."""
    return replace(sized_call((8, 8), (16, 32), (4, 4), rules=CONV2D, stride=(4, 4)), **changes)


def placed(**changes: object) -> Operand:
    return Operand(spec=replace(call().input.spec, **changes), on_host=False)


def test_windows_side_by_side_fold_by_themselves():
    assert folds(call())


@pytest.mark.parametrize(
    "changes",
    [
        {"stride": (2, 2)},
        {"kernel_size": (1, 1), "stride": (1, 1)},
        {"kernel_size": (0, 2), "stride": (0, 2)},  # refused later
        {"dilation": (2, 2)},
        {"input_height": 7},
        {"padding": (1, 1, 1, 1)},
        {"input": placed(memory_config=L1_MEMORY_CONFIG)},
        {"conv_config": ConvConfig(enable_kernel_stride_folding=False)},
    ],
)
def test_other_windows_do_not(changes):
    assert not folds(call(**changes))


def test_padded_tiles_do_not_fold_but_padded_rows_do():
    padded = {"padding": (2, 2, 2, 2)}
    assert folds(call(**padded))
    assert not folds(call(input=placed(layout=Layout.TILE), **padded))
    assert folds(call(input=placed(layout=Layout.TILE)))


def test_the_config_has_the_last_word():
    config = ConvConfig(enable_kernel_stride_folding=True)
    assert folds(call(stride=(2, 2), conv_config=config))
    assert not folds(call(kernel_size=(3, 3), stride=(1, 1), conv_config=config))
