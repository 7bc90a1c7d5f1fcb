"""How every action of the ruleset runs: one command line, one set of requirements.

An action is `LAUNCHER main.py @PARAMS`, where LAUNCHER is the Python of the toolchain and the
first line of PARAMS names the subcommand. The subcommand is in the file, not before it, so that
one persistent worker serves all of them.
"""

load("//executorch/private/actions:memory.bzl", "RESOURCE_SETS")
load("//executorch/private/actions:remote.bzl", "remote_requirements")
load("//executorch/private/checks:messages.bzl", "display_label", "refuse")

visibility("//executorch/private/rules")

TOOLCHAIN_TYPE = Label("//executorch:toolchain_type")

COMMAND_ATTRS = {
    "_main": attr.label(
        default = "//python:main.py",
        allow_single_file = True,
        cfg = "exec",
    ),
    "_sources": attr.label(
        default = "//python/rules_executorch:sources",
        cfg = "exec",
    ),
}

# The interpreter sees these variables and no others; see action/environment.py for what it sets itself.
COMMAND_ENV = {
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "PATH": "/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
}

_EXECUTION_REQUIREMENTS = {
    "block-network": "1",
    "requires-worker-protocol": "json",
    "supports-path-mapping": "1",
    "supports-worker-cancellation": "1",
    "supports-workers": "1",
}

def command_args(ctx, command):
    """Starts the arguments of a subcommand.

    Args:
        ctx: the rule context.
        command: name of the subcommand.

    Returns:
        Args that go into a param file, one argument a line.
    """
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add(command)
    args.add("--target", display_label(ctx.label))
    return args

def command_toolchain(ctx, packages = None):
    """The Python that runs a command.

    Args:
        ctx: the context of a rule with the toolchain.
        packages: `ExecutorchToolchainInfo` of a device that needs more than the toolchain, or None.

    Returns:
        Something with the fields of `ExecutorchToolchainInfo`.
    """
    return packages or ctx.toolchains[TOOLCHAIN_TYPE]

def command_tools(ctx, packages = None):
    """Files that a command needs beside its arguments.

    Args:
        ctx: the context of a rule with `COMMAND_ATTRS` and the toolchain.
        packages: see `command_toolchain`.

    Returns:
        A depset of Files: the Python sources and the toolchain.
    """
    return depset(
        [ctx.file._main],
        transitive = [
            ctx.attr._sources[DefaultInfo].files,
            command_toolchain(ctx, packages).files,
        ],
    )

def run_command(
        ctx,
        args,
        *,
        mnemonic,
        progress_message,
        inputs,
        outputs,
        memory,
        packages = None,
        remote = "default"):
    """Registers the action that runs a subcommand.

    Args:
        ctx: the context of a rule with `COMMAND_ATTRS` and the toolchain.
        args: from `command_args`, completed.
        mnemonic: name of the kind of action.
        progress_message: what Bazel shows, with `%{label}`.
        inputs: list or depset of Files.
        outputs: list of Files.
        memory: value of the `memory` attribute.
        packages: see `command_toolchain`.
        remote: value of the `remote` attribute.
    """
    if memory not in RESOURCE_SETS:
        refuse(
            ctx,
            "memory = \"{}\" is not a size the scheduler knows.".format(memory),
            "Write one of {}.".format(", ".join(RESOURCE_SETS.keys())),
        )
    toolchain = command_toolchain(ctx, packages)
    start = ctx.actions.args()
    start.add(ctx.file._main)

    # Sources, launcher and marker are tools: a worker is restarted when one of them changes.
    # The toolchain's other files, if any, are inputs, since a worker cannot have directories
    # among its tools.
    inputs = inputs if type(inputs) == type(depset()) else depset(inputs)
    ctx.actions.run(
        executable = toolchain.launcher,
        arguments = [start, args],
        inputs = depset(transitive = [inputs, toolchain.files]),
        tools = depset(
            [ctx.file._main, toolchain.launcher, toolchain.marker],
            transitive = [ctx.attr._sources[DefaultInfo].files],
        ),
        outputs = outputs,
        mnemonic = mnemonic,
        progress_message = progress_message.replace("%{label}", display_label(ctx.label)),
        env = COMMAND_ENV,
        execution_requirements = _EXECUTION_REQUIREMENTS | toolchain.execution_requirements | remote_requirements(ctx, remote),
        resource_set = RESOURCE_SETS[memory],
        toolchain = None if packages else TOOLCHAIN_TYPE,
    )
