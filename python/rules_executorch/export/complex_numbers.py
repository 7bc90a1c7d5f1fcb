"""Complex numbers as pairs of real ones, for models that rotate positions with them.

ExecuTorch has no complex tensors. Some models of transformers (DeepSeek-V2, Llama 4) multiply
queries and keys, taken as complex numbers, by the points of a circle. While a model is traced, the
three functions of torch that lead to such numbers and back give `Pair`, which computes the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


class Pair:
    """A complex tensor: its real and its imaginary part, of one shape."""

    def __init__(self, real: torch.Tensor, imaginary: torch.Tensor) -> None:
        self.real = real
        self.imag = imaginary

    @property
    def device(self) -> torch.device:
        """Where the parts are."""
        return self.real.device

    def to(self, *args: Any, **kwargs: Any) -> Pair:
        """Moves both parts."""
        return Pair(self.real.to(*args, **kwargs), self.imag.to(*args, **kwargs))

    def unsqueeze(self, dim: int) -> Pair:
        """Adds a dimension to both parts."""
        return Pair(self.real.unsqueeze(dim), self.imag.unsqueeze(dim))

    def __getitem__(self, index: Any) -> Pair:
        return Pair(self.real[index], self.imag[index])

    def __mul__(self, other: Any) -> Pair:
        if isinstance(other, Pair):
            return Pair(
                self.real * other.real - self.imag * other.imag,
                self.real * other.imag + self.imag * other.real,
            )
        return Pair(self.real * other, self.imag * other)


def _polar(length: torch.Tensor, angle: torch.Tensor) -> Pair:
    return Pair(length * torch.cos(angle), length * torch.sin(angle))


def _view_as_complex(pairs: torch.Tensor) -> Pair:
    return Pair(pairs[..., 0], pairs[..., 1])


def _view_as_real(number: Pair) -> torch.Tensor:
    return torch.stack((number.real, number.imag), dim=-1)


@contextlib.contextmanager
def real_numbers_only() -> Iterator[None]:
    """Within it, torch makes no complex tensor; for tracing, not for threads beside it."""
    replaced = {
        "polar": _polar,
        "view_as_complex": _view_as_complex,
        "view_as_real": _view_as_real,
    }
    originals = {name: getattr(torch, name) for name in replaced}
    try:
        for name, function in replaced.items():
            setattr(torch, name, function)
        yield
    finally:
        for name, function in originals.items():
            setattr(torch, name, function)
