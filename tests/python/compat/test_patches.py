"""Patches apply where they were checked, report where they were not, and leave no trace."""

from __future__ import annotations

import copy
import gc
import importlib
import pickle
from typing import Any

import pytest
import torch
from executorch.backends.xnnpack import xnnpack_preprocess
from executorch.backends.xnnpack._passes.convert_to_sdpa import ConvertToSDPAPass
from executorch.backends.xnnpack._passes.convert_to_upsample_bilinear2d import (
    ConvertToUpsampleBilinear2d,
)
from executorch.backends.xnnpack.operators import node_visitor
from executorch.exir import lowered_backend_module
from executorch.exir._serialize import _dataclass
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend import backend_api
from executorch.exir.backend.canonical_partitioners import group_partitioner
from executorch.exir.backend.canonical_partitioners.group_partitioner import GroupBasedPartitioner
from executorch.exir.emit import _emitter
from executorch.exir.pass_base import _ExportPassBase
from executorch.exir.program import _program
from torch._export import utils as export_utils
from torch.export import ExportedProgram, exported_program
from torch.fx import GraphModule, symbolic_trace, traceback
from torch.fx.experimental.sym_node import SymNode
from torch.utils import _pytree

from rules_executorch import compat
from rules_executorch.backends import find_backend
from rules_executorch.compat import patch as patches
from rules_executorch.compat import recompile

XNNPACK = find_backend("xnnpack").patches
DELEGATE = importlib.import_module("torch._higher_order_ops.executorch_call_delegate")
PATCHED: list[tuple[Any, str]] = [
    (GraphModule, "recompile"),
    (GraphModule, "__str__"),
    (lowered_backend_module, "legalize_graph"),
    (backend_api, "_create_partitions_in_graph_module"),
    (backend_api, "_partition_and_lower_one_graph_module"),
    (xnnpack_preprocess, "ExportedProgram"),
    (xnnpack_preprocess, "XNNPACKPassManager"),
    (xnnpack_preprocess.XnnpackBackend, "preprocess"),
    (xnnpack_preprocess.XnnpackBackend, "copy_exported_program_for_preprocess"),
    (traceback, "copy"),
    (torch.fx.Interpreter, "call_function"),
    (SymNode, "_mul"),
    (SymNode, "_eq"),
    (group_partitioner, "_DependencyViewer"),
    (GroupBasedPartitioner, "_can_merge_partitions"),
    (GroupBasedPartitioner, "_merge_partitions"),
    (node_visitor, "get_param_tensor"),
    (node_visitor, "bytes"),
    (NamedDataStore, "add_named_data"),
    (_emitter, "bytes"),
    (_emitter._Emitter, "_save_new_const_tensor"),
    (_dataclass, "get_type_hints"),
    (ExportedProgram, "run_decompositions"),
    (_program, "_gen_edge_manager_for_partitioners"),
    (backend_api, "create_exported_program_from_submodule"),
    (_pytree, "tree_map"),
    (_pytree, "is_namedtuple_class"),
    (_ExportPassBase.ExportTracer, "set_metadata"),
    (export_utils, "_materialize_cpp_cia_ops"),
    (exported_program, "_collect_all_valid_cia_ops"),
    (exported_program, "register_op_impl"),
    (xnnpack_preprocess, "serialize_xnnpack_binary"),
    (xnnpack_preprocess.XnnpackBackend, "preprocess_multimethod"),
    (ConvertToSDPAPass, "call"),
    (ConvertToUpsampleBilinear2d, "call"),
    (DELEGATE, "call_delegate_cpu"),
]


def _snapshot() -> list[Any]:
    settings = [gc.get_threshold(), gc.get_freeze_count() > 0]
    return settings + [vars(owner).get(name) for owner, name in PATCHED]


def test_all_apply_here() -> None:
    with compat.fast_lowering(XNNPACK) as report:
        assert report.active == [patch.name for patch in (*compat.PATCHES, *XNNPACK)]
        assert report.skipped == {}


def test_everything_is_put_back() -> None:
    before = _snapshot()
    with compat.fast_lowering(XNNPACK):
        assert _snapshot() != before
    assert _snapshot() == before


