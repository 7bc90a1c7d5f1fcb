"""Checkpoints that transformers wrote, now or long ago, against what `from_pretrained` makes of
them: the same tensors, bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from families import FAMILIES
from safetensors.torch import load_file, save_file
from transformers import CONFIG_MAPPING, PreTrainedConfig, PreTrainedModel

from rules_executorch.checkpoint.architecture import empty_model
from rules_executorch.checkpoint.config import load_config
from rules_executorch.checkpoint.conversion import ModelWeights
from rules_executorch.checkpoint.fit import Fit, check_fit
from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.checkpoint.weights import open_model_weights, open_weights
from rules_executorch.common.errors import UserError


@pytest.fixture(autouse=True, scope="module")
def _silent() -> None:
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def randomized(model: PreTrainedModel) -> PreTrainedModel:
    """Gives every tensor values of its own: many are born as all zeros or ones."""
    torch.manual_seed(0)
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            tensor.data = torch.randn_like(tensor)
    model.tie_weights()
    return model


def tiny(name: str, kind: Any = None) -> PreTrainedModel:
    """A random model of a family, of the class for its task or of another."""
    task, values = FAMILIES[name]
    config = CONFIG_MAPPING[name](**values)
    kind = kind or getattr(transformers, TASKS[task].auto_class)
    made = kind.from_config(config) if hasattr(kind, "_model_mapping") else kind(config)
    return randomized(made)


def files_of(folder: Path) -> list[str]:
    return [str(path) for path in sorted(folder.iterdir())]


def opened(folder: Path, task: str) -> ModelWeights:
    return open_model_weights(files_of(folder), load_config(str(folder / "config.json")), task)


def fit(folder: Path, task: str) -> Fit:
    config: PreTrainedConfig = load_config(str(folder / "config.json"))
    return check_fit(open_weights(files_of(folder)), config, task)


def assert_as_from_pretrained(folder: Path, task: str, unread: tuple[str, ...] = ()) -> None:
    """Every tensor of the state dict, except what the output does not depend on."""
    expected = getattr(transformers, TASKS[task].auto_class).from_pretrained(folder).state_dict()
    weights = opened(folder, task)
    tied = dict(empty_model(load_config(str(folder / "config.json")), task).all_tied_weights_keys)
    wanted = {
        name: tuple(tensor.shape)
        for name, tensor in expected.items()
        if not any(part in name for part in unread)
    }
    found = weights.resolve(wanted, tied=tied)
    assert set(found) == set(wanted)
    for name in wanted:
        value = weights.tensor(found[name])
        assert torch.equal(value, expected[name]), name
        assert str(value.dtype) == f"torch.{weights.dtype(found[name])}"
        assert value.is_contiguous() or value.shape == expected[name].shape


def write(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Replaces the weights in a folder."""
    path = folder / "model.safetensors"
    save_file({n: t.clone() for n, t in tensors.items()}, path, metadata={"format": "pt"})


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_family(tmp_path: Path, name: str) -> None:
    task = FAMILIES[name][0]
    model = tiny(name)
    model.save_pretrained(tmp_path / "whole")
    assert_as_from_pretrained(tmp_path / "whole", task)
    model.save_pretrained(tmp_path / "sharded", max_shard_size="4KB")
    assert (tmp_path / "sharded" / "model.safetensors.index.json").exists()
    assert_as_from_pretrained(tmp_path / "sharded", task)
    found = fit(tmp_path / "whole", task)
    assert found.passed_over == ()
    assert not found.untied


def test_the_names_in_the_files_are_not_all_the_models() -> None:
    """The families above would prove little if nothing were renamed or merged."""
    differ = set()
    for name in ("vit", "mixtral", "gpt_neox", "qwen3_moe", "detr"):
        model = tiny(name)
        stored = transformers.core_model_loading.revert_weight_conversion(model, model.state_dict())
        if set(stored) != set(model.state_dict()):
            differ.add(name)
    assert differ == {"vit", "mixtral", "gpt_neox", "qwen3_moe", "detr"}


def test_another_dtype(tmp_path: Path) -> None:
    tiny("qwen3_moe").to(torch.bfloat16).save_pretrained(tmp_path)
    weights = opened(tmp_path, "text-generation")
    expected = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    for name, value in expected.state_dict().items():
        assert torch.equal(weights.tensor(name, torch.float32), value), name


def test_heads_are_left_over(tmp_path: Path) -> None:
    tiny("bert", transformers.BertForPreTraining).save_pretrained(tmp_path)
    assert_as_from_pretrained(tmp_path, "feature-extraction")
    left = fit(tmp_path, "feature-extraction").passed_over
    assert "cls.seq_relationship.weight" in left
    assert all(name.startswith("cls.") for name in left)


def test_no_pooler_and_nothing_reads_it(tmp_path: Path) -> None:
    tiny("bert", transformers.BertForMaskedLM).save_pretrained(tmp_path)
    assert_as_from_pretrained(tmp_path, "feature-extraction", unread=("pooler",))
    fit(tmp_path, "feature-extraction")


def test_a_missing_head_is_refused(tmp_path: Path) -> None:
    tiny("bert").save_pretrained(tmp_path)
    with pytest.raises(UserError, match="2 of the 41 tensors.*: classifier.bias") as caught:
        fit(tmp_path, "text-classification")
    assert "never trained for" in (caught.value.instead or "")


