"""`generate` with a real program in ExecuTorch's C++ runner, against eager."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rules_executorch.checkpoint import description
from rules_executorch.cli import main

ROOT = Path(__file__).parent.parent.parent.parent
CASE = ROOT / "tests" / "cases" / "vocab-larger-than-tokenizer"
LENGTH = 96


@dataclasses.dataclass
class Built:
    """A program of the case, with the ids that eager answers two prompts with."""

    folder: Path
    answers: dict[str, list[int]]

    def arguments(self) -> list[str]:
        found = ["generate"]
        for option, name in FILES.items():
            found += [f"--{option}", str(self.folder / name)]
        return found

    def start(self, prompt: str, *arguments: str) -> subprocess.CompletedProcess:
        """As a person starts it: a process of its own, and all that reaches the terminal."""
        command = [sys.executable, str(ROOT / "python" / "main.py"), *self.arguments()]
        return subprocess.run(
            [*command, "--prompt", prompt, *arguments],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )


@dataclasses.dataclass
class Answered:
    """What a command line printed."""

    stdout: str
    stderr: str


Run = Callable[..., Answered]


@pytest.fixture
def run(built: Built, capfd: pytest.CaptureFixture[str]) -> Run:
    """Answers a prompt in this process, which has imported what that needs."""

    def run(prompt: str, *arguments: str) -> Answered:
        status = main([*built.arguments(), "--prompt", prompt, *arguments])
        out, err = capfd.readouterr()
        assert status == 0, err
        return Answered(out, err)

    return run


FILES = {
    "program": "model.pte",
    "tokenizer": "tokenizer.json",
    "tokenizer-config": "tokenizer_config.json",
    "model-description": "model.json",
}
LATE, FIRST = "What is the capital of France?", "the"


def greedy(folder: Path, prompt: str) -> list[int]:
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(prompt).ids
    model = AutoModelForCausalLM.from_pretrained(folder)
    out = model.generate(
        torch.tensor([ids]), max_new_tokens=24, do_sample=False, eos_token_id=[], pad_token_id=0
    )
    return out[0, len(ids) :].tolist()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("a model")
    path = {name: str(folder / name) for name in os.listdir(CASE)}
    for name in path:
        (folder / name).write_bytes((CASE / name).read_bytes())

    def at(name: str) -> str:
        return str(folder / name)

    weights = ["--out-weights", at("model.safetensors"), "--out-tokenizer", at("tokenizer.json")]
    settings = ["--out-tokenizer-config", at("tokenizer_config.json")]
    assert main(["tiny", "--config", at("config.json"), "--seed", "3", *weights, *settings]) == 0
    (folder / "normal").mkdir()
    files = [at("config.json"), at("tokenizer.json"), at("model.safetensors")]
    out = ["--out-config", at("normal/config.json"), "--out-model", at("model.json")]
    assert main(["describe", "--files", *files, at("tokenizer_config.json"), *out]) == 0
    answers = {prompt: greedy(folder, prompt) for prompt in (LATE, FIRST)}
    # One prompt is to end in the middle of its answer, the other on its first token.
    late = answers[LATE]
    end = next(i for i in range(6, 24) if late[i] not in late[:i] + [answers[FIRST][0]])
    model = description.read(at("model.json"))
    eos = (late[end], answers[FIRST][0])
    description.write(at("model.json"), dataclasses.replace(model, eos_ids=eos))
    (folder / "export.json").write_text(f'{{"max_cache_len": {LENGTH}}}')
    (folder / "lower.json").write_text('{"backend": "portable"}')
    exported = ["--out-program", at("model.pt2"), "--out-signature", at("signature.json")]
    config = ["--config", at("normal/config.json")]
    assert main(["export", "--options", at("export.json"), *config, *exported]) == 0
    inputs = ["--exported", at("model.pt2"), "--signature", at("signature.json")]
    inputs += ["--model-description", at("model.json"), "--weights", at("model.safetensors")]
    out = ["--out-program", at("model.pte"), "--out-manifest", at("manifest.json")]
    out += ["--out-report", at("report.md")]
    assert main(["lower", "--options", at("lower.json"), *config, *inputs, *out]) == 0
    return Built(folder, answers)


def text_of(built: Built, ids: list[int]) -> str:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(built.folder / "tokenizer.json"))
    return tokenizer.decode([i for i in ids if i < 288])


def test_the_answer_is_eagers_up_to_the_end_id(built: Built) -> None:
    eos = description.read(str(built.folder / "model.json")).eos_ids
    end = built.answers[LATE].index(eos[0])
    assert end >= 6
    done = built.start(LATE, "--no-chat-template")
    assert done.returncode == 0, done.stderr
    assert done.stdout == text_of(built, built.answers[LATE][:end]) + "\n"
    # Nothing that C++ prints or logs, and no spelling of an unknown token, is on the terminal.
    beyond = sum(i >= 288 for i in built.answers[LATE][:end])
    assert beyond, "this answer is to have ids that the tokenizer lacks"
    note, timing = [line for line in done.stderr.splitlines() if line.strip()]
    assert note.startswith(f"NOTE: {beyond} tokens are left out")
    assert timing.startswith("load ") and f"generated {end + 1} tokens" in timing
    assert "<|no token" not in done.stdout


def test_it_stops_where_it_is_told(built: Built, run: Run) -> None:
    done = run(LATE, "--no-chat-template", "--max-new-tokens", "4")
    assert done.stdout == text_of(built, built.answers[LATE][:4]) + "\n"
    assert "generated 4 tokens" in done.stderr


def test_an_end_id_as_the_first_token(run: Run) -> None:
    done = run(FIRST, "--no-chat-template")
    assert done.stdout == "\n"
    assert "generated 1 tokens" in done.stderr


def test_the_chat_template_is_applied(run: Run) -> None:
    plain = run("hi", "--no-chat-template", "--max-new-tokens", "2")
    chat = run("hi", "--max-new-tokens", "2")
    system = run("hi", "--max-new-tokens", "2", "--system", "Be brief.")
    counts = [
        int(done.stderr.split("prompt ")[1].split(" tokens")[0]) for done in (plain, chat, system)
    ]
    assert counts[0] < counts[1] < counts[2]


def test_temperature_is_heard(run: Run) -> None:
    arguments = ("--no-chat-template", "--max-new-tokens", "20")
    # Two sampled answers of one second are equal: the runner seeds its sampler with the time.
    assert run(LATE, *arguments, "--temperature", "1").stdout != run(LATE, *arguments).stdout


REFUSED = {
    "a prompt beyond the cache": (["--prompt", "word " * 200], f"none of the {LENGTH} cache"),
    "a prompt beyond --seq-len": (["--prompt", "a few words", "--seq-len", "3"], "--seq-len"),
    "an empty prompt": (["--prompt", ""], "The prompt is empty"),
    "a temperature below 0": (["--prompt", "x", "--temperature", "-1"], "not from 0 to 1"),
    "a temperature above 1": (["--prompt", "x", "--temperature", "1.5"], "not from 0 to 1"),
    "a temperature that is none": (["--prompt", "x", "--temperature", "nan"], "not from 0 to 1"),
    "no new token": (["--prompt", "x", "--max-new-tokens", "0"], "asks for no token"),
    "a system message without a template": (
        ["--prompt", "x", "--system", "y", "--no-chat-template"],
        "--system was given",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(built: Built, capfd, name: str) -> None:
    arguments, words = REFUSED[name]
    assert main([*built.arguments(), *arguments]) == 1
    out, err = capfd.readouterr()
    assert words in err
    assert out == ""


def test_a_file_that_is_no_program(built: Built, capfd) -> None:
    other = str(built.folder / "config.json")
    assert main([*built.arguments(), "--prompt", "x", "--program", other]) == 1
    out, err = capfd.readouterr()
    assert "config.json" in err and "does not have the file identifier ET" in err
    assert out == ""


def test_a_program_that_the_runner_cannot_run(built: Built, capfd, tmp_path: Path) -> None:
    """It needs an operator that no runtime has."""
    program = tmp_path / "odd.pte"
    data = (built.folder / "model.pte").read_bytes()
    assert b"aten::embedding" in data
    program.write_bytes(data.replace(b"aten::embedding", b"aten::no_such_op"[:15]))
    assert main([*built.arguments(), "--prompt", "x", "--program", str(program)]) == 1
    out, err = capfd.readouterr()
    assert "failed on" in err and "odd.pte" in err
    assert "The runner's log ends with" in err
    assert out == ""


def test_a_file_that_is_not_there(built: Built, capfd) -> None:
    assert main([*built.arguments(), "--prompt", "x", "--program", "nowhere.pte"]) == 1
    assert "nowhere.pte does not exist" in capfd.readouterr().err
