"""The canonical `.pt2`: an exported program as bytes that depend on nothing but the program.

The file is a PT2 archive as `torch.export.save` writes it, so `torch.export.load` reads it, with
four differences: parameters and all-zero buffers have a name, a shape and no bytes (torch reads
them as zeros); metadata of places and moments (stack traces, identities of Python objects, the
serialization id, sample inputs) is left out; JSON has sorted keys; the zip has a fixed root folder,
order and time.

Rests on `torch._export.serde.serialize` and `torch.export.pt2_archive`.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch._export.serde import schema
from torch._export.serde.serialize import (
    ExportedProgramDeserializer,
    _dataclass_to_dict,
    _dict_to_dataclass,
    deserialize_scalar_type,
    deserialize_size,
    serialize,
    serialize_tensor_meta,
)
from torch.export.pt2_archive import constants as archive

from rules_executorch.common.errors import UserError
from rules_executorch.common.files import whole_file

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_ROOT = "program"
_MODEL = "model"
_ZIP_VERSION = b"6\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)
# `stack_trace` holds paths of the installation, `from_node` identities of graphs.
_DROPPED_METADATA = ("stack_trace", "from_node")
_IDENTITY = re.compile(r"(?<![\w.])\d{6,}(?=,)")


def write_program(program: ExportedProgram, path: str) -> None:
    """Writes an exported program without its parameters.

    Args:
        program: its parameters are not read.
        path: the `.pt2`; its name does not get into the file.

    Raises:
        UserError: the disk is full.
    """
    records = _records(program)
    with (
        whole_file(path) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as file,
    ):
        for name, data in records.items():
            info = zipfile.ZipInfo(_member(name), _EPOCH)
            info.external_attr = 0o644 << 16
            file.writestr(info, data)


def read_program(path: str) -> ExportedProgram:
    """Reads a program that `write_program` wrote.

    Like `torch.export.load`, except that what the file has no bytes for takes no memory either.

    Returns:
        The program; its parameters and caches are zeros in memory that was never touched.

    Raises:
        UserError: the file is not such a program, is damaged, or is from another torch.
    """
    fetch = "Run executorch_export again and use the .pt2 that it writes."
    try:
        with zipfile.ZipFile(path) as file:
            return _deserialize(file, path, fetch)
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError(f"There is no file {path}.", instead=fetch) from error
    except Exception as error:
        # zipfile and torch's deserializer check little: a damaged file ends in any exception.
        why = " ".join(str(error).split())[:300]
        raise UserError(
            f"{path} is not an exported program: {type(error).__name__}: {why}.", instead=fetch
        ) from error


def _deserialize(file: zipfile.ZipFile, path: str, fetch: str) -> ExportedProgram:
    damaged = file.testzip()
    if damaged is not None:
        raise UserError(f"{path} is damaged in {damaged}.", instead=fetch)
    text = file.read(_member(archive.MODELS_FILENAME_FORMAT.format(_MODEL)))
    value = json.loads(text)
    made_by = value.get("torch_version")
    if made_by != str(torch.__version__):
        raise UserError(
            f"{path} was exported with torch {made_by}, and this is torch {torch.__version__}.",
            instead="Export and lower with one toolchain.",
        )
    state = _tensors(file, archive.WEIGHTS_CONFIG_FILENAME_FORMAT, archive.WEIGHTS_DIR)
    constants = _tensors(file, archive.CONSTANTS_CONFIG_FILENAME_FORMAT, archive.CONSTANTS_DIR)
    serialized = _dict_to_dataclass(schema.ExportedProgram, value)
    return ExportedProgramDeserializer().deserialize(serialized, state, constants)


def _member(name: str) -> str:
    return f"{_ROOT}/{name}"


def _tensors(file: zipfile.ZipFile, listing: str, directory: str) -> dict[str, torch.Tensor]:
    """Reads the tensors that one listing of the archive names."""
    value = json.loads(file.read(_member(listing.format(_MODEL))))
    config = _dict_to_dataclass(schema.PayloadConfig, value).config
    found = {}
    for name, payload in config.items():
        data = file.read(_member(f"{directory}{payload.path_name}"))
        dtype = deserialize_scalar_type(payload.tensor_meta.dtype)
        shape = deserialize_size(payload.tensor_meta.sizes)
        if data:
            # The buffer is a copy of its own that can be written to.
            tensor = torch.frombuffer(bytearray(data), dtype=dtype).view(shape)
        else:
            tensor = _untouched_zeros(shape, dtype)
        found[name] = (
            torch.nn.Parameter(tensor, requires_grad=False) if payload.is_param else tensor
        )
    return found


def _untouched_zeros(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Zeros as the operating system gives them: `torch.zeros` would write every page."""
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        # Nothing to touch, and no memory that another dtype could be a view of.
        return torch.zeros(tuple(shape), dtype=dtype)
    return torch.from_numpy(numpy.zeros(size, numpy.uint8)).view(dtype).view(shape)


