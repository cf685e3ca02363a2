"""Weights of a fixed seed in the place of trained ones, so that tests run without downloads.

A model keeps the weights that its constructor drew. Accuracy then says nothing about the trained network: activations
of random weights may be smaller than their roundings.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any


class RandomWeights(dict[str, Any]):
    """Stands for the weights of a file that is not there."""


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
        return load_state(module, state, *args, **kwargs) if state else None  # a model may have renamed all its entries

    none: Callable[..., RandomWeights] = lambda *args, **kwargs: RandomWeights()  # noqa: E731
    torch.load, torch.nn.Module.load_state_dict, torch.hub.load_state_dict_from_url = loaded, load_state_dict, none
    try:
        import_module("torchvision").models._api.WeightsEnum.get_state_dict = none
    except ImportError:
        return
