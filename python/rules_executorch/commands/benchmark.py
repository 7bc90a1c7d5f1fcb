"""Measure how fast programs load, prefill and decode, through ExecuTorch's C++ LLM runner."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from rules_executorch.checkpoint import description
from rules_executorch.common.errors import UserError
from rules_executorch.common.files import write_json

_TEXT = "The history of the lighthouse begins with a fire on a hill near the sea. "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `benchmark`."""
    files = parser.add_argument_group("files; the executorch_benchmark target gives them")
    files.add_argument("--name", action="append", default=[], help="of a program, for the table")
    files.add_argument(
        "--program", action="append", required=True, help="a .pte; the first is ours"
    )
    files.add_argument("--data", action="append", default=[], help="its .ptd, or an empty string")
    files.add_argument("--tokenizer", required=True, help="tokenizer.json")
    files.add_argument("--model-description", help="model.json")
    parser.add_argument("--runs", type=int, default=5, help="runs of each program that count")
    parser.add_argument("--prompt-tokens", type=int, default=64, help="tokens of the prompt")
    parser.add_argument("--new-tokens", type=int, default=32, help="tokens to generate, at most")
    parser.add_argument("--json", help="also write the figures to this file")


def run(args: argparse.Namespace) -> int:
    """Prints a table; see `rules_executorch.run.benchmark`."""
    for option, value in (("runs", args.runs), ("prompt-tokens", args.prompt_tokens)):
        if value < 1:
            raise UserError(
                f"--{option} {value} is below 1.", instead=f"Write --{option} 1 or more."
            )
    if args.new_tokens < 2:
        raise UserError(
            f"--new-tokens {args.new_tokens} leaves no step between two tokens to time.",
            instead="Write --new-tokens 2 or more.",
        )
    from rules_executorch.run.benchmark import Contender, in_process, race, render, summarize
    from rules_executorch.run.generate import Sampling, generate
    from rules_executorch.run.tokenizer import RunnerTokenizer

    model = description.read(args.model_description) if args.model_description else None
    tokenizer = RunnerTokenizer(args.tokenizer, model.vocab_size if model else None)
    prompt = _prompt(tokenizer, args.prompt_tokens)
    names = args.name or [os.path.basename(program) for program in args.program]
    data = args.data or [""] * len(args.program)
    contenders = [
        Contender(name, program, data_path or None)
        for name, program, data_path in zip(names, args.program, data, strict=True)
    ]

    def measure(contender: Contender) -> dict[str, float]:
        def work() -> dict[str, float]:
            # No end ids, so that every program makes the same number of tokens. The runner still
            # stops at the end ids that the program itself has.
            _, timing = generate(
                contender.program,
                contender.data,
                tokenizer,
                prompt,
                frozenset(),
                Sampling(max_new_tokens=args.new_tokens),
            )
            steps = timing.generated_tokens - 1
            return {
                "load_s": timing.load,
                "prefill_tokens_per_s": timing.prompt_tokens / max(timing.prefill, 1e-3),
                "decode_tokens_per_s": steps / timing.decode if timing.decode else 0.0,
            }

        return in_process(work)

    found = race(contenders, measure, args.runs, lambda text: print(text, file=sys.stderr))
    summary = summarize(found)
    print(render(summary))
    if args.json:
        path = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), args.json)
        write_json(path, {"summary": summary, "runs": found})
    return 0


def _prompt(tokenizer: Any, tokens: int) -> str:
    """A text of at least `tokens` tokens, and hardly more."""
    text = _TEXT
    while len(tokenizer.encode(text, add_special_tokens=False)) < tokens:
        text += _TEXT
    words = text.split(" ")
    while len(words) > 1:
        shorter = " ".join(words[:-1])
        if len(tokenizer.encode(shorter, add_special_tokens=False)) < tokens:
            break
        words.pop()
    return " ".join(words)
