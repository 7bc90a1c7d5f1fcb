"""Answering a prompt with a program, through ExecuTorch's C++ `TextLLMRunner`."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rules_executorch.backends import library_backends, prepare_runtime
from rules_executorch.common.errors import UserError
from rules_executorch.program.operator_libraries import NAMESPACES, load_operators_of
from rules_executorch.run.tokenizer import RunnerTokenizer, TextStream

_CONTEXT = re.compile(r"Metadata: get_max_context_len = (\d+)")
_LOG_LINES = 12


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How an answer is made."""

    max_new_tokens: int = 256
    seq_len: int | None = None
    """Tokens of prompt and answer together; None leaves it to the program's cache."""
    temperature: float = 0.0
    """0 takes the best token every time."""


@dataclasses.dataclass
class Timing:
    """How long an answer took, in seconds."""

    load: float = 0.0
    prompt_tokens: int = 0
    prefill: float = 0.0
    first_token: float = 0.0
    """From the start of the prompt's encoding to the first token."""
    generated_tokens: int = 0
    decode: float = 0.0
    """From the first token to the last."""
    beyond_tokenizer: int = 0
    """Tokens that the model chose but the tokenizer does not have."""

    def line(self) -> str:
        """One line of text."""
        prefill = self.prompt_tokens / self.prefill if self.prefill else 0.0
        decode = (self.generated_tokens - 1) / self.decode if self.decode else 0.0
        return (
            f"load {self.load:.2f} s | prompt {self.prompt_tokens} tokens, {prefill:.1f} tokens/s"
            f" | generated {self.generated_tokens} tokens, {decode:.1f} tokens/s"
            f" | first token after {self.first_token:.2f} s"
        )