def test_a_missing_tensor_is_refused(tmp_path: Path) -> None:
    tiny("bert").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    write(tmp_path, tensors)
    with pytest.raises(UserError, match="1 of the 39 tensors.*encoder.layer.1.output.dense.weight"):
        fit(tmp_path, "feature-extraction")


def test_a_missing_expert_is_refused(tmp_path: Path) -> None:
    tiny("mixtral").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.layers.1.block_sparse_moe.experts.11.w2.weight"]
    write(tmp_path, tensors)
    with pytest.raises(UserError, match=r"experts.0.w2.weight.* is \[11, 32, 48\], wanted \[12,"):
        fit(tmp_path, "text-generation")


def test_experts_that_do_not_stack_are_refused(tmp_path: Path) -> None:
    tiny("mixtral").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    name = "model.layers.1.block_sparse_moe.experts.3.w2.weight"
    tensors[name] = tensors[name][:, :5].contiguous()
    write(tmp_path, tensors)
    with pytest.raises(UserError, match="do not become .*experts.down_proj.*MergeModulelist"):
        fit(tmp_path, "text-generation")


def test_nothing_of_the_model(tmp_path: Path) -> None:
    tiny("bert").save_pretrained(tmp_path)
    write(tmp_path, {"a": torch.ones(1), "b": torch.ones(1)})
    with pytest.raises(UserError, match="None of the 2 tensors .* BertModel .*: a, b"):
        fit(tmp_path, "feature-extraction")


def test_weights_of_the_bare_model(tmp_path: Path) -> None:
    tiny("gpt2", transformers.GPT2Model).save_pretrained(tmp_path)
    assert "h.0.ln_1.weight" in load_file(tmp_path / "model.safetensors")
    assert_as_from_pretrained(tmp_path, "text-generation")


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("bert", {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}),
        (
            "wav2vec2",
            {
                "parametrizations.weight.original0": "weight_g",
                "parametrizations.weight.original1": "weight_v",
            },
        ),
    ],
)
def test_names_of_old_versions(tmp_path: Path, name: str, old: dict[str, str]) -> None:
    tiny(name).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    renamed = {}
    for now, value in tensors.items():
        then = now
        for new, before in old.items():
            then = then.replace(new, before)
        renamed[then] = value
    assert set(renamed) != set(tensors)
    write(tmp_path, renamed)
    assert_as_from_pretrained(tmp_path, FAMILIES[name][0])
    assert fit(tmp_path, FAMILIES[name][0]).passed_over == ()


def test_buffers_of_old_versions_are_passed_over(tmp_path: Path) -> None:
    tiny("bert").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    write(tmp_path, tensors | {"embeddings.position_ids": torch.arange(32)[None]})
    assert_as_from_pretrained(tmp_path, "feature-extraction")
    assert fit(tmp_path, "feature-extraction").passed_over == ("embeddings.position_ids",)


def test_the_text_of_a_model_of_images_and_text(tmp_path: Path) -> None:
    config = {
        **FAMILIES["mistral"][1],
        "head_dim": 8,
        "layer_types": ["linear_attention", "full_attention"],
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
    }
    model = randomized(
        transformers.AutoModelForCausalLM.from_config(CONFIG_MAPPING["qwen3_5_text"](**config))
    )
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    of_both = {name.replace("model.", "model.language_model.", 1): t for name, t in tensors.items()}
    write(tmp_path, of_both | {"model.visual.patch_embed.proj.weight": torch.ones(2)})
    assert_as_from_pretrained(tmp_path, "text-generation")
    left = fit(tmp_path, "text-generation").passed_over
    assert left == ("model.visual.patch_embed.proj.weight",)


def test_a_tied_head_that_is_there_as_well(tmp_path: Path) -> None:
    tiny("gpt2").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    embedding = tensors["transformer.wte.weight"]
    write(tmp_path, tensors | {"lm_head.weight": embedding})
    assert_as_from_pretrained(tmp_path, "text-generation")
    assert not fit(tmp_path, "text-generation").untied
    write(tmp_path, tensors | {"lm_head.weight": embedding + 1})
    assert fit(tmp_path, "text-generation").untied


def test_an_embedding_that_is_there_as_the_tied_head(tmp_path: Path) -> None:
    tiny("gpt2").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = tensors.pop("transformer.wte.weight")
    write(tmp_path, tensors)
    fit(tmp_path, "text-generation")
    assert_as_from_pretrained(tmp_path, "text-generation")


def test_an_infinite_float_of_a_config(tmp_path: Path) -> None:
    tiny("mamba2").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    assert "__float__" in path.read_text()
    assert load_config(str(path)).time_step_limit[1] == float("inf")


def test_a_merge_holds_one_parameter_at_a_time(tmp_path: Path) -> None:
    tiny("mixtral").save_pretrained(tmp_path)
    weights = opened(tmp_path, "text-generation")
    first, second = (
        weights.tensor(f"model.layers.{layer}.mlp.experts.gate_up_proj") for layer in (0, 1)
    )
    assert first.data_ptr() != second.data_ptr()
    assert weights._at_hand is None
