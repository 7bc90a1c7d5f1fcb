"""The rule `executorch_assets`; documented in //executorch:assets.bzl."""

load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/providers:executorch_assets_info.bzl", "ExecutorchAssetsInfo")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")

visibility("//executorch")

# For errors: the common constraints, since a platform does not list those that it has.
_KNOWN_CONSTRAINTS = [
    "@platforms//cpu:aarch64",
    "@platforms//cpu:arm",
    "@platforms//cpu:armv7",
    "@platforms//cpu:riscv64",
    "@platforms//cpu:wasm32",
    "@platforms//cpu:x86_32",
    "@platforms//cpu:x86_64",
    "@platforms//os:android",
    "@platforms//os:ios",
    "@platforms//os:linux",
    "@platforms//os:macos",
    "@platforms//os:none",
    "@platforms//os:windows",
]

def _constraint_text(label):
    text = display_label(label)

    # From the canonical name of a module that every workspace has.
    for prefix in ["@@platforms//", "@@platforms~//", "@@platforms+//", "@platforms//"]:
        if text.startswith(prefix):
            return "@platforms//" + text[len(prefix):]
    return text

def _constraints_text(labels):
    return ", ".join(sorted([_constraint_text(label) for label in labels]))

def _has(ctx, constraint):
    return ctx.target_platform_has_constraint(constraint)

def _fits(ctx, program):
    return all([_has(ctx, constraint) for constraint in program.device.constraints])

def _more_specific(program, other):
    """Whether a program asks for all that another asks for, and more; the rule of `select()`."""
    mine = program.device.constraint_values
    theirs = other.device.constraint_values
    return len(mine) > len(theirs) and all([label in mine for label in theirs])

def _line(ctx, program):
    wants = program.device.constraint_values
    missing = [
        wants[index]
        for index, constraint in enumerate(program.device.constraints)
        if not _has(ctx, constraint)
    ]
    text = "\n  {} for {}, which wants {}".format(
        display_label(program.label),
        display_label(program.device.label),
        _constraints_text(wants) or "nothing of a platform",
    )
    return text + ("; the platform does not have {}".format(_constraints_text(missing)) if missing else "")

def _platform_text(ctx):
    known = [
        target.label
        for target in ctx.attr._known_constraints
        if _has(ctx, target[platform_common.ConstraintValueInfo])
    ]
    return "the platform {} ({})".format(
        display_label(ctx.fragments.platform.platform),
        "known of it: " + _constraints_text(known) if known else "nothing is known of it",
    )

def _choose(ctx, programs):
    fitting = [program for program in programs if _fits(ctx, program)]
    best = [
        program
        for program in fitting
        if not [other for other in fitting if _more_specific(other, program)]
    ]
    if len(best) == 1:
        return best[0]
    lines = "".join([_line(ctx, program) for program in best or programs])
    if best:
        refuse(
            ctx,
            "{} programs fit {}, none of them better than the others:{}\n".format(len(best), _platform_text(ctx), lines),
            "Keep one of them in programs, or give its device one more of the platform's constraint_values.",
        )
    return refuse(
        ctx,
        "No program fits {}:{}\n".format(_platform_text(ctx), lines),
        "Add to programs an executorch_lower for a device whose constraint_values this platform has, " +
        "or build for a platform that has one of the lists above: --platforms=...",
    )

def _tokenizer_files(ctx, program):
    """Name in the folder: file."""
    model = program.model
    if ctx.attr.without_tokenizer:
        return {}
    if not model.tokenizer:
        refuse(
            ctx,
            "{} has no tokenizer, so that the app could not read a prompt.".format(display_label(model.label)),
            "Add the checkpoint's tokenizer.json to its srcs, or write without_tokenizer = True if the app needs none.",
        )
    files = {model.tokenizer.basename: model.tokenizer}
    if model.tokenizer_config:
        files["tokenizer_config.json"] = model.tokenizer_config
    if model.chat_template:
        files["chat_template.jinja"] = model.chat_template
    return files

def _executorch_assets_impl(ctx):
    if not ctx.attr.programs:
        refuse(ctx, "programs is empty.", "Name one executorch_lower for each kind of device.")
    targets = {target[ExecutorchProgramInfo].label: target for target in ctx.attr.programs}
    program = _choose(ctx, [target[ExecutorchProgramInfo] for target in targets.values()])

    sources = {"model.pte": program.program}
    if program.data:
        sources["model.ptd"] = program.data
    sources["manifest.json"] = program.manifest
    sources.update(_tokenizer_files(ctx, program))

    # Links: a program is large, and is not stored twice.
    links = {}
    for name, source in sources.items():
        links[name] = ctx.actions.declare_file("{}/{}".format(ctx.label.name, name))
        ctx.actions.symlink(output = links[name], target_file = source)
    files = depset(links.values())
    tokenizer = None if ctx.attr.without_tokenizer else links[program.model.tokenizer.basename]
    return [
        DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files)),
        OutputGroupInfo(
            manifest = depset([links["manifest.json"]]),
            operators = targets[program.label][OutputGroupInfo].operators,
        ),
        ExecutorchAssetsInfo(
            label = ctx.label,
            files = files,
            folder = "/".join([part for part in [ctx.label.package, ctx.label.name] if part]),
            program = program,
            model = links["model.pte"],
            data = links.get("model.ptd"),
            manifest = links["manifest.json"],
            tokenizer = tokenizer,
        ),
    ]

executorch_assets = rule(
    implementation = _executorch_assets_impl,
    attrs = {
        "programs": attr.label_list(
            mandatory = True,
            providers = [ExecutorchProgramInfo],
            doc = "Programs to choose from, one `executorch_lower` for each kind of device. The one " +
                  "whose device's `constraint_values` the platform has is taken; of two the one " +
                  "that asks for all that the other asks for, and more.",
        ),
        "without_tokenizer": attr.bool(
            doc = "Whether the folder has no tokenizer. Otherwise a model without one is an error.",
        ),
        "_known_constraints": attr.label_list(
            default = _KNOWN_CONSTRAINTS,
            providers = [platform_common.ConstraintValueInfo],
        ),
    },
    doc = "A folder for an app: the program that fits, its weights, tokenizer and manifest.",
    fragments = ["platform"],
    provides = [ExecutorchAssetsInfo],
)
