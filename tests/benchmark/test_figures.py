"""Figures are medians with their spread, and every promised key has a section that gives it."""

import re
from pathlib import Path

import pytest

from tools.benchmark import benchmark


def test_medians_and_spread():
    figures = benchmark.Figures()
    figures.add("ours", [3.0, 1.0, 2.0], "s", "ours_s")
    figures.add("once", [4.0], "")
    assert figures.medians == {"ours_s": 2.0}
    assert figures.render().splitlines() == ["ours  2 s  1 to 3", "once  4    one run"]


def test_another_program_than_the_stock_one_is_no_result(monkeypatch):
    runs = [{"sha256": "a", "total_s": 10.0}, {"sha256": "b", "total_s": 1.0, "weight_bytes": 1}]
    monkeypatch.setattr(benchmark, "lower", lambda *arguments: runs)
    with pytest.raises(SystemExit, match="not the stock program"):
        benchmark.lowering(benchmark.Figures(), 1)


def test_ratios_of_lowering(monkeypatch):
    stock = {"sha256": "a", "total_s": 90.0}
    fast = {"sha256": "a", "total_s": 10.0, "lower_rss": 500, "emit_rss": 600, "weight_bytes": 300}
    monkeypatch.setattr(benchmark, "lower", lambda *arguments: [stock, fast])
    figures = benchmark.Figures()
    benchmark.lowering(figures, 2)
    assert figures.medians == {
        "lower_speedup_fp32": 9.0,
        "lower_speedup_8da4w": 9.0,
        "peak_rss_over_weights": 2.0,
    }


def test_every_key_that_the_docs_name_is_measured():
    source = Path(benchmark.__file__).read_text()
    for key in (
        "lower_speedup_fp32",
        "lower_speedup_8da4w",
        "layers_growth_8_to_32",
        "null_build_s",
        "peak_rss_over_weights",
        "worker_overhead_s",
        "decode_vs_stock_fp32",
        "decode_8da4w_vs_stock_fp32",
    ):
        assert re.search(f'"{key}"', source), key
