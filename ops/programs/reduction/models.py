"""The models of the programs that reduce axes or find indices along them."""

from typing import Any, Final

from ops.op_model import ModeledOp, OpModel, model_of
from ops.programs.reduction.accumulate import Accumulate
from ops.programs.reduction.argmax import ArgMax
from ops.programs.reduction.integral import IntegralImage
from ops.programs.reduction.moe import ExpertWeight
from ops.programs.reduction.nc import AddImages
from ops.programs.reduction.product import Product
from ops.programs.reduction.reduce import Reduce
from ops.programs.reduction.sampling import SampleScores
from ops.programs.reduction.sort import Sort
from ops.programs.reduction.topk import TopK
from ops.programs.reduction.topk_route import OP_MODELS as TOPK_ROUTE
from ops.programs.reduction.welford import Welford

OPS: Final[tuple[type[ModeledOp], ...]] = (
    Accumulate, AddImages, ArgMax, ExpertWeight, IntegralImage, Product, Reduce, SampleScores, Sort, TopK, Welford
)  # fmt: skip
OP_MODELS: Final[tuple[OpModel[Any], ...]] = (*map(model_of, OPS), *TOPK_ROUTE)
