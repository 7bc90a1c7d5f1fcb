"""The passes of the XNNPACK delegate, run once for each structure of delegate.

Rests on `executorch/backends/xnnpack/xnnpack_preprocess.py` (`XnnpackBackend.preprocess`),
`executorch/backends/xnnpack/_passes/__init__.py` (`XNNPACKPassManager`) and
`executorch/exir/backend/backend_details.py` (`copy_exported_program_for_preprocess`).

The layers of a transformer are the same delegates with other weights. The passes run on a copy
whose weights are fake tensors of a mode of their own: a pass that reads a value, or computes a
new weight, fails or leaves a trace, and that structure takes the stock path. Otherwise the graph
the passes leave serves every delegate of the structure, with its own weights and debug handles.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Hashable, Iterator
from typing import Any

from executorch.backends.xnnpack import xnnpack_preprocess
from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
from executorch.exir.backend.backend_details import PreprocessResult
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram

from rules_executorch.backends.xnnpack.delegate_keys import Structure, UnknownStructure, describe
from rules_executorch.compat.patch import replaced

# Above every debug handle a pass could make up, so that those of the template are told apart.
_HANDLE_BASE = 1 << 40


class _ReadsWeights(Exception):
    """What the passes leave depends on the values of weights, or may do so."""


@dataclasses.dataclass
class _Template:
    """What the passes leave of one structure.

    Attributes:
        program: the program after the passes; its weights and handles are set before each use.
        state: name in its state dict to the position of the weight among the structure's.
        constants: the same for its constants.
        alive: keeps the objects that the key knows by identity.
    """

    program: ExportedProgram
    state: dict[str, int]
    constants: dict[str, int]
    alive: tuple[object, ...]

    def bind(self, program: ExportedProgram, structure: Structure) -> ExportedProgram:
        """Give the template the weights and debug handles of one delegate."""

        def weight(position: int) -> Any:
            target = structure.targets[position]
            stored = program.state_dict
            return stored[target] if target in stored else program.constants[target]

        bound = copy.copy(self.program)
        bound._state_dict = {name: weight(position) for name, position in self.state.items()}
        bound._constants = {name: weight(position) for name, position in self.constants.items()}
        for node in bound.graph.nodes:
            template_handle = node.meta.get("template_handle")
            if template_handle is not None:
                node.meta["debug_handle"] = structure.handles[template_handle]
        return bound


def _with_fake_weights(
    program: ExportedProgram, structure: Structure
) -> tuple[ExportedProgram, dict[int, int]]:
    """Copy a program, with fakes for weights and numbered debug handles.

    Returns:
        The copy, and the position of each weight by the identity of its fake.
    """
    mode = FakeTensorMode()
    memo: dict[int, Any] = {}
    positions: dict[int, int] = {}
    for position, target in enumerate(structure.targets):
        stored = program.state_dict if target in program.state_dict else program.constants
        tensor = stored[target]
        if id(tensor) not in memo:
            fake = memo[id(tensor)] = mode.from_tensor(tensor, static_shapes=True)
            positions[id(fake)] = position
    copied = copy.deepcopy(program, memo)
    numbers = {handle: number for number, handle in enumerate(structure.handles)}
    for node in copied.graph.nodes:
        if "debug_handle" in node.meta:
            node.meta["debug_handle"] = _HANDLE_BASE + numbers[node.meta["debug_handle"]]
    return copied, positions


def _template(
    program: ExportedProgram, positions: dict[int, int], structure: Structure
) -> _Template:
    """Check that no weight's value went into a program, and make it a template.

    Raises:
        _ReadsWeights: it has a weight or a debug handle that is not one of the structure's.
    """

    def placed(tensors: dict[str, Any]) -> dict[str, int]:
        if not all(id(tensor) in positions for tensor in tensors.values()):
            raise _ReadsWeights("a pass computed a weight")
        return {name: positions[id(tensor)] for name, tensor in tensors.items()}

    for node in program.graph.nodes:
        if node.op == "get_attr":
            raise _ReadsWeights("a pass made an attribute")
        if "debug_handle" in node.meta:
            number = node.meta["debug_handle"]
            if type(number) is not int or not 0 <= number - _HANDLE_BASE < len(structure.handles):
                raise _ReadsWeights("a pass made a debug handle")
            node.meta["template_handle"] = number - _HANDLE_BASE
    return _Template(
        program, placed(program.state_dict), placed(program.constants), structure.alive
    )


class _Passes:
    """Stands in for `XNNPACKPassManager` during one call of `preprocess`."""

    def __init__(self, cache: _Cache, stock: Any, arguments: Any) -> None:
        self._cache = cache
        self._stock = stock
        self._arguments = arguments

    def transform(self) -> ExportedProgram:
        delegate = self._cache.delegate
        if delegate is None:
            return self._stock(*self._arguments[0], **self._arguments[1]).transform()
        if delegate.template is None:
            try:
                program = self._stock(*self._arguments[0], **self._arguments[1]).transform()
            except Exception as error:
                raise _ReadsWeights(str(error)) from error
            delegate.template = _template(program, delegate.positions, delegate.structure)
        return delegate.template.bind(delegate.program, delegate.structure)


@dataclasses.dataclass
class _Delegate:
    """The delegate being preprocessed."""

    program: ExportedProgram
    structure: Structure
    template: _Template | None
    positions: dict[int, int]


class _Cache:
    def __init__(self, stock_preprocess: Any, stock_program: Any) -> None:
        self._stock_preprocess = stock_preprocess
        self._stock_program = stock_program
        self._templates: dict[Hashable, _Template | None] = {}
        self.delegate: _Delegate | None = None

    def program(self, *args: Any, **kwargs: Any) -> ExportedProgram:
        """Stands in for the `ExportedProgram` that `preprocess` wraps its input in."""
        if self.delegate is not None and self.delegate.template is not None:
            return self.delegate.template.program
        return self._stock_program(*args, **kwargs)

    def preprocess(self, program: ExportedProgram, compile_specs: list[Any]) -> PreprocessResult:
        """`XnnpackBackend.preprocess` of a program it must not change."""
        try:
            structure = describe(program)
            specs = tuple((spec.key, bytes(spec.value)) for spec in compile_specs)
        except UnknownStructure:
            return self._stock_preprocess(copy.deepcopy(program), compile_specs)
        key = (structure.key, specs)
        template = self._templates.get(key)
        if template is None and key in self._templates:
            return self._stock_preprocess(copy.deepcopy(program), compile_specs)
        positions: dict[int, int] = {}
        copied = program
        try:
            if template is None:
                copied, positions = _with_fake_weights(program, structure)
            self.delegate = _Delegate(program, structure, template, positions)
            result = self._stock_preprocess(copied, compile_specs)
            self._templates[key] = self.delegate.template
            return result
        except _ReadsWeights:
            self._templates[key] = None
        finally:
            self.delegate = None
        return self._stock_preprocess(copy.deepcopy(program), compile_specs)


@contextlib.contextmanager
def shared_xnnpack_passes() -> Iterator[None]:
    """Run the XNNPACK passes once for each structure, and copy no weights for them."""
    cache = _Cache(XnnpackBackend.preprocess, xnnpack_preprocess.ExportedProgram)
    stock_passes = xnnpack_preprocess.XNNPACKPassManager

    def passes(*args: Any, **kwargs: Any) -> _Passes:
        return _Passes(cache, stock_passes, (args, kwargs))

    def uncopied(cls: type, program: ExportedProgram, compile_specs: list[Any]) -> ExportedProgram:
        return program

    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (xnnpack_preprocess, "ExportedProgram", cache.program),
            (xnnpack_preprocess, "XNNPACKPassManager", passes),
            (XnnpackBackend, "preprocess", staticmethod(cache.preprocess)),
            (XnnpackBackend, "copy_exported_program_for_preprocess", classmethod(uncopied)),
        ):
            stack.enter_context(replaced(owner, name, value))
        yield
