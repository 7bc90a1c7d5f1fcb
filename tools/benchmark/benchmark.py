"""The benchmark: what this project does beside what the stock tools do, on this machine.

    ./bazelw run //tools/benchmark -- --json figures.json --markdown docs/benchmarks.md
    ./bazelw run //tools/benchmark -- --only worker growth --runs 5
    ./bazelw run //tools/benchmark -- --small

Everything that is compared runs in one call, in turns, each in a process of its own with the
packages of the same toolchain. The stock pipeline is the same script without the patches of
`rules_executorch.compat`. Figures are medians with the smallest and the largest. A section that
fails is reported, and the others run. `--small` tries everything with tiny models: its figures say
that the benchmark works and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rules_executorch.export.signature import read_signature
from tools.benchmark import builds
from tools.benchmark.figures import Figures, write_markdown

HERE = Path(__file__).resolve().parent
KEYS = {
    "lower_speedup_fp32": "lowering",
    "lower_speedup_8da4w": "lowering",
    "eight_devices_speedup": "builds",
    "layers_growth_8_to_32": "growth",
    "null_build_s": "builds",
    "peak_rss_over_weights": "builds",
    "worker_overhead_s": "worker",
    "decode_vs_stock_fp32": "programs",
    "decode_8da4w_vs_stock_fp32": "programs",
}
"""What `--json` has at least, and the section that each is from."""

_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "bfloat16",
    "hidden_act": "silu",
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
}


def _llama(
    hidden: int, intermediate: int, layers: int, heads: int, kv: int, vocab: int, tie: bool
) -> dict[str, Any]:
    return _LLAMA | {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": vocab,
        "tie_word_embeddings": tie,
    }


ARCHITECTURES = {
    "1b": _llama(2048, 8192, 16, 32, 8, 128256, True),
    "7b": _llama(4096, 11008, 32, 32, 32, 32000, False),
}
"""Shapes of Llama 3.2 1B and Llama 2 7B."""

SMALL_ARCHITECTURES = {
    "1b": _llama(256, 512, 2, 4, 2, 1024, True),
    "7b": _llama(1024, 2048, 2, 8, 8, 1024, False),
}


@dataclasses.dataclass
class Context:
    """What a call of the benchmark asks for.

    Attributes:
        root: the checkout.
        runs: of what takes seconds or a minute.
        stock_runs: of the stock pipeline, which takes many minutes.
        builds: of what Bazel builds cold or after a change.
        small: tiny models instead of the real ones.
        all_stock_runs: whether the eight stock runs for eight devices are really made.
        bazel_options: startup options of Bazel in the checkout.
        stock_walls: seconds of whole stock runs in float32, from the start of the process to the
            written program, as measured so far.
    """

    root: Path
    runs: int = 3
    stock_runs: int = 1
    builds: int = 1
    small: bool = False
    all_stock_runs: bool = False
    bazel_options: Sequence[str] = ()
    stock_walls: list[float] = dataclasses.field(default_factory=list)

    @property
    def bazelw(self) -> list[str]:
        """The command that runs Bazel in the checkout."""
        return [str(self.root / "bazelw"), *self.bazel_options]

    @property
    def shape(self) -> list[str]:
        """Arguments of lowering.py for the model."""
        return ["--layers", "2"] if self.small else ["--layers", "30", "--smollm2"]

    @property
    def model(self) -> str:
        """The model's name, for the table."""
        return "a tiny Llama" if self.small else "SmolLM2-135M"


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"{time.strftime('%H:%M:%S')}  benchmark: {text}", file=sys.stderr, flush=True)


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Runs a script with the packages of this process."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), OMP_NUM_THREADS="1")
    return subprocess.run([sys.executable, *arguments], env=environment, **options)


