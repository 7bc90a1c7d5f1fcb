"""Small exported programs that between them take every path the patches touch."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

CACHE = 16


def _generation(model: Any, cache: str) -> Any:
    from transformers import GenerationConfig

    model.generation_config = GenerationConfig(
        use_cache=True,
        cache_implementation=cache,
        max_length=CACHE,
        cache_config={"batch_size": 1, "max_cache_len": CACHE},
    )
    model.requires_grad_(False)
    return model.eval()


def _shapes(length: int, dynamic: bool) -> tuple[dict[str, torch.Tensor], Any]:
    inputs = {
        "input_ids": torch.zeros((1, length), dtype=torch.long),
        "cache_position": torch.arange(length),
    }
    if not dynamic:
        return inputs, None
    dimension = torch.export.Dim("length", min=2, max=CACHE - 1)
    return inputs, {"input_ids": {1: dimension}, "cache_position": {0: dimension}}


def llama(
    *, dynamic: bool = True, tied: bool = True, quantized: bool = False, layers: int = 2
) -> ExportedProgram:
    """A Llama with a static cache, hidden size 64."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CACHE,
        tie_word_embeddings=tied,
        attn_implementation="sdpa",
    )
    model = _generation(LlamaForCausalLM(config), "static")
    if quantized:
        from torchao.quantization import quantize_
        from torchao.quantization.granularity import PerGroup
        from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig
        from torchao.utils import unwrap_tensor_subclass

        quantize_(
            model,
            Int8DynamicActivationIntxWeightConfig(
                weight_dtype=torch.int4, weight_granularity=PerGroup(32)
            ),
        )
        unwrap_tensor_subclass(model)
    inputs, shapes = _shapes(3 if dynamic else 1, dynamic)
    return torch.export.export(
        TorchExportableModuleWithStaticCache(model),
        args=(),
        kwargs=inputs,
        dynamic_shapes=shapes,
        strict=True,
    )


def gemma3() -> ExportedProgram:
    """A Gemma 3 with one sliding and one full layer over a hybrid cache."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig
    from transformers.integrations.executorch import TorchExportableModuleWithHybridCache

    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=8,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=CACHE,
        attn_implementation="sdpa",
    )
    model = _generation(Gemma3ForCausalLM(config), "hybrid")
    inputs, _ = _shapes(1, dynamic=False)
    return torch.export.export(
        TorchExportableModuleWithHybridCache(model), args=(), kwargs=inputs, strict=True
    )


class _Net(torch.nn.Module):
    """Convolutions, batch norms and poolings, with weights that passes fold into others."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 8, 3, groups=8, bias=False)
        self.slope = torch.nn.PReLU(8)
        self.pool = torch.nn.MaxPool2d(2)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.norm(self.first(image)))
        hidden = self.pool(self.slope(self.second(hidden)))
        hidden = torch.nn.functional.interpolate(
            hidden, scale_factor=2.0, mode="bilinear", align_corners=False
        )
        hidden = torch.cat([hidden, torch.sin(hidden)], dim=1)[:, :8]
        return torch.softmax(self.head(hidden.mean(dim=(2, 3))), dim=-1)


def convolutions() -> ExportedProgram:
    """A small image classifier."""
    torch.manual_seed(0)
    net = _Net().eval().requires_grad_(False)
    return torch.export.export(net, (torch.zeros(1, 3, 16, 16),), strict=True)


class _Linear(torch.nn.Module):
    def __init__(self, weight: torch.nn.Parameter) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(value, self.weight).sigmoid()


def methods() -> dict[str, ExportedProgram]:
    """Two methods over one weight."""
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(8, 8), requires_grad=False)
    return {
        name: torch.export.export(_Linear(weight), (torch.zeros(rows, 8),), strict=True)
        for name, rows in (("one", 1), ("four", 4))
    }
