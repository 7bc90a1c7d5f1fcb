"""What two builds are compared by."""

from pathlib import Path

from rules_executorch.records.reproduce import outputs, programs


def test_what_is_linked_is_counted_once(tmp_path: Path) -> None:
    """A target links what is made once for all platforms, and a folder for an app links that."""
    root = tmp_path / "execroot" / "_main" / "bazel-out"
    made = root / "executorch" / "bin" / "app" / "program.pte"
    linked = root / "k8-fastbuild" / "bin" / "app" / "program.pte"
    assets = root / "k8-fastbuild" / "bin" / "app" / "assistant" / "model.pte"
    source = tmp_path / "config.json"
    for path in (made, assets):
        path.parent.mkdir(parents=True)
    made.write_text("program")
    source.write_text("{}")
    linked.symlink_to(made)
    assets.symlink_to(linked)
    passed_on = assets.with_name("config.json")
    passed_on.symlink_to(source)

    assert set(outputs(tmp_path).values()) == {made, passed_on}
    assert [path for path, _ in programs(tmp_path)] == ["executorch/bin/app/program.pte"]
