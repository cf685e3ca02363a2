from collections import Counter

from tools.fuzz.sequences.running import Fault, Outcome, Record, same_fault, shrunk


def outcome_of(record, fault, needed=frozenset()):
    return Outcome(record, "", Counter(), Counter(), frozenset(needed), fault)


def again(record):
    """There is a fault where the last step has a choice of 5 or more, and step 2 is there."""
    last = record.steps[max(record.steps)]
    found = 2 in record.steps and max(record.steps) == 9 and max(last, default=0) >= 5
    return outcome_of(record, Fault("call", "wrong", "") if found else None)


def test_steps_are_left_out_and_choices_lowered():
    record = Record(None, (1, 2), {number: (3, number, 40) for number in range(10)})
    found = shrunk(outcome_of(record, Fault("call", "wrong", "")), again)
    assert list(found.record.steps) == [2, 9]
    assert found.record.steps[2] == (0, 0, 0)
    assert sorted(found.record.steps[9]) == [0, 0, 5]
    assert found.record.opening == (0, 0)


def test_another_fault_is_not_taken_for_it():
    first = outcome_of(Record(None), Fault("call", "wrong", "a"))
    assert same_fault(first, outcome_of(Record(None), Fault("call", "wrong", "b")))
    assert not same_fault(first, outcome_of(Record(None), Fault("call", "a leak", "")))
    assert not same_fault(first, outcome_of(Record(None), None))


def test_time_ends_the_search():
    record = Record(None, (1,), {2: (7,), 9: (7,)})
    found = shrunk(outcome_of(record, Fault("call", "wrong", "")), again, seconds=0.0)
    assert found.record is record
