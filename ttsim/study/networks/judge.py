"""The row of a recorded network on a machine: its time, its peak of L1, and its bottleneck."""

from functools import partial
from hashlib import sha256
from typing import Any, Final

from device.errors import TTSimError
from device.spec.device_spec import DeviceSpec
from ttsim.recording.profiling import Profile
from ttsim.report.cycles import totals
from ttsim.report.memory import operation_uses
from ttsim.runtime.call_source import slice_argument
from ttsim.study.evaluate import figures_of, figures_or_error, named_rules
from ttsim.study.networks.replay import ChangedCall, RecordedNetwork, Replay, replay, written_changes
from ttsim.study.store import Row, Verdict, model_version
from ttsim.study.tune.network import chains, tune_network

EFFORT: Final = 3  # calls that are tried for each convolution, layout of its input, and sharding scheme


def network_row(network: RecordedNetwork, spec: DeviceSpec, *, tune: bool) -> Row:
    """The row of a network on a machine, without a key; with `tune`, with configs from a short search.

    If the search changes convolutions, the network is replayed with their configs. A network that does not run, or an
    internal error, becomes a row with the error.
    """
    figures = figures_or_error(partial(_figures, network, spec, tune))
    return Row(key="", layer=network.name, device=spec.name, inputs={"tune": tune}, **figures)


def network_key(network: RecordedNetwork, spec: DeviceSpec, *, tune: bool) -> str:
    """SHA-256, in hexadecimal, of all inputs of a network's row."""
    return sha256(f"{model_version()}\n{spec.to_dict()}\n{network.digest}\n{tune}".encode()).hexdigest()


def _figures(network: RecordedNetwork, spec: DeviceSpec, tune: bool) -> dict[str, Any]:
    """The figures of a replay; raises TTSimError if the network does not run."""
    first = replay(network, spec)
    given = _figures_of(first.profile)
    if not tune:
        return given
    row = {**given, "given_cycles": given["cycles"]}
    if all(call.asked is None for call in first.profile.ran):  # a network without convolutions
        return row
    changes, words = _changes(first)
    try:
        again = _figures_of(replay(network, spec, changes).profile) if changes else given
    except TTSimError:  # what is between the convolutions does not take the other layouts, or has no room
        return row
    if again["cycles"] >= given["cycles"]:
        return row
    return {**row, **again, "arguments": words, "changes": written_changes(changes)}


def _figures_of(profile: Profile) -> dict[str, Any]:
    """The figures of a profile."""
    taken, spec = profile.taken(), profile.device.spec
    uses = (use for call in profile.ran for use in operation_uses(spec, call.before, call.events))
    return {
        "verdict": Verdict.FITS,
        "clock_hz": spec.clock_hz,
        "grid_rules": "\n".join(dict.fromkeys(rule for call in profile.ran for rule in named_rules(call.plan))),
        "l1_peak_bytes": max((op.l1_bytes for op in profile.runs()), default=0),
        "l1_headroom_bytes": min((use.headroom_bytes for use in uses), default=None),
        **figures_of(taken, totals(taken, spec), spec),
    }


def _changes(first: Replay) -> tuple[dict[int, ChangedCall], str]:
    """The calls that other configs make faster, by step, and the number of convolutions.

    The last output of a chain of convolutions is copied to its original memory, unless the script copies it itself.
    """
    profile = first.profile
    tuned = tune_network(profile, effort=EFFORT)
    steps = [step for step, call in zip(first.steps, profile.calls, strict=True) if call.ran]
    changes: dict[int, ChangedCall] = {}
    layers = iter(tuned.layers)
    for chain in chains(profile.ran):
        own = [(recorded, next(layers)) for recorded in chain]
        if not any(layer.changed for _, layer in own):
            continue
        for recorded, layer in own:
            last = recorded is chain[-1] and recorded.moved_to is None
            place = recorded.output.memory_config if last else None
            if layer.choice is not None:
                options = layer.choice.options(slice_argument(recorded.call))
                changes[steps[recorded.number]] = ChangedCall(options, place)
    count = sum(layer.changed for layer in tuned.layers)
    return changes, f"{count} of {len(tuned.layers)} convolutions"
