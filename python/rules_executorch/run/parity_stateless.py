"""Parity of programs without a cache: the same inputs through the program and through eager."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rules_executorch.export.adapters.stateless import BOXES, MASK, TEXTS, TYPES, build_plain_model
from rules_executorch.export.build import load_weights
from rules_executorch.export.positions import fix_positions
from rules_executorch.run.parity import Difference, Parity, RuntimeProgram

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from rules_executorch.checkpoint.stored_weights import Weights
    from rules_executorch.export.signature import Signature

_SAMPLES = 4


def compare_plain(
    program: RuntimeProgram,
    config: PreTrainedConfig,
    weights: Weights,
    signature: Signature,
    *,
    tolerance: float,
    seed: int = 0,
) -> Parity:
    """Compares a program with the eager model on random inputs.

    Args:
        program: the program.
        config: of the checkpoint.
        weights: of the checkpoint.
        signature: of the export.
        tolerance: largest difference of an output, as a share of the largest output.
        seed: of the inputs.

    Returns:
        One difference for each sample; of texts, the last is padded. No greedy steps.
    """
    model = build_plain_model(config, signature.options.task, signature.dtype)
    load_weights(model, weights, signature.dtype, read=signature.tensors)
    fix_positions(model, signature.max_seq_len)
    names = [tensor.name for tensor in signature.forward.outputs]
    generator = torch.Generator().manual_seed(seed)
    samples = [
        _sample(signature, config, generator, padded=index == _SAMPLES - 1)
        for index in range(_SAMPLES)
    ]
    differences: list[Difference] = []
    first: list[torch.Tensor] = []
    for index, sample in enumerate(samples):
        with torch.no_grad():
            found = model(**sample, return_dict=True)
        got = [output.clone() for output in program.outputs(*sample.values())]
        first = first or got
        length = sample[TEXTS].shape[1] if TEXTS in sample else 1
        for name, output in zip(names, got, strict=True):
            expected, output = found[name].float(), output.float()
            if MASK in sample and expected.shape[1:2] == (length,):
                # What a model says of padding depends on how it masks, and means nothing.
                seen = sample[MASK].bool()
                expected, output = expected[seen], output[seen]
            difference = (output - expected).abs()
            worst = difference.max().item() if not difference.isnan().any() else float("inf")
            allowed = tolerance * max(1.0, expected.abs().max().item())
            walk = f"sample {index + 1}" if len(names) == 1 else f"{name}, sample {index + 1}"
            differences.append(Difference(walk, 0, length, worst, allowed))
    again = program.outputs(*samples[0].values())
    resets = all(torch.equal(a, b) for a, b in zip(again, first, strict=True))
    return Parity(differences, [], resets)


def _sample(
    signature: Signature,
    config: PreTrainedConfig,
    generator: torch.Generator,
    padded: bool,
) -> dict[str, torch.Tensor]:
    batch, length = signature.options.batch_size, signature.max_seq_len

    def whole(below: int, *more: int) -> torch.Tensor:
        return torch.randint(below, (batch, length, *more), generator=generator)

    sample = {}
    for tensor in signature.forward.inputs:
        name = tensor.name
        if name == TEXTS:
            # Ids from 2 on: an id of padding would move the positions behind it.
            sample[name] = 2 + whole(max(1, (signature.vocab_size or 0) - 2))
        elif name == MASK:
            sample[name] = torch.ones(batch, length, dtype=torch.int64)
            if padded:
                sample[name][:, -(length // 3) :] = 0
        elif name == TYPES:
            sample[name] = whole(config.type_vocab_size)
        elif name == BOXES:
            # Left, top, right, bottom: the second corner is not before the first.
            sample[name] = whole(getattr(config, "max_2d_position_embeddings", 1000), 4)
            sample[name] = sample[name].sort(dim=-1).values
        else:
            sample[name] = torch.randn(tensor.shape, generator=generator).to(
                getattr(torch, tensor.dtype)
            )
    return sample
