"""Figures are medians with their spread, every promised key is measured, and a failure is told."""

import argparse
import json
from pathlib import Path

import pytest

from rules_executorch.common.files import write_json
from rules_executorch.run.benchmark import FIGURES, summarize
from tools.benchmark import benchmark, builds
from tools.benchmark.benchmark import KEYS, SECTIONS, Context, Measurement
from tools.benchmark.figures import BEGIN, END, Figures, write_markdown


def filled() -> Figures:
    figures = Figures()
    figures.begin("a", "First")
    figures.add("ours", [3.0, 1.0, 2.0], "s", "ours_s")
    figures.add("once", [1234.4], "x")
    figures.note("How it was done.")
    figures.begin("b", "Second")
    figures.fail("KeyError: 'x'")
    return figures


def test_medians_and_spread() -> None:
    figures = filled()
    assert figures.medians == {"ours_s": 2.0}
    assert figures.failures == ["b"]
    assert [line.rstrip() for line in figures.render().splitlines()] == [
        "First",
        "  what  median  spread  runs",
        "  ours  2 s     1 to 3  3",
        "  once  1234 x          1",
        "  How it was done.",
        "",
        "Second",
        "  what  median  spread  runs",
        "  FAILED: KeyError: 'x'",
    ]


def test_markdown_goes_between_the_marks(tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text(f"# Head\n\n{BEGIN}\nold\n{END}\n\ntail\n")
    for _ in range(2):
        write_markdown(document, filled().markdown(["2 cores"]))
    text = document.read_text()
    assert text.startswith(f"# Head\n\n{BEGIN}\n\n- 2 cores\n\n### First\n")
    assert text.endswith(f"{END}\n\ntail\n")
    assert "| ours | 2 s | 1 to 3 | 3 |" in text and "old" not in text
    assert "ended early: KeyError" in text
    document.write_text("no marks")
    with pytest.raises(ValueError, match="has no lines"):
        write_markdown(document, "x")
    assert document.read_text() == "no marks"
    write_markdown(tmp_path / "new.md", "x")
    assert (tmp_path / "new.md").read_text() == f"{BEGIN}\n\nx\n\n{END}\n"


def test_markdown_is_wrapped() -> None:
    figures = filled()
    figures.note("word " * 50)
    text = figures.markdown(["machine " * 30])
    assert max(map(len, text.splitlines())) <= 120
    assert "\n  word word" in text and "\n  machine machine" in text


def stub_lower(monkeypatch: pytest.MonkeyPatch, calls: list[str], digest: str = "a") -> None:
    def lower(*arguments: str) -> dict[str, object]:
        stock = "--only-stock" in arguments
        calls.append("stock" if stock else "ours")
        return {
            "sha256": digest if stock else "a",
            "total_s": 90.0 if stock else 10.0,
            "total_cpu_s": 80.0 if stock else 10.0,
            "wall_s": 120.0 if stock else 30.0,
            "lower_rss": 600 if stock else 500,
            "emit_rss": 400,
            "weight_bytes": 100,
        }

    monkeypatch.setattr(benchmark, "lower", lower)


def test_ours_and_stock_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    stub_lower(monkeypatch, calls)
    figures = Figures()
    figures.begin("lowering", "Lowering")
    context = Context(Path("."), runs=3, stock_runs=2)
    benchmark.lowering(context, figures)
    assert calls == ["ours", "stock", "ours", "stock", "ours"] * 2
    assert figures.medians == {"lower_speedup_fp32": 9.0, "lower_speedup_8da4w": 9.0}
    assert context.stock_walls == [120.0, 120.0], "whole runs in float32 only"
    (speedup,) = [
        row for row in figures.sections[0].rows if "float32 for XNNPACK: stock /" in row.title
    ]
    assert len(speedup.values) == 3


def test_another_program_than_the_stock_one_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_lower(monkeypatch, [], digest="b")
    figures = Figures()
    figures.begin("lowering", "Lowering")
    with pytest.raises(RuntimeError, match="not the same bytes"):
        benchmark.lowering(Context(Path("."), runs=1), figures)
    assert figures.medians == {}


def test_eight_stock_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    stub_lower(monkeypatch, calls)
    known = Context(Path("."), stock_walls=[100.0, 120.0])
    assert benchmark.eight_stock_runs(known) == [800.0, 960.0]
    assert calls == []
    assert benchmark.eight_stock_runs(Context(Path("."))) == [960.0]
    assert calls == ["stock"]
    really = Context(Path("."), all_stock_runs=True, stock_walls=[100.0])
    assert benchmark.eight_stock_runs(really) == [100.0 + 7 * 120.0]
    assert calls == ["stock"] * 8


class FakeWorkspace:
    """Builds take no time and run what the real rules would."""

    def __init__(self, executed: list[dict[str, int]]) -> None:
        self.executed = executed
        self.done: list[str] = []

    def build(self, devices: list[str]) -> tuple[float, dict[str, int]]:
        self.done.append(f"build {len(devices)}")
        return 30.0, self.executed.pop(0)

    def forget(self) -> None:
        self.done.append("forget")

    def change_weights(self) -> None:
        self.done.append("change weights")

    def set_cache(self, cache: int) -> None:
        self.done.append(f"cache {cache}")

    def output(self, device: str, suffix: str) -> dict[str, object]:
        return {"peak_rss_bytes": 800, "model": {"parameters": 100}}


ALL = {"HfModelDescribe": 1, "ExecutorchExport": 1, "ExecutorchLower": 1}
WEIGHTS = {"HfModelDescribe": 1, "ExecutorchLower": 1}
OPTION = {"ExecutorchExport": 1, "ExecutorchLower": 1}


def build_figures(monkeypatch: pytest.MonkeyPatch, workspace: FakeWorkspace) -> Figures:
    import contextlib

    monkeypatch.setattr(builds, "small_workspace", lambda root: contextlib.nullcontext(workspace))
    figures = Figures()
    figures.begin("builds", "Builds")
    context = Context(Path("."), runs=3, builds=1, small=True, stock_walls=[75.0])
    benchmark.through_bazel(context, figures)
    return figures


def test_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = FakeWorkspace([ALL, ALL, {}, {}, {}, WEIGHTS, OPTION])
    figures = build_figures(monkeypatch, workspace)
    assert workspace.done == [
        *("cache 32", "forget", "build 8", "forget", "build 1", "build 1", "build 1", "build 1"),
        *("change weights", "build 1", "cache 48", "build 1"),
    ]
    assert figures.medians == {
        "null_build_s": 30.0,
        "peak_rss_over_weights": 2.0,
        "eight_devices_speedup": 8 * 75.0 / 30.0,
    }


def test_an_export_after_a_weight_change_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = FakeWorkspace([ALL, ALL, {}, {}, {}, ALL])
    with pytest.raises(RuntimeError, match="was to be run"):
        build_figures(monkeypatch, workspace)


def test_a_section_that_fails_is_told_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def good(context: Context, figures: Figures) -> None:
        figures.add("good", [1.0], "s", "good_s")

    def bad(context: Context, figures: Figures) -> None:
        figures.add("before", [2.0], "s", "before_s")
        raise RuntimeError("no luck")

    sections = {
        "bad": Measurement("Bad", bad, lambda context: 60),
        "good": Measurement("Good", good, lambda context: 60),
    }
    monkeypatch.setattr(benchmark, "SECTIONS", sections)
    monkeypatch.setattr(benchmark, "machine", lambda context: ["2 cores"])
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(tmp_path))
    assert benchmark.main(["--json", "f.json", "--markdown", "f.md"]) == 1
    assert json.loads((tmp_path / "f.json").read_text()) == {"before_s": 2.0, "good_s": 1.0}
    assert "no luck" in (tmp_path / "f.md").read_text()
    printed = capsys.readouterr()
    assert "FAILED: RuntimeError: no luck" in printed.out and "Failed: bad." in printed.out
    assert "about 2 minutes to go" in printed.err
    assert benchmark.main(["--only", "good"]) == 0


