"""Patches apply where sources are known, report where they are not, and leave no trace."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import gc
import importlib
import inspect
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
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
from rules_executorch.common.errors import UserError
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
    with compat.patched_lowering(XNNPACK) as report:
        assert report.active == [patch.name for patch in (*compat.PATCHES, *XNNPACK)]
        assert report.skipped == {}


def test_everything_is_put_back() -> None:
    before = _snapshot()
    with compat.patched_lowering(XNNPACK):
        assert _snapshot() != before
    assert _snapshot() == before


def test_everything_is_put_back_after_an_error() -> None:
    before = _snapshot()
    with pytest.raises(ValueError, match="body"), compat.patched_lowering(XNNPACK):
        raise ValueError("body")
    assert _snapshot() == before


@pytest.mark.parametrize("patch", (*compat.PATCHES, *XNNPACK), ids=lambda patch: patch.name)
def test_each_patch_is_put_back(patch: compat.Patch) -> None:
    before = _snapshot()
    with pytest.raises(ValueError, match="body"), patch.apply():
        raise ValueError("body")
    assert _snapshot() == before


RECOMPILE = next(patch for patch in compat.PATCHES if patch.name == "deferred_recompile")
_RECOMPILED = "torch.fx.graph_module:GraphModule.recompile"


@pytest.fixture
def doctored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another version of one method, where packages are looked for first."""
    module = Path(inspect.getfile(GraphModule))
    text = module.read_text()
    assert text.count("self._code = python_code.src") == 1
    (tmp_path / "torch/fx").mkdir(parents=True)
    changed = text.replace("self._code = python_code.src", "self._code = str(python_code.src)")
    (tmp_path / "torch/fx/graph_module.py").write_text("# Longer than before.\n" + changed)
    monkeypatch.syspath_prepend(tmp_path)
    yield


@pytest.mark.usefixtures("doctored")
def test_a_changed_source_takes_the_stock_path(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING"), compat.patched_lowering(XNNPACK) as report:
        assert GraphModule.recompile is recompile._STOCK_RECOMPILE
    assert set(report.skipped) == {"deferred_recompile"}
    reason = report.skipped["deferred_recompile"]
    assert reason.startswith(f"the source of {_RECOMPILED} differs: ")
    assert reason.endswith(f" instead of {RECOMPILE.replaces[_RECOMPILED]}")
    assert f"without the patch deferred_recompile: {reason}" in caplog.text
    # Others rest on the same file, and on what did not change in it.
    assert "unprinted_partitions" in report.active


def _canonical(**changes: Any) -> compat.Patch:
    made_up = compat.Patch(
        "calm_collector", "rules_executorch.compat.garbage_collection", compat.CANONICAL, "chance"
    )
    return dataclasses.replace(made_up, **changes)


def test_a_canonical_patch_that_does_not_fit_is_an_error() -> None:
    changed = {**RECOMPILE.replaces, _RECOMPILED: "0" * 16}
    misfit = _canonical(replaces=changed, files=dict.fromkeys(RECOMPILE.files, ""))
    before = _snapshot()
    for refusing in (
        lambda: compat.check_canonical([misfit]),
        lambda: contextlib.ExitStack().enter_context(compat.patched_lowering([misfit])),
    ):
        with pytest.raises(UserError) as refused:
            refusing()
        assert f"the source of {_RECOMPILED} differs" in str(refused.value)
        assert "allow_noncanonical = True" in str(refused.value)
    assert _snapshot() == before
    with compat.patched_lowering([misfit], allow_noncanonical=True) as report:
        assert "calm_collector" in report.skipped


def test_a_canonical_patch_whose_package_is_missing_is_an_error() -> None:
    misfit = _canonical(rests_on={"no_such_package.module:name": "0" * 16})
    with pytest.raises(UserError, match="there is no no_such_package.module"):
        compat.check_canonical([misfit])
    compat.check_canonical([dataclasses.replace(misfit, kind=compat.SPEED)])


def test_files_that_are_the_same_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading sources takes half a second, comparing files milliseconds."""

    def look_into(target: str, folders: Any) -> str:
        raise AssertionError(f"{target} was looked into")

    monkeypatch.setattr(patches, "_digest", look_into)
    for patch in (*compat.PATCHES, *XNNPACK, compat.TRACING):
        assert patch.unsuitable() is None


def test_every_patch_says_what_it_is() -> None:
    packages = Path(compat.__file__).parents[1]
    tables = sorted(packages.glob("**/patches.json"))
    names = {path.parent.name for path in tables}
    assert names == {"arm", "coreml", "compat", "mlx", "vulkan", "xnnpack"}
    for path in tables:
        package = ".".join(("rules_executorch", *path.parent.relative_to(packages).parts))
        for patch in compat.read_patches(package).values():
            assert patch.kind in (compat.SPEED, compat.CANONICAL)
            assert (path.parent / f"{patch.module.rpartition('.')[2]}.py").exists()
            if patch.upstream is not None:
                assert re.fullmatch(
                    r"https://github\.com/pytorch/\w+/(issues|pull)/\d+", patch.upstream
                )
            named = {target.partition(":")[0] for target in patch.sources()}
            assert named <= set(patch.files)


@pytest.mark.parametrize("patch", (*compat.PATCHES, *XNNPACK, compat.TRACING), ids=lambda p: p.name)
def test_what_a_patch_puts_in_the_place_of_is_among_its_sources(
    patch: compat.Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(patch.module)
    stock_replaced = getattr(module, "replaced", None)
    taken: list[Any] = []

    @contextlib.contextmanager
    def recording(owner: Any, name: str, value: Any) -> Iterator[Any]:
        stock = vars(owner).get(name)
        taken.append(getattr(stock, "__func__", stock))
        with stock_replaced(owner, name, value) as before:
            yield before

    if stock_replaced is not None:
        monkeypatch.setattr(module, "replaced", recording)
    with patch.apply():
        pass
    for stock in taken:
        if not inspect.isfunction(stock) and not inspect.isclass(stock):
            continue
        if stock.__module__.partition(".")[0] not in ("executorch", "torch"):
            continue
        target = f"{stock.__module__}:{stock.__qualname__}"
        # What is made in a loop, as the operators on symbolic sizes are, is its maker's.
        target = target.partition(".<locals>")[0]
        # Of a class it may be its constructor alone.
        assert target in patch.replaces or f"{target}.__init__" in patch.sources()


def test_a_patch_that_does_not_fit_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        return patches.replaced(torch, "no_such_function", None)

    monkeypatch.setattr(recompile, "missing", missing, raising=False)
    misfit = compat.Patch("missing", recompile.__name__, compat.SPEED, "none")
    monkeypatch.setattr(compat, "PATCHES", (misfit, *compat.PATCHES))
    with compat.patched_lowering() as report:
        assert "missing" not in report.active
        assert len(report.active) == len(compat.PATCHES) - 1
    assert "no_such_function" in report.skipped["missing"]


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