def _records(program: ExportedProgram) -> dict[str, bytes]:
    """Names and contents of the archive's members, in order."""
    artifact = serialize(
        program,
        serialize_state_dict=False,
        serialize_constants=False,
        serialize_example_inputs=False,
    )
    records = {
        archive.ARCHIVE_FORMAT_PATH: archive.ARCHIVE_FORMAT_VALUE.encode(),
        archive.ARCHIVE_VERSION_PATH: archive.ARCHIVE_VERSION_VALUE.encode(),
        ".data/version": _ZIP_VERSION,
        "byteorder": b"little",
        archive.MODELS_FILENAME_FORMAT.format(_MODEL): _canonical_json(artifact.exported_program),
        archive.SAMPLE_INPUTS_FILENAME_FORMAT.format(_MODEL): b"",
    }
    used = set(program.graph_signature.inputs_to_parameters.values())
    used |= set(program.graph_signature.inputs_to_buffers.values())
    state = {name: tensor for name, tensor in program.state_dict.items() if name in used}
    parameters = set(program.graph_signature.parameters)
    for directory, prefix, config_name, tensors in (
        (
            archive.WEIGHTS_DIR,
            archive.WEIGHT_FILENAME_PREFIX,
            archive.WEIGHTS_CONFIG_FILENAME_FORMAT,
            state,
        ),
        (
            archive.CONSTANTS_DIR,
            archive.TENSOR_CONSTANT_FILENAME_PREFIX,
            archive.CONSTANTS_CONFIG_FILENAME_FORMAT,
            program.constants,
        ),
    ):
        config = {}
        for index, (name, tensor) in enumerate(sorted(tensors.items())):
            path = f"{prefix}{index}"
            config[name] = schema.PayloadMeta(
                path_name=path,
                is_param=name in parameters,
                use_pickle=False,
                tensor_meta=serialize_tensor_meta(tensor.contiguous()),
            )
            records[f"{directory}{path}"] = b"" if name in parameters else _contents(tensor)
        listing = _dataclass_to_dict(schema.PayloadConfig(config=config))
        records[config_name.format(_MODEL)] = _dump(listing)
    return records


def _contents(tensor: torch.Tensor) -> bytes:
    """The bytes of a small tensor; none if it is all zeros, which is what no bytes are read as."""
    if not tensor.any():
        return b""
    return tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def _dump(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _canonical_json(text: bytes) -> bytes:
    """The serialized graph without what differs between two runs of the same export."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], str(len(numbers)))

    def clean(value: Any) -> Any:
        if isinstance(value, list):
            return [clean(item) for item in value]
        if not isinstance(value, dict):
            return value
        value = {key: clean(item) for key, item in value.items()}
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            for key in _DROPPED_METADATA:
                metadata.pop(key, None)
            if "nn_module_stack" in metadata:
                metadata["nn_module_stack"] = _IDENTITY.sub(number, metadata["nn_module_stack"])
        return value

    return _dump(clean(json.loads(text)))