class Answer:
    """Turns the runner's pieces into text for a person, and knows when it ends.

    The runner ends a generation itself on an end id, except on the very first token (its prefill
    does not look), and it hands over the end token's text like any other.
    """

    def __init__(
        self,
        tokenizer: RunnerTokenizer,
        eos_ids: frozenset[int],
        write: Callable[[str], None],
        stop: Callable[[], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Starts an answer.

        Args:
            tokenizer: of the model.
            eos_ids: ids that end it.
            write: takes text as it becomes certain.
            stop: tells the runner to stop after the token it is at.
            clock: seconds.
        """
        self._tokenizer = tokenizer
        self._eos_ids = eos_ids
        self._write = write
        self._stop = stop
        self._clock = clock
        self._stream = TextStream(tokenizer.reference)
        self.ended = False
        self.ids: list[int] = []
        """Every id of the answer, the end id included."""
        self.beyond_tokenizer = 0
        self.first_at = self.last_at = clock()

    def piece(self, text: str) -> None:
        """Takes one token's spelling from the runner."""
        if self.ended:
            self._stop()
            return
        self.last_at = self._clock()
        if not self.ids:
            self.first_at = self.last_at
        token_id = self._tokenizer.id_of(text)
        if token_id is None:
            raise UserError(
                f"The runner's tokenizer gave {text[:60]!r}, which is no token of"
                f" {self._tokenizer.path}.",
                instead="Use a tokenizer.json of the byte-level BPE kind.",
            )
        self.ids.append(token_id)
        if token_id in self._eos_ids:
            self.ended = True
            self._stop()
        elif token_id in self._tokenizer.unknown:
            self.beyond_tokenizer += 1
        elif token_id not in self._tokenizer.special:
            self._emit(self._stream.push(token_id))

    def finish(self) -> None:
        """Writes what was held back."""
        self._emit(self._stream.finish())

    def _emit(self, text: str) -> None:
        if text:
            self._write(text)


@contextlib.contextmanager
def _captured_output() -> Iterator[tuple[Any, Any]]:
    """Takes what C++ prints off the terminal.

    Yields a text file for the real standard output, and a binary file with what C++ logged to
    standard error; what it prints to standard output (each token's spelling and a report) goes
    nowhere.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    stdout, stderr = os.dup(1), os.dup(2)
    with (
        open(stdout, "w", encoding="utf-8", errors="replace") as real,
        tempfile.TemporaryFile() as log,
        open(os.devnull, "wb") as nowhere,
    ):
        try:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(log.fileno(), 2)
            yield real, log
        finally:
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            os.close(stderr)


def _read_log(log: Any) -> str:
    end = log.seek(0, os.SEEK_END)
    log.seek(0)
    text = log.read().decode("utf-8", errors="replace")
    log.seek(end)
    return text


def _cause(text: str) -> str:
    """The last lines of the runner's log, for a message."""
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n  ".join(["The runner's log ends with:", *lines[-_LOG_LINES:]])


def _check_room(prompt_tokens: int, context: int | None, sampling: Sampling) -> None:
    if sampling.max_new_tokens < 1:
        raise UserError(
            f"--max-new-tokens {sampling.max_new_tokens} asks for no token.",
            instead="Write 1 or more.",
        )
    limit, name = context, "cache positions that the program has"
    if sampling.seq_len is not None and (limit is None or sampling.seq_len < limit):
        limit, name = sampling.seq_len, "tokens that --seq-len allows"
    if limit is not None and prompt_tokens >= limit:
        raise UserError(
            f"The prompt has {prompt_tokens} tokens, which leaves none of the {limit} {name} for an"
            " answer.",
            instead="Shorten the prompt, or export with a larger `max_cache_len`.",
        )


def _mentioned(program: str, names: Iterable[str]) -> list[str]:
    """Which names of operators, namespaces or backends are in a program.

    They are strings of the flatbuffer, which comes before the segments of data and whose size is in
    the extended header. Parsing it takes seconds of imports; looking for the bytes does not.
    """
    with open(program, "rb") as file:
        head = file.read(32)
        size = int.from_bytes(head[16:24], "little") if head[8:12] == b"eh00" else -1
        file.seek(0)
        text = file.read(size)
    return [name for name in names if name.encode() in text]


def generate(
    program: str,
    data: str | None,
    tokenizer: RunnerTokenizer,
    prompt: str,
    eos_ids: frozenset[int],
    sampling: Sampling,
) -> tuple[list[int], Timing]:
    """Answers a prompt and streams the text to standard output.

    Args:
        program: path of the `.pte`.
        data: path of its `.ptd`, if it has one.
        tokenizer: of the model.
        prompt: exactly as the model is to read it, special tokens spelled out.
        eos_ids: ids that end the answer; the program's `get_eos_ids` are the same.
        sampling: how.

    Returns:
        the ids of the answer, and the timing.

    Raises:
        UserError: the runner cannot load the program or the tokenizer, the prompt leaves no room
            for an answer, or the program fails.
    """
    prompt_tokens = len(tokenizer.encode(prompt, add_special_tokens=False))
    if prompt_tokens == 0:
        raise UserError("The prompt is empty.", instead="Write some text after --prompt.")
    timing = Timing()
    found: dict[str, float] = {}

    def keep(stats: Any) -> None:
        found["prompt"] = stats.num_prompt_tokens
        found["load"] = (stats.model_load_end_ms - stats.model_load_start_ms) / 1000
        found["prefill"] = (stats.prompt_eval_end_ms - stats.inference_start_ms) / 1000

    with tempfile.TemporaryDirectory(prefix="rules_executorch-") as folder:
        tokenizer_path = os.path.join(folder, "tokenizer.json")
        tokenizer.write(tokenizer_path)
        with _captured_output() as (out, log):
            from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

            from rules_executorch.program.ptd import check_data

            prepare_runtime(_mentioned(program, library_backends()))
            load_operators_of(_mentioned(program, NAMESPACES))
            started = time.perf_counter()
            try:
                runner = TextLLMRunner(program, tokenizer_path, data)
            except RuntimeError as error:
                check_data(program, data)
                raise UserError(
                    f"ExecuTorch's runner cannot load {program}: {error}.",
                    instead="Lower the model for a backend that runs on this machine, and use a"
                    f" byte-level BPE tokenizer.json. {_cause(_read_log(log))}",
                ) from error
            loaded = time.perf_counter() - started
            context = _CONTEXT.search(_read_log(log))
            _check_room(prompt_tokens, int(context[1]) if context else None, sampling)

            def write(text: str) -> None:
                out.write(text)
                out.flush()

            answer = Answer(tokenizer, eos_ids, write, runner.stop)
            options = GenerationConfig(
                echo=False,
                max_new_tokens=sampling.max_new_tokens,
                seq_len=-1 if sampling.seq_len is None else sampling.seq_len,
                temperature=sampling.temperature,
            )
            try:
                runner.generate(prompt, options, answer.piece, keep)
            except RuntimeError as error:
                check_data(program, data)
                raise UserError(
                    f"ExecuTorch's runner failed on {program}: {error}.",
                    instead="Check the program with `inspect`, and that its backend runs here."
                    f" {_cause(_read_log(log))}",
                ) from error
            answer.finish()
            write("\n")
    timing.load = loaded + found.get("load", 0.0)
    timing.prompt_tokens = int(found.get("prompt", prompt_tokens))
    timing.prefill = found.get("prefill", 0.0)
    timing.first_token = found.get("prefill", 0.0)
    timing.generated_tokens = len(answer.ids)
    timing.decode = answer.last_at - answer.first_at
    timing.beyond_tokenizer = answer.beyond_tokenizer
    if timing.prompt_tokens != prompt_tokens:
        print(
            f"\nWARNING: the tokenizer of ExecuTorch's runner made {timing.prompt_tokens} tokens of"
            f" the prompt, and the `tokenizers` library makes {prompt_tokens}: the program did not"
            " read what the model was trained to read.",
            file=sys.stderr,
        )
    return answer.ids, timing
