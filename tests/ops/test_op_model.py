"""The words in which programs say what their works mean."""

from dataclasses import dataclass

import numpy as np
import pytest

from device.cores import first_cores
from device.matrix_unit.arithmetic import FAST
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.plan import DeviceOp
from device.spec.device_spec import load_spec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage
from ops.op_model import (
    CyclesContext,
    Ends,
    OpModel,
    ValuesContext,
    cycles_of_work,
    given,
    matrix,
    op_model_of,
    row,
    values_of_first,
)

SPEC = load_spec("wormhole_n150")
TENSOR = TensorSpec((4, 64), BFLOAT16, Layout.ROW_MAJOR)


@dataclass(frozen=True, slots=True)
class Scale(DeviceOp):
    """Numbers times a factor."""

    factor: int


MEANING = OpModel(op=Scale, values=values_of_first(lambda op, values: values * op.factor))


def test_a_work_means_what_the_table_says_of_its_class():
    assert op_model_of(Scale(2), {Scale: MEANING}) is MEANING


@pytest.mark.parametrize(("op", "name"), [(Scale(2), r"Scale\(factor=2\)"), (None, "None")])
def test_a_work_that_the_table_lacks_is_our_own_mistake(op, name):
    with pytest.raises(AssertionError, match=rf"^nothing is known of {name}; add the model of its class"):
        op_model_of(op, {})


def test_what_is_not_said_is_work_of_the_host_that_multiplies_nothing():
    assert MEANING.cycles is None
    assert MEANING.no_model == "the host does it, whose time is not counted"
    assert MEANING.fidelity_phases(Scale(2)) == 0


def test_values_of_the_first_input():
    context = ValuesContext(spec=SPEC, arithmetic=FAST)
    assert MEANING.values(Scale(3), [np.array([1, 2]), None], context).tolist() == [3, 6]
    with pytest.raises(AssertionError, match=r"^an operation reads a tensor that nobody has written$"):
        MEANING.values(Scale(3), [None], context)


@pytest.mark.parametrize("contention", [False, True])
def test_cycles_of_the_work_alone(contention):
    def cycles(op, spec, *, contention):
        taken = op.factor * (2.0 if contention else 1.0)
        group = CoreGroupCycles(cores=first_cores(1, spec.grid.cols, spec.grid.rows), cycles=taken, stages=())
        return OperationCycles(cycles=taken, groups=(group,), bound_by=Stage.MATH)

    context = CyclesContext(spec=SPEC, contention=contention)
    found = cycles_of_work(cycles)(Scale(5), Ends(read=TENSOR, written=TENSOR), context)
    assert found.cycles == (10.0 if contention else 5.0)


def test_readers_give_arrays_the_shape_that_they_need():
    values = np.arange(24).reshape(2, 3, 4)
    assert matrix(values).tolist() == np.arange(24).reshape(6, 4).tolist()
    assert row(values).tolist() == [0, 1, 2, 3]
    assert given(values) is values
