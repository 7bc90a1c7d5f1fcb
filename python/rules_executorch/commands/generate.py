"""Answer a prompt with a program, through ExecuTorch's C++ LLM runner."""

from __future__ import annotations

import argparse
import os
import sys

from rules_executorch.checkpoint import chat_template, description, tokenizer
from rules_executorch.common.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `generate`."""
    files = parser.add_argument_group("files; the executorch_generate target gives them")
    files.add_argument("--program", required=True, help="the .pte")
    files.add_argument("--data", help="its .ptd")
    files.add_argument("--tokenizer", required=True, help="tokenizer.json")
    files.add_argument("--tokenizer-config", help="tokenizer_config.json")
    files.add_argument("--chat-template", help="chat_template.jinja")
    files.add_argument("--model-description", help="model.json, for the ids that end an answer")
    parser.add_argument("--prompt", required=True, help="what to answer")
    parser.add_argument("--system", help="a system message before the prompt")
    parser.add_argument(
        "--no-chat-template",
        action="store_true",
        help="continue the prompt as it is instead of answering it as a message",
    )
    parser.add_argument("--max-new-tokens", type=int, default=256)
    parser.add_argument("--seq-len", type=int, help="tokens of prompt and answer together")
    parser.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        help="from 0, greedy decoding and the default, to 1",
    )


def _prompt(args: argparse.Namespace) -> str | None:
    """The prompt through the chat template; None where there is no template to apply."""
    settings = tokenizer.read_settings(args.tokenizer_config)
    template = tokenizer.chat_template(settings, args.chat_template)
    if args.no_chat_template or template is None:
        if args.system is not None:
            raise UserError(
                "--system was given, but no chat template is applied that has a place for it.",
                instead="Leave --system out, or --no-chat-template if the model has a template.",
            )
        return None
    messages = [{"role": "user", "content": args.prompt}]
    if args.system is not None:
        messages.insert(0, {"role": "system", "content": args.system})
    return chat_template.render(template, messages, settings)


def run(args: argparse.Namespace) -> int:
    """Streams the answer to standard output and the timing to standard error."""
    for path in filter(None, (args.program, args.data, args.tokenizer)):
        if not os.path.isfile(path):
            raise UserError(f"The file {path} does not exist.", instead="Build it first.")
    if not 0 <= args.temperature <= 1:
        raise UserError(
            f"--temperature {args.temperature} is not from 0 to 1, as the runner wants it.",
            instead="Write 0 for greedy decoding, or a number up to 1.",
        )
    if not args.prompt:
        raise UserError("The prompt is empty.", instead="Write some text after --prompt.")
    model = description.read(args.model_description) if args.model_description else None
    from rules_executorch.run.generate import Sampling, generate
    from rules_executorch.run.tokenizer import RunnerTokenizer

    reader = RunnerTokenizer(args.tokenizer, model.vocab_size if model else None)
    prompt = _prompt(args)
    if prompt is None:
        prompt = reader.with_leading_tokens(args.prompt)
    _, timing = generate(
        args.program,
        args.data,
        reader,
        prompt,
        frozenset(model.eos_ids if model else ()),
        Sampling(args.max_new_tokens, args.seq_len, args.temperature),
    )
    if timing.beyond_tokenizer:
        print(
            f"\nNOTE: {timing.beyond_tokenizer} tokens are left out: the model has ids that its"
            " tokenizer does not have, and chose some.",
            file=sys.stderr,
        )
    print(f"\n{timing.line()}", file=sys.stderr)
    return 0
