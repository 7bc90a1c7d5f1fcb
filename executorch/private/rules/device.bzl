"""The rule behind the macro `executorch_device`; documented in //executorch:device.bzl."""

load("//executorch/private/checks:limits.bzl", "LIMIT_ATTRS", "has_operators", "read_limits")
load("//executorch/private/checks:messages.bzl", "check_one_of", "refuse")
load("//executorch/private/providers:executorch_device_info.bzl", "ExecutorchDeviceInfo")
load("//executorch/private/providers:executorch_toolchain_info.bzl", "ExecutorchToolchainInfo")
load("//executorch/private/tables:backends.bzl", "BACKENDS")
load("//executorch/private/tables:options.bzl", "CUSTOM_KERNELS")

visibility("//executorch")

def _check_option(ctx, backend, name, value):
    types = BACKENDS[backend].options
    if name not in types:
        refuse(
            ctx,
            "The backend {} has no option \"{}\".".format(backend, name),
            "It takes {}.".format(", ".join(types.keys()) if types else "no options"),
        )
    taken = types[name]
    if type(taken) == "list":
        check_one_of(ctx, "options[\"{}\"]".format(name), value, taken)
    elif type(value) != taken:
        refuse(
            ctx,
            "The option \"{}\" of the backend {} is a {}, not {}.".format(name, backend, taken, repr(value)),
            "Write a {}.".format(taken),
        )

def _custom_ops(ctx, operators):
    """Whether models that generate text are to call the operators of the LLM extension."""
    if ctx.attr.custom_ops:
        return ctx.attr.custom_ops == "yes"
    usual = BACKENDS[ctx.attr.backend].custom_kernels
    if usual == None:
        return False
    return has_operators(operators, CUSTOM_KERNELS) if operators else usual

def _executorch_device_impl(ctx):
    backend = ctx.attr.backend
    check_one_of(ctx, "backend", backend, BACKENDS.keys())
    options = json.decode(ctx.attr.options_json)
    for name, value in options.items():
        _check_option(ctx, backend, name, value)
    limits = read_limits(ctx)
    return [
        DefaultInfo(),
        ExecutorchDeviceInfo(
            label = ctx.label,
            backend = backend,
            options = options,
            constraints = [target[platform_common.ConstraintValueInfo] for target in ctx.attr.constraint_values],
            constraint_values = [target.label for target in ctx.attr.constraint_values],
            packages = ctx.attr.packages[ExecutorchToolchainInfo] if ctx.attr.packages else None,
            max_program_bytes = limits.max_program_bytes,
            max_planned_bytes = limits.max_planned_bytes,
            operators = limits.operators,
            custom_ops = _custom_ops(ctx, limits.operators),
        ),
    ]

executorch_device = rule(
    implementation = _executorch_device_impl,
    attrs = LIMIT_ATTRS | {
        "backend": attr.string(
            mandatory = True,
            doc = "Name of the backend that takes the graph.",
        ),
        "custom_ops": attr.string(
            doc = "`yes` or `no`; empty leaves it to the backend and the operators.",
        ),
        "options_json": attr.string(
            default = "{}",
            doc = "Options of the backend, as JSON.",
        ),
        "constraint_values": attr.label_list(
            providers = [platform_common.ConstraintValueInfo],
            doc = "What an app's platform must have for the program to fit.",
        ),
        "packages": attr.label(
            cfg = "exec",
            providers = [ExecutorchToolchainInfo],
            doc = "Python packages to lower with, where the toolchain's own are not enough.",
        ),
    },
    doc = "A device to lower for.",
    provides = [ExecutorchDeviceInfo],
)
