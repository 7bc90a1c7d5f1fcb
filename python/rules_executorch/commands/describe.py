"""Check the files of a checkpoint and describe it: config.json and model.json."""

from __future__ import annotations

import argparse
import dataclasses

from rules_executorch.action.environment import hermetic
from rules_executorch.action.quiet import quiet_libraries
from rules_executorch.checkpoint import description
from rules_executorch.checkpoint.describe import describe_safetensors
from rules_executorch.checkpoint.license import check_license
from rules_executorch.checkpoint.sources import find_sources
from rules_executorch.common import files
from rules_executorch.common.errors import UserError

_FROM_GGUF = ("out_tokenizer", "out_tokenizer_config", "out_generation_config")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `describe`."""
    parser.add_argument("--task", default="", help="by default what config.json says")
    parser.add_argument(
        "--files", required=True, nargs="+", metavar="FILE", help="every file of the checkpoint"
    )
    parser.add_argument(
        "--names",
        nargs="+",
        metavar="NAME",
        help="path of each of them below the checkpoint's root; by default told from their paths",
    )
    parser.add_argument(
        "--passed-over", nargs="*", default=[], metavar="NAME", help="what else there was, to list"
    )
    parser.add_argument("--license", help="what the hf_model declares, in the hub's words")
    parser.add_argument(
        "--denied-licenses", nargs="*", default=[], metavar="LICENSE", help="refused; also with *"
    )
    parser.add_argument("--out-config", required=True, help="normalized config.json to write")
    parser.add_argument("--out-model", required=True, help="model.json to write")
    group = parser.add_argument_group("what a GGUF file holds as well; only with one")
    group.add_argument("--out-tokenizer", help="tokenizer.json to write")
    group.add_argument("--out-tokenizer-config", help="tokenizer_config.json to write")
    group.add_argument("--out-generation-config", help="generation_config.json to write")


def warm_up() -> None:
    """Imports what takes seconds."""
    quiet_libraries()
    import transformers.models.auto.modeling_auto  # noqa: F401

    import rules_executorch.checkpoint.fit  # noqa: F401


def run(args: argparse.Namespace) -> int:
    """Writes the outputs, or refuses the checkpoint before it writes any."""
    quiet_libraries()
    with hermetic():
        sources = find_sources(args.files, names=args.names)
        passed_over = tuple(sorted({*sources.passed_over, *args.passed_over}))
        sources = dataclasses.replace(sources, passed_over=passed_over)
        if sources.gguf is None:
            unused = [name for name in _FROM_GGUF if getattr(args, name)]
            if unused:
                raise UserError(
                    f"--{unused[0].replace('_', '-')} was given, but the weights are safetensors,"
                    " whose tokenizer is a file of the checkpoint.",
                    instead="Leave the option out.",
                )
            model, config = describe_safetensors(sources, args.task)
            check_license(model.license, args.license, args.denied_licenses)
        else:
            from rules_executorch.checkpoint.gguf.describe import describe_gguf

            model, config, extracted = describe_gguf(sources, args.task)
            check_license(model.license, args.license, args.denied_licenses)
            for name, value in zip(_FROM_GGUF, extracted, strict=True):
                if getattr(args, name):
                    files.write_json(getattr(args, name), value)
        files.write_json(args.out_config, config)
        description.write(args.out_model, model)
    return 0
