"""A device whose figures are round, so that times can be worked out by hand."""

from ops.op_models import load_spec

ROUND = load_spec("wormhole_n150").replace(
    noc_interface_cycles=200.0,
    compute_unpack_bytes_per_cycle=64.0,
    compute_unpack_tile_cycles=10.0,
    compute_pack_bytes_per_cycle=64.0,
    compute_costs_tilize_tile_cycles=3.0,
    compute_costs_tilize_call_cycles=50.0,
    compute_costs_untilize_narrow_tile_cycles=70.0,
    movement_costs_start_cycles=500.0,
    transfer_costs_read_issue_cycles=25.0,
    transfer_costs_stateful_issue_cycles=20.0,
)
