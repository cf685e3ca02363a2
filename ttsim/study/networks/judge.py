"""The row of a recorded network on a machine: its time, its fullest moment of L1, and what binds."""

from functools import partial
from hashlib import sha256
from typing import Any, Final

from device.spec.device_spec import DeviceSpec
from ttsim.recording.profiling import Profile
from ttsim.report.cycles import totals
from ttsim.report.memory import operation_uses
from ttsim.study.evaluate import figures_of, figures_or_error
from ttsim.study.networks.replay import RecordedNetwork, replayed
from ttsim.study.store import Row, Verdict, model_version
from ttsim.study.tune.network import tune_network

EFFORT: Final = 3  # calls that are tried for each convolution, layout of its input, and sharding scheme
OF_TUNED: Final = ("verdict", "clock_hz", "untimed_operations")  # figures that are the same with other configs


def network_row(network: RecordedNetwork, spec: DeviceSpec, *, tune: bool) -> Row:
    """The row of a network on a machine, without a key; with `tune`, at configs that a short search finds.

    Where the search changes a convolution, the row has its cycles and how many convolutions changed, and no figure of
    what the other configs would move and keep in L1. A network that does not run, or an internal error, becomes a row
    with the error.
    """
    figures = figures_or_error(partial(_figures, network, spec, tune))
    return Row(key="", layer=network.name, device=spec.name, inputs={"tune": tune}, **figures)


def network_key(network: RecordedNetwork, spec: DeviceSpec, *, tune: bool) -> str:
    """SHA-256, in hexadecimal, of all that the row of a network hangs on."""
    return sha256(f"{model_version()}\n{spec.to_dict()}\n{network.digest}\n{tune}".encode()).hexdigest()


def _figures(network: RecordedNetwork, spec: DeviceSpec, tune: bool) -> dict[str, Any]:
    """The figures of a replay; raises TTSimError if the network does not run."""
    profile = replayed(network, spec)
    taken = profile.taken()
    uses = (use for call in profile.ran for use in operation_uses(spec, call.before, call.events))
    given = {
        "verdict": Verdict.FITS,
        "clock_hz": spec.clock_hz,
        "l1_peak_bytes": max((op.l1_bytes for op in profile.runs()), default=0),
        "l1_headroom_bytes": min((use.headroom_bytes for use in uses), default=None),
        **figures_of(taken, totals(taken, spec), spec),
    }
    return _tuned(profile, given) if tune else given


def _tuned(profile: Profile, given: dict[str, Any]) -> dict[str, Any]:
    """The figures at the configs that are found for all convolutions, from those at the recorded ones."""
    row = {**given, "given_cycles": given["cycles"]}
    if all(call.asked is None for call in profile.ran):  # a network without convolutions
        return row
    tuned = tune_network(profile, effort=EFFORT)
    changed = sum(layer.changed for layer in tuned.layers)
    if not changed or tuned.cycles >= given["cycles"]:
        return row
    words = f"{changed} of {len(tuned.layers)} convolutions"
    known = {name: given[name] for name in OF_TUNED}
    return {**known, "cycles": tuned.cycles, "given_cycles": given["cycles"], "arguments": words}
