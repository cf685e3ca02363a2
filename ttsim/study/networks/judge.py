"""The row of a recorded network on a machine: its time, its fullest moment of L1, and what binds."""

from contextvars import Context
from hashlib import sha256
from typing import Any, Final

from device.errors import ArgumentError, CircularBufferError, OutOfMemoryError, TTSimError
from device.spec.device_spec import DeviceSpec
from ttsim.recording.profiling import Profile
from ttsim.report.cycles import binding, totals
from ttsim.report.energy import action_femtojoules
from ttsim.report.memory import operation_uses
from ttsim.study.networks.replay import RecordedNetwork, replayed
from ttsim.study.store import Row, Verdict, model_version
from ttsim.study.tune.network import tune_network

EFFORT: Final = 3  # calls that are tried for each convolution, layout of its input, and sharding scheme


def network_row(network: RecordedNetwork, spec: DeviceSpec, *, tune: bool, keyed: bool = True) -> Row:
    """The row of a network on a machine; with `tune`, at the configs that a short search finds for all convolutions.

    A network that does not run, or an internal error, becomes a row with the error.
    """
    try:
        figures = Context().run(_figures, network, spec, tune)
    except TTSimError as error:
        is_short = isinstance(error, OutOfMemoryError | CircularBufferError)
        figures = {"verdict": Verdict.DOES_NOT_FIT if is_short else Verdict.REFUSED, "error": str(error)}
    except Exception as error:  # one bad machine never stops the others
        figures = {"verdict": Verdict.FAILED, "error": f"{type(error).__name__}: {error}"}
    key = network_key(network, spec, tune=tune) if keyed else ""
    return Row(key=key, layer=network.name, device=spec.name, inputs={"tune": tune}, **figures)


def network_key(network: RecordedNetwork, spec: DeviceSpec, *, tune: bool) -> str:
    """SHA-256, in hexadecimal, of all that the row of a network hangs on."""
    return sha256(f"{model_version()}\n{spec.to_dict()}\n{network.digest}\n{tune}".encode()).hexdigest()


def _figures(network: RecordedNetwork, spec: DeviceSpec, tune: bool) -> dict[str, Any]:
    """The figures of a replay; raises TTSimError if the network does not run."""
    profile = replayed(network, spec)
    taken = profile.taken()
    total = totals(taken, spec)
    uses = (use for call in profile.ran for use in operation_uses(spec, call.before, call.events))
    return {
        "verdict": Verdict.FITS,
        "clock_hz": spec.clock_hz,
        "l1_peak_bytes": max((op.l1_bytes for op in profile.runs()), default=0),
        "l1_headroom_bytes": min((use.headroom_bytes for use in uses), default=None),
        "cycles": total.cycles,
        "bound_by": binding(total),
        "cycles_error_share": total.error.share,
        "cycles_unmeasured_share": total.error.unmeasured_share,
        "untimed_operations": sum(len(call.untimed) for call in taken),
        "dram_read_bytes": total.traffic.dram_read_bytes,
        "dram_written_bytes": total.traffic.dram_written_bytes,
        "noc_bytes": total.traffic.network_bytes,
        "action_femtojoules": sum(action_femtojoules(total.actions, spec).values()),
        **(_tuned(profile, total.cycles) if tune else {}),
    }


def _tuned(profile: Profile, given_cycles: int) -> dict[str, Any]:
    """The cycles at the configs that are found, and how many convolutions they change."""
    try:
        tuned = tune_network(profile, effort=EFFORT)
    except ArgumentError:  # a network without convolutions
        return {"given_cycles": given_cycles}
    changed = sum(layer.changed for layer in tuned.layers)
    words = f"{changed} of {len(tuned.layers)} convolutions" if changed else ""
    found: dict[str, Any] = {
        "cycles": min(tuned.cycles, given_cycles),
        "given_cycles": given_cycles,
        "arguments": words,
    }
    return found | ({"action_femtojoules": None} if changed else {})  # nobody counts what other configs do
