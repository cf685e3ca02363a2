import pytest

from ttsim.model_preprocessing import fold_batch_norm2d_into_conv2d

torch = pytest.importorskip("torch")
nn = torch.nn


def test_a_folded_batch_norm_changes_nothing() -> None:
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)
    with torch.no_grad():
        norm(torch.randn(5, 4, 6, 6))
        norm.weight.copy_(torch.rand(4))
        norm.eval()
        image = torch.randn(1, 3, 5, 5)
        weight, bias = fold_batch_norm2d_into_conv2d(conv, norm)
        assert torch.allclose(nn.functional.conv2d(image, weight, bias), norm(conv(image)), atol=1e-6)
    with pytest.raises(RuntimeError, match="track_running_stats=True"):
        fold_batch_norm2d_into_conv2d(conv, nn.BatchNorm2d(4, track_running_stats=False))