def lower(*arguments: str) -> dict[str, Any]:
    """Runs lowering.py once and gives its measurement."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [str(HERE / "lowering.py"), *arguments, "--json", file.name]
        python(*command, check=True, stdout=sys.stderr)
        (measurement,) = json.load(file)
    return measurement


def peak(measurement: Mapping[str, Any]) -> float:
    """Largest resident bytes of a measurement."""
    return max(value for key, value in measurement.items() if key.endswith("_rss"))


def lowering(context: Context, figures: Figures) -> None:
    """Stock against fast for the model's shape, in floating point and quantized."""
    for name, key, extra in (
        ("float32", "lower_speedup_fp32", ()),
        ("8da4w", "lower_speedup_8da4w", ("--quantized",)),
    ):
        fast: list[dict[str, Any]] = []
        stock: list[dict[str, Any]] = []
        for run in range(max(context.runs, context.stock_runs)):
            for measured, wanted, options in (
                (fast, context.runs, ()),
                (stock, context.stock_runs, ("--only-stock",)),
            ):
                if run < wanted:
                    who = "stock" if options else "ours"
                    say(f"lowering {context.model}, {name}, {who}, run {run + 1} of {wanted}")
                    measured.append(lower(*context.shape, *options, *extra))
        if len({measurement["sha256"] for measurement in (*fast, *stock)}) != 1:
            raise RuntimeError(f"{name}: the programs of ours and stock are not the same bytes")
        if not extra:
            context.stock_walls += [measurement["wall_s"] for measurement in stock]
        what = f"lower {context.model} {name} for XNNPACK"
        figures.add(f"{what}: ours", [m["total_s"] for m in fast], "s")
        figures.add(f"{what}: stock", [m["total_s"] for m in stock], "s")
        figures.add(f"{what}: stock / ours", ratios(stock, fast, "total_s"), "x", key)
        figures.add(
            f"{what}: processor time, stock / ours", ratios(stock, fast, "total_cpu_s"), "x"
        )
        over = [peak(m) / m["weight_bytes"] for m in stock]
        figures.add(f"export and lower {name}, stock: peak memory / weights", over, "x")
    figures.note(
        "From the exported program to the written .pte, the same flags, one thread; all programs "
        "of a kind are the same bytes. Weights are random: lowering does not look at their values."
    )


def ratios(
    above: Sequence[Mapping[str, Any]], below: Sequence[Mapping[str, Any]], key: str
) -> list[float]:
    """Run by run; the shorter list is gone through again."""
    count = max(len(above), len(below))
    return [above[i % len(above)][key] / below[i % len(below)][key] for i in range(count)]


def growth(context: Context, figures: Figures) -> None:
    """Time from 8 to 32 layers of the same width."""
    layers = (1, 4) if context.small else (8, 32)
    measured: list[list[float]] = [[], []]
    for run in range(context.runs):
        for depth, seconds in zip(layers, measured, strict=True):
            say(f"growth: {depth} layers, run {run + 1} of {context.runs}")
            seconds.append(lower("--layers", str(depth))["total_s"])
    for depth, seconds in zip(layers, measured, strict=True):
        figures.add(f"lower {depth} layers of one width", seconds, "s")
    quotients = [large / small for small, large in zip(*measured, strict=True)]
    title = f"{layers[1]} layers / {layers[0]} layers"
    figures.add(title, quotients, "x", "layers_growth_8_to_32")


@contextlib.contextmanager
def worker(main: Path) -> Iterator[Callable[[list[str]], dict[str, Any]]]:
    """A persistent worker; yields a function that sends a request and waits for the answer."""
    command = [sys.executable, str(main), "--persistent_worker"]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None and stdout is not None

        def ask(arguments: list[str]) -> dict[str, Any]:
            request = json.dumps({"arguments": arguments, "requestId": 0})
            stdin.write(request.encode() + b"\n")
            stdin.flush()
            return json.loads(stdout.readline())

        try:
            yield ask
        finally:
            stdin.close()


