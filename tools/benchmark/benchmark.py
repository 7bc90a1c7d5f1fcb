"""The benchmark: what this project does beside what the stock tools do, on this machine.

    ./bazelw run //tools/benchmark -- --json figures.json
    ./bazelw run //tools/benchmark -- --only worker growth

Everything that is compared runs in one call, in turns, each in a process of its own with the
packages of the same toolchain. The stock pipeline is the same script without the patches of
`rules_executorch.compat`. Figures are medians over `--runs`, with the smallest and the largest.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

LOWERING = Path(__file__).with_name("lowering.py")
REAL_MODEL = "//models:smollm2_135m_xnnpack"


@dataclasses.dataclass
class Figures:
    """What was measured: rows for people, and medians by key for programs."""

    rows: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    medians: dict[str, float] = dataclasses.field(default_factory=dict)

    def add(self, title: str, values: Sequence[float], unit: str, key: str | None = None) -> None:
        """Adds a row; `key` also puts the median among the figures that are written as JSON."""
        median = statistics.median(values)
        spread = f"{min(values):.3g} to {max(values):.3g}" if len(values) > 1 else "one run"
        self.rows.append((title, f"{median:.3g} {unit}".strip(), spread))
        if key is not None:
            self.medians[key] = median

    def render(self) -> str:
        """The table."""
        widths = [max(len(row[i]) for row in self.rows) for i in range(3)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in self.rows
        )


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"benchmark: {text}", file=sys.stderr, flush=True)


def lower(*arguments: str) -> list[dict[str, Any]]:
    """Runs lowering.py and gives its measurements, the stock one first where there are two."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, str(LOWERING), *arguments, "--json", file.name]
        subprocess.run(command, check=True, stdout=sys.stderr)
        return json.load(file)


def peak(measurement: dict[str, Any]) -> float:
    """Largest resident bytes of a measurement."""
    return max(value for key, value in measurement.items() if key.endswith("_rss"))


def lowering(figures: Figures, runs: int) -> None:
    """Stock against fast for SmolLM2's shape, in floating point and quantized."""
    for name, key, extra in (
        ("float32", "lower_speedup_fp32", ()),
        ("8da4w", "lower_speedup_8da4w", ("--quantized",)),
    ):
        ratios, ours, memory = [], [], []
        for run in range(runs):
            say(f"lowering SmolLM2-135M's shape, {name}, stock and fast, run {run + 1} of {runs}")
            stock, fast = lower("--layers", "30", "--smollm2", "--stock", *extra)
            if stock["sha256"] != fast["sha256"]:
                raise SystemExit(f"benchmark: {name}: the fast program is not the stock program.")
            ratios.append(stock["total_s"] / fast["total_s"])
            ours.append(fast["total_s"])
            memory.append(peak(fast) / fast["weight_bytes"])
        figures.add(f"lower SmolLM2-135M {name}, XNNPACK: ours", ours, "s")
        figures.add("  stock / ours, same bytes", ratios, "times", key)
        if not extra:
            figures.add("  peak memory / weights", memory, "times", "peak_rss_over_weights")


def growth(figures: Figures, runs: int) -> None:
    """Time from 8 to 32 layers of the same width."""
    ratios = []
    for run in range(runs):
        say(f"growth from 8 to 32 layers, run {run + 1} of {runs}")
        (small,), (large,) = lower("--layers", "8"), lower("--layers", "32")
        ratios.append(large["total_s"] / small["total_s"])
    figures.add("32 layers / 8 layers of one width", ratios, "times", "layers_growth_8_to_32")


