"""Where two `.pte` differ: method, operator, delegate, constant, segment.

Rests on the program schema of ExecuTorch (`executorch.exir.schema`), as `inspect` does. A backend
that keeps weights outside of its delegates' data (XNNPACK) names them by a digest of their
contents. By that name a changed weight is traced to the delegate that uses it.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from executorch.exir import schema
from executorch.exir.scalar_type import ScalarType

from rules_executorch.program.compare.data import changed_bytes, few_lines
from rules_executorch.program.inspect import constant_value, is_constant, operator_name
from rules_executorch.program.ptd import content_keys
from rules_executorch.program.pte import OpenedProgram, open_program

if TYPE_CHECKING:
    from executorch.exir.schema import ExecutionPlan

_ITEM_BYTES = {
    ScalarType.BYTE: 1,
    ScalarType.CHAR: 1,
    ScalarType.BOOL: 1,
    ScalarType.SHORT: 2,
    ScalarType.HALF: 2,
    ScalarType.BFLOAT16: 2,
    ScalarType.INT: 4,
    ScalarType.FLOAT: 4,
    ScalarType.LONG: 8,
    ScalarType.DOUBLE: 8,
}


def compare_programs(first: str, second: str) -> list[str]:
    """Compares two programs.

    Args:
        first, second: paths of `.pte` files.

    Returns:
        One clause per difference, without a full stop; empty if and only if the files have the
        same bytes.

    Raises:
        UserError: a file is not a program.
    """
    with open_program(first) as one, open_program(second) as other:
        if one.data[:] == other.data[:]:
            return []
        found = [*_methods(one, other), *_constants(one, other), *_named_data(one, other)]
        found += _mutable_data(one, other)
        return found or [_elsewhere(one, other)]


def _methods(one: OpenedProgram, other: OpenedProgram) -> Iterator[str]:
    plans = {plan.name: plan for plan in one.program.execution_plan}
    others = {plan.name: plan for plan in other.program.execution_plan}
    for name in sorted(plans.keys() ^ others.keys()):
        yield f"method `{name}` is in the {'first' if name in plans else 'second'} only"
    for name in sorted(plans.keys() & others.keys()):
        plan, twin = plans[name], others[name]
        if is_constant(plan) and is_constant(twin):
            if constant_value(plan) != constant_value(twin):
                yield _both(f"constant method `{name}`", constant_value(plan), constant_value(twin))
            continue
        yield from _instructions(plan, twin)
        yield from _signature(plan, twin)
        yield from _planned_memory(plan, twin)
        yield from _delegates(plan, twin, one, other)


def _both(what: str, value: Any, twin: Any) -> str:
    return f"{what} is {value} in the first and {twin} in the second"


def _calls(plan: ExecutionPlan) -> list[tuple[str, Sequence[int]]]:
    """What each instruction calls, and the indices of its arguments."""
    called: list[tuple[str, Sequence[int]]] = []
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if isinstance(call, schema.KernelCall):
                called.append((operator_name(plan.operators[call.op_index]), call.args))
            elif isinstance(call, schema.DelegateCall):
                called.append((f"delegate of {plan.delegates[call.delegate_index].id}", call.args))
            else:
                called.append((type(call).__name__, list(vars(call).values())))
    return called


def _instructions(plan: ExecutionPlan, twin: ExecutionPlan) -> Iterator[str]:
    calls, others = _calls(plan), _calls(twin)
    names, other_names = [name for name, _ in calls], [name for name, _ in others]
    if names != other_names:
        counts, other_counts = collections.Counter(names), collections.Counter(other_names)
        changed = [name for name in counts | other_counts if counts[name] != other_counts[name]]
        for name in sorted(changed):
            yield (
                f"method `{plan.name}` calls {name} {_times(counts[name])} in the first and"
                f" {_times(other_counts[name])} in the second"
            )
        if not changed:
            index = _first_difference(names, other_names)
            yield _both(
                f"instruction {index} of method `{plan.name}`", names[index], other_names[index]
            )
        return
    differences = []
    for index, ((name, arguments), (_, other_arguments)) in enumerate(
        zip(calls, others, strict=True)
    ):
        for position, pair in enumerate(zip(arguments, other_arguments, strict=False)):
            value, other = (_value(p, i) for p, i in zip((plan, twin), pair, strict=True))
            if value != other:
                what = f"argument {position} of {name} (instruction {index} of `{plan.name}`)"
                differences.append(_both(what, value, other))
    yield from few_lines(differences, f"arguments of instructions of `{plan.name}`")


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def _first_difference(first: Sequence[Any], second: Sequence[Any]) -> int:
    pairs = zip(first, second, strict=False)
    return next(
        (index for index, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second))
    )


def _value(plan: ExecutionPlan, index: int) -> str:
    """A value without its place in memory."""
    if not 0 <= index < len(plan.values):
        return str(index)
    value = plan.values[index].val
    if isinstance(value, schema.Tensor):
        kind = "constant" if value.data_buffer_idx else "tensor"
        dynamic = value.shape_dynamism != schema.TensorShapeDynamism.STATIC
        return (
            f"a {kind} of {ScalarType(value.scalar_type).name.lower()} {list(value.sizes)}"
            f"{' at most' if dynamic else ''}"
        )
    if isinstance(value, schema.TensorList | schema.OptionalTensorList):
        return f"a list of {len(value.items)} tensors"
    if isinstance(value, schema.IntList):
        # The items are themselves indices of values.
        return str([_value(plan, item) for item in value.items])
    return str(next(iter(vars(value).values()), None))


def _signature(plan: ExecutionPlan, twin: ExecutionPlan) -> Iterator[str]:
    for kind in ("inputs", "outputs"):
        values = [_value(plan, index) for index in getattr(plan, kind)]
        others = [_value(twin, index) for index in getattr(twin, kind)]
        if values != others:
            index = _first_difference(values, others)
            what = f"{kind[:-1]} {index} of method `{plan.name}`"
            yield _both(what, *(v[index] if index < len(v) else "absent" for v in (values, others)))


def _planned_memory(plan: ExecutionPlan, twin: ExecutionPlan) -> Iterator[str]:
    sizes, others = list(plan.non_const_buffer_sizes[1:]), list(twin.non_const_buffer_sizes[1:])
    if sizes != others:
        yield _both(f"planned memory of method `{plan.name}`, in bytes,", sizes, others)
        return
    differences = []
    for index, pair in enumerate(zip(plan.values, twin.values, strict=False)):
        tensors = [item.val for item in pair]
        if all(isinstance(tensor, schema.Tensor) for tensor in tensors):
            places = [_place(tensor.allocation_info) for tensor in tensors]
            if places[0] != places[1]:
                differences.append(_both(f"value {index} of `{plan.name}`", *places))
    yield from few_lines(differences, f"places of tensors of `{plan.name}` in memory")


def _place(allocation: schema.AllocationDetails | None) -> str:
    if allocation is None:
        return "not planned"
    return f"at byte {allocation.memory_offset} of arena {allocation.memory_id}"


def _delegates(
    plan: ExecutionPlan, twin: ExecutionPlan, one: OpenedProgram, other: OpenedProgram
) -> Iterator[str]:
    callers = _callers(plan)
    for index, (delegate, its_twin) in enumerate(zip(plan.delegates, twin.delegates, strict=False)):
        what = f"delegate {index} of method `{plan.name}` ({delegate.id}{callers.get(index, '')})"
        if delegate.id != its_twin.id:
            yield _both(what, delegate.id, its_twin.id)
            continue
        specs = {spec.key: bytes(spec.value) for spec in delegate.compile_specs}
        others = {spec.key: bytes(spec.value) for spec in its_twin.compile_specs}
        for key in sorted(specs.keys() | others.keys()):
            if specs.get(key) != others.get(key):
                yield _both(f"compile option `{key}` of {what}", specs.get(key), others.get(key))
        yield from _delegate_data(
            what, one.delegate(delegate), other.delegate(its_twin), one, other
        )


def _callers(plan: ExecutionPlan) -> Mapping[int, str]:
    """By delegate, which instruction calls it."""
    found: dict[int, str] = {}
    index = -1
    for chain in plan.chains:
        for instruction in chain.instructions:
            index += 1
            call = instruction.instr_args
            if isinstance(call, schema.DelegateCall):
                found.setdefault(call.delegate_index, f", called by instruction {index}")
    return found


def _delegate_data(
    what: str, data: bytes, other_data: bytes, one: OpenedProgram, other: OpenedProgram
) -> Iterator[str]:
    """Compares a delegate's own data, and the named data that it refers to, in order."""
    keys, other_keys = _keys(data, one), _keys(other_data, other)
    if len(keys) == len(other_keys):
        for index, (key, other_key) in enumerate(zip(keys, other_keys, strict=True)):
            if key not in one.named or other_key not in other.named:
                # It is in a data file, and its name is a digest of its contents.
                if key != other_key:
                    yield f"constant {index} of {what} is other data of the data file"
                continue
            weights, twin = one.segment(one.named[key]), other.segment(other.named[other_key])
            if weights != twin:
                yield f"constant {index} of {what}: {changed_bytes(weights, twin)}"
    # What remains after the names of weights is the compiled graph.
    graph, other_graph = _without(data, keys), _without(other_data, other_keys)
    if graph != other_graph:
        yield f"compiled graph of {what}: {changed_bytes(graph, other_graph)}"
    elif len(keys) != len(other_keys):
        yield _both(f"number of constants of {what}", len(keys), len(other_keys))


