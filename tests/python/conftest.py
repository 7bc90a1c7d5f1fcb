"""Tiny models, exported and lowered once for all tests of the program modules."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from rules_executorch.action.quiet import quiet_libraries

quiet_libraries()

from rules_executorch.checkpoint import tiny  # noqa: E402
from rules_executorch.checkpoint.config import load_config  # noqa: E402
from rules_executorch.checkpoint.description import (  # noqa: E402
    ModelDescription,
    PassedOver,
    TokenizerDescription,
)
from rules_executorch.checkpoint.safetensors_writer import write  # noqa: E402
from rules_executorch.checkpoint.weights import open_weights  # noqa: E402
from rules_executorch.common import schema  # noqa: E402
from rules_executorch.export.generation import export_model  # noqa: E402
from rules_executorch.export.options import ExportOptions  # noqa: E402
from rules_executorch.export.pt2 import write_program  # noqa: E402
from rules_executorch.export.signature import Signature  # noqa: E402
from rules_executorch.lower.constant_methods import constant_methods  # noqa: E402
from rules_executorch.lower.options import LowerOptions  # noqa: E402
from rules_executorch.lower.pipeline import Lowered, lower  # noqa: E402
from rules_executorch.program.info import ProgramInfo  # noqa: E402
from rules_executorch.program.inspect import inspect_program  # noqa: E402

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "float32",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
    "vocab_size": 320,
}
"""Tied output head, larger vocabulary than its tokenizer."""

WIDE_HEADS = LLAMA | {"head_dim": 32, "tie_word_embeddings": False, "num_hidden_layers": 1}
"""Heads that are wider than hidden size over heads."""

GEMMA: dict[str, Any] = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "dtype": "float32",
    "hidden_size": 32,
    "head_dim": 8,
    "intermediate_size": 64,
    "layer_types": ["sliding_attention", "full_attention"],
    "max_position_embeddings": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 1,
    "query_pre_attn_scalar": 8,
    "sliding_window": 8,
    "vocab_size": 128,
}
"""A window much shorter than the cache."""

DESCRIPTION = ModelDescription(
    schema_version=1,
    format="safetensors",
    task="text-generation",
    architecture="LlamaForCausalLM",
    model_type="llama",
    eos_ids=(2, 7, 9),
    bos_id=1,
    pad_id=None,
    vocab_size=320,
    tokenizer=TokenizerDescription("tokenizer.json", vocab_size=300, chat_template=False),
    max_position_embeddings=64,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    sliding_window=None,
    tied_embeddings=True,
    num_parameters=1,
    weight_bytes=4,
    dtype="float32",
    license=None,
    passed_over=PassedOver((), ()),
    quantization=None,
)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A tiny checkpoint on disk."""

    config_path: str
    weights_path: str

    @property
    def config(self) -> Any:
        return load_config(self.config_path)


@dataclasses.dataclass(frozen=True)
class Built:
    """A program on disk and what it was made from."""

    checkpoint: Checkpoint
    signature: Signature
    exported_path: str
    path: str
    lowered: Lowered

    @property
    def info(self) -> ProgramInfo:
        return inspect_program(self.path)


def make_checkpoint(folder: Path, config: dict[str, Any], dtype: str = "float32") -> Checkpoint:
    """Writes config.json and random weights of a fixed seed."""
    folder.mkdir(parents=True, exist_ok=True)
    config_path, weights_path = str(folder / "config.json"), str(folder / "model.safetensors")
    Path(config_path).write_text(json.dumps(config))
    write(weights_path, tiny.make(load_config(config_path), 0, dtype))
    return Checkpoint(config_path, weights_path)


def build(
    folder: Path, checkpoint: Checkpoint, options: ExportOptions, lowering: LowerOptions
) -> Built:
    """Exports, stores, reads, binds and lowers, as the two actions do."""
    folder.mkdir(parents=True, exist_ok=True)
    exported_path, path = str(folder / "model.pt2"), str(folder / "model.pte")
    exported = export_model(checkpoint.config, options)
    write_program(exported.program, exported_path)
    schema.write(str(folder / "signature.json"), exported.signature)
    written = lower(
        exported_path,
        exported.signature,
        open_weights([checkpoint.weights_path]),
        lowering,
        constant_methods(exported.signature, DESCRIPTION),
        out_program=path,
        out_data=str(folder / "model.ptd") if lowering.external_data else None,
    )
    return Built(checkpoint, exported.signature, exported_path, path, written.lowered)


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="session")
def llama(workspace: Path) -> Checkpoint:
    return make_checkpoint(workspace / "llama", LLAMA)


@pytest.fixture(scope="session")
def gemma(workspace: Path) -> Checkpoint:
    return make_checkpoint(workspace / "gemma", GEMMA)


@pytest.fixture(scope="session")
def llama_xnnpack(workspace: Path, llama: Checkpoint) -> Built:
    """Dynamic length, logits of the last position, float32, XNNPACK."""
    options = ExportOptions(max_cache_len=32, max_seq_len=16)
    return build(workspace / "llama_xnnpack", llama, options, LowerOptions(backend="xnnpack"))


@pytest.fixture(scope="session")
def gemma_portable(workspace: Path, gemma: Checkpoint) -> Built:
    """A sliding window, on the portable kernels."""
    options = ExportOptions(max_cache_len=32)
    return build(workspace / "gemma_portable", gemma, options, LowerOptions(backend="portable"))
