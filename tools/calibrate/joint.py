"""One fit of all programs of an architecture: what they share is fitted to all of them.

A program that does not read a figure does not change with it: after the first round most numerical derivatives are
known to be zero.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final

import numpy as np

from device.spec.device_spec import DeviceSpec
from tools.calibrate.cases import Case
from tools.calibrate.fit import Fit, Vector, fit_constants, folds_of

FOLDS = 5


def changed_specs(cases: Sequence[Case], values: Mapping[str, float]) -> list[DeviceSpec]:
    """The device of each case with other figures."""
    changed: dict[tuple[int, frozenset[str]], DeviceSpec] = {}
    keys = [(id(case.spec), case.prediction.fixed) for case in cases]
    for case, key in zip(cases, keys, strict=True):
        if key not in changed:
            changes = {name: value for name, value in values.items() if name not in case.prediction.fixed}
            changed[key] = case.spec.replace(**changes)
    return [changed[key] for key in keys]


def fit_jointly(cases: Sequence[Case], priors: Mapping[str, float]) -> Fit:
    """Fits figures to cases of one architecture, from what they are expected to be."""
    programs = {
        program: [case for case in cases if case.program == program]
        for program in sorted({case.program for case in cases})
    }
    reads: dict[tuple[str, str], bool] = {}
    last_rows = np.cumsum([sum(case.count for case in own) for own in programs.values()])

    def residuals(values: Mapping[str, float], moved: str | None, before: Vector | None) -> Vector:
        """All residuals; only those of programs that read the moved figure are worked out anew."""
        known = [None] * len(programs) if before is None else np.split(before, last_rows[:-1])
        rows = []
        for (program, own), same in zip(programs.items(), known, strict=True):
            if same is not None and moved is not None and not reads.get((program, moved), True):
                rows.append(same)
                continue
            pairs = zip(own, changed_specs(own, values), strict=True)
            rows.append(np.array(list(chain.from_iterable(case.residuals(spec) for case, spec in pairs))))
            if same is not None and moved is not None:
                reads[program, moved] = bool((rows[-1] != same).any())
        return np.concatenate(rows)

    return fit_constants(residuals, priors)


def cross_validated_errors(
    cases: Sequence[Case], priors: Mapping[str, float], *, seed: int
) -> list[tuple[Case, float]]:
    """Errors of every case with figures that were fitted without its fold.

    Every fit begins at the priors: a fit that begins at the fit of all cases, and finds nothing better nearby, would
    have seen the cases that it predicts.
    """
    errors: list[tuple[Case, float]] = []
    for fold in folds_of(list(dict.fromkeys(case.fold for case in cases)), FOLDS, seed):
        seen, left = ([case for case in cases if (case.fold in fold) is unseen] for unseen in (False, True))
        values = fit_jointly(seen, priors).values
        errors += [(case, case.error(spec)) for case, spec in zip(left, changed_specs(left, values), strict=True)]
    return errors


_WORMHOLE: Final = {
    "compute_unpack_bytes_per_cycle": 46.0,  # GEMM_FLOPS: 44 bytes a cycle in large matmuls of bfloat16
    "transfer_costs_stateful_issue_cycles": 19.0,  # noc_latencies.yaml: 18 for stateful reads
    "transfer_costs_page_issue_cycles": 42.0,  # noc_latencies.yaml: 26, and an address to work out
    "compute_costs_tilize_tile_cycles": 3.0,  # guess
    "compute_costs_matmul_call_cycles": 10.0,  # guess
    "compute_costs_subblock_cycles": 80.0,  # guess
    "compute_costs_reload_cycles": 50.0,  # guess: about that of a sub-block
    "compute_costs_reload_tile_cycles": 26.0,  # single-core matmul baselines
    "compute_costs_add_tile_cycles": 55.0,  # guess
    "conv_costs_start_cycles": 800.0,  # guess
    "conv_costs_multicast_cycles": 700.0,  # guess: two ways of a semaphore and the commands of a multicast
    "matmul_costs_start_cycles": 2500.0,  # guess
    "matmul_costs_k_block_cycles": 250.0,  # guess
    "matmul_costs_crossed_write_links": 2.7,  # tt-isa-documentation: 82 GB/s at random over the second network
    # Of dispatch all are read off the rows by hand, each where it alone decides.
    "dispatch_costs_fetch_cycles": 2500.0,
    "dispatch_costs_fetch_binary_cycles": 75.0,
    "dispatch_costs_binary_bytes_per_cycle": 16.5,
    "dispatch_costs_config_bytes_per_cycle": 20.0,
    "dispatch_costs_command_cycles": 250.0,
    "dispatch_costs_write_cycles": 1300.0,
    "dispatch_costs_write_core_cycles": 14.0,
    "dispatch_costs_write_binary_cycles": 100.0,
    "dispatch_costs_write_group_cycles": 400.0,
    "dispatch_costs_argument_core_cycles": 21.0,
    "dispatch_costs_start_cycles": 850.0,
    "dispatch_costs_start_buffer_cycles": 10.0,
}
_BLACKHOLE: Final = {
    "compute_unpack_bytes_per_cycle": 117.0,  # guess
    "compute_unpack_tile_cycles": 16.5,  # GEMM_FLOPS: 18 cycles a product
    "transfer_costs_stateful_issue_cycles": 17.0,  # guess, near Wormhole's
    "transfer_costs_page_issue_cycles": 42.0,  # noc_latencies.yaml: 36, and an address to work out
    "compute_costs_tilize_tile_cycles": 3.0,  # guess
    "compute_costs_untilize_block_cycles": 350.0,  # guess
    "compute_costs_untilize_narrow_tile_cycles": 80.0,  # tt-llk pack-untilize
    "compute_costs_matmul_call_cycles": 5.0,  # guess
    "compute_costs_subblock_cycles": 28.0,  # guess
    "compute_costs_reload_cycles": 45.0,  # Wormhole's
    "compute_costs_reload_tile_cycles": 22.0,  # guess
    "compute_costs_add_tile_cycles": 50.0,  # guess
    "conv_costs_start_cycles": 700.0,  # guess
    "conv_costs_multicast_cycles": 700.0,  # guess: two ways of a semaphore and the commands of a multicast
    "halo_costs_start_cycles": 450.0,  # guess
    "halo_costs_pad_issue_cycles": 20.0,  # noc_latencies.yaml: 18 for stateful reads on Wormhole
    "matmul_costs_start_cycles": 3500.0,  # guess
    "matmul_costs_k_block_cycles": 400.0,  # guess
    "matmul_costs_crossed_write_links": 2.7,  # Wormhole's
    "movement_costs_start_cycles": 400.0,  # guess
    "movement_costs_wait_share": 0.3,  # guess
    "movement_costs_group_wait_share": 1.0,  # all
    "movement_costs_dram_write_share": 0.8,  # guess
    "movement_costs_dram_stick_share": 0.6,  # guess
    "movement_costs_stick_cycles": 70.0,  # guess
    "movement_costs_stick_write_cycles": 52.0,  # guess
    "movement_costs_box_stick_cycles": 130.0,  # guess
    "movement_costs_local_stick_cycles": 32.0,  # noc_latencies.yaml: a small write, and an address to work out
    "movement_costs_store_cycles": 3.0,  # guess: a load, a store and a branch
    "movement_costs_integer_tile_cycles": 1300.0,  # guess: 32 steps of some forty instructions
    "movement_costs_reshard_cycles": 1000.0,  # guess
    "movement_costs_segment_cycles": 85.0,  # guess
    # Of dispatch all are read off the rows by hand, each where it alone decides.
    "dispatch_costs_fetch_cycles": 2500.0,
    "dispatch_costs_fetch_binary_cycles": 60.0,
    "dispatch_costs_binary_bytes_per_cycle": 26.0,
    "dispatch_costs_config_bytes_per_cycle": 26.0,
    "dispatch_costs_command_cycles": 280.0,
    "dispatch_costs_write_cycles": 1400.0,
    "dispatch_costs_write_core_cycles": 9.0,
    "dispatch_costs_write_binary_cycles": 150.0,
    "dispatch_costs_write_group_cycles": 500.0,
    "dispatch_costs_argument_core_cycles": 42.0,
    "dispatch_costs_start_cycles": 1000.0,
    "dispatch_costs_start_buffer_cycles": 1.0,
}

PRIORS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {"wormhole_b0": MappingProxyType(_WORMHOLE), "blackhole": MappingProxyType(_BLACKHOLE)}
)
