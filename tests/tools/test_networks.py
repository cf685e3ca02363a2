"""The scoreboard of model tests, on a small checkout."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.networks.__main__ import Model, kind, row
from tools.networks.weights import _make_by_default, draw, kind_of

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest
import ttnn


def test_vanilla_unet_model(device):
    x = ttnn.ones((1, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    assert float(ttnn.to_torch(ttnn.add(x, x))[0, 0, 0, 0]) == 2.0


def test_missing(device):
    ttnn.no_such_operation(device)


def test_wrong(device):
    assert 1 + 1 == 3, "PCC"


def test_weights(device):
    open("weights.pt")


@pytest.mark.skip(reason="needs an N300")
def test_two(device):
    pass
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    root = tmp_path_factory.mktemp("checkout")
    folder = root / "models" / "demos" / "vision" / "vanilla_unet"
    for name, text in {"tests/test_unet_model.py": TESTS, "demo/test_demo.py": "", "tests/test_e2e.py": ""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return root


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.networks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_a_scoreboard(checkout: Path, tmp_path: Path) -> None:
    done = run(str(checkout), "--models", "vanilla_unet,unet_3d", "--json", str(tmp_path / "board.json"))
    assert done.returncode == 0, done.stderr
    board = json.loads((tmp_path / "board.json").read_text())
    first, second = board["models"]
    assert (first["passed"], first["outside"], first["failed"], first["untimed_share"]) == (1, 2, 2, 0.0)
    assert first["obstacle"].startswith("AttributeError: module 'ttnn' has no attribute 'no_such_operation'")
    assert 0 < first["predicted_ms"] < 0.1
    assert first["expected_ms"] == pytest.approx(1e3 / 206)
    assert second["obstacle"] == "the checkout has no such model"
    assert [line["operations"] for line in board["tests"]["vanilla_unet"]] == [1, 0, 0, 0, 0]


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    done = run(str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tools.networks: {tmp_path} is no checkout of tt-metal: it has no folder models\n"


@pytest.mark.parametrize(
    ("outcome", "message", "expected"),
    [
        ("passed", "", "passed"),
        ("skipped", "Skipped: needs an N300", "outside"),
        ("failed", "ModuleNotFoundError: No module named 'mmcv'", "outside"),
        ("failed", "OSError: We couldn't connect to 'https://example.org'", "outside"),
        ("failed", "ImportError: cannot import name 'softmax' from 'ttnn'", "failed"),
        ("failed", "AssertionError: 0.93", "failed"),
    ],
)
def test_whose_obstacle_it_is(outcome: str, message: str, expected: str) -> None:
    assert kind({"outcome": outcome, "message": message}) == expected


def test_figures_of_a_model() -> None:
    model = Model("m", "**/m", whole="test_all", samples=4, samples_per_second={"wormhole_b0": 200.0})
    lines = [
        {"test": "test_all[1]", "outcome": "passed", "message": "", "seconds": 2.0, "operations": 3, "untimed": 1,
         "milliseconds": 12.5},
        {"test": "test_part", "outcome": "failed", "message": "no", "seconds": 1.0, "operations": 1, "untimed": 0,
         "milliseconds": 40.0},
    ]  # fmt: skip
    figures = row(model, lines, "wormhole_b0")
    assert (figures["predicted_ms"], figures["expected_ms"], figures["untimed_share"]) == (12.5, 20.0, 0.25)
    assert row(model, lines, "blackhole")["expected_ms"] is None


def test_random_weights_keep_the_mean_square_of_activations_behind_a_relu() -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Conv2d(64, 128, 3)
    draw(torch.nn.Sequential(layer, torch.nn.ReLU()))
    assert float(layer.weight.detach().var()) == pytest.approx(2 / (64 * 9), rel=0.05)  # of 73,728 numbers
    assert not layer.bias.any()


def test_parameters_without_values_are_drawn_and_others_stay() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.ParameterList([torch.full((64, 64), torch.nan), torch.ones(4)])
    draw(model)
    assert float(model[0].detach().std()) == pytest.approx(1.0, rel=0.05)
    assert bool((model[1] == 1).all())


def test_a_name_of_a_hub_says_the_kind_of_a_model() -> None:
    kinds = ["bert", "distilbert", "vit", "xlm-roberta"]
    assert kind_of("distilbert-base-uncased", kinds) == "distilbert"
    assert kind_of("someone/XLM_Roberta", kinds) == "xlm-roberta"
    with pytest.raises(OSError, match=r"^someone/else: .*offline"):
        kind_of("someone/else", kinds)


def test_models_that_ask_for_their_configuration_get_the_arguments_that_it_left_over_too() -> None:
    class Reading:
        config_class: type

        def __init__(self, config: object = None) -> None:
            self.config = config

        @classmethod
        def from_pretrained(cls, name: str, **options: object) -> object:
            if options.pop("file", None):
                raise AttributeError("'NoneType' object has no attribute 'endswith'")
            raise OSError("offline")

        def eval(self) -> "Reading":
            return self

    kinds = [type(name, (Reading,), {}) for name in ("PretrainedConfig", "PreTrainedModel", "AutoConfig")]
    configuration, model, by_name = kinds
    model.config_class = configuration
    mapping = SimpleNamespace(CONFIG_MAPPING={"bert": configuration})
    auto = SimpleNamespace(auto=SimpleNamespace(configuration_auto=mapping))
    _make_by_default(SimpleNamespace(models=auto, **{kind.__name__: kind for kind in kinds}))
    for found in (configuration.from_pretrained("x", return_unused_kwargs=True),
                  by_name.from_pretrained("some/bert", return_unused_kwargs=True)):  # fmt: skip
        assert isinstance(found[0], configuration)
        assert found[1] == {}
    assert isinstance(configuration.from_pretrained("x"), configuration)
    assert isinstance(model.from_pretrained("x", file=1).config, configuration)