def _keys(data: bytes, opened: OpenedProgram) -> list[str]:
    """Keys of named data in the order in which a delegate's data mentions them."""
    names = dict.fromkeys([*opened.named, *content_keys(data)])
    found = [(data.find(key.encode()), key) for key in names]
    return [key for place, key in sorted(found) if place >= 0]


def _without(data: bytes, keys: Sequence[str]) -> bytes:
    for key in keys:
        data = data.replace(key.encode(), b"?" * len(key))
    return data


def _named_data(one: OpenedProgram, other: OpenedProgram) -> Iterator[str]:
    """Named data that no delegate mentions; the rest is compared with its delegate."""
    used = {key for opened in (one, other) for key in _mentioned(opened)}
    for key in sorted((one.named.keys() | other.named.keys()) - used):
        if key not in one.named or key not in other.named:
            which = "first" if key in one.named else "second"
            yield f"named data `{key}` is in the {which} only"
        else:
            data, twin = one.segment(one.named[key]), other.segment(other.named[key])
            if data != twin:
                yield f"named data `{key}`: {changed_bytes(data, twin)}"


def _mentioned(opened: OpenedProgram) -> Iterator[str]:
    for plan in opened.program.execution_plan:
        for delegate in plan.delegates:
            yield from _keys(opened.delegate(delegate), opened)


