import inspect
import pickle
import re

import numpy as np
import pytest

import device.errors
import ttsim.errors
from ttsim import onednn

CLASSES = {
    name: one
    for name, one in inspect.getmembers(device.errors, inspect.isclass)
    if one.__module__ == device.errors.__name__
}


def drawn() -> dict[str, tuple[str, tuple[str, ...]]]:
    """(parent, built-in bases) of every class, as the docstring draws them by indentation."""
    result, above = {}, [""] * 10
    for indent, name, text in re.findall(r"^((?:  )+)(\w+Error) +(.*)$", ttsim.errors.__doc__ or "", re.MULTILINE):
        depth = len(indent) // 2
        above[depth] = name
        builtin = re.search(r"\(([\w, ]+)\)$", text)
        result[name] = (above[depth - 1], tuple(builtin[1].split(", ")) if builtin else ())
    return result


def test_every_class_is_public_and_drawn_where_it_stands():
    assert sorted(ttsim.errors.__all__) == sorted(CLASSES)
    assert all(getattr(ttsim, name) is getattr(ttsim.errors, name) is one for name, one in CLASSES.items())
    names = {name: tuple(base.__name__ for base in one.__bases__) for name, one in CLASSES.items()}
    tree = {
        name: (next((base for base in bases if base in CLASSES), ""), tuple(b for b in bases if b not in CLASSES))
        for name, bases in names.items()
    }
    assert drawn() == tree | {"TTSimError": ("", ())}


@pytest.mark.parametrize("name", CLASSES)
def test_an_error_survives_a_process_border(name):
    error = pickle.loads(pickle.dumps(CLASSES[name]("rule, value, way out")))
    assert type(error) is CLASSES[name]
    assert str(error) == "rule, value, way out"


ZEROS = np.zeros((1, 1, 4, 4), np.float32)


def on_a_closed_device():
    with ttsim.open_device() as opened:
        tensor = ttsim.Tensor(ZEROS, ttsim.bfloat16)
    tensor.to(opened)


@pytest.mark.parametrize(
    ("call", "name", "known_as"),
    [
        (lambda: ttsim.open_device(spec="n151"), "SpecError", ValueError),
        (lambda: ttsim.open_device(values="slow"), "ArgumentError", ValueError),
        (lambda: ttsim.open_device(l1_small_size=1 << 30), "DeviceError", RuntimeError),
        (lambda: ttsim.Tensor([np.inf], ttsim.int32), "ArgumentError", ValueError),
        (lambda: ttsim.Tensor(["one"]), "ArgumentTypeError", TypeError),
        (lambda: ttsim.Tensor(ZEROS, ttsim.bfloat16).reshape(5), "DeviceError", RuntimeError),
        (lambda: ttsim.CoreCoord(-1, 0), "ArgumentError", ValueError),
        (lambda: ttsim.MemoryConfig(5), "ArgumentTypeError", TypeError),
        (lambda: ttsim.UnaryWithParam("relu"), "ArgumentTypeError", TypeError),
        (lambda: ttsim.Conv2dConfig(shard_layout=5), "ArgumentTypeError", TypeError),
        (lambda: ttsim.conv2d(ZEROS), "ArgumentTypeError", TypeError),
        (lambda: onednn.conv_transpose(ZEROS, ZEROS), "ArgumentError", ValueError),
        (on_a_closed_device, "DeviceClosedError", RuntimeError),
    ],
)
def test_what_users_meet_is_in_the_tree(call, name, known_as):
    with pytest.raises(ttsim.TTSimError) as met:
        call()
    assert type(met.value) is getattr(ttsim, name)
    assert isinstance(met.value, known_as)
