"""Program-data separation: a program's weights in a `.ptd` beside it.

A constant that a kernel of the runtime reads is named after its parameter; data that a delegate
asks for has the key that the delegate gives it, which for XNNPACK and Vulkan is the SHA-256 of its
contents. Both are in one file, where equal contents are stored once.

Rests on `external_constants` of executorch's `ExecutorchBackendConfig`
(`exir/passes/external_constants_pass.py`) and on its `NamedDataStore`
(`exir/_serialize/_named_data_store.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rules_executorch.common.errors import UserError
from rules_executorch.export.build import PREFIX

if TYPE_CHECKING:
    from executorch.exir import EdgeProgramManager, ExecutorchProgramManager
    from torch.export import ExportedProgram
    from torch.fx import Node

    from rules_executorch.backends import Backend
    from rules_executorch.export.signature import Signature

# Names the file inside of executorch only: neither the program nor the data have it.
_FILE = "data"
_LEAVE_OUT = "Leave external_data out, so that the weights are inside the .pte"


def check_external_data(backend: Backend) -> None:
    """Refuses a backend whose delegates keep their weights to themselves.

    Raises:
        UserError: names the backends that do not.
    """
    if not backend.external_data:
        from rules_executorch.backends import NAMES, find_backend

        others = [name for name in NAMES if find_backend(name).external_data]
        raise UserError(
            f"The backend {backend.name} compiles the weights into its delegates, from where they "
            "cannot be taken out into a .ptd.",
            instead=f"{_LEAVE_OUT}, or choose one of the backends {', '.join(others)}.",
        )


def weights_only(program: ExportedProgram, signature: Signature) -> Callable[[Node], str | None]:
    """Makes the function that decides which constants leave the program.

    Args:
        program: with its weights bound, before any pass.
        signature: of the export.

    Returns:
        For `external_constants`: takes the placeholder of a constant. What the export computed
        itself, such as the frequencies of rotary embeddings, depends on its options and stays, so
        that programs of several cache lengths share their data. Weights leave, also in the form
        that a pass gave them.
    """
    bound = {tensor.name for tensor in signature.parameters}
    bound.update(part for weight in signature.quantized for part in weight.parts)
    names = {PREFIX + name for name in bound}
    inputs = program.graph_signature
    computed = {
        placeholder
        for placeholder, target in (
            *inputs.inputs_to_buffers.items(),
            *inputs.inputs_to_lifted_tensor_constants.items(),
        )
        if target not in names
    }
    return lambda node: None if node.name in computed else _FILE


def move_delegates_data(edge: EdgeProgramManager) -> None:
    """Moves what delegates ask for by name out of the program, in the order of the names.

    Args:
        edge: after the backend took its parts; changed in place.
    """
    store = edge._named_data_store
    store.external_data = {_FILE: dict(sorted(store.pte_data.items()))}
    store.pte_data = {}


def write_data(manager: ExecutorchProgramManager, path: str) -> None:
    """Writes the `.ptd`.

    Args:
        manager: of a program that was lowered with external data.
        path: of the file; its name gets into neither file.

    Raises:
        UserError: nothing of the program is outside of it.
    """
    files = manager._tensor_data
    if not files:
        raise UserError(
            "external_data = True, and the program has no weights that could be outside of it.",
            instead=f"{_LEAVE_OUT}.",
        )
    with open(path, "wb") as file:
        files[_FILE].write_to_file(file)