def _constants(one: OpenedProgram, other: OpenedProgram) -> Iterator[str]:
    buffers, others = one.constants(), other.constants()
    if len(buffers) != len(others):
        yield _both("number of constants", len(buffers), len(others))
        return
    users = _users(one)
    differences = []
    for index, (data, twin) in enumerate(zip(buffers, others, strict=True)):
        if data != twin:
            what, size = users.get(index, ("", 1))
            differences.append(f"constant {index}{what}: {changed_bytes(data, twin, size)}")
    yield from few_lines(differences, "constants")


def _users(opened: OpenedProgram) -> dict[int, tuple[str, int]]:
    """By constant: its dtype, shape and first user in words, and the bytes of an element."""
    found: dict[int, tuple[str, int]] = {}
    for plan in opened.program.execution_plan:
        used_by: dict[int, str] = {}
        for index, (name, arguments) in enumerate(_calls(plan)):
            for argument in arguments:
                used_by.setdefault(argument, f"{name}, instruction {index} of `{plan.name}`")
        for index, value in enumerate(plan.values):
            tensor = value.val
            if isinstance(tensor, schema.Tensor) and tensor.data_buffer_idx:
                dtype = ScalarType(tensor.scalar_type)
                user = f", argument of {used_by[index]}" if index in used_by else ""
                name = tensor.extra_tensor_info and tensor.extra_tensor_info.fully_qualified_name
                words = f" ({dtype.name.lower()} {list(tensor.sizes)}{user})"
                found.setdefault(
                    tensor.data_buffer_idx,
                    (f" `{name}`{words}" if name else words, _ITEM_BYTES.get(dtype, 1)),
                )
    return found


def _mutable_data(one: OpenedProgram, other: OpenedProgram) -> Iterator[str]:
    first = one.program.mutable_data_segments or []
    second = other.program.mutable_data_segments or []
    if len(first) != len(second):
        yield _both("number of segments of mutable data", len(first), len(second))
        return
    for index, (left, right) in enumerate(zip(first, second, strict=True)):
        data, twin = one.segment(left.segment_index), other.segment(right.segment_index)
        if data != twin:
            yield f"initial values of mutable data {index}: {changed_bytes(data, twin)}"


def _elsewhere(one: OpenedProgram, other: OpenedProgram) -> str:
    """Names the part of the file that differs although nothing compared so far does."""
    data, twin = one.data[:], other.data[:]
    place = _first_difference(data, twin)
    if place < one.program_bytes:
        part = "in the table of the program"
        for path, value, its_twin in _fields(one.program, other.program, "program"):
            return _both(path, value, its_twin)
    else:
        part = "in the padding between segments"
        for index, segment in enumerate(one.program.segments):
            begin = one.base + segment.offset
            if begin <= place < begin + segment.size:
                part = f"in segment {index}, which nothing of the program refers to"
    return f"byte {place:,} of the file, {part}"


def _fields(value: Any, twin: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Fields of the schema that differ, by path."""
    if type(value) is not type(twin):
        yield path, type(value).__name__, type(twin).__name__
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _fields(
                getattr(value, field.name), getattr(twin, field.name), f"{path}.{field.name}"
            )
    elif isinstance(value, list):
        if len(value) != len(twin):
            yield f"length of {path}", len(value), len(twin)
        for index, pair in enumerate(zip(value, twin, strict=False)):
            yield from _fields(*pair, f"{path}[{index}]")
    elif value != twin:
        yield path, value, twin