def test_every_promised_key_has_a_section_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(benchmark.__file__).read_text()
    for key, section in KEYS.items():
        assert section in SECTIONS
        assert source.count(f'"{key}"') >= 2, key


def test_wrong_usage_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", "/")
    for argv in (["--runs", "0"], ["--only", "nothing"], ["--stock-runs", "0"]):
        with pytest.raises(SystemExit):
            benchmark.parse(argv)
    assert isinstance(benchmark.parse([]), argparse.Namespace)
    monkeypatch.delenv("BUILD_WORKSPACE_DIRECTORY")
    with pytest.raises(SystemExit):
        benchmark.parse([])


def test_weights_change_by_one_bit_and_back(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    weights = tmp_path / "app/checkpoint/model.gguf"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(bytes(range(128)))
    workspace = builds.Workspace(root, tmp_path, weights, 64)
    before = (tmp_path / "app/BUILD.bazel").read_text()
    assert before.count("executorch_device(") == 8 and "max_cache_len = 64" in before
    workspace.change_weights()
    changed = weights.read_bytes()
    assert [i for i in range(128) if changed[i] != i] == [64] and changed[64] == 65
    workspace.change_weights()
    assert weights.read_bytes() == bytes(range(128))


def test_speed_of_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = []

    def run(command: list[str], **_: object) -> None:
        targets.append(command[command.index("--") - 1])
        assert command[command.index("--runs") + 1] == "4"
        others = dict.fromkeys(FIGURES, 1.0)
        ours = [others | {"prefill_tokens_per_s": 90.0, "decode_tokens_per_s": 30.0}] * 4
        plain = [others | {"prefill_tokens_per_s": 30.0, "decode_tokens_per_s": 20.0}] * 4
        path = Path(command[command.index("--json") + 1])
        # Sorted by name, the baseline comes first.
        runs = {"z_ours": ours, "plain": plain}
        write_json(str(path), {"runs": runs, "summary": summarize(runs)})

    monkeypatch.setattr(benchmark.subprocess, "run", run)
    figures = Figures()
    figures.begin("programs", "Programs")
    benchmark.programs(Context(Path("."), runs=4), figures)
    assert targets == ["//models:smollm2_135m_benchmark", "//models:smollm2_135m_8da4w_benchmark"]
    assert figures.medians == {
        "decode_vs_stock_fp32": 1.5,
        "decode_8da4w_vs_stock_fp32": 1.5,
        "prefill_vs_stock_fp32": 3.0,
        "prefill_8da4w_vs_stock_fp32": 3.0,
    }
