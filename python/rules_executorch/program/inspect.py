"""What is in a `.pte`, read from its header without the weights and without the backend.

Rests on the program schema of ExecuTorch (`executorch.exir.schema`).
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from executorch.exir import schema
from executorch.exir.scalar_type import ScalarType

from rules_executorch.common.text import size_text
from rules_executorch.program.info import MethodInfo, ProgramInfo, TensorInfo
from rules_executorch.program.pte import open_program
from rules_executorch.program.runner_contract import LISTS

if TYPE_CHECKING:
    from executorch.exir.schema import ExecutionPlan, Program

_DTYPES = {
    ScalarType.BYTE: "uint8",
    ScalarType.CHAR: "int8",
    ScalarType.SHORT: "int16",
    ScalarType.INT: "int32",
    ScalarType.LONG: "int64",
    ScalarType.HALF: "float16",
    ScalarType.FLOAT: "float32",
    ScalarType.DOUBLE: "float64",
    ScalarType.BOOL: "bool",
    ScalarType.BFLOAT16: "bfloat16",
}

ITEM_BYTES = {
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "bool": 1,
    "bfloat16": 2,
}
"""Bytes of an element, by dtype."""


def inspect_program(path: str) -> ProgramInfo:
    """Reads a program.

    Raises:
        UserError: the file is not a program of ExecuTorch, or is cut short.
    """
    with open_program(path) as opened:
        program, program_bytes, size = opened.program, opened.program_bytes, len(opened.data)
    methods, constants = {}, {}
    for plan in program.execution_plan:
        if is_constant(plan):
            constants[plan.name] = constant_value(plan)
        else:
            methods[plan.name] = _method(plan)
    sizes = {"file": size, "program": program_bytes, **_segment_bytes(program)}
    return ProgramInfo(methods, dict(sorted(constants.items())), sizes)


def _segment_bytes(program: Program) -> dict[str, int]:
    kinds: dict[int, str] = {}
    if program.constant_segment and program.constant_segment.offsets:
        kinds[program.constant_segment.segment_index] = "constants"
    for mutable in program.mutable_data_segments or ():
        kinds[mutable.segment_index] = "mutable_data"
    for named in program.named_data or ():
        kinds[named.segment_index] = "named_data"
    found = dict.fromkeys(("constants", "delegates", "named_data", "mutable_data"), 0)
    for index, segment in enumerate(program.segments):
        found[kinds.get(index, "delegates")] += segment.size
    found["constants"] += sum(len(buffer.storage) for buffer in program.constant_buffer)
    found["delegates"] += sum(len(inline.data) for inline in program.backend_delegate_data)
    return found


def is_constant(plan: ExecutionPlan) -> bool:
    """Whether a method computes nothing."""
    return not plan.inputs and not any(chain.instructions for chain in plan.chains)


def constant_value(plan: ExecutionPlan) -> Any:
    """What a constant method returns: a value, or a list of them."""
    values: list[Any] = []
    for index in plan.outputs:
        value = plan.values[index].val
        if isinstance(value, schema.Tensor):
            values.append(dataclasses.asdict(_tensor(value)))
        else:
            values.append(next(iter(vars(value).values()), None))
    return values if plan.name in LISTS or len(values) != 1 else values[0]


def _method(plan: ExecutionPlan) -> MethodInfo:
    operators: collections.Counter[str] = collections.Counter()
    delegates: collections.Counter[str] = collections.Counter(d.id for d in plan.delegates)
    for chain in plan.chains:
        for instruction in chain.instructions:
            if isinstance(instruction.instr_args, schema.KernelCall):
                operators[operator_name(plan.operators[instruction.instr_args.op_index])] += 1
    return MethodInfo(
        _tensors(plan, plan.inputs),
        _tensors(plan, plan.outputs),
        dict(sorted(delegates.items())),
        dict(sorted(operators.items())),
        # The first entry stands for constants.
        list(plan.non_const_buffer_sizes[1:]),
    )


def operator_name(operator: schema.Operator) -> str:
    """`aten::add.out`."""
    return f"{operator.name}.{operator.overload}" if operator.overload else operator.name


def _tensors(plan: ExecutionPlan, indices: Sequence[int]) -> list[TensorInfo]:
    values = (plan.values[index].val for index in indices)
    return [_tensor(value) for value in values if isinstance(value, schema.Tensor)]


def dtype_name(scalar_type: int) -> str:
    """`float32`, as torch has it."""
    return _DTYPES.get(ScalarType(scalar_type), str(scalar_type))


def _tensor(value: schema.Tensor) -> TensorInfo:
    return TensorInfo(
        dtype_name(value.scalar_type),
        list(value.sizes),
        value.shape_dynamism != schema.TensorShapeDynamism.STATIC,
    )


def render(info: ProgramInfo) -> str:
    """The program for people: one block each for methods, constants and sizes."""
    lines = []
    for name, method in info.methods.items():
        lines.append(f"method {name}")
        for kind, tensors in (("input", method.inputs), ("output", method.outputs)):
            for tensor in tensors:
                bound = " (upper bound)" if tensor.dynamic else ""
                lines.append(f"  {kind:<7} {tensor.dtype} {tensor.shape}{bound}")
        for backend, count in method.delegates.items():
            lines.append(f"  {count} delegates of {backend}")
        lines.append(f"  planned memory {', '.join(map(size_text, method.planned_bytes)) or '0'}")
        width = max(map(len, method.operators), default=0)
        lines += [f"  {name:<{width}} {count:>5}" for name, count in method.operators.items()]
    lines.append("constant methods")
    width = max(map(len, info.constants), default=0)
    lines += [f"  {name:<{width}} {value}" for name, value in info.constants.items()]
    lines.append("sizes")
    lines += [f"  {name:<12} {size_text(size)}" for name, size in info.sizes.items()]
    return "\n".join(lines)
