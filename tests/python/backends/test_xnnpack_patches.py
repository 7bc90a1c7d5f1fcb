"""One run of the passes serves every delegate of a structure, and only where it may."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable

import pytest
import torch
from executorch.backends.xnnpack import xnnpack_preprocess
from executorch.backends.xnnpack.partition.graphs import bilinear_2d, sdpa
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.backend_details import PreprocessResult
from torch.export import ExportedProgram

from rules_executorch.backends.xnnpack import patterns
from rules_executorch.backends.xnnpack.delegate_keys import describe
from rules_executorch.backends.xnnpack.flatbuffers import single_compilation
from rules_executorch.backends.xnnpack.shared_passes import shared_xnnpack_passes
from rules_executorch.backends.xnnpack.weights import borrowed_weights
from rules_executorch.compat.weights import BorrowedData


class _Blocks(torch.nn.Module):
    """Equal blocks that the partitioner keeps apart, because it does not take `erf`."""

    def __init__(self, slopes: tuple[float, ...], fused: bool = False) -> None:
        super().__init__()
        self.slopes = slopes
        self.linears = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in slopes)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(4) for _ in slopes if fused)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        for index, (slope, linear) in enumerate(zip(self.slopes, self.linears, strict=True)):
            value = linear(value)
            if self.norms:
                value = self.norms[index](value)
            value = torch.erf(torch.nn.functional.leaky_relu(value, slope))
        return value


Preprocess = Callable[[ExportedProgram, list], PreprocessResult]


def _lower(module: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> tuple[list, int]:
    """Lower with the passes shared.

    Returns:
        The programs of the delegates, and how often the passes ran.
    """
    seen: list[ExportedProgram] = []
    runs = 0
    stock = xnnpack_preprocess.XNNPACKPassManager

    class Counting(stock):
        def transform(self) -> ExportedProgram:
            nonlocal runs
            runs += 1
            return super().transform()

    monkeypatch.setattr(xnnpack_preprocess, "XNNPACKPassManager", Counting)
    module.eval().requires_grad_(False)
    with torch.no_grad(), shared_xnnpack_passes():
        preprocess: Preprocess = XnnpackBackend.preprocess

        def recording(program: ExportedProgram, specs: list) -> PreprocessResult:
            seen.append(program)
            return preprocess(program, specs)

        monkeypatch.setattr(XnnpackBackend, "preprocess", staticmethod(recording))
        program = torch.export.export(module, (torch.zeros(2, 4),), strict=True)
        to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        monkeypatch.undo()
    return seen, runs


def test_equal_delegates_share_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    programs, runs = _lower(_Blocks((0.1, 0.1, 0.1)), monkeypatch)
    # The first takes an input of the model, which has no source.
    assert (len(programs), runs) == (3, 2)
    assert len({describe(program).key for program in programs[1:]}) == 1
    assert len({describe(program).targets for program in programs}) == 3


def test_a_literal_tells_delegates_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    programs, runs = _lower(_Blocks((0.1, 0.1, 0.2)), monkeypatch)
    assert (len(programs), runs) == (3, 3)
    assert len({describe(program).key for program in programs}) == 3


def test_passes_that_compute_weights_run_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    programs, runs = _lower(_Blocks((0.1, 0.1, 0.1), fused=True), monkeypatch)
    assert len({describe(program).key for program in programs}) == 2
    # One run for each structure finds out, and then one for each delegate.
    assert (len(programs), runs) == (3, 5)


def test_every_pattern_has_the_operators_looked_for() -> None:
    for graphs, operators in (
        (bilinear_2d.get_graphs(), patterns.UPSAMPLE),
        (sdpa.get_graphs(), patterns.ATTENTION),
    ):
        assert graphs
        for pattern in graphs:
            names = {getattr(node.target, "__name__", None) for node in pattern.graph.nodes}
            assert operators <= names


def test_a_delegate_alone_is_serialized_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    programs, _ = _lower(_Blocks((0.1,)), monkeypatch)
    stock = XnnpackBackend.preprocess(copy.deepcopy(programs[0]), []).processed_bytes
    with single_compilation():
        ours = XnnpackBackend.preprocess(copy.deepcopy(programs[0]), []).processed_bytes
    assert ours == stock


def test_a_borrowed_weight_is_its_bytes() -> None:
    tensor = torch.arange(6, dtype=torch.float32)
    expected = tensor.numpy().tobytes()
    data = BorrowedData(tensor.untyped_storage())
    assert len(data) == 24
    assert data.to_bytes() == expected
    assert data.prefix(5) == expected[:5]
    assert data.sha256() == hashlib.sha256(expected).digest()


def test_weights_are_borrowed_not_copied() -> None:
    module = torch.nn.Linear(8, 8).eval().requires_grad_(False)
    with torch.no_grad(), borrowed_weights():
        program = torch.export.export(module, (torch.zeros(2, 8),), strict=True)
        edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    buffers = edge._named_data_store.buffers
    borrowed = [buffer for buffer in buffers if isinstance(buffer, BorrowedData)]
    assert {buffer._view.nbytes for buffer in borrowed} == {256, 32}