def test_everything_is_put_back_after_an_error() -> None:
    before = _snapshot()
    with pytest.raises(ValueError, match="body"), compat.fast_lowering(XNNPACK):
        raise ValueError("body")
    assert _snapshot() == before


@pytest.mark.parametrize("patch", (*compat.PATCHES, *XNNPACK), ids=lambda patch: patch.name)
def test_each_patch_is_put_back(patch: compat.Patch) -> None:
    before = _snapshot()
    with pytest.raises(ValueError, match="body"), patch.apply():
        raise ValueError("body")
    assert _snapshot() == before


@pytest.mark.parametrize("distribution", ["torch", "executorch"])
def test_an_unknown_version_takes_the_stock_path(
    distribution: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    known = patches.installed_version
    monkeypatch.setattr(
        patches, "installed_version", lambda name: "9.9.9" if name == distribution else known(name)
    )
    before = _snapshot()
    with caplog.at_level("WARNING"), compat.fast_lowering() as report:
        assert _snapshot() == before
    assert report.active == []
    assert set(report.skipped) == {patch.name for patch in compat.PATCHES}
    assert all(f"{distribution} 9.9.9" in reason for reason in report.skipped.values())
    assert "9.9.9" in caplog.text


def test_a_missing_distribution_takes_the_stock_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "installed_version", lambda name: None)
    with compat.fast_lowering() as report:
        assert report.active == []
    assert report.skipped[compat.PATCHES[0].name] == "torch is not installed"


def test_a_patch_that_does_not_fit_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        return patches.replaced(torch, "no_such_function", None)

    misfit = compat.Patch("misfit", "none", missing)
    monkeypatch.setattr(compat, "PATCHES", (misfit, *compat.PATCHES))
    with compat.fast_lowering() as report:
        assert "misfit" not in report.active
        assert len(report.active) == len(compat.PATCHES) - 1
    assert "no_such_function" in report.skipped["misfit"]


def test_the_local_part_of_a_version_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches.importlib.metadata, "version", lambda name: "2.13.0+cpu")
    assert patches.installed_version("torch") == "2.13.0"


def test_replaced_removes_what_was_only_inherited() -> None:
    class Base:
        value = 1

    class Derived(Base):
        pass

    with patches.replaced(Derived, "value", 2) as before:
        assert (before, Derived.value) == (1, 2)
    assert "value" not in vars(Derived)


def _edited() -> GraphModule:
    """A module whose graph was changed to multiply and is pending."""
    module = symbolic_trace(lambda value: value + value)
    for node in module.graph.nodes:
        if node.op == "call_function":
            node.target = torch.mul
    module.recompile()
    return module


def test_deferred_code_is_there_when_called() -> None:
    with recompile.deferred_recompile():
        module = _edited()
        assert recompile.is_pending(module)
        assert module(torch.tensor(3.0)) == 9
        assert not recompile.is_pending(module)


def test_deferred_code_is_there_when_read() -> None:
    with recompile.deferred_recompile():
        assert "mul" in _edited().code
        assert "mul" in str(_edited())
        assert "mul" in _edited().recompile().src
        assert _edited().forward(torch.tensor(3.0)) == 9


def test_deferred_code_outlives_the_context() -> None:
    with recompile.deferred_recompile():
        called, read, pickled, copied = (_edited() for _ in range(4))
    assert called(torch.tensor(3.0)) == 9
    assert "mul" in read.code
    assert pickle.loads(pickle.dumps(pickled))(torch.tensor(3.0)) == 9
    assert copy.deepcopy(copied)(torch.tensor(3.0)) == 9


def test_deferred_code_is_pickled_inside_the_context() -> None:
    with recompile.deferred_recompile():
        assert pickle.loads(pickle.dumps(_edited()))(torch.tensor(3.0)) == 9


def test_a_later_edit_is_seen() -> None:
    with recompile.deferred_recompile():
        module = _edited()
        assert module(torch.tensor(3.0)) == 9
        for node in module.graph.nodes:
            if node.op == "call_function":
                node.target = torch.add
        module.recompile()
        assert module(torch.tensor(3.0)) == 6
