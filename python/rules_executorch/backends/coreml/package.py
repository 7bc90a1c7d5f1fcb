"""The bytes of a Core ML delegate, derived from the model and from nothing else.

A delegate is a folder in one blob: the files' contents, then the tree as JSON written backwards
(executorch, `backends/apple/coreml/runtime/inmemoryfs`). The folder holds a Core ML package, whose
manifest gives each item a random identifier, a model whose metadata has the date of the
conversion and whose maps are written in the order of memory, and an `identifier` drawn at random,
by which the runtime files the compiled model in its cache. Two conversions of one model so differ
in bytes; here they are made equal, and the identifiers become digests of the content.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

_METADATA = "metadata.json"
_MANIFEST = "model.mlpackage/Manifest.json"
_MODEL = "model.mlpackage/Data/com.apple.CoreML/model.mlmodel"
_DATE = "com.github.apple.coremltools.conversion_date"
_ROOT = "lowered_module"
_FILE, _FOLDER = 0, 1


def read_package(blob: bytes) -> dict[str, bytes]:
    """Reads the files of a delegate.

    Args:
        blob: what `executorchcoreml.flatten_directory_contents` or `write_package` makes.

    Returns:
        Path below the folder, to contents.
    """
    nodes = _tree(blob)["nodes"]

    def files(index: int, path: str) -> Iterator[tuple[str, bytes]]:
        node = nodes[index]
        if node["kind"] == _FILE:
            start, size = node["dataRegion"]["offset"], node["dataRegion"]["size"]
            yield path, blob[start : start + size]
        for name, child in node["children"].items():
            yield from files(child, f"{path}/{name}" if path else name)

    return dict(sorted(files(len(nodes) - 1, "")))


def write_package(files: Mapping[str, bytes]) -> bytes:
    """Writes files as a delegate; the same files give the same bytes."""
    tree: dict[str, list[str]] = {"": []}
    for path in sorted(files):
        parts = path.split("/")
        for depth in range(len(parts)):
            parent, child = "/".join(parts[:depth]), "/".join(parts[: depth + 1])
            if child not in tree:
                tree[child] = []
                tree[parent].append(child)
    paths = [""]
    for path in paths:
        paths += tree[path]
    # The reader wants children before their folder, and the root last.
    paths.reverse()
    position = {path: index for index, path in enumerate(paths)}
    nodes, contents, offset = [], [], 0
    for path in paths:
        data = files.get(path, b"")
        region = {"offset": offset if path in files else 0, "size": len(data)}
        nodes.append(
            {
                "children": {child.rpartition("/")[2]: position[child] for child in tree[path]},
                "dataRegion": region,
                "kind": _FILE if path in files else _FOLDER,
                "name": path.rpartition("/")[2] or _ROOT,
            }
        )
        contents.append(data)
        offset += len(data)
    text = json.dumps({"nodes": nodes}, sort_keys=True, separators=(",", ":"))
    return b"".join(contents) + text[::-1].encode("ascii")


def canonical_package(blob: bytes) -> bytes:
    """Rewrites a delegate so that its bytes depend on the model alone.

    Raises:
        KeyError: a file of the package is not where coremltools 9.0 and executorch 1.5 put it.
    """
    files = read_package(blob)
    files[_MODEL] = _canonical_model(files[_MODEL])
    files[_MANIFEST] = _canonical_manifest(files[_MANIFEST])
    metadata = json.loads(files.pop(_METADATA))
    digest = hashlib.sha256()
    for path, data in files.items():
        digest.update(f"{path}\0{len(data)}\0".encode())
        digest.update(data)
    metadata["identifier"] = f"executorch_{uuid.UUID(bytes=digest.digest()[:16])}"
    files[_METADATA] = json.dumps(metadata).encode()
    return write_package(files)


def _tree(blob: bytes) -> dict[str, Any]:
    # A brace or quote inside a name reads the same from both ends, so the JSON decoder finds where
    # the text, turned around, stops.
    tail = 1 << 12
    while True:
        text = blob[-tail:][::-1].decode("latin-1")
        try:
            return json.JSONDecoder().raw_decode(text)[0]
        except json.JSONDecodeError:
            if tail >= len(blob):
                raise
            tail *= 4


def _canonical_model(data: bytes) -> bytes:
    from coremltools.proto import Model_pb2

    model = Model_pb2.Model.FromString(data)
    model.description.metadata.userDefined.pop(_DATE, None)
    return model.SerializeToString(deterministic=True)


def _canonical_manifest(data: bytes) -> bytes:
    manifest = json.loads(data)
    entries = manifest["itemInfoEntries"]
    named = {
        key: str(uuid.uuid5(uuid.NAMESPACE_URL, f"{entry['author']}/{entry['path']}")).upper()
        for key, entry in entries.items()
    }
    manifest["itemInfoEntries"] = {named[key]: entry for key, entry in entries.items()}
    manifest["rootModelIdentifier"] = named[manifest["rootModelIdentifier"]]
    return json.dumps(manifest, sort_keys=True, indent=4).encode()
