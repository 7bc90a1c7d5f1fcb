"""The command line: one program, one module per subcommand.

A subcommand is a module `rules_executorch.commands.NAME` with

* a docstring whose first line is the help text,
* `add_arguments(parser)`,
* `run(args) -> int`,
* where it imports heavy libraries, `warm_up()`, which imports them ahead of time, and
* where it starts programs of the person's, `KEEPS_TMPDIR = True`. The temporary files of all others
  go with them, however they end.

Modules are imported only when their subcommand runs, since torch takes seconds to import.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import pkgutil
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from rules_executorch import commands
from rules_executorch.action import environment, worker
from rules_executorch.action.quiet import quiet_libraries
from rules_executorch.common import guard
from rules_executorch.common.errors import UserError

PROG = "rules_executorch"


def _subcommands() -> dict[str, str]:
    """Names of the subcommands and the first line of their docstrings, without importing them."""
    found = {}
    for folder in commands.__path__:
        for module in sorted(pkgutil.iter_modules([folder]), key=lambda m: m.name):
            source = Path(folder, f"{module.name}.py").read_text(encoding="utf-8")
            doc = ast.get_docstring(ast.parse(source)) or ""
            found[module.name.replace("_", "-")] = doc.partition("\n")[0]
    return found


def _overview() -> str:
    rows = _subcommands()
    width = max(map(len, rows), default=0)
    lines = [f"usage: {PROG} SUBCOMMAND ... (or @FILE with one argument per line)", ""]
    lines += [f"  {name:<{width}}  {text}" for name, text in rows.items()]
    lines += ["", f"`{PROG} SUBCOMMAND --help` lists the arguments of one."]
    return "\n".join(lines)


def expand_param_file(argv: Sequence[str]) -> list[str]:
    """Replaces a leading `@FILE` by the lines of FILE, Bazel's multiline param file format.

    Only the first argument can name a param file: what follows a subcommand may be a user's text.
    """
    if argv and argv[0].startswith("@") and len(argv[0]) > 1:
        return Path(argv[0][1:]).read_text(encoding="utf-8").splitlines() + list(argv[1:])
    return list(argv)


def _command(name: str) -> ModuleType:
    return importlib.import_module(f"rules_executorch.commands.{name.replace('-', '_')}")


def warm_up(argv: Sequence[str]) -> None:
    """Imports what a command line will need, in the parent of a worker's requests."""
    argv = expand_param_file(argv)
    if argv and argv[0] in _subcommands():
        getattr(_command(argv[0]), "warm_up", lambda: None)()


def main(argv: Sequence[str]) -> int:
    """Runs one subcommand, or serves as a persistent worker.

    Returns:
        The exit status: 0, 1 for a refusal, 2 for wrong usage, 130 when interrupted.
    """
    quiet_libraries()
    if worker.FLAG in argv:
        try:
            sinks = worker.open_progress(argv)
        except UserError as error:
            print(f"\nERROR in the worker: {error}\n", file=sys.stderr)
            return 2
        with environment.isolated_variables():
            return worker.serve(main, warm_up, sinks)
    argv = expand_param_file(argv)
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if argv else 2
    name, rest = argv[0], argv[1:]
    if name not in _subcommands():
        print(f"{PROG}: {name!r} is not a subcommand.\n\n{_overview()}", file=sys.stderr)
        return 2
    module = _command(name)
    parser = argparse.ArgumentParser(prog=f"{PROG} {name}", description=module.__doc__)
    parser.add_argument("--target", help="label of the target, for messages")
    module.add_arguments(parser)
    args = parser.parse_args(rest)
    keeps = getattr(module, "KEEPS_TMPDIR", False)
    try:
        with contextlib.nullcontext() if keeps else guard.temporary_files():
            return module.run(args)
    except UserError as error:
        where = args.target or shlex.join([PROG, name])
        print(f"\nERROR in {where}: {error}\n", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{PROG} {name}: interrupted; no output was written.", file=sys.stderr)
        return 130
