"""Joined tensors."""

import numpy as np

from device.matrix_unit.arithmetic import EXACT
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.programs.concat import Concatenate, joined as joined_arrays


def joined(work, *arrays):
    reading = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)
    return joined_arrays(work, [np.float32(one) for one in arrays], reading).tolist()


def test_one_behind_the_other():
    assert joined(Concatenate(axis=1, shapes=((1, 2), (1, 1))), [[1, 2]], [[3]]) == [[1, 2, 3]]
    assert joined(Concatenate(axis=0, shapes=((1, 2), (1, 2))), [[1, 2]], [[3, 4]]) == [[1, 2], [3, 4]]


def test_groups_in_turn():
    work = Concatenate(axis=1, shapes=((1, 4), (1, 2)), groups=2)
    assert joined(work, [[1, 2, 3, 4]], [[5, 6]]) == [[1, 2, 5, 3, 4, 6]]
