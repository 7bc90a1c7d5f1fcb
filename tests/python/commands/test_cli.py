"""The command line: subcommands, param files, and refusals without a traceback."""

import argparse
import types

import pytest

from rules_executorch import cli
from rules_executorch.common.errors import UserError


@pytest.fixture
def refusing(monkeypatch):
    def refuse(args: argparse.Namespace) -> int:
        raise UserError(f"{args.file} is refused.", instead="Write another.")

    command = types.SimpleNamespace(
        __doc__="A command.",
        add_arguments=lambda parser: parser.add_argument("--file"),
        run=refuse,
    )
    monkeypatch.setattr(cli, "_subcommands", lambda: {"refuse": "A command."})
    monkeypatch.setattr(cli, "_command", lambda name: command)


def test_help_lists_every_subcommand(capsys):
    assert cli.main(["--help"]) == 0
    listed = capsys.readouterr().out
    for name, text in cli._subcommands().items():
        assert name in listed and text, f"{name} has no help text"
        assert text in listed


def test_no_subcommand_is_wrong_usage(capsys):
    assert cli.main([]) == 2
    assert cli.main(["nonsense"]) == 2
    assert "'nonsense' is not a subcommand" in capsys.readouterr().err


def test_param_file(tmp_path):
    params = tmp_path / "params with spaces"
    params.write_text("lower\n--file\na name # with spaces\n--empty\n\n", encoding="utf-8")
    assert cli.expand_param_file([f"@{params}", "@text"]) == [
        "lower",
        "--file",
        "a name # with spaces",
        "--empty",
        "",
        "@text",
    ]


def test_a_refusal_names_the_target_and_has_no_traceback(refusing, capsys):
    assert cli.main(["refuse", "--target", "//a:b", "--file", "f"]) == 1
    error = capsys.readouterr().err
    assert "ERROR in //a:b: f is refused. Write another." in error
    assert "Traceback" not in error


def test_a_refusal_without_target_names_the_command(refusing, capsys):
    assert cli.main(["refuse", "--file", "f"]) == 1
    assert "rules_executorch refuse" in capsys.readouterr().err