def _tiny_export(main: Path, folder: Path) -> tuple[str, str]:
    """Signature and description of a model that is as small as can be."""
    config, weights, program, signature, description = (
        str(folder / name)
        for name in ("config.json", "model.safetensors", "x.pt2", "signature.json", "model.json")
    )
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 16}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1}
    Path(config).write_text(json.dumps(_LLAMA | sizes | heads))
    options = folder / "export.json"
    options.write_text(json.dumps({"max_cache_len": 2}))
    for arguments in (
        ["tiny", "--config", config, "--out-weights", weights],
        ["describe", "--files", config, weights, "--out-config", str(folder / "normalized.json")]
        + ["--out-model", description],
        ["export", "--options", str(options), "--config", config, "--out-program", program]
        + ["--out-signature", signature],
    ):
        python(str(main), *arguments, check=True, stdout=sys.stderr)
    return signature, description


def warm_worker(context: Context, figures: Figures) -> None:
    """What a request costs beside its work: `lower` refusing its options, cold and warm."""
    main = context.root / "python" / "main.py"
    with tempfile.TemporaryDirectory() as folder:
        options = Path(folder, "options.json")
        options.write_text('{"backend": "portable", "backend_options": {"no_such": 1}}')
        signature, description = _tiny_export(main, Path(folder))
        arguments = ["lower", "--options", str(options), "--signature", signature]
        arguments += ["--model-description", description, "--exported", "x", "--config", "x"]
        arguments += ["--weights", "x", "--out-program", "x", "--out-manifest", "x"]
        arguments += ["--out-report", "x"]
        cold, warm = [], []
        with worker(main) as ask:
            ask(arguments)
            for run in range(max(context.runs, 3)):
                say(f"an action of no work, cold and warm, run {run + 1}")
                start = time.perf_counter()
                done = python(str(main), *arguments, capture_output=True)
                cold.append(time.perf_counter() - start)
                start = time.perf_counter()
                answer = ask(arguments)
                warm.append(time.perf_counter() - start)
                if done.returncode != 1 or "no_such" not in answer["output"]:
                    raise RuntimeError(f"the request was not refused: {answer}")
    figures.add("overhead of an action: cold process", cold, "s")
    figures.add("overhead of an action: warm worker", warm, "s", "worker_overhead_s")
    figures.note("A lowering that is refused for its options, once everything is imported.")


def through_bazel(context: Context, figures: Figures) -> None:
    """Cold, null and changed builds of one device, and eight devices of one model."""
    make = builds.small_workspace(context.root)
    if not context.small:
        make = builds.smollm2_workspace(context.root, context.bazelw)
    eight: list[float] = []
    cold: list[float] = []
    null: list[float] = []
    weights: list[float] = []
    option: list[float] = []
    over: list[float] = []
    everything = {"HfModelDescribe": 1, "ExecutorchExport": 1, "ExecutorchLower": 1}
    only_weights = {"HfModelDescribe": 1, "ExecutorchLower": 1}
    only_graph = {"ExecutorchExport": 1, "ExecutorchLower": 1}
    say("making a workspace")
    with make as workspace:
        caches = (32, 48) if context.small else (2048, 1920)

        def built(seconds: list[float], devices: Sequence[str], actions: Mapping[str, int]) -> None:
            took, executed = workspace.build(devices)
            seconds.append(took)
            if executed != actions:
                raise RuntimeError(f"the build ran {executed}, and {dict(actions)} was to be run")

        for run in range(context.builds):
            of = f"run {run + 1} of {context.builds}"
            workspace.set_cache(caches[0])
            say(f"eight devices, cold, {of}")
            workspace.forget()
            built(eight, list(builds.DEVICES), everything)
            say(f"one device, cold, {of}")
            workspace.forget()
            built(cold, [builds.ONE], everything)
            timings = workspace.output(builds.ONE, ".timings.json")
            parameters = workspace.output(builds.ONE, ".manifest.json")["model"]["parameters"]
            over.append(timings["peak_rss_bytes"] / (4 * parameters))
            say("nothing changed")
            for _ in range(max(context.runs, 3)):
                built(null, [builds.ONE], {})
            say(f"other weights, {of}")
            workspace.change_weights()
            built(weights, [builds.ONE], only_weights)
            say(f"another option, {of}")
            workspace.set_cache(caches[1])
            built(option, [builds.ONE], only_graph)
    figures.add("one device, cold", cold, "s")
    figures.add("one device, nothing changed", null, "s", "null_build_s")
    figures.add("one device, other weights (checks and lowers, exports nothing)", weights, "s")
    figures.add("one device, another cache length (exports and lowers)", option, "s")
    figures.add("eight devices, cold", eight, "s")
    over_title = f"lower {context.model} float32: peak memory / weights"
    figures.add(over_title, over, "x", "peak_rss_over_weights")
    stock = eight_stock_runs(context)
    figures.add("eight stock runs", stock, "s")
    speedups = [stock[i % len(stock)] / ours for i, ours in enumerate(eight)]
    title = "eight devices: stock / ours"
    figures.add(title, speedups, "x", "eight_devices_speedup")
    figures.note(
        "Cold: no output, no worker, no cache of outputs; packages and repositories are there. "
        "The eight devices take XNNPACK on eight systems: one export and one lowering serve all."
    )
    how = "eight runs" if context.all_stock_runs else "8 times each whole run that was measured"
    figures.note(
        f"Stock: {how} of a process that imports, makes the model, exports, lowers and writes with "
        "transformers and executorch as they are, which know of no other device."
    )


