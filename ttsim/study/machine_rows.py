"""The rows of a layer or a network on many machines; machines with equal values in all read fields share a row."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from device.spec.device_spec import DeviceSpec
from device.time.energy import static_milliwatts
from ops.sensitivity.read_set import fields_asked
from ttsim.runtime.types.layer import Layer
from ttsim.study.evaluate import Evaluator, Point
from ttsim.study.networks.judge import network_key, network_row
from ttsim.study.networks.replay import RecordedNetwork
from ttsim.study.space import DesignAxis
from ttsim.study.store import Row

Machine: TypeAlias = tuple[DeviceSpec, Mapping[str, str]]  # a device, and its values by axis name
Known: TypeAlias = dict[tuple[str, ...], dict[tuple[str, ...], Row]]  # rows by the axes that were read, then by values
READ: Final = "fields read"  # names the input of a row that lists the fields of the device that it hangs on


class LayerRows(NamedTuple):
    """The rows of a layer on some machines of a space."""

    rows: tuple[Row, ...]  # In the order of the machines
    known: Known  # Each row that was evaluated, for these machines and before

    @property
    def read(self) -> frozenset[str]:
        """Axes with fields that the layer reads on some machine."""
        return frozenset(chain.from_iterable(self.known))

    @property
    def evaluated(self) -> int:
        """Machines on which the layer was evaluated; every other machine has the row of one of these."""
        return sum(map(len, self.known.values()))


def rows_of(
    layer: Layer | RecordedNetwork, machines: Sequence[Machine], axes: Sequence[DesignAxis], tune: bool = True
) -> LayerRows:
    """Evaluates a layer or a network once for all machines with equal values in every read field.

    With `tune`, the layer has its fastest config on each machine.

    A point is evaluated on a device that records which of its fields are read. A machine with the same values in these
    fields has the same row, because the calculation reads the same figures. The read fields are recorded for each
    evaluation, because a machine with less memory may take another path.
    """
    known: Known = {}
    rows: list[Row] = []
    for machine in machines:
        row = row_on(machine, known)
        if row is None:
            spec, values = machine
            row, fields = _evaluated(layer, spec, tune)
            row = replace(row, key=key_of(layer, spec, tune), inputs={**row.inputs, READ: ",".join(sorted(fields))})
            add_known(known, row, values, axes)
        rows.append(_named(row, machine))
    return LayerRows(tuple(rows), known)


def row_on(machine: Machine, known: Known) -> Row | None:
    """The row of an evaluated machine with the same values in all fields that its evaluation read, or None."""
    agreeing = (by_values.get(tuple(machine[1][name] for name in read)) for read, by_values in known.items())
    row = next((row for row in agreeing if row is not None), None)
    return None if row is None else _named(row, machine)


def _named(row: Row, machine: Machine) -> Row:
    """A row of another machine with the name of this machine."""
    name = machine[0].name
    static = static_milliwatts(machine[0])
    return replace(row, device=name, error=row.error.replace(row.device, name), static_milliwatts=static)


def add_known(known: Known, row: Row, values: Mapping[str, str], axes: Sequence[DesignAxis]) -> None:
    """Adds an evaluated row of the machine with these values."""
    fields = frozenset(str(row.inputs.get(READ, "")).split(","))
    read = tuple(axis.name for axis in axes if not fields.isdisjoint(axis.fields))
    known.setdefault(read, {})[tuple(values[name] for name in read)] = row


def key_of(layer: Layer | RecordedNetwork, spec: DeviceSpec, tune: bool) -> str:
    """The key of a row in a file of rows."""
    if isinstance(layer, RecordedNetwork):
        return network_key(layer, spec, tune=tune)
    return Point(layer=layer, spec=spec, tune=tune).key


def _evaluated(layer: Layer | RecordedNetwork, spec: DeviceSpec, tune: bool) -> tuple[Row, frozenset[str]]:
    """The row of a layer or a network on a device, and the fields of the device that its evaluation read."""
    rows: list[Row] = []

    def evaluate(noting: DeviceSpec) -> None:
        if isinstance(layer, RecordedNetwork):
            rows.append(network_row(layer, noting, tune=tune))
            return
        rows.append(Evaluator().row(Point(layer=layer, spec=noting, tune=tune), keyed=False))

    read = fields_asked(evaluate, spec)
    return rows[0], read
