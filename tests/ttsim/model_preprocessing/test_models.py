from typing import Any

import pytest

import ttsim
from ttsim.model_preprocessing import (
    Conv2dArgs,
    ConvTranspose2dArgs,
    ParameterDict,
    ParameterList,
    infer_ttnn_module_args,
    preprocess_model,
    preprocess_model_parameters,
)

torch = pytest.importorskip("torch")
nn = torch.nn


class Net(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.up = nn.ConvTranspose2d(4, 2, 2, stride=2)
        self.heads = nn.ModuleList([nn.Linear(2, 5), nn.Linear(2, 5, bias=False)])

    def forward(self, x: Any) -> Any:
        return self.heads[0](self.up(self.first(x)).permute(0, 2, 3, 1))


def test_parameters_become_tensors() -> None:
    parameters = preprocess_model_parameters(initialize_model=Net)
    assert isinstance(parameters, ParameterDict)
    assert isinstance(parameters.heads, ParameterList)
    assert parameters.heads[0].weight.shape == [2, 5]
    assert (parameters.heads[0].bias.shape, parameters.heads[0].bias.layout) == ([1, 5], ttsim.TILE_LAYOUT)
    assert "bias" not in parameters.heads[1]
    assert parameters.first[0].weight.dtype is ttsim.bfloat16
    assert "weight: ttnn.Tensor(shape=Shape([2, 5]), layout=Layout.TILE, dtype=DataType.BFLOAT16)" in repr(parameters)
    with pytest.raises(AttributeError, match="it has first, up, heads"):
        parameters.second  # noqa: B018


def test_parameters_are_taken_out_by_name() -> None:
    parameters = ttsim.model_preprocessing.make_parameter_dict({"proj": {"weight": 1, "bias": 2}})
    del parameters.proj.weight
    assert parameters == {"proj": {"bias": 2}}
    with pytest.raises(AttributeError, match="ParameterDict has no 'weight'; it has bias"):
        del parameters.proj.weight


def test_a_preprocessor_of_ones_own_goes_first() -> None:
    def own(model: Any, name: str, ttnn_module_args: Any) -> dict[str, Any]:
        return {"name": name} if isinstance(model, nn.ConvTranspose2d) else {}

    parameters = preprocess_model_parameters(
        initialize_model=Net,
        custom_preprocessor=own,
        convert_to_ttnn=lambda model, name: "first" not in name,
        prefix="net",
    )
    assert parameters.up == {"name": "net.up"}
    assert isinstance(parameters.first[0].weight, torch.Tensor)
    with pytest.raises(RuntimeError, match="Unsupported parameter: other"):
        preprocess_model_parameters(initialize_model=Net, custom_preprocessor=lambda model, name, other: {})
    with pytest.raises(RuntimeError, match="give initialize_model"):
        preprocess_model_parameters(model_name="net")


def test_layers_say_what_they_were_called_with() -> None:
    args = infer_ttnn_module_args(model=Net(), run_model=lambda model: model(torch.zeros(2, 3, 6, 8)), device=None)
    assert args is not None
    conv = args.first["0"]
    assert isinstance(conv, Conv2dArgs)
    assert conv is args.first[0]
    assert (conv.batch_size, conv.input_height, conv.input_width, conv.padding) == (2, 6, 8, (1, 1))
    assert isinstance(args.up, ConvTranspose2dArgs)
    assert (args.up.out_channels, args.up.output_padding) == (2, (0, 0))
    assert args.first["2"] == {}
    assert infer_ttnn_module_args(model=Net(), run_model=None, device=None) is None


def test_arguments_nest_as_modules_call_each_other() -> None:
    """The real library: a list that is indexed is not called, so its layers are the model's own."""

    class Indexed(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sequential(nn.MaxPool2d(2), nn.MaxPool2d(1)))

        def forward(self, x: Any) -> Any:
            return self.model[1](self.model[0](input=x))

    args = infer_ttnn_module_args(model=Indexed(), run_model=lambda model: model(torch.zeros(1, 3, 8, 8)), device=None)
    assert args is not None
    assert args.keys() == {"0", 0, "1", 1}
    assert args[0].input_height == 8
    assert (args[1][0].input_height, args[1]["1"].kernel_size) == (6, 1)


def test_arguments_of_a_layer_that_is_called_by_itself() -> None:
    """The real library's tracer names modules below the one that runs first, which has no name."""
    args = infer_ttnn_module_args(model=Net(), run_model=lambda net: net.first[0](torch.zeros(1, 3, 6, 8)), device=None)
    assert isinstance(args, Conv2dArgs)
    assert args.input_width == 8


def test_on_a_device_with_arguments() -> None:
    with ttsim.open_device() as device:
        parameters = preprocess_model(
            initialize_model=Net, device=device, run_model=lambda model: model(torch.zeros(1, 3, 4, 4))
        )
        assert parameters.heads[1].weight.device() is device
        assert parameters.up.ttnn_module_args.input_width == 4
        assert "device" not in parameters.up.ttnn_module_args