def eight_stock_runs(context: Context) -> list[float]:
    """Seconds of eight stock runs: measured, or 8 times each whole run that was."""
    if context.all_stock_runs:
        while len(context.stock_walls) < 8:
            say(f"eight stock runs: run {len(context.stock_walls) + 1} of 8")
            context.stock_walls.append(lower(*context.shape, "--only-stock")["wall_s"])
        return [sum(context.stock_walls[:8])]
    if not context.stock_walls:
        say("a stock run")
        context.stock_walls.append(lower(*context.shape, "--only-stock")["wall_s"])
    return [8 * wall for wall in context.stock_walls]


def export_memory(context: Context, figures: Figures) -> None:
    """Exports of large architectures from their configuration alone."""
    main = str(context.root / "python" / "main.py")
    options = {"max_cache_len": 64 if context.small else 2048, "max_seq_len": 16}
    architectures = SMALL_ARCHITECTURES if context.small else ARCHITECTURES
    for name, config in architectures.items():
        say(f"export of a {name} architecture")
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            (folder / "config.json").write_text(json.dumps(config))
            (folder / "options.json").write_text(json.dumps(options))
            timings = folder / "timings.json"
            arguments = ["--config", str(folder / "config.json")]
            arguments += ["--options", str(folder / "options.json")]
            arguments += ["--out-program", str(folder / "x.pt2")]
            arguments += ["--out-signature", str(folder / "x.json")]
            arguments += ["--out-timings", str(timings)]
            python(main, "export", *arguments, check=True, stdout=sys.stderr)
            took = json.loads(timings.read_text())
            signature = read_signature(str(folder / "x.json"))
        cache = signature.cache
        assert cache is not None
        weights = 4 * sum(_size(tensor.sizes) for tensor in signature.parameters)
        what = f"export of a {name.upper()} Llama in float32"
        figures.add(f"{what}: time", [took["seconds"]], "s", f"export_{name}_s")
        used = took["peak_rss_bytes"] / 1e9
        figures.add(f"{what}: peak memory", [used], "GB", f"export_{name}_peak_gb")
        figures.add("  of it the cache's buffers", [cache.bytes / 1e9], "GB")
        figures.add("  the weights that it stands for", [weights / 1e9], "GB")
    figures.note("From config.json alone: there are no weights.")


