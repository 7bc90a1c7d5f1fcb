"""Decompositions left out where there is nothing to decompose.

Rests on `executorch/exir/program/_program.py` (`_gen_edge_manager_for_partitioners`), which
decomposes a program three times: to make it functional, with what the partitioner wants kept,
and with what is then left. Often nothing is left, and the whole graph is traced again for it.
Each time the table of all decompositions is made anew, by `_collect_all_valid_cia_ops` of
`torch/_export/utils.py`.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Container, Iterator
from typing import Any

import torch
from executorch.exir.program import _program
from torch._export import utils
from torch.export import ExportedProgram, decomp_utils, exported_program

from rules_executorch.compat.patch import replaced


def _named(program: ExportedProgram, table: Container[Any]) -> set[Any]:
    """The operators of a table that graphs of the program, nested ones included, call."""
    return {
        node.target
        for module in program.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
        if node.op == "call_function" and node.target in table
    }


@contextlib.contextmanager
def needed_decompositions() -> Iterator[None]:
    """Return a program as it is if it was just decomposed and nothing of it would change.

    Nothing changes if the table names no operator of the graph but those that the same table
    left there before, such as sizes. Only while the edge programs are generated: that code takes
    all its tables from one source, and keeps no reference to the program it decomposes, so a
    copy is not needed.
    """
    stock_generate = _program._gen_edge_manager_for_partitioners
    stock_decompose = ExportedProgram.run_decompositions

    @functools.wraps(stock_generate)
    def generate(*args: Any, **kwargs: Any) -> Any:
        left: weakref.WeakKeyDictionary[ExportedProgram, set[Any]] = weakref.WeakKeyDictionary()

        def decompose(
            self: ExportedProgram, decomp_table: Any = None, **options: Any
        ) -> ExportedProgram:
            if decomp_table is None or options:
                return stock_decompose(self, decomp_table, **options)
            if self in left and _named(self, decomp_table) <= left[self]:
                return self
            # Decomposing empties some tables, so what it names is kept beforehand.
            names = set(decomp_table)
            result = stock_decompose(self, decomp_table)
            left[result] = _named(result, names)
            return result

        with replaced(ExportedProgram, "run_decompositions", decompose):
            return stock_generate(*args, **kwargs)

    with replaced(_program, "_gen_edge_manager_for_partitioners", generate):
        yield


@contextlib.contextmanager
def single_registration() -> Iterator[None]:
    """Bring the operators of C++ into `torch.ops` once for each table, not for each namespace."""
    stock_collect = utils._collect_all_valid_cia_ops
    stock_materialize = utils._materialize_cpp_cia_ops
    fresh = False

    def collect() -> set[Any]:
        nonlocal fresh
        stock_materialize()
        fresh = True
        try:
            return stock_collect()
        finally:
            fresh = False

    def materialize() -> None:
        if not fresh:
            stock_materialize()

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(utils, "_materialize_cpp_cia_ops", materialize))
        for owner in (utils, decomp_utils, exported_program):
            stack.enter_context(replaced(owner, "_collect_all_valid_cia_ops", collect))
        yield
