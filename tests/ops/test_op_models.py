"""The one table of models."""

from importlib import import_module
from pathlib import Path

import pytest

from device.errors import SpecError
from device.plan import DeviceOp
from device.spec import device_spec
from device.spec.device_spec import catalog_names
from ops.op_models import COSTS, OP_MODELS, load_spec
from ops.programs.conv2d.weights import AsWanted
from ops.programs.data_movement.movement import MovementCosts
from ops.programs.data_movement.reshape import Reshape
from ops.programs.eltwise.op import Binary
from ops.programs.kernel_costs import StickCosts

PROGRAMS = Path(__file__).resolve().parents[2] / "ops" / "programs"


def modules():
    """Every module of every program; without numba those of compiled loops, which define no work, are left out."""
    for path in sorted(PROGRAMS.rglob("*.py")):
        if path.stem != "__init__":
            try:
                yield import_module(".".join(path.relative_to(PROGRAMS.parents[1]).with_suffix("").parts))
            except ModuleNotFoundError as error:
                if error.name not in ("numba", "llvmlite"):
                    raise


def ops():
    """Every class of work that a folder of programs defines."""
    return {
        found
        for module in modules()
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, DeviceOp) and found.__module__ == module.__name__
    }


def test_every_operation_of_every_program_has_a_model():
    """But for a description of a tensor, and bases of others that are no operations themselves."""
    found = {op for op in ops() if not op.__subclasses__() or op in (Binary, Reshape)} - {AsWanted}
    assert set(OP_MODELS) == found
    assert all(model.op is op for op, model in OP_MODELS.items())


def test_the_table_is_not_to_be_changed():
    with pytest.raises(TypeError):
        OP_MODELS[DeviceOp] = None


def test_what_has_no_model_of_its_cycles():
    """Host works have none by nature; these device operations run untimed, and reports say so."""
    names = {op.__name__ for op, model in OP_MODELS.items() if model.cycles is None}
    assert names == {
        "PrepareBand", "PreparePhaseWeights", "PrepareWeights", "HostFallback", "PickMany", "PrepareBias",
        "PrepareSticks", "PrepareTaps",
    }  # fmt: skip


@pytest.mark.parametrize("name", catalog_names())
def test_the_catalog_has_every_programs_table_and_none_besides(name):
    spec = load_spec(name)
    assert spec == device_spec.load_spec(name)
    assert [table.name for table in spec.tables] == [kind.TABLE for kind in COSTS]
    assert load_spec(spec) is spec


def test_what_programs_share_has_the_figures_of_the_table_it_was_fitted_in():
    spec = load_spec("wormhole_n150").replace(movement_costs_stick_cycles=9)
    assert spec.costs_of(StickCosts).stick_cycles == spec.costs_of(MovementCosts).stick_cycles == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[halo_costs]\nstart_cycle = 3\n", r"unknown key 'halo_costs\.start_cycle', did you mean 'start_cycles'\?"),
        ("[halo_cost]\nstart_cycles = 3\n", r"unknown key 'halo_cost', did you mean 'halo_costs'\?"),
        ("[halo_costs]\npad_issue_cycles = 'x'\n", r"halo_costs\.pad_issue_cycles must be a number, not 'x'"),
        ("[movement_costs]\nsegment_cycles = 0\n", r"movement_costs: segment_cycles must be a number above zero"),
    ],
)
def test_a_users_file_with_a_wrong_table_is_refused_when_it_is_opened(tmp_path, text, message):
    (tmp_path / "mine.toml").write_text('extends = "wormhole_n150"\n' + text)
    with pytest.raises(SpecError, match=message):
        load_spec(tmp_path / "mine.toml")


def test_a_users_file_gives_only_the_figures_that_differ(tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "wormhole_n150"\n[compute_costs]\nadd_tile_cycles = 9\n')
    assert load_spec(tmp_path / "mine.toml") == load_spec("wormhole_n150").replace(compute_costs_add_tile_cycles=9)
