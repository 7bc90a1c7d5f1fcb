"""A program against the eager model: logits position by position, and greedy tokens.

The reference is the transformers model without a cache, run once over the whole sequence, so it
shares nothing with the static cache under test. Prompts are random token ids of a fixed seed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import torch

from rules_executorch.backends import prepare_runtime
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import build_model, load_weights
from rules_executorch.export.positions import fix_positions
from rules_executorch.export.quantize import dequantized_weight
from rules_executorch.program.operator_libraries import load_operators_of

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from rules_executorch.checkpoint.stored_weights import Weights
    from rules_executorch.export.build import Dtype
    from rules_executorch.export.signature import QuantizedWeight, Signature

DEFAULT_TOLERANCE = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""Largest difference of a logit, by the program's dtype, as a share of the largest logit."""


class Program(Protocol):
    """Something that runs the method `forward`: inputs in order to logits."""

    def __call__(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Runs `tokens`, `input_ids` or `inputs_embeds`, at `positions`, int64 (sequence,)."""


@dataclasses.dataclass(frozen=True)
class Walk:
    """A way through one sequence from position 0: how many tokens each call takes."""

    name: str
    chunks: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Difference:
    """One position of one walk.

    Attributes:
        position: index in the sequence.
        chunk: tokens of the call that gave the logits.
        difference: largest absolute difference over batch and vocabulary; infinite for NaN.
        allowed: what the tolerance allows there.
    """

    walk: str
    position: int
    chunk: int
    difference: float
    allowed: float

    def fits(self) -> bool:
        """Whether the logits agree."""
        return self.difference <= self.allowed


@dataclasses.dataclass(frozen=True)
class Step:
    """One greedy step: the ids of program and reference, and how far apart their logits are.

    Attributes:
        margin: how much the reference prefers its own id over the program's.
        allowed: the margin that the tolerance makes meaningless.
    """

    position: int
    program_id: int
    reference_id: int
    margin: float
    allowed: float

    def fits(self) -> bool:
        """Whether the ids agree, or differ by less than the tolerance can tell apart."""
        return self.program_id == self.reference_id or self.margin <= self.allowed


@dataclasses.dataclass(frozen=True)
class Parity:
    """The outcome.

    Attributes:
        differences: every compared position, in the order they ran.
        steps: greedy steps.
        resets: whether a repeated walk gave the same bits as the first time, with other
            sequences run in between.
    """

    differences: list[Difference]
    steps: list[Step]
    resets: bool

    def failure(self) -> str | None:
        """A sentence on the first disagreement, or None."""
        for found in self.differences:
            if not found.fits():
                return (
                    f"The logits at position {found.position} differ from eager by "
                    f"{found.difference:.3g}, and {found.allowed:.3g} is allowed (walk "
                    f"{found.walk!r}, {found.chunk} tokens at once)."
                )
        for step in self.steps:
            if not step.fits():
                return (
                    f"The greedy token after position {step.position} is {step.program_id}, and "
                    f"eager gives {step.reference_id}, which it prefers by {step.margin:.3g}; "
                    f"{step.allowed:.3g} is allowed."
                )
        if not self.resets:
            return "A sequence gives other logits when it is run again: state is left over."
        return None


class RuntimeProgram:
    """The method `forward` of a `.pte`, executed by the runtime of the toolchain."""

    def __init__(self, path: str, data_path: str | None = None) -> None:
        """Loads a program.

        Raises:
            UserError: it is not a program, this machine's runtime lacks its backend, or the data
                file is missing or another program's.
        """
        from executorch.runtime import Runtime
        from rules_executorch.program.inspect import inspect_program
        from rules_executorch.program.ptd import check_data

        info = inspect_program(path)
        check_data(path, data_path)
        prepare_runtime(info.methods["forward"].delegates)
        runtime = Runtime.get()
        for backend in info.methods["forward"].delegates:
            if not runtime.backend_registry.is_available(backend):
                raise UserError(
                    f"{path} needs the backend {backend}, which the runtime of this machine does "
                    "not have.",
                    instead="Compare a program for a backend that runs here, such as xnnpack.",
                )
        load_operators_of(info.methods["forward"].operators)
        # Older runtimes read no data files, and know no such argument.
        data = {} if data_path is None else {"data_path": data_path}
        self._program = runtime.load_program(path, **data)
        self._method = self._program.load_method("forward")

    def outputs(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Runs the method on its inputs, in order; gives its outputs."""
        return list(self._method.execute(list(inputs)))

    def run(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Runs the method on its inputs, in order; gives its only output."""
        return self.outputs(*inputs)[0]

    def __call__(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.run(tokens, positions)


class Eager:
    """The transformers model of a checkpoint, without a cache."""

    def __init__(
        self,
        config: PreTrainedConfig,
        weights: Weights,
        dtype: Dtype,
        quantized: Sequence[QuantizedWeight] = (),
        max_cache_len: int = 0,
    ) -> None:
        """Builds the model and gives it the checkpoint's weights.

        Args:
            config: of the checkpoint.
            weights: of the checkpoint.
            dtype: of the model.
            quantized: weights that the program has quantized, as its signature lists them. The
                reference has what they are worth then, in floating point, so that a difference is
                one of the program and not of the scheme.
            max_cache_len: of the program; rotary frequencies that depend on a length are chosen
                for it, as the program's are.
        """
        self.model = build_model(config, dtype)
        fix_positions(self.model, max_cache_len)
        load_weights(self.model, weights, dtype)
        for how in quantized:
            layer = self.model.get_submodule(how.name.rpartition(".")[0])
            value = dequantized_weight(layer.weight.detach(), how)
            layer.weight = torch.nn.Parameter(value, requires_grad=False)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Embeddings, (batch, sequence, hidden size), of ids, int64 (batch, sequence)."""
        with torch.no_grad():
            return self.model.get_input_embeddings()(ids)

    def logits(self, tokens: torch.Tensor, positions: Sequence[int]) -> torch.Tensor:
        """Logits, float32 (batch, positions, vocabulary), at some positions of a sequence.

        Args:
            tokens: ids, (batch, sequence), or embeddings, (batch, sequence, hidden size).
            positions: which logits to give.
        """
        form = "inputs_embeds" if tokens.is_floating_point() else "input_ids"
        with torch.no_grad():
            found = self.model(
                **{form: tokens},
                use_cache=False,
                logits_to_keep=torch.tensor(list(positions)),
            )
        return found.logits.float()


def walks(signature: Signature, window: int | None, length: int) -> list[Walk]:
    """The ways through a sequence that a program has to get right.

    Args:
        signature: of the export.
        window: of the sliding layers, if there are any.
        length: positions of the sequence, at most the cache's.

    Returns:
        Prefills of several lengths; two chunks and then single tokens; and, token by token around
        the window and in chunks elsewhere, the whole sequence. A program of fixed length gets the
        whole sequence only.
    """
    bound = signature.max_seq_len
    if not signature.dynamic_dims:
        return [Walk(f"steps of {bound}", (bound,) * (length // bound))]
    found = [
        Walk(f"prefill {size}", (size,))
        for size in sorted({1, 2, 7, bound - 1, bound})
        if 0 < size <= min(bound, length)
    ]
    half = min(bound, length // 3)
    if half > 1:
        singles = min(5, length - 2 * half + 1)
        found.append(Walk("two chunks, then decode", (half, half - 1) + (1,) * singles))
    found.append(Walk("whole cache", tuple(_through(length, bound, window))))
    return found


def _through(length: int, bound: int, window: int | None) -> Iterator[int]:
    """Chunks that fill a sequence, single tokens for the last ones and around the window."""
    singles = {length - 2, length - 1}
    if window is not None:
        singles |= set(range(window - 2, window + 3))
    position = 0
    while position < length:
        end = min([length, position + bound, *(s for s in singles if s > position)])
        yield 1 if position in singles else end - position
        position += 1 if position in singles else end - position


def compare(
    program: Program,
    eager: Eager,
    signature: Signature,
    *,
    tolerance: float,
    window: int | None = None,
    length: int | None = None,
    steps: int = 8,
    seed: int = 0,
) -> Parity:
    """Compares a program with the eager model.

    Args:
        program: runs the program.
        eager: the reference.
        signature: of the export.
        tolerance: largest difference of a logit, as a share of the largest logit at the position.
        window: of the sliding layers, if there are any.
        length: positions to go to; the cache's by default.
        steps: greedy steps.
        seed: of the prompts.
    """
    length = min(length or signature.static_cache.max_cache_len, _longest(signature))
    ways = walks(signature, window, length)
    sequence = _Sequence(program, eager, signature, tolerance)
    ids = _random_ids(signature, length, seed)
    tokens = eager.embed(ids) if signature.options.input_form == "inputs_embeds" else ids
    differences: list[Difference] = []
    first: list[torch.Tensor] = []
    for way in ways:
        found, outputs = sequence.run(way, tokens)
        differences += found
        first = first or outputs
    other = _random_ids(signature, length, seed + 1)
    other = eager.embed(other) if tokens is not ids else other
    sequence.run(ways[-1], other)
    _, again = sequence.run(ways[0], tokens)
    resets = all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    return Parity(differences, sequence.greedy(ids, steps), resets)


def _longest(signature: Signature) -> int:
    """Positions that a program can be driven to: a fixed length only goes in whole steps."""
    length = signature.static_cache.max_cache_len
    return length if signature.dynamic_dims else length - length % signature.max_seq_len


def _random_ids(signature: Signature, length: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (signature.static_cache.batch_size, length)
    return torch.randint(signature.vocab_size, shape, generator=generator)


class _Sequence:
    """Drives a program through sequences and holds the reference beside it."""

    def __init__(
        self, program: Program, eager: Eager, signature: Signature, tolerance: float
    ) -> None:
        self._program = program
        self._eager = eager
        self._all = signature.options.logits == "all"
        self._fixed = None if signature.dynamic_dims else signature.max_seq_len
        self._bound = signature.max_seq_len
        self._embeds = signature.options.input_form == "inputs_embeds"
        self._room = signature.static_cache.max_cache_len
        self._tolerance = tolerance

    def run(self, walk: Walk, tokens: torch.Tensor) -> tuple[list[Difference], list[torch.Tensor]]:
        """Runs one walk; gives the difference at each position it has logits for."""
        outputs, compared, start = [], [], 0
        for chunk in walk.chunks:
            end = start + chunk
            logits = self._program(tokens[:, start:end].contiguous(), torch.arange(start, end))
            outputs.append(logits.clone())
            compared += [(p, chunk) for p in (range(start, end) if self._all else (end - 1,))]
            start = end
        expected = self._eager.logits(tokens[:, :start], [position for position, _ in compared])
        got = torch.cat(outputs, dim=1).float()
        differences = []
        for index, (position, chunk) in enumerate(compared):
            difference = (got[:, index] - expected[:, index]).abs()
            largest = expected[:, index].abs().max().item()
            worst = difference.max().item() if not difference.isnan().any() else float("inf")
            allowed = self._tolerance * max(1.0, largest)
            differences.append(Difference(walk.name, position, chunk, worst, allowed))
        return differences, outputs

    def greedy(self, ids: torch.Tensor, steps: int) -> list[Step]:
        """Decodes greedily after a short prompt; both sides go on with the reference's tokens."""
        size = self._fixed or min(4, self._bound)
        # A program that takes several positions at once, and only that many, cannot take one step.
        steps = 0 if self._fixed and self._fixed > 1 else min(steps, self._room - size)
        ids = ids[:, :size]
        found, start = [], 0
        for _ in range(steps):
            tokens = self._eager.embed(ids) if self._embeds else ids
            end = ids.shape[1]
            logits = self._program(tokens[:, start:].contiguous(), torch.arange(start, end))
            expected = self._eager.logits(tokens, [end - 1])[:, -1]
            got = logits[:, -1].float()
            chosen = expected.argmax(dim=-1)
            for row, (mine, theirs) in enumerate(zip(got.argmax(dim=-1), chosen, strict=True)):
                margin = (expected[row, theirs] - expected[row, mine]).item()
                allowed = 2 * self._tolerance * max(1.0, expected[row].abs().max().item())
                found.append(Step(end - 1, int(mine), int(theirs), margin, allowed))
            ids, start = torch.cat([ids, chosen[:, None]], dim=1), end
        return found


def render(parity: Parity) -> str:
    """The outcome as a table with one row for each walk, and one line for the greedy tokens."""
    rows = [("walk", "positions", "last", "largest difference", "allowed", "")]
    for name in dict.fromkeys(found.walk for found in parity.differences):
        group = [found for found in parity.differences if found.walk == name]
        worst = max(group, key=lambda found: found.difference / found.allowed)
        verdict = "ok" if worst.fits() else f"differs at {_first_wrong(group)}"
        rows.append(
            (
                name,
                str(len(group)),
                str(group[-1].position),
                f"{worst.difference:.2e}",
                f"{worst.allowed:.2e}",
                verdict,
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i in (0, 5) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    agreed = sum(step.program_id == step.reference_id for step in parity.steps)
    lines.append(f"greedy tokens: {agreed} of {len(parity.steps)} the same")
    lines.append(f"run again: {'the same bits' if parity.resets else 'other logits'}")
    return "\n".join(lines)


def _first_wrong(group: Sequence[Difference]) -> int:
    return next(found.position for found in group if not found.fits())


def sliding_window(config: PreTrainedConfig) -> int | None:
    """The window of a config with sliding layers."""
    from rules_executorch.export.layer_kinds import CHUNKED, SLIDING, layer_kinds

    kinds = layer_kinds(config)
    if SLIDING in kinds:
        return config.sliding_window
    return config.attention_chunk_size if CHUNKED in kinds else None
