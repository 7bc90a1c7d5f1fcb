"""Exports: transformers' own semantics, no weights touched, and refusals in words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from conftest import DESCRIPTION, LLAMA, Built, Checkpoint, make_checkpoint

from rules_executorch.checkpoint.config import load_config
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common import schema
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import build_model, load_weights, ties
from rules_executorch.export.generation import example_inputs, export_model
from rules_executorch.export.options import ExportOptions
from rules_executorch.export.plan import make_plan
from rules_executorch.export.pt2 import read_program, write_program
from rules_executorch.export.signature import DynamicDim, Method, Tensor, read_signature
from rules_executorch.lower.bind import bind_weights
from rules_executorch.lower.constant_methods import constant_methods
from rules_executorch.lower.options import LowerOptions
from rules_executorch.lower.pipeline import lower_program


def config_of(folder: Path, value: dict):
    path = folder / "config.json"
    path.write_text(json.dumps(value))
    return load_config(str(path))


def test_same_program_as_convert_and_export_with_cache(tmp_path: Path) -> None:
    """Graph and lowered bytes, ours without weights and transformers' own with them."""
    from transformers import GenerationConfig
    from transformers.integrations.executorch import convert_and_export_with_cache

    checkpoint = make_checkpoint(tmp_path, LLAMA | {"num_hidden_layers": 1})
    options = ExportOptions(max_cache_len=8, logits="all")
    ours = export_model(checkpoint.config, options)

    weights = open_weights([checkpoint.weights_path])
    model = build_model(checkpoint.config, "float32")
    load_weights(model, weights, "float32")
    model.generation_config = GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        cache_config={"batch_size": 1, "max_cache_len": 8},
    )
    inputs, dynamic_shapes = example_inputs(
        checkpoint.config, make_plan(checkpoint.config, options)
    )
    theirs = convert_and_export_with_cache(
        model, inputs["input_ids"], inputs["cache_position"], dynamic_shapes=dynamic_shapes
    )
    assert str(ours.program.graph) == str(theirs.graph)

    write_program(ours.program, str(tmp_path / "ours.pt2"))
    stored = read_program(str(tmp_path / "ours.pt2"))
    bind_weights(stored, ours.signature, weights)
    constants = constant_methods(ours.signature, DESCRIPTION)
    portable = LowerOptions(backend="portable")
    buffers = [
        lower_program(program, ours.signature, portable, constants).manager.buffer
        for program in (stored, theirs)
    ]
    assert buffers[0] == buffers[1]


def test_weights_are_never_touched(tmp_path: Path) -> None:
    """2.6 GB of parameters, of which the export makes nothing resident."""
    big = LLAMA | {"hidden_size": 4096, "vocab_size": 128_000, "intermediate_size": 16_384}
    big |= {"num_hidden_layers": 1}

    def resident() -> int:
        return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024

    before = resident()
    exported = export_model(config_of(tmp_path, big), ExportOptions(max_cache_len=16))
    size = sum(p.nbytes for p in exported.program.state_dict.values())
    assert size > 2.5e9
    assert resident() - before < 0.1 * size
    write_program(exported.program, str(tmp_path / "big.pt2"))
    assert (tmp_path / "big.pt2").stat().st_size < 1_000_000
    assert resident() - before < 0.1 * size


def test_signature(llama_xnnpack: Built) -> None:
    signature = llama_xnnpack.signature
    assert signature.forward == Method(
        inputs=(
            Tensor("input_ids", "int64", (1, "sequence")),
            Tensor("cache_position", "int64", ("sequence",)),
        ),
        outputs=(Tensor("logits", "float32", (1, 1, 320)),),
    )
    assert signature.dynamic_dims == {"sequence": DynamicDim(1, 16)}
    assert signature.ties == {"lm_head.weight": "model.embed_tokens.weight"}
    names = [parameter.name for parameter in signature.parameters]
    assert "model.embed_tokens.weight" in names and "lm_head.weight" not in names
    assert signature.cache.bytes == 2 * 2 * 2 * 32 * 16 * 4


def test_a_signature_that_is_read_is_the_one_that_was_written(
    tmp_path: Path, llama_xnnpack: Built
) -> None:
    path = str(tmp_path / "signature.json")
    schema.write(path, llama_xnnpack.signature)
    assert read_signature(path) == llama_xnnpack.signature
    value = schema.to_json(llama_xnnpack.signature)
    Path(path).write_text(json.dumps(value | {"cache": value["cache"] | {"layers": 0}}))
    with pytest.raises(UserError, match=r"cache\.layers: 0 is less than the minimum of 1"):
        read_signature(path)


def test_no_generation_config_is_needed(tmp_path: Path) -> None:
    exported = export_model(config_of(tmp_path, LLAMA), ExportOptions(max_cache_len=4))
    assert exported.signature.max_seq_len == 4


def test_built_models_keep_ties_and_buffers(llama: Checkpoint) -> None:
    model = build_model(llama.config, "float16")
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert ties(model) == {"lm_head.weight": "model.embed_tokens.weight"}
    assert model.dtype == torch.float16 and not any(p.requires_grad for p in model.parameters())
    inverse = 1.0 / (10000.0 ** (torch.arange(0, 16, 2).float() / 16))
    assert torch.allclose(model.model.rotary_emb.inv_freq, inverse)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ExportOptions(max_cache_len=65), ["65", "64"]),
        (ExportOptions(), ["needs max_cache_len", "from 1 to 64"]),
        (ExportOptions(max_cache_len=8, max_seq_len=9), ["max_seq_len = 9", "8"]),
    ],
)
def test_lengths_that_do_not_fit(tmp_path: Path, options: ExportOptions, words: list[str]) -> None:
    with pytest.raises(UserError) as refused:
        export_model(config_of(tmp_path, LLAMA), options)
    assert all(word in str(refused.value) for word in words)


@pytest.mark.parametrize(
    ("config", "architecture"),
    [
        (
            {
                "model_type": "t5",
                "architectures": ["T5ForConditionalGeneration"],
                "vocab_size": 64,
                "d_model": 32,
                "num_layers": 1,
            },
            "T5ForConditionalGeneration",
        ),
        (
            LLAMA | {"layer_types": ["indexed_attention", "full_attention"]},
            "indexed_attention",
        ),
    ],
)
def test_an_architecture_without_an_adapter(
    tmp_path: Path, config: dict, architecture: str
) -> None:
    with pytest.raises(UserError) as refused:
        export_model(config_of(tmp_path, config), ExportOptions(max_cache_len=8))
    message = str(refused.value)
    assert architecture in message


def test_dtype_auto_needs_a_dtype(tmp_path: Path) -> None:
    config = {key: value for key, value in LLAMA.items() if key != "dtype"}
    with pytest.raises(UserError, match="auto"):
        export_model(config_of(tmp_path, config), ExportOptions(max_cache_len=8, dtype="auto"))
