"""Options and a config become a plan, or a sentence about what does not fit."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, LlamaConfig

from rules_executorch.checkpoint.config import load_config
from rules_executorch.common.errors import UserError
from rules_executorch.export.options import ExportOptions, Quantization
from rules_executorch.export.plan import GenerationPlan, StatelessPlan, make_plan


def generation(**options: Any) -> GenerationPlan:
    plan = make_plan(LlamaConfig(max_position_embeddings=64), ExportOptions(**options))
    assert isinstance(plan, GenerationPlan)
    return plan


@pytest.mark.parametrize(
    ("options", "length", "dynamic"),
    [
        ({}, 9, True),
        ({"dynamic_seq_len": False}, 1, False),
        ({"dynamic_seq_len": False, "max_seq_len": 3}, 3, False),
        ({"max_seq_len": 4}, 4, True),
        ({"max_seq_len": 1}, 1, False),
    ],
)
def test_lengths_are_resolved(options: dict[str, Any], length: int, dynamic: bool) -> None:
    plan = generation(max_cache_len=9, **options)
    assert (plan.max_cache_len, plan.max_seq_len, plan.dynamic) == (9, length, dynamic)


def test_a_dtype_is_resolved() -> None:
    config = LlamaConfig(dtype="bfloat16")
    assert make_plan(config, ExportOptions(max_cache_len=4, dtype="auto")).dtype == "bfloat16"


@pytest.mark.parametrize(
    ("length", "words", "instead"),
    [
        (128, "max_cache_len = 128 is more than the 64 positions", "max_cache_len = 64 or less"),
        (0, "needs max_cache_len", "from 1 to 64"),
        (-1, "max_cache_len = -1 leaves the cache no position", "from 1 to 64"),
    ],
)
def test_a_cache_that_does_not_fit(length: int, words: str, instead: str) -> None:
    config = LlamaConfig(max_position_embeddings=64)
    assert make_plan(config, ExportOptions(max_cache_len=64)).options.max_cache_len == 64
    with pytest.raises(UserError) as refused:
        make_plan(config, ExportOptions(max_cache_len=length))
    assert words in refused.value.what and instead in str(refused.value.instead)


def test_a_model_without_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    config = {"model_type": "bloom", "architectures": ["BloomForCausalLM"], "vocab_size": 8}
    path.write_text(json.dumps(config))
    make_plan(load_config(str(path)), ExportOptions(max_cache_len=10**6))
    with pytest.raises(UserError, match="Write a number from 1[.]"):
        make_plan(load_config(str(path)), ExportOptions())


@pytest.mark.parametrize(
    "change",
    [
        {"max_cache_len": 8},
        {"custom_ops": ("custom_sdpa",)},
        {"input_form": "inputs_embeds"},
        {"logits": "all"},
        {"quantization": Quantization("8da4w")},
    ],
)
def test_options_of_generation_for_another_task(change: dict[str, Any]) -> None:
    options = ExportOptions(task="text-classification")
    plan = make_plan(BertConfig(), options)
    assert isinstance(plan, StatelessPlan) and plan.task == "text-classification"
    with pytest.raises(UserError, match=f"{next(iter(change))} belongs to models that generate"):
        make_plan(BertConfig(), dataclasses.replace(options, **change))
