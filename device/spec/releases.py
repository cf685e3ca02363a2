"""Releases of the real library: their different planning rules and kernels, as data.

A planner or a cycle model reads a rule of `release_of(spec.release)`, and never compares names of releases.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from device.errors import SpecError, nearest, shown

DEFAULT_RELEASE: Final = "0.81.1"
_EXTENDS: Final = "extends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The rules that differ between releases."""

    whole_partials: bool  # The partial sums of a convolution take as much as a core's output, not one activation block
    # Programs that shard copy every stick twice and one at a time; otherwise only sticks that DRAM does not align
    bounces_all_sticks: bool
    # Of a halo, one processor copies what stays on its core, the other fills padding stick by stick and sends;
    # otherwise each does half of both
    halo_by_task: bool
    # Programs that tilize wait for every tile that they write to arrive; otherwise until it has left the core
    waits_for_tiles: bool
    pads_by_lines: bool  # Transposes of tiles write padding line by line; otherwise all lines of a face at a time
    vector_products: bool  # Products and quotients of 16-bit tensors pass the vector unit; else the matrix unit
    # Which shards programs that combine two tensors work on where they lie: those of three tensors that are sharded
    # alike ("alike"), or alike and full ("full"), or of each tensor that is sharded ("each")
    combined_shards: str
    # Matmuls in DRAM whose output is one row or column of blocks of 16 x 16 tiles are split along that axis alone
    one_axis: bool
    # Cores whose share of a product in DRAM does not fit L1 work on the largest part that fits with the deepest blocks;
    # otherwise on the largest part that fits, in the deepest blocks that then fit
    deepest_blocks: bool
    takes_typed: bool  # to_dtype takes a tensor of the device that has the data type; otherwise none of the device
    takes_legacy: bool  # Functions of two operands take use_legacy, which chooses between two programs
    # By family, the cores from which on they walk through the keys of causal attention in step
    causal_cores_in_step: Mapping[str, int] = field(default_factory=dict, hash=False)
    group_norm_of_rows: tuple[str, ...] = ()  # Families on which group_norm takes interleaved rows
    # Cycle constants that replace those of a device, by family, table and key
    costs: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict, hash=False)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("device").joinpath("spec", "releases.toml").read_text(encoding="utf-8"))


def release_names() -> tuple[str, ...]:
    """The names of all releases, the default first."""
    return tuple(_tables())


@cache
def release_of(name: str) -> Release:
    """The rules of a release; raises SpecError if the name is unknown."""
    tables = _tables()
    if name not in tables:
        raise SpecError(f"release must be one of {', '.join(tables)}, not {shown(name)}{nearest(name, tables)}")
    rules = dict(tables[name])
    while _EXTENDS in rules:
        before = tables[rules.pop(_EXTENDS)]
        rules = {**before, **rules, "costs": {**before.get("costs", {}), **rules.get("costs", {})}}
    return Release(**rules | {"group_norm_of_rows": tuple(rules["group_norm_of_rows"])})
