"""config.json: what is read, refused, kept, and how long a cache may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import MODELS

from rules_executorch.checkpoint import config as configs
from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.common.errors import UserError

GOOD: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


def write(folder: Path, value: Any) -> str:
    path = folder / "config.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def test_reads(tmp_path: Path) -> None:
    assert configs.read_config(write(tmp_path, GOOD)) == GOOD


CHANGES = {
    "remote code": ({"auto_map": {"AutoConfig": "evil.Config"}}, "auto_map.*evil.Config"),
    "remote code as text": ({"auto_map": "evil.Config"}, "evil.Config"),
    "no model type": ({"model_type": None}, "no `model_type`"),
    "a model type that is a list": ({"model_type": ["llama"]}, "no `model_type`"),
    "quantized": ({"quantization_config": {"quant_method": "gptq"}}, "quantized .gptq."),
    "zero layers": ({"num_hidden_layers": 0}, "`num_hidden_layers`.*'0'"),
    "a negative size": ({"hidden_size": -64}, "`hidden_size`.*'-64'"),
    "a huge vocabulary": ({"vocab_size": 10**12}, "`vocab_size`.*from 1 to 16,777,216"),
    "a fractional size": ({"hidden_size": 64.0}, "`hidden_size`"),
    "a size that is text": ({"hidden_size": "64"}, "`hidden_size`"),
    "a size that is true": ({"num_attention_heads": True}, "`num_attention_heads`"),
    "positions that are null": ({"max_position_embeddings": None}, "`max_position_embeddings`"),
    "another name of a size": ({"n_layer": -1}, "`n_layer`"),
    "a negative window": ({"sliding_window": -16}, "`sliding_window`"),
    "a size inside text_config": ({"text_config": {"vocab_size": 0}}, "text_config of"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_refuses(tmp_path: Path, name: str) -> None:
    change, words = CHANGES[name]
    path = write(tmp_path, {**GOOD, **change})
    with pytest.raises(UserError, match=words) as caught:
        configs.read_config(path)
    assert path in caught.value.what
    assert caught.value.instead


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_key_value_heads": 3}, "3 key-value heads"),
        ({"hidden_size": 66}, "do not divide the hidden size 66"),
    ],
)
def test_refuses_a_decoder(change: dict, words: str) -> None:
    configs.check_decoder(GOOD, "config.json")
    with pytest.raises(UserError, match=words):
        configs.check_decoder({**GOOD, **change}, "config.json")


def test_sizes_of_stages_are_left_to_the_architecture(tmp_path: Path) -> None:
    change = {"num_heads": [2, 4], "num_attention_heads": [2, 4], "hidden_size": [8, 16]}
    config = configs.read_config(write(tmp_path, {**GOOD, **change}))
    assert configs.size(config, "num_attention_heads") is None
    configs.check_decoder(config, "config.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not readable as JSON"),
        ("[]", "holds a JSON list"),
        ('{"model_type": "llama", "x": NaN}', "NaN"),
        ('{"model_type": "llama", "model_type": "qwen2"}', "occurs twice"),
        ("[" * 100_000, "nested too deeply"),
        (" " * 4_000_001, "longer than 4,000,000 bytes"),
    ],
)
def test_refuses_what_is_not_a_config(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        configs.read_config(write(tmp_path, text))


def test_infinity_is_accepted(tmp_path: Path) -> None:
    text = '{"model_type": "mamba", "time_step_limit": [0.0, Infinity]}'
    assert configs.read_config(write(tmp_path, text))["time_step_limit"][1] == float("inf")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="config.json does not exist"):
        configs.read_config(str(tmp_path / "config.json"))


def test_normalized_drops_what_does_not_shape_the_graph() -> None:
    noise = {
        "_name_or_path": "/home/me/x",
        "transformers_version": "4.0",
        "use_cache": True,
        "eos_token_id": 2,
        "bos_token_id": 1,
        "torch_dtype": "bfloat16",
    }
    assert configs.normalized({**GOOD, **noise}, "float32") == {**GOOD, "dtype": "bfloat16"}
    assert configs.normalized(GOOD, "float16") == {**GOOD, "dtype": "float16"}


def test_normalized_keeps_what_an_encoder_reads() -> None:
    read = {"eos_token_id": 2, "max_length": 1024, "temperature": 0.5}
    kept = configs.normalized({**GOOD, **read, "top_k": 3}, "float32", "feature-extraction")
    assert kept == {**GOOD, **read, "dtype": "float32"}


def test_two_fine_tunes_have_one_config() -> None:
    one = configs.normalized({**GOOD, "_name_or_path": "a", "eos_token_id": 2}, "float32")
    other = configs.normalized({**GOOD, "_name_or_path": "b", "eos_token_id": [3, 4]}, "float32")
    assert one == other


@pytest.mark.parametrize("model", ["llama", "gemma3", "qwen2"])
def test_the_normalized_config_makes_the_same_model(tmp_path: Path, model: str) -> None:
    source = str(MODELS / model / "config.json")
    original = configs.load_config(source)
    reduced = configs.normalized(configs.read_config(source), "float32")
    loaded = configs.load_config(write(tmp_path, reduced))
    ignored = {"bos_token_id", "eos_token_id"}
    assert {k: v for k, v in loaded.to_dict().items() if k not in ignored} == {
        k: v for k, v in original.to_dict().items() if k not in ignored
    }


def test_load_config_refuses_an_unknown_type(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not know the model type 'llamas'"):
        configs.load_config(write(tmp_path, {**GOOD, "model_type": "llamas"}))


def test_load_config_says_what_the_class_refuses(tmp_path: Path) -> None:
    path = write(tmp_path, {**GOOD, "rope_parameters": {"rope_type": "no such"}, "hidden_act": 7})
    with pytest.raises(UserError, match="transformers refuses .*config.json"):
        configs.load_config(path)


@pytest.mark.parametrize("task", TASKS)
def test_model_types_are_those_of_transformers(task: str) -> None:
    from transformers.models.auto import modeling_auto

    assert configs.model_types(task) == frozenset(getattr(modeling_auto, TASKS[task].mapping))


def test_the_number_of_classes_shapes_a_classifier_alone() -> None:
    config = {**GOOD, "id2label": {"0": "cat", "1": "dog", "2": "owl"}}
    assert configs.normalized(config, "float32", "image-classification")["num_labels"] == 3
    assert "num_labels" not in configs.normalized(config, "float32")


@pytest.mark.parametrize(
    ("change", "task", "words"),
    [
        ({"model_type": "custom"}, "text-generation", "no causal language model of the type"),
        ({"model_type": "vit"}, "text-generation", "no causal language model of the type 'vit'"),
        ({}, "juggling", "task 'juggling' is unknown"),
        ({"text_config": {}}, "text-generation", "reads more than text"),
    ],
)
def test_check_model_type(change: dict[str, Any], task: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        configs.check_model_type({**GOOD, **change}, "config.json", task)


def test_a_dynamic_rope_goes_beyond_the_positions() -> None:
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    assert configs.growth({"rope_parameters": rope}) == 4.0
    assert configs.growth({"rope_parameters": rope | {"rope_type": "yarn"}}) == 1.0


@pytest.mark.parametrize(
    ("config", "task"),
    [
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, "text-generation"),
        ({"model_type": "llama"}, "text-generation"),
        ({"model_type": "bert", "architectures": ["BertModel"]}, "feature-extraction"),
        ({"model_type": "bert", "architectures": ["BertForPreTraining"]}, "fill-mask"),
        ({"model_type": "vit", "architectures": ["ViTModel"]}, "image-feature-extraction"),
        ({"model_type": "yolos", "architectures": ["YolosForObjectDetection"]}, "object-detection"),
        (
            {"model_type": "hubert", "architectures": ["HubertForCTC"]},
            "automatic-speech-recognition",
        ),
    ],
)
def test_the_task_follows_from_the_class(config: dict, task: str) -> None:
    assert configs.infer_task(config, "config.json") == task


def test_a_task_that_cannot_be_told_is_asked_for() -> None:
    with pytest.raises(UserError, match="fill-mask.*text-classification"):
        configs.infer_task({"model_type": "bert"}, "config.json")
    with pytest.raises(UserError, match="BertForMultipleChoice.*Set task"):
        configs.infer_task(
            {"model_type": "bert", "architectures": ["BertForMultipleChoice"]}, "config.json"
        )


def test_a_task_that_does_not_fit_is_refused_with_those_that_do() -> None:
    with pytest.raises(UserError, match="object-detection"):
        configs.check_model_type({"model_type": "yolos"}, "config.json", "text-generation")


@pytest.mark.parametrize(
    ("config", "generation", "ids"),
    [
        ({"eos_token_id": 2}, {}, (2,)),
        ({"eos_token_id": [2, 3]}, {}, (2, 3)),
        ({"eos_token_id": 2}, {"eos_token_id": [2, 7, 9]}, (2, 7, 9)),
        ({"eos_token_id": 2}, {"eos_token_id": 5}, (5,)),
        ({"eos_token_id": 2}, {"eos_token_id": None}, (2,)),
        ({"eos_token_id": None}, {}, ()),
        ({}, {}, ()),
        ({"eos_token_id": [4, 4, 1]}, {}, (4, 1)),
    ],
)
def test_eos_ids(config: dict[str, Any], generation: dict[str, Any], ids: tuple[int, ...]) -> None:
    assert configs.special_ids(config, generation, "eos_token_id", "config.json") == ids


@pytest.mark.parametrize("value", [-1, 1.5, "2", [2, None], True, 2**40])
def test_refuses_ids(value: Any) -> None:
    with pytest.raises(UserError, match="`eos_token_id` in .*config.json"):
        configs.special_ids({"eos_token_id": value}, {}, "eos_token_id", "m/config.json")
