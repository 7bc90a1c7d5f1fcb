"""The rule behind the macro `executorch_device`; documented in //executorch:device.bzl."""

load("//executorch/private:backends.bzl", "BACKENDS")
load("//executorch/private:messages.bzl", "check_one_of", "refuse")
load("//executorch/private/providers:executorch_device_info.bzl", "ExecutorchDeviceInfo")
load("//executorch/private/providers:executorch_toolchain_info.bzl", "ExecutorchToolchainInfo")

visibility("//...")

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

def _executorch_device_impl(ctx):
    backend = ctx.attr.backend
    check_one_of(ctx, "backend", backend, BACKENDS.keys())
    options = json.decode(ctx.attr.options_json)
    for name, value in options.items():
        _check_option(ctx, backend, name, value)
    return [
        DefaultInfo(),
        ExecutorchDeviceInfo(
            label = ctx.label,
            backend = backend,
            options = options,
            constraints = [target[platform_common.ConstraintValueInfo] for target in ctx.attr.constraint_values],
            constraint_values = [target.label for target in ctx.attr.constraint_values],
            packages = ctx.attr.packages[ExecutorchToolchainInfo] if ctx.attr.packages else None,
        ),
    ]

executorch_device = rule(
    implementation = _executorch_device_impl,
    attrs = {
        "backend": attr.string(
            mandatory = True,
            doc = "Name of the backend that takes the graph.",
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
