"""The tanh form of GELU stays what it is, on XNNPACK too."""

from __future__ import annotations

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from torch.export import ExportedProgram

from executorch.runtime import Runtime
from rules_executorch.backends import find_backend, passes
from rules_executorch.backends.passes.tanh_gelu import spell_out_tanh_gelu

X = torch.linspace(-6, 6, 1024).reshape(1, -1)


class Gelu(torch.nn.Module):
    def __init__(self, approximate: str) -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate=self.approximate)


def exported(approximate: str) -> ExportedProgram:
    return torch.export.export(Gelu(approximate), (X,), strict=True)


def on_xnnpack(program: ExportedProgram) -> torch.Tensor:
    partitioners = find_backend("xnnpack").partitioners({})
    edge = to_edge_transform_and_lower(program, partitioner=partitioners)
    graph = edge.exported_program().graph
    calls = [n for n in graph.nodes if n.op == "call_function" and "gelu" in str(n.target)]
    assert not calls, "not delegated"
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    return method.execute([X])[0]


def test_the_tanh_form_is_spelled_out() -> None:
    program = exported("tanh")
    assert spell_out_tanh_gelu(program) == 1
    assert spell_out_tanh_gelu(program) == 0
    torch.testing.assert_close(program.module()(X), Gelu("tanh")(X), atol=1e-6, rtol=0)


def test_the_other_form_is_left() -> None:
    assert spell_out_tanh_gelu(exported("none")) == 0


def test_xnnpack_computes_it() -> None:
    program = exported("tanh")
    spell_out_tanh_gelu(program)
    assert (on_xnnpack(program) - Gelu("tanh")(X)).abs().max() < 1e-5


def test_xnnpack_alone_does_not() -> None:
    """When this fails, XNNPACK has learnt it and does not need `spell_out_gelu`."""
    assert passes.spell_out_gelu in find_backend("xnnpack").before
    assert (on_xnnpack(exported("tanh")) - Gelu("tanh")(X)).abs().max() == pytest.approx(
        4.7e-4, rel=0.1
    )
