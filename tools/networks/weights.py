"""Weights of a fixed seed in the place of trained ones, so that tests run without downloads.

A model keeps the weights that its constructor drew until its test loads a file that is not there. Then its convolutions
are drawn as He et al. (2015) start networks of convolutions and ReLUs: from a normal distribution of variance 2 /
fan_in, with biases of 0. torch's own default, of variance 1 / (3 fan_in), makes activations sqrt(6) times smaller in
each layer, so that the output of a deep network is smaller than its roundings. Parameters whose memory the constructor
leaves as it was are drawn from a normal distribution of variance 1; torch marks them by NaN. Accuracy still says
nothing about the trained network. A test that loads no file means the weights of its model's constructor.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

NAMES: Final = 4096  # more than any model of the scoreboard has weights


class RandomWeights(dict[str, Any]):
    """Stands for the weights of a file that is not there: names without tensors, which nothing loads."""

    def __init__(self) -> None:
        super().__init__({f"random.{number}": None for number in range(NAMES)})

    def __missing__(self, name: str) -> Any:
        """Of a file that holds a whole model, nothing can stand for the model."""
        raise FileNotFoundError(f"No such file, whose entry {name!r} is asked for")


def install() -> None:
    """Makes torch go on without files of weights."""
    torch: Any = import_module("torch")
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory without values is filled with NaN
    load, load_state = torch.load, torch.nn.Module.load_state_dict

    def loaded(*args: Any, **kwargs: Any) -> Any:
        try:
            return load(*args, **kwargs)
        except (OSError, EOFError):
            return RandomWeights()

    def load_state_dict(module: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        if not state or any(value is None for value in state.values()):  # a model may have renamed all entries
            return draw(module)
        with suppress(RuntimeError):  # of a model of other sizes
            return load_state(module, state, *args, **kwargs)

    none: Callable[..., RandomWeights] = lambda *args, **kwargs: RandomWeights()  # noqa: E731
    torch.load, torch.nn.Module.load_state_dict, torch.hub.load_state_dict_from_url = loaded, load_state_dict, none
    with suppress(ImportError):
        import_module("torchvision").models._api.WeightsEnum.get_state_dict = none
    with suppress(ImportError):
        _make_by_name(import_module("timm"))
    with suppress(ImportError):
        _make_by_default(import_module("transformers"))
    with suppress(ImportError):
        _make_in_published_sizes(import_module("diffusers"))
    with suppress(ImportError):
        _make_by_description(import_module("ultralytics"))
    with suppress(ImportError):
        kind = import_module("efficientnet_pytorch").EfficientNet
        kind.from_pretrained = lambda name, **sizes: kind.from_name(name, **sizes)


def draw(model: Any) -> None:
    """Draws convolutions so that a ReLU behind each keeps the mean square of activations, and what has no values."""
    nn = import_module("torch").nn
    for layer in model.modules():
        if isinstance(layer, nn.modules.conv._ConvNd):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    for parameter in model.parameters():
        if parameter.isnan().all():
            nn.init.normal_(parameter)


def _make_by_name(timm: Any) -> None:
    """Makes timm draw the weights of a model that a hub has."""
    make = timm.create_model

    def create_model(name: str, *args: Any, **kwargs: Any) -> Any:
        plain = name.removeprefix("hf_hub:").removeprefix("hf-hub:").rpartition("/")[2].partition(".")[0]
        return make(plain, *args, **kwargs | {"pretrained": False})

    timm.create_model = create_model


def _make_by_description(ultralytics: Any) -> None:
    """Makes ultralytics draw the weights of a model from the description that comes with the package."""
    kind = ultralytics.YOLO
    ultralytics.YOLO = lambda name, *args, **kwargs: kind(str(name).replace(".pt", ".yaml"), *args, **kwargs)


def _make_by_default(transformers: Any) -> None:
    """Makes transformers draw the weights of a model that is not there, in the sizes of its default configuration."""
    configurations, models, by_name = (
        transformers.PretrainedConfig,
        transformers.PreTrainedModel,
        transformers.AutoConfig,
    )
    kinds = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    _instead(configurations, lambda kind, *_, return_unused_kwargs=False, **__: _paired(kind(), return_unused_kwargs))
    _instead(
        models,
        lambda kind, *_, config=None, **__: kind(config or kind.config_class()).eval(),
        (OSError, AttributeError),  # transformers asks None for a file's ending where there is no file
    )
    _instead(
        by_name,
        lambda _, name, *__, return_unused_kwargs=False, **___: _paired(
            kinds[kind_of(name, list(kinds.keys()))](), return_unused_kwargs
        ),
    )


def _paired(configuration: Any, with_rest: bool) -> Any:
    """A configuration; with the arguments that it left over if they are asked for, as models ask: none."""
    return (configuration, {}) if with_rest else configuration


def kind_of(name: str, kinds: Sequence[str]) -> str:
    """The kind of a model that a hub has: the longest that its name contains; raises OSError where there is none."""
    plain = name.lower().replace("_", "-")
    found = [kind for kind in kinds if kind.replace("_", "-") in plain]
    if not found:
        raise OSError(f"{name}: no file of a configuration is there, and the name says no kind of model; offline")
    return max(found, key=len)


def _make_in_published_sizes(diffusers: Any) -> None:
    """Makes diffusers draw the weights of the networks of Stable Diffusion 1.4, whose configurations a hub has."""
    blocks = 4
    sides = {
        "UNet2DConditionModel": {"sample_size": 64, "cross_attention_dim": 768},
        "AutoencoderKL": {
            "down_block_types": ["DownEncoderBlock2D"] * blocks, "up_block_types": ["UpDecoderBlock2D"] * blocks,
            "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2, "sample_size": 512,
        },
    }  # fmt: skip
    for name, sizes in sides.items():
        _instead(getattr(diffusers, name), lambda kind, *_, sizes=sizes, **__: kind(**sizes).eval())


def _instead(kind: Any, make: Callable[..., Any], errors: tuple[type[Exception], ...] = (OSError,)) -> None:
    """Makes a class that reads a hub make what is not there, which the class says by one of these errors."""
    read = kind.from_pretrained.__func__

    def from_pretrained(wanted: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return read(wanted, *args, **kwargs)
        except errors:
            return make(wanted, *args, **kwargs)

    kind.from_pretrained = classmethod(from_pretrained)