@contextlib.contextmanager
def worker(main: Path) -> Iterator[Callable[[list[str]], dict[str, Any]]]:
    """A persistent worker; yields a function that sends a request and waits for the answer."""
    command = [sys.executable, str(main), "--persistent_worker"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:

        def ask(arguments: list[str]) -> dict[str, Any]:
            request = json.dumps({"arguments": arguments, "requestId": 0})
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        try:
            yield ask
        finally:
            process.stdin.close()


def warm_worker(figures: Figures, runs: int) -> None:
    """What a request costs beside its work: `lower` refusing its options, cold and warm."""
    main = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"], "python", "main.py")
    with tempfile.TemporaryDirectory() as folder:
        options = Path(folder, "options.json")
        options.write_text('{"backend": "portable", "backend_options": {"no_such": 1}}')
        signature = Path(folder, "signature.json")
        signature.write_text('{"dtype": "float32", "options": {"quantization": null}}')
        arguments = ["lower", "--options", str(options), "--signature", str(signature)]
        arguments += ["--model-description", str(signature), "--exported", "x", "--config", "x"]
        arguments += ["--weights", "x", "--out-program", "x", "--out-manifest", "x"]
        arguments += ["--out-report", "x"]
        cold, warm = [], []
        say("a request that is refused at once, by a cold process and by a warm worker")
        with worker(main) as ask:
            ask(arguments)
            for _ in range(max(runs, 3)):
                start = time.perf_counter()
                done = subprocess.run([sys.executable, str(main), *arguments], capture_output=True)
                cold.append(time.perf_counter() - start)
                start = time.perf_counter()
                answer = ask(arguments)
                warm.append(time.perf_counter() - start)
                if done.returncode != 1 or "no_such" not in answer["output"]:
                    raise SystemExit(f"benchmark: the request was not refused: {answer}")
    figures.add("overhead of an action, cold process", cold, "s")
    figures.add("overhead of an action, warm worker", warm, "s", "worker_overhead_s")


def bazel(*arguments: str) -> float:
    """Runs Bazel in the checkout; gives seconds.

    Raises:
        SystemExit: it failed; what it said is above.
    """
    root = os.environ["BUILD_WORKSPACE_DIRECTORY"]
    start = time.perf_counter()
    done = subprocess.run(["./bazelw", *arguments], cwd=root, stdout=sys.stderr)
    if done.returncode:
        raise SystemExit(f"benchmark: bazel {' '.join(arguments)} failed.")
    return time.perf_counter() - start


def null_build(figures: Figures, runs: int) -> None:
    """A build of the real model after no change, on a warm server."""
    say("building the real model, then again after no change")
    bazel("build", REAL_MODEL)
    seconds = [bazel("build", REAL_MODEL) for _ in range(max(runs, 3))]
    figures.add("null build of SmolLM2-135M", seconds, "s", "null_build_s")


def programs(figures: Figures, runs: int) -> None:
    """Our programs against the plain one, through the same C++ runner."""
    for target, key in (
        ("//models:smollm2_135m_benchmark", "decode_vs_stock_fp32"),
        ("//models:smollm2_135m_8da4w_benchmark", "decode_8da4w_vs_stock_fp32"),
    ):
        say(f"program speed: {target}")
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            bazel("run", target, "--", "--runs", str(max(runs, 3)), "--json", file.name)
            summary = json.load(file)["summary"]
        ours, plain = summary
        for figure, title in (
            ("prefill_tokens_per_s", "prefill"),
            ("decode_tokens_per_s", "decode"),
        ):
            ratio = summary[plain][figure]["first_over_this"]
            figures.add(
                f"{title}: {ours} / {plain}",
                [ratio["low"], ratio["median"], ratio["high"]],
                "times",
                key if title == "decode" else None,
            )


SECTIONS: dict[str, Callable[[Figures, int], None]] = {
    "worker": warm_worker,
    "null": null_build,
    "growth": growth,
    "programs": programs,
    "lowering": lowering,
}


def machine() -> str:
    """The machine, for the head of a report."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, load {load:.1f} at the start"


def main(argv: list[str]) -> int:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="sections to run")
    parser.add_argument("--runs", type=int, default=3, help="runs of what takes minutes")
    parser.add_argument("--json", help="also write the medians to this file")
    args = parser.parse_args(argv)
    if args.runs < 1:
        parser.error("--runs has to be 1 or more")
    if shutil.which("bash") is None or "BUILD_WORKSPACE_DIRECTORY" not in os.environ:
        parser.error("run it by `./bazelw run //tools/benchmark -- ...`")
    print(machine())
    figures = Figures()
    for name in args.only or SECTIONS:
        SECTIONS[name](figures, args.runs)
    print(figures.render())
    if args.json:
        path = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), args.json)
        path.write_text(json.dumps(figures.medians, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
