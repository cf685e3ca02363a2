"""Weights of a fixed seed in the place of trained ones, so that tests run without downloads.

A model keeps the weights that its constructor drew. Accuracy then says nothing about the trained network: activations
of random weights may be smaller than their roundings.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

NAMES: Final = 4096  # more than any model of the scoreboard has weights


class RandomWeights(dict[str, Any]):
    """Stands for the weights of a file that is not there: names without tensors, which nothing loads."""

    def __init__(self) -> None:
        super().__init__({f"random.{number}": None for number in range(NAMES)})


def install() -> None:
    """Makes torch go on without files of weights."""
    torch: Any = import_module("torch")
    load, load_state = torch.load, torch.nn.Module.load_state_dict

    def loaded(*args: Any, **kwargs: Any) -> Any:
        try:
            return load(*args, **kwargs)
        except (OSError, EOFError):
            return RandomWeights()

    def load_state_dict(module: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        known = state and all(value is not None for value in state.values())  # a model may have renamed all entries
        return load_state(module, state, *args, **kwargs) if known else None

    none: Callable[..., RandomWeights] = lambda *args, **kwargs: RandomWeights()  # noqa: E731
    torch.load, torch.nn.Module.load_state_dict, torch.hub.load_state_dict_from_url = loaded, load_state_dict, none
    try:
        import_module("torchvision").models._api.WeightsEnum.get_state_dict = none
    except ImportError:
        return
