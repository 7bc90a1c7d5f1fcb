"""An operator kept whole is run in its parts once for each kind of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.export import exported_program

from rules_executorch.compat.composites import remembered_composites

# Torch itself remembers results of its own operators, and not of others.
_LIBRARY = torch.library.Library("rules_executorch_test", "DEF")
_LIBRARY.define("widen(Tensor value, int times) -> Tensor")
_LIBRARY.impl("widen", lambda value, times: value.repeat(1, times), "CompositeImplicitAutograd")
_WIDEN = torch.ops.rules_executorch_test.widen.default


class _Widening(torch.nn.Module):
    """Three calls of an operator, two of them with the same kind of arguments."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return _WIDEN(value, 2) + _WIDEN(value + 1, 2) + _WIDEN(value, 1).sum()


def _decompose(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[str]]:
    """Decompose with the operator kept whole.

    Returns:
        What each node is and gives, and the operators that were run in their parts.
    """
    ran: list[str] = []
    stock = exported_program.register_op_impl

    def register(operator: Any) -> Callable[..., Any]:
        def keep(run: Callable[..., Any]) -> Any:
            def counted(mode: Any, called: Any, *args: Any, **kwargs: Any) -> Any:
                ran.append(called.name())
                return run(mode, called, *args, **kwargs)

            return stock(operator)(counted)

        return keep

    length = torch.export.Dim("length", min=2, max=64)
    with torch.no_grad(), monkeypatch.context() as counting:
        program = torch.export.export(
            _Widening().eval(), (torch.zeros(3, 4),), dynamic_shapes=({0: length},), strict=True
        )
        counting.setattr(exported_program, "register_op_impl", register)
        program = program.run_decompositions({})
    nodes = [
        (node.name, node.op, str(node.target), str(node.args), str(node.meta.get("val")))
        for node in program.graph.nodes
    ]
    return nodes, ran


def test_equal_calls_run_once_and_give_the_same_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    stock, stock_ran = _decompose(monkeypatch)
    with remembered_composites():
        ours, ran = _decompose(monkeypatch)
    assert ours == stock
    # Each graph is run twice: to see what it changes, and to trace it.
    assert stock_ran.count(_WIDEN.name()) == 6
    assert ran.count(_WIDEN.name()) == 2


def test_a_result_that_is_an_argument_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    mode = torch._subclasses.FakeTensorMode()
    ran = 0

    def same(mode: Any, operator: Any, value: torch.Tensor) -> torch.Tensor:
        nonlocal ran
        ran += 1
        return value

    kept: list[Callable[..., Any]] = []
    monkeypatch.setattr(exported_program, "register_op_impl", lambda operator: kept.append)
    operator = torch.ops.aten.contiguous.default
    with remembered_composites():
        exported_program.register_op_impl(operator)(same)
        with mode:
            values = [torch.zeros(2, 3) for _ in range(2)]
        results = [kept[0](mode, operator, value) for value in values]
    assert ran == 2
    assert all(result is value for result, value in zip(results, values, strict=True))
