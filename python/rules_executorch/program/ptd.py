"""A `.ptd` opened for reading: tensors that a program keeps in a file of their own.

Rests on the schema of ExecuTorch's flat tensors (`executorch.extension.flat_tensor.serialize`): the
flatbuffer comes first, segments of data follow.
"""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
import re
from collections.abc import Iterator

from executorch.exir import schema
from executorch.extension.flat_tensor.serialize.serialize import (
    FlatTensorHeader,
    _deserialize_to_flat_tensor,
)

from rules_executorch.common.errors import UserError
from rules_executorch.program.info import DataTensor
from rules_executorch.program.inspect import dtype_name
from rules_executorch.program.pte import OpenedProgram, open_program

_IDENTIFIER = slice(4, 6)
_HEADER = 8
_AGAIN = "Give the .ptd that executorch_lower writes, or build it again."
# Delegates that ask for data by the SHA-256 of their contents.
_BY_CONTENT = ("VulkanBackend", "XnnpackBackend")
_DIGEST = re.compile(rb"(?<![0-9a-z_])(?:scale_)?[0-9a-f]{64}(?![0-9a-f])")
_NAMED = 3


@dataclasses.dataclass(frozen=True)
class OpenedData:
    """A data file, mapped.

    Attributes:
        data: the file.
        tensors: by name, in the order of the file.
        segments: offset in the file and size of each.
    """

    data: mmap.mmap
    tensors: dict[str, DataTensor]
    segments: list[tuple[int, int]]

    def contents(self, name: str) -> bytes:
        """A copy of a tensor's bytes."""
        offset, size = self.segments[self.tensors[name].segment]
        return self.data[offset : offset + size]


@contextlib.contextmanager
def open_data(path: str) -> Iterator[OpenedData]:
    """Opens a data file; contents can be read while the context lasts.

    Raises:
        UserError: the file is not such a file, is cut short or damaged.
    """
    if not os.path.isfile(path):
        raise UserError(f"There is no file {path}.", instead=_AGAIN)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _HEADER + FlatTensorHeader.EXPECTED_LENGTH:
            raise UserError(
                f"{path} is not a data file of ExecuTorch: it has {size} bytes.", instead=_AGAIN
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield _parse(path, data)


def is_data(path: str) -> bool:
    """Whether a file has the identifier of a data file."""
    with open(path, "rb") as file:
        return file.read(8)[_IDENTIFIER] == b"FT"


def _parse(path: str, data: mmap.mmap) -> OpenedData:
    size = len(data)
    header = FlatTensorHeader.from_bytes(data[_HEADER : _HEADER + FlatTensorHeader.EXPECTED_LENGTH])
    if data[_IDENTIFIER] != b"FT" or not header.is_valid():
        raise UserError(
            f"{path} is not a data file of ExecuTorch: it does not have the file identifier FT.",
            instead=_AGAIN,
        )
    base = header.segment_base_offset
    table = header.flatbuffer_offset + header.flatbuffer_size
    end = max(table, base + header.segment_data_size)
    if end > size:
        raise UserError(
            f"{path} is cut short: it has {size} bytes and its header asks for {end}.",
            instead=_AGAIN,
        )
    try:
        found = _deserialize_to_flat_tensor(data[:table])
        segments = [(base + segment.offset, segment.size) for segment in found.segments]
        if any(offset < table or offset + length > size for offset, length in segments):
            raise IndexError
        tensors = {}
        for entry in found.named_data:
            layout = entry.tensor_layout
            tensors[entry.key] = DataTensor(
                entry.key,
                dtype_name(layout.scalar_type) if layout else None,
                list(layout.sizes) if layout else None,
                segments[entry.segment_index][1],
                entry.segment_index,
            )
        if not tensors or len(tensors) != len(found.named_data):
            raise ValueError
    except Exception as error:
        # The flatbuffers reader checks nothing: a damaged file can raise any exception.
        raise UserError(
            f"{path} is damaged: its table cannot be read ({type(error).__name__}).", instead=_AGAIN
        ) from error
    return OpenedData(data, tensors, segments)


def inspect_data(path: str) -> list[DataTensor]:
    """Reads what a data file holds, without the contents.

    Raises:
        UserError: see `open_data`.
    """
    with open_data(path) as opened:
        return list(opened.tensors.values())


def content_keys(data: bytes) -> list[str]:
    """Keys in a delegate's own data, in their order: the SHA-256 of what they name.

    XNNPACK puts `scale_` before those of scales.
    """
    return [digest.decode() for digest in _DIGEST.findall(data)]


def wanted_data(opened: OpenedProgram) -> list[str]:
    """Names of what a program expects in a data file, sorted."""
    found = set()
    for plan in opened.program.execution_plan:
        for value in plan.values:
            if isinstance(value.val, schema.Tensor):
                info = value.val.extra_tensor_info
                if info is not None and info.location == schema.TensorDataLocation.EXTERNAL:
                    found.add(info.fully_qualified_name)
        for delegate in plan.delegates:
            if delegate.id in _BY_CONTENT:
                found.update(content_keys(opened.delegate(delegate)))
    return sorted(found - opened.named.keys())


def check_data(program: str, data: str | None) -> None:
    """Refuses a program without the data file that it was lowered with.

    Args:
        program: path of the `.pte`.
        data: path of the `.ptd`, or None.

    Raises:
        UserError: the program needs a data file and has none, or the file is another program's; or
            one of the files cannot be read.
    """
    with open_program(program) as opened:
        wanted = wanted_data(opened)
    if data is None:
        if wanted:
            raise UserError(
                f"{program} keeps {len(wanted)} tensors in a data file, and none is given.",
                instead="Give the .ptd that executorch_lower wrote beside it: --data.",
            )
        return
    held = {tensor.name for tensor in inspect_data(data)}
    missing = [name for name in wanted if name not in held]
    if missing:
        names = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        raise UserError(
            f"{data} lacks {len(missing)} of the {len(wanted)} tensors that {program} expects of "
            f"its data file ({names}).",
            instead="Give the .ptd that was written together with the program.",
        )


def render(tensors: list[DataTensor]) -> str:
    """The file as text: a line for each tensor, and which share a segment."""
    width = max((len(tensor.name) for tensor in tensors), default=0)
    lines = []
    seen: dict[int, str] = {}
    for tensor in tensors:
        what = f"{tensor.dtype} {tensor.shape}" if tensor.dtype else "packed by a delegate"
        first = seen.setdefault(tensor.segment, tensor.name)
        shared = "" if first == tensor.name else f"  same bytes as {first}"
        lines.append(f"{tensor.name:<{width}} {tensor.bytes:>12}  {what}{shared}")
    stored = sum({tensor.segment: tensor.bytes for tensor in tensors}.values())
    return "\n".join([*lines, f"{len(tensors)} tensors, {stored} bytes"])
