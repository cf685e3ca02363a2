"""Sum up the device operations of a network, and hold the sum against its measured time.

usage: python -m tools.validate.network [--model NAME] [--device NAME ...] [--layers FILE] [--flow FILE] [--ops FILE]
                                        [--as-planned] [--json OUT]

The layers run one after the other on a simulated device, with what stands between them: everything finds the shards and
the memory that the one before left. The sum holds every device operation; one that is not simulated is printed with it.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from device.spec.device_spec import DeviceSpec, load_spec
from tools.validate.network_report import (
    NetworkTime,
    kinds_table,
    layers_table,
    problems_table,
    sentences,
    totals,
    whole_table,
)
from tools.validate.network_rows import DATA, NetworkStep, WholeFigure, figures_of, read_rows, steps_of
from tools.validate.network_run import LayerTime, run_network, softwares
from tools.validate.prediction import NotPredictedError, Row, device_spec
from tools.validate.report import console

_NOT_SEEN = {"shard_seen": "", "notes": "sharded as the release plans it; a profile shows otherwise"}
DEVICES = {"n150": "wormhole_n150", "p100": "blackhole_p100", "p150": "blackhole_p150"}


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tools.validate.network", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="vgg_unet", help="a network of the files (default vgg_unet)")
    parser.add_argument("--device", nargs="+", default=["n150", "p100"], choices=DEVICES, help="default n150 p100")
    parser.add_argument("--layers", type=Path, default=DATA / "model_layers.csv", help="its convolutions")
    parser.add_argument("--flow", type=Path, default=DATA / "model_flow.csv", help="what stands between them")
    parser.add_argument("--ops", type=Path, default=DATA / "model_ops.csv", help="times of whole networks")
    parser.add_argument(
        "--as-planned", action="store_true", help="shard as the release plans it, also where a profile shows otherwise"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every layer with its prediction")
    return parser


def time_network(
    model: str, spec: DeviceSpec, steps: Sequence[NetworkStep], figures: Sequence[WholeFigure]
) -> NetworkTime:
    """Time a network on a device."""
    here = [one for one in figures if one.row["arch"] == spec.arch]
    return NetworkTime(
        model=model,
        spec=spec,
        times={software: run_network(steps, spec, software) for software in softwares(spec)},
        figures=here,
        measured=next((one for one in here if one.measured and _is_of(one.row, spec)), None),
    )


def _is_of(row: Row, spec: DeviceSpec) -> bool:
    """Whether a row was measured on this device."""
    try:
        return device_spec(row).name == spec.name
    except NotPredictedError:
        return False


def document(network: NetworkTime) -> dict[str, Any]:
    """A network with all columns of its layers, times in nanoseconds."""
    return {
        "model": network.model,
        "device": network.spec.name,
        "measured_ns": None if network.measured is None else network.measured.time_ns,
        "figures": [{**one.row, "time_ns": one.time_ns, "measured": one.measured} for one in network.figures],
        "software": [
            {
                "software": software.value,
                "calls_ns": totals(times).calls_ns,
                "between_ns": totals(times).between_ns,
                "left_out": dict(totals(times).left_out),
                "layers": [_layer(one) for one in times],
            }
            for software, times in network.times.items()
        ],
    }


def _layer(one: LayerTime) -> dict[str, Any]:
    return {
        **(one.step.row or {}),
        "before": one.step.flow["before"],
        "output_on": one.scheme,
        "predicted_ns": one.time_ns if one.operations else None,
        "operations": [{"name": kind.name, "predicted_ns": kind.time_ns} for kind in one.operations],
        "between": [{"name": kind.name, "predicted_ns": kind.time_ns} for kind in one.between],
        "left_out": list(one.left_out),
        "reason": one.reason,
    }


def main() -> None:
    """Time the network of the command line on every device that is asked for."""
    parser = build_parser()
    options = parser.parse_args()
    missing = [path for path in (options.layers, options.flow, options.ops) if not path.is_file()]
    if missing:
        parser.error(f"no such file: {', '.join(map(str, missing))}")
    steps, unmatched = steps_of(options.model, read_rows(options.layers), read_rows(options.flow))
    if not any(step.row is not None for step in steps):
        parser.error(f"no layer of {options.model} is both in {options.layers} and in {options.flow}")
    if options.as_planned:
        steps = [
            NetworkStep(step.row, {**step.flow, **_NOT_SEEN} if step.flow["shard_seen"] else step.flow)
            for step in steps
        ]
    figures, unread = figures_of(options.model, read_rows(options.ops))
    screen, documents = console(), []
    for name in options.device:
        network = time_network(options.model, load_spec(DEVICES[name]), steps, figures)
        documents.append(document(network))
        for table in (layers_table(network), kinds_table(network), whole_table(network)):
            screen.print(table)
        for line in sentences(network):
            screen.print(line, highlight=False, soft_wrap=True)
        troubles = [(f"{name}, {one.step.flow['layer'] or 'end'}", one.reason) for one in _first(network) if one.reason]
        if troubles:
            screen.print(problems_table(troubles))
    notes = [f"{row['layer']}: {row['notes']}" for row in (step.flow for step in steps) if row["notes"]]
    for note in notes:
        screen.print(f"of {note}", highlight=False, soft_wrap=True)
    if unmatched or unread:
        rows = [(row["layer"], reason) for row, reason in unmatched]
        screen.print(problems_table(rows + [(row["source_path"], reason) for row, reason in unread]))
    if options.json is not None:
        options.json.write_text(json.dumps(documents, indent=1), encoding="utf-8")


def _first(network: NetworkTime) -> Sequence[LayerTime]:
    return next(iter(network.times.values()))


if __name__ == "__main__":
    main()
