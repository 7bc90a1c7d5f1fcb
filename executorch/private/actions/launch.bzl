"""Executables that run a subcommand from runfiles: tests, and what `bazel run` starts."""

load("//executorch/private/actions:command.bzl", "command_toolchain", "command_tools")
load("//executorch/private/checks:messages.bzl", "display_label")

visibility([
    "//executorch/private/rules",
    "//tests/pytest",
])

_SCRIPT = """\
#!/usr/bin/env bash
# {command} for {target}
set -u
runfiles=${{RUNFILES_DIR:-${{TEST_SRCDIR:-$0.runfiles}}}}
cd -- "$runfiles" || exit
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
if [[ -n ${{TEST_TMPDIR-}} ]]; then
  export TMPDIR=$TEST_TMPDIR
fi
{commands}
"""

_ONE = "exec {call}"

_ONE_OF_SEVERAL = """\
echo {title}
{call} || status=1"""

def _shell_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"

def runfile_path(ctx, file):
    """Path of a file below the runfiles folder.

    Args:
        ctx: the rule context.
        file: a File.

    Returns:
        A string that begins with the name of a repository.
    """
    if file.short_path.startswith("../"):
        return file.short_path[len("../"):]
    return "{}/{}".format(ctx.workspace_name, file.short_path)

def command_executable(ctx, command, arguments, packages = None):
    """Declares the executable of a target that runs a subcommand.

    Args:
        ctx: the context of an executable rule with `COMMAND_ATTRS` and the toolchain.
        command: name of the subcommand.
        arguments: list of strings and Files. A File becomes its path in the runfiles, where the
            command runs. What a user gives after `--` is appended.
        packages: see `command_toolchain`.

    Returns:
        A `DefaultInfo`.
    """
    call, needed = _call(ctx, ctx.label.name, command, arguments, packages)
    return _executable(ctx, command, _ONE.format(call = call), [needed])

def commands_executable(ctx, commands):
    """Declares the executable of a target that runs several subcommands, one after another.

    It goes on after one that failed, and has then failed itself.

    Args:
        ctx: the context of an executable rule with `COMMAND_ATTRS` and the toolchain.
        commands: list of structs with `title`, a line that is printed first, and `command`,
            `arguments` and `packages` as `command_executable` takes them.

    Returns:
        A `DefaultInfo`.
    """
    calls = []
    runfiles = []
    for number, one in enumerate(commands):
        name = "{}.{}".format(ctx.label.name, number)
        call, needed = _call(ctx, name, one.command, one.arguments, one.packages)
        calls.append(_ONE_OF_SEVERAL.format(call = call, title = _shell_quoted(one.title)))
        runfiles.append(needed)
    text = "\n".join(["status=0"] + calls + ["exit $status"])
    return _executable(ctx, "Commands", text, runfiles)

def _call(ctx, name, command, arguments, packages):
    """The call of one subcommand, as shell, and the runfiles it needs."""
    lines = [command, "--target", display_label(ctx.label)]
    needed = []
    for argument in arguments:
        if type(argument) == "File":
            needed.append(argument)
            lines.append(runfile_path(ctx, argument))
        else:
            lines.append(argument)

    params = ctx.actions.declare_file(name + ".params")
    ctx.actions.write(params, "".join([line + "\n" for line in lines]))
    call = "{} {} @{} \"$@\"".format(
        _shell_quoted("./" + runfile_path(ctx, command_toolchain(ctx, packages).launcher)),
        _shell_quoted(runfile_path(ctx, ctx.file._main)),
        _shell_quoted(runfile_path(ctx, params)),
    )
    return call, ctx.runfiles([params] + needed, transitive_files = command_tools(ctx, packages))

def _executable(ctx, what, commands, runfiles):
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        script,
        _SCRIPT.format(
            command = what,
            commands = commands,
            target = display_label(ctx.label),
        ),
        is_executable = True,
    )
    return DefaultInfo(executable = script, runfiles = ctx.runfiles().merge_all(runfiles))