def _size(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def programs(context: Context, figures: Figures) -> None:
    """Our programs against the plain one, through the same C++ runner."""
    fp32, quantized = "//models:smollm2_135m_benchmark", "//models:smollm2_135m_8da4w_benchmark"
    if context.small:
        fp32 = quantized = "//models:tiny_llama_benchmark"
    for target, kind, key in (
        (fp32, "float32", "decode_vs_stock_fp32"),
        (quantized, "8da4w", "decode_8da4w_vs_stock_fp32"),
    ):
        say(f"program speed: {target}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "figures.json")
            command = [*context.bazelw, "run", "--curses=no", "--show_progress_rate_limit=30"]
            command += [target, "--", "--runs", str(max(context.runs, 3)), "--json", str(path)]
            command += ["--prompt-tokens", "8", "--new-tokens", "8"] if context.small else []
            subprocess.run(command, cwd=context.root, check=True, stdout=sys.stderr)
            measured = json.loads(path.read_text())
        # The names are sorted; the first program is the one that no other is compared with.
        by_place = {
            "first_over_this" in figures_of["decode_tokens_per_s"]: measured["runs"][name]
            for name, figures_of in measured["summary"].items()
        }
        ours, plain = by_place[False], by_place[True]
        for figure, title in (
            ("prefill_tokens_per_s", "prefill"),
            ("decode_tokens_per_s", "decode"),
        ):
            what = f"{title}, {context.model} {kind}"
            figures.add(f"{what}: ours", [run[figure] for run in ours], "tokens/s")
            figures.add("  plain float32", [run[figure] for run in plain], "tokens/s")
            name = key if title == "decode" else key.replace("decode", "prefill")
            figures.add("  ours / plain", ratios(ours, plain, figure), "x", name)
    figures.note(
        "ExecuTorch's C++ TextLLMRunner, turns of ours and plain. Plain is what transformers' and "
        "ExecuTorch's examples make: torch's operators, logits of every position, XNNPACK, "
        "float32; the constant methods that the runner reads are added."
    )


def peers(context: Context, figures: Figures) -> None:
    """transformers' own ExecutorchExporter beside ours, on a model that it exports in minutes."""
    found: dict[str, list[dict[str, Any]]] = {"ours": [], "exporter": []}
    for run in range(context.runs):
        for kind, measured in found.items():
            say(f"a small model, {kind}, run {run + 1} of {context.runs}")
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                arguments = ["--kind", kind, "--root", str(context.root), "--json", file.name]
                arguments += [] if context.small else ["--smollm2"]
                python(str(HERE / "peers.py"), *arguments, check=True, stdout=sys.stderr)
                measured.append(json.load(file))
    ours, exporter = found["ours"], found["exporter"]
    what = "2 layers of a tiny Llama" if context.small else "2 layers of SmolLM2-135M"
    for kind, measured in found.items():
        who = "ours" if kind == "ours" else "ExecutorchExporter"
        figures.add(f"{what}, export and lower: {who}", [m["build_s"] for m in measured], "s")
    figures.add(
        "  ExecutorchExporter / ours", ratios(exporter, ours, "build_s"), "x", "exporter_speedup"
    )
    for kind, measured in found.items():
        who = "ours" if kind == "ours" else "ExecutorchExporter"
        figures.add(f"{what}, decode: {who}", [m["decode_per_s"] for m in measured], "tokens/s")
    key = "decode_vs_exporter_fp32"
    figures.add("  ours / ExecutorchExporter", ratios(ours, exporter, "decode_per_s"), "x", key)
    figures.note(
        "The exporter's programs have no constant methods and take the cache as an input, so the "
        "LLM runner does not load them: decode is the C++ runtime's `Method.execute`, one token a "
        "call, for both. It is measured as it is, without our patches, which is why the model has "
        "two layers."
    )


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A section of the benchmark.

    Attributes:
        title: for the table.
        measure: does it.
        seconds: about what it takes on two quiet cores.
    """

    title: str
    measure: Callable[[Context, Figures], None]
    seconds: Callable[[Context], float]


SECTIONS: dict[str, Measurement] = {
    "worker": Measurement("Overhead of an action", warm_worker, lambda c: 10 + 9 * max(c.runs, 3)),
    "growth": Measurement("Growth with layers", growth, lambda c: 35 * c.runs),
    "export": Measurement("Exports of large models", export_memory, lambda c: 80),
    "lowering": Measurement(
        "Lowering, ours and stock",
        lowering,
        lambda c: 135 * c.runs + 730 * c.stock_runs,
    ),
    "builds": Measurement(
        "Builds",
        through_bazel,
        lambda c: 60 + 260 * c.builds + (2000 if c.all_stock_runs else 0),
    ),
    "programs": Measurement("Speed of programs", programs, lambda c: 240 + 30 * max(c.runs, 3)),
    "peers": Measurement("ExecutorchExporter", peers, lambda c: 40 * c.runs),
}


def machine(context: Context) -> list[str]:
    """The machine, the versions and the day, for the head of a report."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    names = ("torch", "executorch", "transformers", "torchao")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in names]
    done = subprocess.run(
        [*context.bazelw, "--version"], cwd=context.root, capture_output=True, text=True
    )
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return [
        f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, {system}; load at the start "
        f"{os.getloadavg()[0]:.2f}",
        f"{', '.join(versions)}, Python {platform.python_version()}, {done.stdout.strip()}",
        f"{datetime.date.today().isoformat()}; {context.runs} runs, {context.stock_runs} of the "
        f"stock pipeline, {context.builds} of builds"
        + ("; TINY MODELS, no result" if context.small else ""),
    ]


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="sections to run")
    parser.add_argument("--runs", type=int, default=3, help="runs of ours")
    parser.add_argument("--stock-runs", type=int, default=1, help="runs of the stock pipeline")
    parser.add_argument("--builds", type=int, default=1, help="runs of what Bazel builds")
    parser.add_argument(
        "--eight-stock-runs",
        action="store_true",
        help="really run the stock pipeline eight times for eight devices",
    )
    parser.add_argument("--small", action="store_true", help="tiny models, to try the benchmark")
    parser.add_argument("--bazel-options", default="", help="startup options of Bazel")
    parser.add_argument("--json", help="also write the medians to this file")
    parser.add_argument("--markdown", help="also write the table into this document")
    args = parser.parse_args(argv)
    for name in ("runs", "stock_runs", "builds"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} has to be 1 or more")
    if "BUILD_WORKSPACE_DIRECTORY" not in os.environ:
        parser.error("run it by `./bazelw run //tools/benchmark -- ...`")
    return args


def run(context: Context, names: Sequence[str], written: Callable[[Figures], None]) -> Figures:
    """Runs sections; one that fails is reported, and the others run.

    Args:
        context: of the call.
        names: of the sections.
        written: is called after every section.
    """
    figures = Figures()
    scale = 0.25 if context.small else 1
    left = {name: SECTIONS[name].seconds(context) * scale for name in names}
    for name in names:
        say(f"section {name}; about {sum(left.values()) / 60:.0f} minutes to go")
        del left[name]
        figures.begin(name, SECTIONS[name].title)
        try:
            SECTIONS[name].measure(context, figures)
        except Exception as error:
            say(f"section {name} FAILED: {error}")
            figures.fail(f"{type(error).__name__}: {error}")
        written(figures)
    return figures


def main(argv: Sequence[str]) -> int:
    """Measures and prints the table.

    Returns:
        0, or 1 if a section failed.
    """
    args = parse(argv)
    start = time.perf_counter()
    context = Context(
        Path(os.environ["BUILD_WORKSPACE_DIRECTORY"]),
        args.runs,
        args.stock_runs,
        args.builds,
        args.small,
        args.eight_stock_runs,
        shlex.split(args.bazel_options),
    )
    where = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    about = machine(context)
    for line in about:
        print(line, flush=True)

    def written(figures: Figures) -> None:
        if args.json:
            text = json.dumps(figures.medians, indent=2, sort_keys=True)
            (where / args.json).write_text(text + "\n")
        if args.markdown:
            write_markdown(where / args.markdown, figures.markdown(about))

    figures = run(context, args.only or list(SECTIONS), written)
    print(figures.render())
    print(f"{(time.perf_counter() - start) / 60:.0f} minutes.")
    if figures.failures:
        print(f"Failed: {', '.join(figures.failures)}.")
    return 1 if figures.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
