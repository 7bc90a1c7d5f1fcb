"""Parity of programs without a cache: the same inputs through the program and through eager."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.export.adapters.stateless import TEXTS, build_plain_model
from rules_executorch.export.build import load_weights
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
    task = signature.options.task
    model = build_plain_model(config, task, signature.dtype)
    load_weights(model, weights, signature.dtype, read=signature.tensors)
    generator = torch.Generator().manual_seed(seed)
    samples = [
        _sample(signature, generator, padded=index == _SAMPLES - 1) for index in range(_SAMPLES)
    ]
    differences, outputs = [], []
    for index, sample in enumerate(samples):
        with torch.no_grad():
            expected = getattr(model(**sample, return_dict=True), TASKS[task].output).float()
        got = program.run(*sample.values())
        outputs.append(got.clone())
        difference = (got.float() - expected).abs()
        worst = difference.max().item() if not difference.isnan().any() else float("inf")
        allowed = tolerance * max(1.0, expected.abs().max().item())
        length = sample[TEXTS].shape[1] if TEXTS in sample else 1
        differences.append(Difference(f"sample {index + 1}", 0, length, worst, allowed))
    again = program.run(*samples[0].values())
    return Parity(differences, [], torch.equal(again, outputs[0]))


def _sample(
    signature: Signature, generator: torch.Generator, padded: bool
) -> dict[str, torch.Tensor]:
    inputs = {tensor.name: tensor for tensor in signature.forward.inputs}
    if TEXTS not in inputs:
        return {
            name: torch.randn(tensor.shape, generator=generator).to(getattr(torch, tensor.dtype))
            for name, tensor in inputs.items()
        }
    batch, length = signature.options.batch_size, signature.max_seq_len
    ids = torch.randint(signature.vocab_size, (batch, length), generator=generator)
    mask = torch.ones_like(ids)
    if padded:
        mask[:, -(length // 3) :] = 0
    return {TEXTS: ids, "attention_mask": mask}
