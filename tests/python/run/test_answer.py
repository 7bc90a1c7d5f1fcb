"""Streaming and stopping, without a program: the runner is played."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from rules_executorch.checkpoint import tiny_tokenizer
from rules_executorch.common.errors import UserError
from rules_executorch.run.generate import Answer, Sampling, Timing, _check_room
from rules_executorch.run.tokenizer import RunnerTokenizer, TextStream


@pytest.fixture
def tokenizer(tmp_path: Path) -> RunnerTokenizer:
    value, _ = tiny_tokenizer.make(320, eos_ids=(2, 7), bos_id=1, pad_id=0)
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tiny_tokenizer.to_bytes(value))
    return RunnerTokenizer(str(path), 320)


class Runner:
    """What an answer does to the runner and to the terminal."""

    def __init__(self, tokenizer: RunnerTokenizer, eos: set[int] | None = None) -> None:
        self.written: list[str] = []
        self.stops = 0
        self.answer = Answer(
            tokenizer, frozenset(eos or {2, 7}), self.written.append, self.stop, lambda: 0.0
        )
        self.spelling = {i: t for t, i in tokenizer.reference.get_vocab().items()}
        self.spelling |= tokenizer.unknown

    def stop(self) -> None:
        self.stops += 1

    def give(self, *ids: int) -> str:
        for token_id in ids:
            self.answer.piece(self.spelling[token_id])
        return "".join(self.written)


def test_text_comes_as_it_goes(tokenizer: RunnerTokenizer) -> None:
    runner = Runner(tokenizer)
    ids = tokenizer.encode("the end", add_special_tokens=False)
    for token_id in ids:
        before = len(runner.written)
        runner.give(token_id)
        assert len(runner.written) == before + 1
    runner.answer.finish()
    assert "".join(runner.written) == "the end"
    assert runner.stops == 0


def test_half_a_character_waits_for_its_rest(tokenizer: RunnerTokenizer) -> None:
    runner = Runner(tokenizer)
    ids = tokenizer.encode("a😀b", add_special_tokens=False)
    assert len(ids) == 6
    shown = [runner.give(token_id) for token_id in ids]
    assert shown == ["a", "a", "a", "a", "a😀", "a😀b"]


def test_half_a_character_at_the_end_is_replaced(tokenizer: RunnerTokenizer) -> None:
    runner = Runner(tokenizer)
    runner.give(*tokenizer.encode("a😀", add_special_tokens=False)[:-1])
    assert "".join(runner.written) == "a"
    runner.answer.finish()
    assert "".join(runner.written) == "a\ufffd"


def test_bytes_that_never_make_a_character_do_not_hold_the_text(
    tokenizer: RunnerTokenizer,
) -> None:
    stream = TextStream(tokenizer.reference)
    half = tokenizer.reference.token_to_id(tiny_tokenizer.byte_characters()[0xE0])
    assert any(stream.push(half) for _ in range(20))


@pytest.mark.parametrize("eos", [2, 7])
def test_every_end_id_ends_the_answer(tokenizer: RunnerTokenizer, eos: int) -> None:
    runner = Runner(tokenizer)
    ids = tokenizer.encode("the", add_special_tokens=False)
    assert runner.give(*ids, eos) == "the"
    assert runner.answer.ended and runner.stops == 1
    assert runner.answer.ids == [*ids, eos]


def test_an_end_on_the_first_token_stops_the_runner_on_the_next(
    tokenizer: RunnerTokenizer,
) -> None:
    runner = Runner(tokenizer)
    # The runner of ExecuTorch forgets a stop that comes before its loop, so it is told again.
    runner.give(2, *tokenizer.encode("the", add_special_tokens=False))
    assert runner.written == []
    assert runner.stops >= 2
    assert runner.answer.ids == [2]


def test_an_end_id_that_is_ordinary_text_is_not_shown(tokenizer: RunnerTokenizer) -> None:
    letter = tokenizer.encode("a", add_special_tokens=False)[0]
    runner = Runner(tokenizer, {letter})
    assert runner.give(tokenizer.encode("b", add_special_tokens=False)[0], letter) == "b"
    assert runner.answer.ended


def test_special_tokens_are_not_shown(tokenizer: RunnerTokenizer) -> None:
    runner = Runner(tokenizer)
    start = tokenizer.reference.token_to_id("<|im_start|>")
    ids = tokenizer.encode("hi", add_special_tokens=False)
    assert runner.give(start, *ids, 1) == "hi"
    assert runner.answer.ids == [start, *ids, 1]


def test_ids_beyond_the_tokenizer_are_never_shown(tokenizer: RunnerTokenizer) -> None:
    assert sorted(tokenizer.unknown) == list(range(288, 320))
    runner = Runner(tokenizer)
    ids = tokenizer.encode("hi", add_special_tokens=False)
    assert runner.give(ids[0], 300, 319, ids[1]) == "hi"
    assert runner.answer.beyond_tokenizer == 2
    assert runner.answer.ids == [ids[0], 300, 319, ids[1]]


def test_a_piece_that_is_no_token_is_refused(tokenizer: RunnerTokenizer) -> None:
    with pytest.raises(UserError, match="'no such token', which is no token of .*tokenizer.json"):
        Runner(tokenizer).answer.piece("no such token")


def test_the_runners_tokenizer_has_no_decoder(tokenizer: RunnerTokenizer, tmp_path: Path) -> None:
    path = tmp_path / "for_runner.json"
    tokenizer.write(str(path))
    value = json.loads(path.read_text())
    assert "decoder" not in value
    assert value["model"] == json.loads(Path(tokenizer.path).read_text())["model"]
    added = {token["id"]: token for token in value["added_tokens"]}
    assert added[319]["special"] and added[319]["content"] == "<|no token 319|>"


def test_the_prompt_gets_the_tokens_that_the_tokenizer_puts_first(tmp_path: Path) -> None:
    from rules_executorch.checkpoint.gguf import tokenizer as gguf_tokenizer

    value, _ = tiny_tokenizer.make(288, eos_ids=(2,), bos_id=1, pad_id=0)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(value))
    assert RunnerTokenizer(str(path), None).with_leading_tokens("hi") == "hi"
    vocabulary = type("V", (), {"tokens": ["<pad>", "<bos>"]})()
    value["post_processor"] = gguf_tokenizer._leading_token(vocabulary, "<bos>")
    path.write_text(json.dumps(value))
    assert Tokenizer.from_file(str(path)).encode("hi").ids[0] == 1
    assert RunnerTokenizer(str(path), None).with_leading_tokens("hi") == "<bos>hi"


@pytest.mark.parametrize(
    ("tokens", "context", "sampling", "words"),
    [
        (128, 128, Sampling(), "The prompt has 128 tokens.*128 cache positions"),
        (500, 128, Sampling(), "The prompt has 500 tokens"),
        (10, 128, Sampling(seq_len=10), "10 tokens that --seq-len allows"),
        (10, None, Sampling(seq_len=5), "5 tokens that --seq-len allows"),
        (10, 128, Sampling(max_new_tokens=0), "--max-new-tokens 0"),
    ],
)
def test_no_room(tokens: int, context: int | None, sampling: Sampling, words: str) -> None:
    with pytest.raises(UserError, match=words):
        _check_room(tokens, context, sampling)


def test_room() -> None:
    _check_room(127, 128, Sampling())
    _check_room(9, 128, Sampling(seq_len=10))
    _check_room(10**6, None, Sampling())


def test_the_timing_line() -> None:
    line = Timing(1.5, 20, 0.5, 0.5, 11, 2.0).line()
    assert line == (
        "load 1.50 s | prompt 20 tokens, 40.0 tokens/s | generated 11 tokens, 5.0 tokens/s"
        " | first token after 0.50 s"
    )
    assert "0.0 tokens/s" in Timing(generated_tokens=1).line()
