"""A device file as users open it: every program's table is there, and is understood."""

import pytest

from device.errors import SpecError
from device.spec import device_spec
from device.spec.device_spec import catalog_names
from ops.programs.actions.costs import CoreCosts, StickCosts, UntilizeCosts
from ops.programs.conv2d.costs import ConvCosts
from ops.programs.device_file import COSTS, load_spec


@pytest.mark.parametrize("name", catalog_names())
def test_the_catalog_has_every_programs_table_and_none_besides(name):
    spec = load_spec(name)
    assert spec == device_spec.load_spec(name)
    assert [table.name for table in spec.tables] == [kind.TABLE for kind in COSTS]
    assert load_spec(spec) is spec


def test_actions_that_programs_share_have_the_figures_of_the_table_they_were_fitted_in():
    spec = load_spec("wormhole_n150").replace(
        conv_costs_tilize_factor=2, halo_costs_untilize_block_cycles=7, movement_costs_stick_read_cycles=9
    )
    assert spec.costs_of(CoreCosts).tilize_factor == spec.costs_of(ConvCosts).tilize_factor == 2
    assert spec.costs_of(UntilizeCosts).untilize_block_cycles == 7
    assert spec.costs_of(StickCosts).stick_read_cycles == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[halo_costs]\nstart_cycle = 3\n", r"unknown key 'halo_costs\.start_cycle', did you mean 'start_cycles'\?"),
        ("[halo_cost]\nstart_cycles = 3\n", r"unknown key 'halo_cost', did you mean 'halo_costs'\?"),
        ("[matmul_costs]\nstart_cycles = 3.5\n", r"matmul_costs\.start_cycles must be a whole number, not 3\.5"),
        ("[movement_costs]\nsegment_cycles = 0\n", r"movement_costs: segment_cycles must be a number above zero"),
    ],
)
def test_a_users_file_with_a_wrong_table_is_refused_when_it_is_opened(tmp_path, text, message):
    (tmp_path / "mine.toml").write_text('extends = "wormhole_n150"\n' + text)
    with pytest.raises(SpecError, match=message):
        load_spec(tmp_path / "mine.toml")


def test_a_users_file_gives_only_the_figures_that_differ(tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "wormhole_n150"\n[conv_costs]\nbias_tile_cycles = 9\n')
    assert load_spec(tmp_path / "mine.toml") == load_spec("wormhole_n150").replace(conv_costs_bias_tile_cycles=9)
