"""Compare a program with the eager model: logits at many positions, and greedy tokens."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rules_executorch.action.environment import hermetic, seed_torch
from rules_executorch.common.errors import UserError
from rules_executorch.export.signature import read_signature

if TYPE_CHECKING:
    from rules_executorch.run.parity import Parity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("--program", required=True, help="the .pte")
    parser.add_argument("--data", help="its .ptd, if it has one")
    parser.add_argument("--signature", required=True, help="signature of the export, JSON")
    parser.add_argument("--model-description", help="model.json of the model")
    parser.add_argument("--config", required=True, help="config.json of the model")
    parser.add_argument("--weights", required=True, nargs="+", help="files of the weights")
    parser.add_argument(
        "--tolerance",
        type=float,
        help="largest difference of a logit as a share of the largest; by default that of the "
        "program's dtype: 1e-4 for float32",
    )
    parser.add_argument("--positions", type=int, help="go up to here instead of the whole cache")
    parser.add_argument("--steps", type=int, default=8, help="greedy tokens to compare")
    parser.add_argument("--seed", type=int, default=0, help="seed of the prompts")


def run(args: argparse.Namespace) -> int:
    """Compares, prints a table, and fails with a sentence; see `rules_executorch.run.parity`."""
    signature = read_signature(args.signature)
    if signature.quantized and args.tolerance is None:
        raise UserError(
            "The program is quantized, so how far its logits may be from eager is for you to say.",
            instead='Write a tolerance, for example tolerance = "0.05".',
        )
    with hermetic():
        seed_torch()
        from rules_executorch.checkpoint.config import load_config
        from rules_executorch.checkpoint.weights import open_model_weights
        from rules_executorch.run import parity
        from rules_executorch.run.parity_stateless import compare_plain

        config = load_config(args.config)
        program = parity.RuntimeProgram(args.program, args.data)
        tolerance = args.tolerance or parity.DEFAULT_TOLERANCE[signature.dtype]
        task = signature.options.task
        with open_model_weights(args.weights, config, task) as weights:
            if signature.cache is None:
                outcome = compare_plain(
                    program, config, weights, signature, tolerance=tolerance, seed=args.seed
                )
                return _report(outcome)
            outcome = parity.compare(
                program,
                parity.Eager(
                    config,
                    weights,
                    signature.dtype,
                    signature.quantized,
                    signature.cache.max_cache_len,
                ),
                signature,
                tolerance=tolerance,
                window=parity.sliding_window(config),
                length=args.positions,
                steps=args.steps,
                seed=args.seed,
            )
            return _report(outcome)


def _report(outcome: Parity) -> int:
    from rules_executorch.run.parity import render

    print(render(outcome))
    failure = outcome.failure()
    if failure is not None:
        raise UserError(failure)
    return 0
