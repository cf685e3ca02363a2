"""The hash of a key is computed once."""

from device.plan import Operation


def test_the_key_of_a_program_is_hashed_once():
    hashed = []

    class Counted:
        def __hash__(self):
            hashed.append(self)
            return 7

    one = Counted()
    operation = Operation(name="Op", inputs=(), key=("op", one))
    assert {operation.key: 1}[operation.key] == 1
    assert len(hashed) == 1
    assert operation.key == ("op", one)
    assert hash(operation.key) == hash(("op", one))
