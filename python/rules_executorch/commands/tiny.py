"""Make a tiny random checkpoint from a config.json, for tests."""

from __future__ import annotations

import argparse
import os

from rules_executorch.action.environment import hermetic, seed_torch
from rules_executorch.checkpoint.tasks import GENERATION
from rules_executorch.common import files
from rules_executorch.common.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `tiny`."""
    parser.add_argument("--config", required=True, help="config.json of the architecture")
    parser.add_argument("--generation-config", help="generation_config.json, for the eos ids")
    parser.add_argument("--task", default=GENERATION)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", help="dtype of the weights; the config's by default")
    parser.add_argument(
        "--out-weights",
        required=True,
        action="append",
        metavar="FILE",
        help="a safetensors file to write; given several times, one for each shard",
    )
    parser.add_argument("--out-index", help="index of the shards; goes with several --out-weights")
    parser.add_argument("--out-tokenizer", help="tokenizer.json to write")
    parser.add_argument("--out-tokenizer-config", help="tokenizer_config.json to write")


def run(args: argparse.Namespace) -> int:
    """Writes the weights, the index of shards, and the tokenizer."""
    sharded = len(args.out_weights) > 1
    if sharded != bool(args.out_index):
        raise UserError(
            f"{len(args.out_weights)} weights files and {'an' if args.out_index else 'no'} index"
            " were asked for.",
            instead="Give --out-index with several --out-weights, and only then.",
        )
    with hermetic():
        seed_torch()
        _make(args)
    return 0


def _make(args: argparse.Namespace) -> None:
    from rules_executorch.checkpoint import config as configs
    from rules_executorch.checkpoint import safetensors_writer, tiny, tiny_tokenizer

    raw = configs.read_config(args.config)
    configs.check_model_type(raw, args.config, args.task)
    generation = configs.read_generation_config(args.generation_config)
    config = configs.load_config(args.config)
    ids = {
        name: configs.special_ids(raw, generation, f"{name}_token_id", args.config)
        for name in ("eos", "bos", "pad")
    }
    tokenizer = None
    if args.out_tokenizer or args.out_tokenizer_config:
        tokenizer = tiny_tokenizer.make(
            config.vocab_size,
            eos_ids=ids["eos"],
            bos_id=next(iter(ids["bos"]), None),
            pad_id=next(iter(ids["pad"]), None),
        )
    parts = tiny.split(tiny.make(config, args.seed, args.dtype, args.task), len(args.out_weights))
    for path, part in zip(args.out_weights, parts, strict=True):
        safetensors_writer.write(path, part)
    if args.out_index:
        files.write_json(
            args.out_index,
            {
                "metadata": {"total_size": sum(t.nbytes for part in parts for t in part.values())},
                "weight_map": {
                    name: os.path.basename(path)
                    for path, part in zip(args.out_weights, parts, strict=True)
                    for name in part
                },
            },
        )
    if tokenizer:
        outputs = (args.out_tokenizer, args.out_tokenizer_config)
        for path, value in zip(outputs, tokenizer, strict=True):
            if path:
                with files.whole_file(path) as written, open(written, "wb") as file:
                    file.write(tiny_tokenizer.to_bytes(value))
