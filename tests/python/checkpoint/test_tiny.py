"""Random checkpoints: the same bytes everywhere, and of use to a test."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from builders import CASES, MODELS

from rules_executorch.checkpoint import tiny, tiny_tokenizer
from rules_executorch.checkpoint.config import load_config
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.cli import main
from rules_executorch.common.errors import UserError

EXPECTED = [-0.5681480765342712, -1.0483088493347168, 0.9334238767623901, 0.0074973697774112225]
PYTHON = Path(__file__).parent.parent.parent.parent / "python"


def make(folder: Path, model: str = "llama", *more: str) -> None:
    source = MODELS / model
    arguments = ["tiny", "--config", str(source / "config.json")]
    if (source / "generation_config.json").exists():
        arguments += ["--generation-config", str(source / "generation_config.json")]
    arguments += ["--out-tokenizer", str(folder / "tokenizer.json")]
    arguments += ["--out-tokenizer-config", str(folder / "tokenizer_config.json")]
    if "--out-weights" not in more:
        arguments += ["--out-weights", str(folder / "model.safetensors")]
    assert main([*arguments, *more]) == 0


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def test_uniform_is_pinned() -> None:
    # Written down: another version of numpy or another machine must give these very bits.
    values = tiny.uniform(0, "w", (4,), 1.0)
    assert values.tolist() == EXPECTED
    assert tiny.uniform(1, "w", (4,), 1.0).tolist() != EXPECTED
    assert tiny.uniform(0, "v", (4,), 1.0).tolist() != EXPECTED


def test_uniform_has_the_scale() -> None:
    values = tiny.uniform(3, "w", (100, 100), 0.25)
    assert abs(values.mean().item()) < 0.01
    assert abs(values.std().item() - 0.25) < 0.01


def test_the_same_in_processes_of_other_hash_seeds(tmp_path: Path) -> None:
    found = []
    for seed in ("0", "1"):
        folder = tmp_path / seed
        folder.mkdir()
        command = [sys.executable, str(PYTHON / "main.py"), "tiny"]
        command += ["--config", str(MODELS / "qwen2" / "config.json")]
        for shard in (1, 2):
            command += ["--out-weights", str(folder / f"{shard}.safetensors")]
        command += ["--out-index", str(folder / "model.safetensors.index.json")]
        command += ["--out-tokenizer", str(folder / "tokenizer.json")]
        command += ["--out-tokenizer-config", str(folder / "tokenizer_config.json")]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC{seed}"}
        subprocess.run(command, check=True, env=environment)
        found.append(digests(folder))
    assert len(found[0]) == 5
    assert found[0] == found[1]


def test_the_seed_matters(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        make(tmp_path / seed, "llama", "--seed", seed)
    one, two = digests(tmp_path / "1"), digests(tmp_path / "2")
    assert one["model.safetensors"] != two["model.safetensors"]
    assert one["tokenizer.json"] == two["tokenizer.json"]


@pytest.mark.parametrize("model", ["llama", "gemma3", "qwen2"])
def test_transformers_loads_it_whole(tmp_path: Path, model: str) -> None:
    from transformers import AutoModelForCausalLM

    make(tmp_path, model)
    (tmp_path / "config.json").write_bytes((MODELS / model / "config.json").read_bytes())
    loaded, report = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    state = loaded.state_dict()
    tied = {"lm_head.weight": "model.embed_tokens.weight"}
    weights = open_weights([str(tmp_path / "model.safetensors")])
    found = weights.resolve(
        {name: tuple(value.shape) for name, value in state.items()},
        tied=tied if loaded.config.tie_word_embeddings else {},
    )
    assert all(torch.equal(weights.tensor(found[name]), state[name]) for name in state)


@pytest.mark.parametrize("model", ["llama", "gemma3", "qwen2"])
def test_logits_are_of_use(tmp_path: Path, model: str) -> None:
    from transformers import AutoModelForCausalLM

    make(tmp_path, model)
    (tmp_path / "config.json").write_bytes((MODELS / model / "config.json").read_bytes())
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = torch.arange(10, 42).reshape(1, -1)
    with torch.no_grad():
        logits = loaded(ids).logits[0]
        other_start = loaded(torch.cat([torch.tensor([[9]]), ids[:, 1:]], dim=1)).logits[0]
    best = logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median() > 1e-2, "greedy choices are near a tie"
    assert len(set(logits.argmax(-1).tolist())) > 8, "the model says the same all the time"
    assert (logits[-1] - other_start[-1]).abs().max() > 1e-2, "attention does not reach back"


def test_shards(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    make(tmp_path / "whole")
    (tmp_path / "split").mkdir()
    shards = [str(tmp_path / "split" / f"{i}.safetensors") for i in range(3)]
    index = str(tmp_path / "split" / "model.safetensors.index.json")
    outputs = [word for shard in shards for word in ("--out-weights", shard)]
    make(tmp_path / "split", "llama", *outputs, "--out-index", index)
    split = open_weights([*shards, index])
    whole = open_weights([str(tmp_path / "whole" / "model.safetensors")])
    assert split.names() == whole.names()
    assert len({split.source(name) for name in split.names()}) == 3
    assert all(torch.equal(split.tensor(n), whole.tensor(n)) for n in whole.names())
    sizes = [os.path.getsize(shard) for shard in shards]
    assert max(sizes) < 2 * min(sizes)
    total = json.loads(Path(index).read_text())["metadata"]["total_size"]
    assert total == sum(whole.tensor(name).nbytes for name in whole.names())


def test_dtype(tmp_path: Path) -> None:
    make(tmp_path, "llama", "--dtype", "bfloat16")
    weights = open_weights([str(tmp_path / "model.safetensors")])
    assert {weights.dtype(name) for name in weights.names()} == {"bfloat16"}


def test_the_config_gives_the_dtype() -> None:
    config = load_config(str(CASES / "bfloat16" / "config.json"))
    assert {value.dtype for value in tiny.make(config, 0, None).values()} == {torch.bfloat16}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--dtype", "int8"], "cannot be 'int8'"),
        (["--out-index", "x.json"], "1 weights files and an index"),
        (["--out-weights", "a", "--out-weights", "b"], "2 weights files and no index"),
    ],
)
def test_refuses(tmp_path: Path, capsys, more: list[str], words: str) -> None:
    arguments = ["tiny", "--config", str(MODELS / "llama" / "config.json"), *more]
    if "--out-weights" not in more:
        arguments += ["--out-weights", str(tmp_path / "model.safetensors")]
    assert main(arguments) == 1
    assert words in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_refuses_a_model_that_is_not_tiny(tmp_path: Path, capsys) -> None:
    config = json.loads((MODELS / "llama" / "config.json").read_text())
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"vocab_size": 10_000_000}))
    assert main(["tiny", "--config", str(path), "--out-weights", str(tmp_path / "w")]) == 1
    assert "1,280,074,048 parameters" in capsys.readouterr().err


def test_split_refuses_more_shards_than_tensors() -> None:
    with pytest.raises(UserError, match="1 tensors cannot make 2 shards"):
        tiny.split({"a": torch.ones(1)}, 2)
    assert [list(part) for part in tiny.split({"a": torch.ones(9), "b": torch.ones(1)}, 2)] == [
        ["a"],
        ["b"],
    ]


def test_tokenizer_round_trip() -> None:
    from tokenizers import Tokenizer

    value, settings = tiny_tokenizer.make(288, eos_ids=(2, 4), bos_id=1, pad_id=0)
    tokenizer = Tokenizer.from_str(tiny_tokenizer.to_bytes(value).decode())
    assert tokenizer.get_vocab_size() == 288
    assert sorted(tokenizer.get_vocab().values()) == list(range(288))
    for text in ("hello the and", "naïve 日本語 😀\n\t", "<|im_start|>user\nhi<|im_end|>\n"):
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text
    assert tokenizer.token_to_id(settings["eos_token"]) == 2
    assert tokenizer.token_to_id(settings["bos_token"]) == 1
    assert tokenizer.token_to_id(settings["pad_token"]) == 0


@pytest.mark.parametrize(
    ("vocab_size", "ids", "size"),
    [
        (256, {"eos_ids": (2,), "bos_id": 1, "pad_id": None}, 256),
        (256, {"eos_ids": (2, 7, 9), "bos_id": 1, "pad_id": None}, 256),
        (320, {"eos_ids": (2,), "bos_id": 1, "pad_id": None}, 288),
        (4096, {"eos_ids": (), "bos_id": None, "pad_id": None}, 288),
        (288, {"eos_ids": (1,), "bos_id": 1, "pad_id": 1}, 288),
    ],
)
def test_tokenizer_sizes(vocab_size: int, ids: dict, size: int) -> None:
    value, _ = tiny_tokenizer.make(vocab_size, **ids)
    assert sorted(value["model"]["vocab"].values()) == list(range(size))
    special = {token["id"] for token in value["added_tokens"]}
    assert set(ids["eos_ids"]) <= special


def test_tokenizer_refuses_a_small_vocabulary() -> None:
    with pytest.raises(UserError, match="243 tokens for bytes"):
        tiny_tokenizer.make(200, eos_ids=(2,), bos_id=1, pad_id=0)
    with pytest.raises(UserError, match="no room"):
        tiny_tokenizer.make(320, eos_ids=(300,), bos_id=1, pad_id=0)
