"""ttnn.model_preprocessing: parameters of torch models as tensors. torch is loaded on first use."""

from ttsim.model_preprocessing.arguments import (
    infer_ttnn_module_args,
    merge_ttnn_module_args_into_parameters,
)
from ttsim.model_preprocessing.models import (
    convert_torch_model_to_ttnn_model,
    move_to_device,
    preprocess_model,
    preprocess_model_parameters,
)
from ttsim.model_preprocessing.parameters import (
    Conv2dArgs,
    ConvTranspose2dArgs,
    DotDict as DotDict,
    GroupNormArgs,
    MaxPool2dArgs,
    ModuleArgs,
    ParameterDict,
    ParameterList,
    make_parameter_dict,
)
from ttsim.model_preprocessing.weights import (
    default_preprocessor,
    fold_batch_norm2d_into_conv2d,
    preprocess_embedding_weight,
    preprocess_layernorm_parameter,
    preprocess_linear_bias,
    preprocess_linear_weight,
)
from ttsim.runtime.types.signatures import public

__all__ = [
    "Conv2dArgs",
    "ConvTranspose2dArgs",
    "GroupNormArgs",
    "MaxPool2dArgs",
    "ModuleArgs",
    "ParameterDict",
    "ParameterList",
    "convert_torch_model_to_ttnn_model",
    "default_preprocessor",
    "fold_batch_norm2d_into_conv2d",
    "infer_ttnn_module_args",
    "make_parameter_dict",
    "merge_ttnn_module_args_into_parameters",
    "move_to_device",
    "preprocess_embedding_weight",
    "preprocess_layernorm_parameter",
    "preprocess_linear_bias",
    "preprocess_linear_weight",
    "preprocess_model",
    "preprocess_model_parameters",
]

__dir__ = public(globals())
