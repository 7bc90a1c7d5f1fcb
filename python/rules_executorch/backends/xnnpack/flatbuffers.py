"""The flatbuffers of all XNNPACK delegates, made by one run of the compiler.

Rests on `executorch/backends/xnnpack/serialization/xnnpack_graph_serialize.py`
(`convert_to_flatbuffer`), which writes the schema and starts `flatc` once for each delegate, and
on `executorch/exir/backend/backend_details.py` (`preprocess_multimethod`). The compiler takes any
number of files and treats each alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from executorch.backends.xnnpack import xnnpack_preprocess
from executorch.backends.xnnpack.serialization import xnnpack_graph_serialize as serialize
from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
from executorch.exir._serialize import _flatbuffer

from rules_executorch.compat.patch import replaced

# Files of one run of the compiler: their names have to fit on a command line.
_BATCH = 500


@dataclasses.dataclass(frozen=True)
class _Later:
    """The arguments of a serialization that is still to be done."""

    graph: Any
    constants: bytearray


def _payloads(graphs: Sequence[Any]) -> list[bytes]:
    """The flatbuffer of each graph.

    Raises:
        AssertionError: a graph has a symbolic size in it.
        subprocess.CalledProcessError: the compiler refused a graph.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        schema = folder / "schema.fbs"
        schema.write_bytes(serialize._get_schema_bytes())
        files = []
        for number, graph in enumerate(graphs):
            serialize.sanity_check_xnngraph_dataclass(graph)
            text = json.dumps(graph, cls=serialize._DataclassEncoder).encode("ascii")
            files.append(folder / f"{number}.json")
            files[-1].write_bytes(_flatbuffer._replace_non_finite_in_json(text))
        _flatbuffer._run_flatc(["--binary", "-o", name, str(schema), *map(str, files)])
        return [file.with_suffix(".bin").read_bytes() for file in files]


@contextlib.contextmanager
def single_compilation() -> Iterator[None]:
    """Serialize the delegates of all methods together, after the last is preprocessed."""
    stock_serialize = xnnpack_preprocess.serialize_xnnpack_binary
    stock_multimethod = XnnpackBackend.preprocess_multimethod
    collecting = False

    def serialize_later(graph: Any, constants: bytearray) -> Any:
        if collecting and serialize.logger.getEffectiveLevel() != logging.DEBUG:
            return _Later(graph, constants)
        return stock_serialize(graph, constants)

    def finish(pending: Sequence[Any]) -> None:
        payloads = iter(_payloads([result.processed_bytes.graph for result in pending]))
        with replaced(serialize, "convert_to_flatbuffer", lambda graph: next(payloads)):
            for result in pending:
                later = result.processed_bytes
                result.processed_bytes = stock_serialize(later.graph, later.constants)

    def preprocess_multimethod(cls: type, programs: Any, compile_specs: Any) -> Any:
        nonlocal collecting
        collecting = True
        try:
            results = stock_multimethod(programs, compile_specs)
        finally:
            collecting = False
        pending = [
            result
            for method in results.values()
            for result in method
            if isinstance(result.processed_bytes, _Later)
        ]
        for start in range(0, len(pending), _BATCH):
            finish(pending[start : start + _BATCH])
        return results

    with (
        replaced(xnnpack_preprocess, "serialize_xnnpack_binary", serialize_later),
        replaced(XnnpackBackend, "preprocess_multimethod", classmethod(preprocess_multimethod)),
    ):
        yield
