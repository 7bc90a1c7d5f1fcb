"""A `.pte` opened for reading: its program, and its segments without copies of the file.

Rests on the program schema of ExecuTorch (`executorch.exir.schema`) and on the extended header
(`executorch.exir._serialize._program`): the flatbuffer comes first, segments of data follow.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import mmap
import os
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from executorch.exir import schema
from executorch.exir._serialize._flatbuffer_program import _flatbuffer_to_program
from executorch.exir._serialize._program import _ExtendedHeader, _get_extended_header

from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    from executorch.exir.schema import BackendDelegate, Program

_IDENTIFIER = slice(4, 6)
_HEADERS = (8, 8 + _ExtendedHeader.NUM_HEAD_BYTES)
_AGAIN = "Give the .pte that executorch_lower writes, or build it again."


@dataclasses.dataclass(frozen=True)
class OpenedProgram:
    """A program in a mapped file.

    Attributes:
        data: the file.
        program: its flatbuffer, as the objects of the schema.
        program_bytes: size of the flatbuffer, from the beginning of the file.
        base: offset of the first segment in the file.
    """

    data: mmap.mmap
    program: Program
    program_bytes: int
    base: int

    @property
    def named(self) -> dict[str, int]:
        """Named data: key to the index of the segment that holds it."""
        return {entry.key: entry.segment_index for entry in self.program.named_data or ()}

    def segment(self, index: int) -> bytes:
        """A copy of a segment."""
        segment = self.program.segments[index]
        begin = self.base + segment.offset
        return self.data[begin : begin + segment.size]

    def delegate(self, delegate: BackendDelegate) -> bytes:
        """A copy of a delegate's data, which is in a segment or in the flatbuffer."""
        where = delegate.processed
        if where.location == schema.DataLocation.SEGMENT:
            return self.segment(where.index)
        return bytes(self.program.backend_delegate_data[where.index].data)

    def constants(self) -> list[bytes]:
        """Constants by the index that tensors have for them, with the padding after each."""
        where = self.program.constant_segment
        if not where or not where.offsets:
            return [bytes(buffer.storage) for buffer in self.program.constant_buffer]
        data = self.segment(where.segment_index)
        ends = [*where.offsets[1:], len(data)]
        return [data[begin:end] for begin, end in zip(where.offsets, ends, strict=True)]


@contextlib.contextmanager
def open_program(path: str) -> Iterator[OpenedProgram]:
    """Opens a program; the segments can be read while the context lasts.

    Raises:
        UserError: the file is not a program of ExecuTorch, is cut short or damaged.
    """
    if not os.path.isfile(path):
        raise UserError(f"There is no file {path}.", instead=_AGAIN)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _HEADERS[1]:
            raise UserError(
                f"{path} is not a program of ExecuTorch: it has {size} bytes.", instead=_AGAIN
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield _parse(path, data)


def _parse(path: str, data: mmap.mmap) -> OpenedProgram:
    size = len(data)
    if data[_IDENTIFIER] != b"ET":
        raise UserError(
            f"{path} is not a program of ExecuTorch: it does not have the file identifier ET.",
            instead=_AGAIN,
        )
    header = _get_extended_header(data[: _HEADERS[1]])
    program_size = header.program_size if header else size
    end = header.segment_base_offset + header.segment_data_size if header else size
    if program_size > size or end > size:
        raise UserError(
            f"{path} is cut short: it has {size} bytes and its header asks for "
            f"{max(program_size, end)}.",
            instead=_AGAIN,
        )
    base = header.segment_base_offset if header else size
    try:
        program = _flatbuffer_to_program(data[:program_size])
        _check_references(program, size - base)
    except Exception as error:
        # The flatbuffers reader checks nothing: a damaged file can raise any exception.
        raise UserError(
            f"{path} is damaged: its program cannot be read ({type(error).__name__}).",
            instead=_AGAIN,
        ) from error
    return OpenedProgram(data, program, program_size, base)


def _check_references(program: Program, size: int) -> None:
    """Refuses segments outside of the file, and indices out of range.

    Args:
        program: as read.
        size: bytes that the file has for segments.
    """

    def check(indices: Iterable[int], things: Sequence[object]) -> None:
        if not all(0 <= index < len(things) for index in indices):
            raise IndexError

    _check_fields(program)
    segments = program.segments
    if any(segment.offset + segment.size > size for segment in segments):
        raise IndexError
    where = program.constant_segment
    if where and where.offsets:
        check([where.segment_index], segments)
        ends = [*where.offsets, segments[where.segment_index].size]
        if ends != sorted(ends):
            raise IndexError
    check([mutable.segment_index for mutable in program.mutable_data_segments or ()], segments)
    check([entry.segment_index for entry in program.named_data or ()], segments)
    for plan in program.execution_plan:
        check([*plan.inputs, *plan.outputs], plan.values)
        for delegate in plan.delegates:
            inline = delegate.processed.location == schema.DataLocation.INLINE
            check([delegate.processed.index], program.backend_delegate_data if inline else segments)
        for chain in plan.chains:
            for instruction in chain.instructions:
                call = instruction.instr_args
                if isinstance(call, schema.KernelCall):
                    check([call.op_index], plan.operators)
                elif isinstance(call, schema.DelegateCall):
                    check([call.delegate_index], plan.delegates)


def _check_fields(value: object) -> None:
    """Refuses a missing required field of the schema, at any depth."""
    if isinstance(value, list):
        for item in value:
            _check_fields(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name, optional in _fields(type(value)):
            field = getattr(value, name)
            if field is None and not optional:
                raise TypeError
            _check_fields(field)


@functools.cache
def _fields(kind: type[Any]) -> tuple[tuple[str, bool], ...]:
    """Names of a class's fields, and whether None is one of their values."""
    hints = typing.get_type_hints(kind)
    return tuple(
        (field.name, type(None) in typing.get_args(hints[field.name]))
        for field in dataclasses.fields(kind)
    )
