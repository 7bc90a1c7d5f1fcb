"""The merged operators, as ExecuTorch's own selective build reads them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import yaml
from executorch.codegen.gen import get_custom_build_selector, parse_yaml_files
from executorch.codegen.tools import gen_all_oplist, gen_oplist

from rules_executorch.cli import main
from rules_executorch.common.errors import UserError
from rules_executorch.program.inspect import inspect_program
from rules_executorch.program.operator_selection import read_operator_names

PROGRAMS = [Path(f"models/tiny_llama_{backend}.pte") for backend in ("portable", "xnnpack")]
MERGED = Path("tests/apps/operators.yaml")
OF_ONE = Path("models/tiny_llama_xnnpack.operators.yaml")


def package_file(package: str, *parts: str) -> str:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    assert spec and spec.submodule_search_locations
    return str(Path(next(iter(spec.submodule_search_locations)), *parts))


def called(*programs: Path) -> set[str]:
    """The operators that programs call, read without the code under test."""
    return {
        operator
        for program in programs
        for method in inspect_program(str(program)).methods.values()
        for operator in method.operators
    }


def test_every_operator_of_every_program_is_there() -> None:
    assert called(*PROGRAMS) <= set(read_operator_names([str(MERGED)]))
    portable, xnnpack = (called(program) for program in PROGRAMS)
    assert portable != xnnpack
    selected = yaml.safe_load(MERGED.read_text())["operators"]
    only = sorted(portable - xnnpack)[0]
    both = sorted(portable & xnnpack)[0]
    assert selected[only]["debug_info"] == ["tiny_llama_portable.pte"]
    assert selected[both]["debug_info"] == ["tiny_llama_portable.pte", "tiny_llama_xnnpack.pte"]


def test_one_program_gives_what_executorch_itself_writes(tmp_path: Path) -> None:
    path = tmp_path / "selected_operators.yaml"
    gen_oplist.main([f"--output_path={path}", f"--model_file_path={PROGRAMS[1]}"])
    theirs, ours = yaml.safe_load(path.read_text()), yaml.safe_load(OF_ONE.read_text())
    for selected in (theirs, ours):
        for operator in selected["operators"].values():
            del operator["debug_info"]
        for keys in selected["et_kernel_metadata"].values():
            keys.sort()
    assert ours == theirs


def test_executorch_merges_it_with_others(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(f"{MERGED}\n{OF_ONE}\n")
    gen_all_oplist.main([f"--output_dir={tmp_path}", f"--model_file_list_path=@{tmp_path}/list"])
    selected = read_operator_names([str(tmp_path / "selected_operators.yaml")])
    assert selected == read_operator_names([str(MERGED)])


@pytest.mark.parametrize("path", [MERGED, OF_ONE], ids=lambda path: path.stem)
def test_the_selective_build_keeps_these_kernels_and_no_others(path: Path) -> None:
    parsed, _ = parse_yaml_files(
        aten_yaml_path=package_file("torchgen", "packaged/ATen/native/native_functions.yaml"),
        tags_yaml_path=package_file("torchgen", "packaged/ATen/native/tags.yaml"),
        native_yaml_path=package_file("executorch", "kernels/portable/functions.yaml"),
        custom_ops_yaml_path=None,
        selector=get_custom_build_selector(None, str(path)),
        use_aten_lib=False,
    )
    kept = {f"{function.namespace}::{function.func.name}" for function in parsed.native_functions}
    wanted = set(read_operator_names([str(path)]))
    assert kept <= wanted
    # The rest are prim operators, which are in every runtime.
    assert {name for name in wanted - kept if name.startswith("aten::")} <= {
        "aten::_local_scalar_dense",
        "aten::sym_size.int",
    }
    assert len(kept) > 10


def test_what_is_no_program_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "model.pte"
    path.write_bytes(b"not a program at all")
    out = tmp_path / "out.yaml"
    assert main(["operators", "--programs", str(path), "--out-operators", str(out)]) == 1
    assert "is not a program of ExecuTorch" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "words"),
    [("a: [", "is not YAML"), ("- aten::add.out", "has no mapping `operators`")],
)
def test_what_selects_nothing_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "selected.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        read_operator_names([str(path)])
