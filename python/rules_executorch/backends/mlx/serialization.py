"""The code that writes MLX delegates, made from the schema that the wheel ships.

executorch's wheel has `backends/mlx/serialization/schema.fbs`, the generator `generate.py` and the
compiler `flatc`, but not what they make of it; its import fails without. It is made in a folder of
the action, so an installed toolchain is never written to.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from executorch.data import bin as executorch_bin

PACKAGE = "executorch.backends.mlx.serialization"


@contextlib.contextmanager
def generated_mlx_serialization() -> Iterator[None]:
    """Makes `executorch.backends.mlx` importable while the context lasts.

    Raises:
        ImportError: the wheel has no such generator, or the compiler fails.
    """
    if PACKAGE in sys.modules:
        yield
        return
    before = set(sys.modules)
    with tempfile.TemporaryDirectory(prefix="mlx-") as scratch:
        try:
            folder = _generate(Path(scratch))
            sys.modules[PACKAGE] = _module(PACKAGE, folder / "__init__.py", package=folder)
            yield
        finally:
            # Modules of the folder import each other lazily, so none may outlive it.
            for name in set(sys.modules) - before:
                if name.startswith("executorch.backends.mlx"):
                    del sys.modules[name]


def _generate(scratch: Path) -> Path:
    source = Path(executorch_bin.__file__).parents[2] / "backends" / "mlx" / "serialization"
    folder = scratch / "serialization"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    generator = _module("rules_executorch_mlx_generate", folder / "generate.py")
    flatc = Path(executorch_bin.__file__).parent / "flatc"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        made = generator.run_flatc(str(flatc))
    if not made:
        raise ImportError(f"MLX's serialization code could not be generated: {said.getvalue()}")
    with contextlib.redirect_stdout(io.StringIO()):
        generator._fixup_flatc_imports()
    schema = generator.parse_fbs(generator.SCHEMA_FBS)
    generator.GENERATED_SCHEMA_PY.write_text(generator.generate_python_schema(schema))
    serializers = generator.generate_python_serializers(schema)
    generator.GENERATED_SERIALIZERS.write_text(serializers)
    (generator.GENERATED_DIR / "__init__.py").touch()
    return folder


def _module(name: str, path: Path, package: Path | None = None) -> ModuleType:
    """Loads a module from a file; a package's body is not run, only its submodules are found."""
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[str(package)] if package else None
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if package is not None:
        return module
    # Its dataclasses look the module up by its name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module
