"""Models without a cache: what is exported, what is refused, and that the values are eager's."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import tiny_programs
import torch
from transformers import (
    AutoModel,
    AutoModelForImageClassification,
    AutoModelForSequenceClassification,
)

from rules_executorch.checkpoint.config import load_config
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError
from rules_executorch.export.generation import export_model
from rules_executorch.export.options import ExportOptions
from rules_executorch.export.signature import DynamicDim, Method, Tensor


def eager(kind: type, exported: tiny_programs.Exported) -> torch.nn.Module:
    model = kind.from_config(exported.config)
    weights = open_weights([exported.weights_path])
    model.load_state_dict({name: weights.tensor(name) for name in weights.names()})
    return model.eval()


def run(path: Path, *inputs: torch.Tensor) -> torch.Tensor:
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(path).load_method("forward")
    return method.execute(list(inputs))[0]


def test_an_image_classifier_gives_the_logits_of_eager(
    resnet: tiny_programs.Exported, tmp_path: Path
) -> None:
    assert resnet.signature.forward == Method(
        inputs=(Tensor("pixel_values", "float32", (1, 3, 32, 32)),),
        outputs=(Tensor("logits", "float32", (1, 4)),),
    )
    assert resnet.signature.cache is None
    path = tmp_path / "model.pte"
    lowered, info = tiny_programs.lower(resnet, path, "xnnpack")
    assert lowered.delegation["forward"].share() > 0.9
    assert info.constants == {}
    pixels = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = eager(AutoModelForImageClassification, resnet)(pixels).logits
    torch.testing.assert_close(run(path, pixels), expected, rtol=1e-4, atol=1e-5)


def test_a_text_classifier_minds_the_mask(tmp_path: Path) -> None:
    options = dataclasses.replace(tiny_programs.TEXTS, dynamic_seq_len=True)
    bert = tiny_programs.export(tmp_path, tiny_programs.BERT, options)
    shapes = [tensor.shape for tensor in bert.signature.forward.inputs]
    assert shapes == [(1, "sequence")] * 3
    assert bert.signature.dynamic_dims == {"sequence": DynamicDim(1, 8)}
    path = tmp_path / "model.pte"
    tiny_programs.lower(bert, path, "portable")
    ids = torch.tensor([[5, 9, 17, 3, 2]])
    mask = torch.tensor([[1, 1, 1, 0, 0]])
    types = torch.tensor([[0, 0, 1, 1, 0]])
    with torch.no_grad():
        expected = eager(AutoModelForSequenceClassification, bert)(ids, mask, types).logits
    got = run(path, ids, mask, types)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(got, run(path, ids, torch.ones_like(mask), types))
    assert not torch.allclose(got, run(path, ids, mask, torch.zeros_like(types)))


def test_features_are_the_last_hidden_states(tmp_path: Path) -> None:
    options = dataclasses.replace(tiny_programs.TEXTS, task="feature-extraction")
    bert = tiny_programs.export(tmp_path, tiny_programs.BERT, options)
    output = Tensor("last_hidden_state", "float32", (1, 8, 32))
    assert bert.signature.forward.outputs == (output,)
    path = tmp_path / "model.pte"
    tiny_programs.lower(bert, path, "portable")
    ids, mask = torch.arange(8)[None], torch.ones(1, 8, dtype=torch.int64)
    with torch.no_grad():
        expected = eager(AutoModel, bert)(ids, mask).last_hidden_state
    types = torch.zeros_like(ids)
    torch.testing.assert_close(run(path, ids, mask, types), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image_size": 0}, "does not say how large an image is. Write image_size"),
        ({"max_cache_len": 8}, "max_cache_len belongs to models that generate text"),
        ({"task": "text-classification"}, "no classifier of texts of the type 'resnet'"),
    ],
)
def test_options_that_do_not_suit_images(
    resnet: tiny_programs.Exported, change: dict[str, object], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        export_model(resnet.config, dataclasses.replace(tiny_programs.IMAGES, **change))


def test_a_text_longer_than_the_positions(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(tiny_programs.json.dumps(tiny_programs.BERT))
    config = load_config(str(tmp_path / "config.json"))
    options = ExportOptions(task="text-classification", max_seq_len=33)
    with pytest.raises(UserError, match="33 is more than the 32 positions"):
        export_model(config, options)
