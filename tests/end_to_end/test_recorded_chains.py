"""Chains that the real library planned: memory before and after each call, its result's place, or its refusal."""

import gzip
import json
import re

import pytest

from tools.recorded import DATA
from ttsim import BufferType, graph
from ttsim.study.ask.question import call_of, state_of
from ttsim.study.ask.values import json_of

with gzip.open(DATA / "recorded_chains.jsonl.gz", "rt") as lines:
    CHAINS = list(map(json.loads, lines))


def summary(state):
    """Bytes in use and the lowest address, of memories in use."""
    kinds = [kind for kind in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL) if not state.is_empty(kind)]
    return {kind.name: [state.total_allocated_size(kind), state.lowest_occupied(kind)] for kind in kinds}


def answer_to(question):
    op, arguments, named, device = call_of(question)
    output = graph.query_op_constraints_with_initial_state(
        op, device, state_of(question["state"]), *arguments, **named
    )  # fmt: skip
    response, state = output.response, summary(output.new_state)
    if response.error_message is not None:
        first = response.error_message.split("\n")[0]
        return {"error": re.sub(r"program \d+", "program N", first), "state": state}
    return {
        "usage": list(response.resource_usage[:3]),
        "specs": [json_of(spec) for spec in response.output_tensor_specs],
        "allocations": [[kind.name, *place] for kind, *place in output.output_allocations],
        "state": state,
    }


@pytest.mark.parametrize("chain", CHAINS, ids=["-".join(step["question"]["op"] for step in c["steps"]) for c in CHAINS])
def test_states_of_a_chain_are_those_of_the_real_library(chain):
    of_device = {name: chain[name] for name in ("device", "l1_small_size")}
    for step in chain["steps"]:
        assert answer_to(of_device | step["question"]) == step["answer"], step["question"]["op"]
