"""The rules behind the macro `executorch_lower`; documented in //executorch:lower.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE", "command_args", "run_command")
load("//executorch/private/actions:memory.bzl", "AUTO", "memory_of_weights")
load("//executorch/private/actions:shared.bzl", "public_rule")
load("//executorch/private/actions:statements.bzl", "STATEMENT_ATTRS", "declare_provenance", "declare_sbom")
load("//executorch/private/actions:transitions.bzl", "TRANSITION_ATTRS", "normalize")
load("//executorch/private/actions:validation.bzl", "validate_operators")
load("//executorch/private/checks:labels.bzl", "public_label", "public_name")
load("//executorch/private/checks:messages.bzl", "display_label", "quoted", "refuse")
load("//executorch/private/providers:executorch_device_info.bzl", "ExecutorchDeviceInfo")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")
load("//executorch/private/providers:exported_program_info.bzl", "ExportedProgramInfo")
load("//executorch/private/rules:operators.bzl", "select_operators")
load("//executorch/private/tables:backends.bzl", "BACKENDS", "EXTERNAL_DATA_BACKENDS")
load("//executorch/private/tables:options.bzl", "GENERATION", "GROUPED_QUANTIZATIONS", "TEXT_TASKS")

visibility("//executorch")

# The option of a device for the folder of a vendor's SDK.
_SDK_ROOT = "sdk_root"

def _varies(exported):
    """Whether the length of the program's input varies, as far as the task says what it takes."""
    return exported.dynamic_seq_len and exported.model.task in TEXT_TASKS

def _check_backend(ctx, exported, device):
    """Refuses what the action would refuse as well, before the export runs."""
    backend = device.backend
    takes = BACKENDS[backend]
    if _SDK_ROOT in takes.options and not device.options.get(_SDK_ROOT):
        refuse(
            ctx,
            "The backend {} needs the vendor's SDK, and {} does not say where it is; it is never downloaded.".format(
                backend,
                display_label(device.label),
            ),
            "Write an executorch_device of your own with options = {}; docs/backends.md of the rules says which SDK it is.".format(
                device.options | {_SDK_ROOT: "/path/of/the/sdk"},
            ),
        )
    if exported.dtype != "auto" and exported.dtype not in takes.dtypes and not ctx.attr.allow_undelegated:
        refuse(
            ctx,
            "{} has dtype {}, of which the backend {} takes nothing.".format(
                display_label(exported.label),
                exported.dtype,
                backend,
            ),
            "Export with dtype = {}, choose a device of another backend, or write allow_undelegated = True.".format(quoted(takes.dtypes)),
        )
    if ctx.attr.external_data and not takes.external_data:
        refuse(
            ctx,
            "external_data = True, and the backend {} compiles the weights into its delegates, from where they cannot be taken out.".format(backend),
            "Remove it, or choose a device of one of the backends {}.".format(", ".join(EXTERNAL_DATA_BACKENDS)),
        )
    generates = _generates(exported)
    if generates and not takes.generation:
        refuse(
            ctx,
            "{} generates text, and the backend {} is for programs without a cache.".format(
                display_label(exported.label),
                backend,
            ),
            "Export a model of another task, or choose a device of another backend.",
        )
    if _varies(exported) and not takes.dynamic_shapes:
        refuse(
            ctx,
            "The sequence length of {} varies, and the backend {} takes fixed shapes only.".format(
                display_label(exported.label),
                backend,
            ),
            "Export with dynamic_seq_len = False, and max_seq_len = the number of positions of a call.",
        )
    for name, value, known in [
        ("quantization", exported.quantization, takes.schemes),
        ("quantization_embedding", exported.quantization_embedding, takes.embedding_schemes),
    ]:
        if value and value not in known:
            refuse(
                ctx,
                "{} has {} = \"{}\", for which the backend {} has no kernels.".format(
                    display_label(exported.label),
                    name,
                    value,
                    backend,
                ),
                "Export with {} = {}, or choose a device of another backend.".format(name, quoted(known)) if known else "Export without {}, or choose a device of another backend.".format(name),
            )

    multiple = takes.group_multiple
    if exported.quantization in GROUPED_QUANTIZATIONS and exported.quantization_group_size % multiple:
        refuse(
            ctx,
            "{} has quantization_group_size = {}, and the backend {} takes groups of {} weights or multiples of it.".format(
                display_label(exported.label),
                exported.quantization_group_size,
                backend,
                multiple,
            ),
            "Export with quantization_group_size = {}, which has to divide the widths of the layers.".format(multiple),
        )

def _generates(exported):
    """Whether a program generates text, as far as it is written: only such a program has a cache."""
    task = exported.model.task
    return task == GENERATION or (not task and exported.max_cache_len > 0)

def _check_scheme(ctx, exported, device):
    """Refuses a scheme of the device that does not suit the program."""
    backend = BACKENDS[device.backend]
    scheme = device.options.get("scheme", backend.default_scheme)
    if not scheme:
        return
    if exported.quantization or exported.quantization_embedding:
        refuse(
            ctx,
            "{} has quantized weights, and the scheme \"{}\" of {} would quantize them again.".format(
                display_label(exported.label),
                scheme,
                display_label(device.label),
            ),
            "Export without quantization, or choose a device without a scheme.",
        )
    if not calibrates(device):
        return
    if _generates(exported):
        refuse(
            ctx,
            "{} generates text, and the scheme \"{}\" of {} is calibrated, which takes a program without a cache.".format(
                display_label(exported.label),
                scheme,
                display_label(device.label),
            ),
            "Export a model of another task, or choose a device whose scheme is not calibrated, such as \"int8_dynamic\" of xnnpack.",
        )
    if _varies(exported):
        refuse(
            ctx,
            "The sequence length of {} varies, and the scheme \"{}\" of {} is calibrated, which takes a program of fixed shapes.".format(
                display_label(exported.label),
                scheme,
                display_label(device.label),
            ),
            "Export with dynamic_seq_len = False, or choose a device whose scheme is not calibrated, such as \"int8_dynamic\" of xnnpack.",
        )
    if backend.needs_calibration and not ctx.file.calibration:
        refuse(
            ctx,
            "The scheme \"{}\" of {} takes its ranges from inputs, and none are given.".format(scheme, display_label(device.label)),
            "Write calibration = \"samples.safetensors\", or choose a device with a scheme that needs none, such as \"int8_dynamic\".",
        )

def calibrates(device):
    """Whether a lowering for a device runs the model to find ranges of numbers.

    Args:
        device: `ExecutorchDeviceInfo`.

    Returns:
        A bool.
    """
    backend = BACKENDS[device.backend]
    return device.options.get("scheme", backend.default_scheme) in backend.calibrated_schemes

def lowering_key(ctx, device, exported):
    """What of a device reaches the action: devices with the same key have the same program.

    Args:
        ctx: the context of a rule with `LOWER_ATTRS`.
        device: `ExecutorchDeviceInfo`.
        exported: `ExportedProgramInfo`.

    Returns:
        A string.
    """
    packages = device.packages.launcher.path if device.packages else None
    return json.encode([str(exported.label), _options(ctx, device), packages])

def _options(ctx, device):
    return {
        "allow_noncanonical": ctx.attr.allow_noncanonical,
        "allow_undelegated": ctx.attr.allow_undelegated,
        "allow_unquantized": ctx.attr.allow_unquantized,
        "backend": device.backend,
        "backend_options": device.options,
        "external_data": ctx.attr.external_data,
    }

def _memory(ctx, exported):
    if ctx.attr.memory != AUTO:
        return ctx.attr.memory
    model = exported.model
    return memory_of_weights(model.weight_bytes, model.format, exported.dtype, exported.quantization != "")

def lower_for_device(ctx, device, exported, name):
    """Lowers an exported program.

    Args:
        ctx: the context of a rule with `LOWER_ATTRS`.
        device: `ExecutorchDeviceInfo`.
        exported: `ExportedProgramInfo`.
        name: name of the outputs, without extension.

    Returns:
        A struct of Files: program, data (None with the weights in the program), manifest, report,
        timings, options, and operators, provenance and sbom, which nothing builds unless asked for.
    """
    model = exported.model
    _check_backend(ctx, exported, device)
    _check_scheme(ctx, exported, device)

    options = ctx.actions.declare_file(name + ".options.json")
    ctx.actions.write(options, json.encode_indent(_options(ctx, device), indent = "  ") + "\n")
    program = ctx.actions.declare_file(name + ".pte")
    manifest = ctx.actions.declare_file(name + ".manifest.json")
    report = ctx.actions.declare_file(name + ".report.md")

    # A file of its own: it differs from run to run, and the manifest is a function of the inputs.
    timings = ctx.actions.declare_file(name + ".timings.json")
    data = ctx.actions.declare_file(name + ".ptd") if ctx.attr.external_data else None

    calibration = ctx.file.calibration if calibrates(device) else None
    inputs = [options, exported.program, exported.signature, model.description, model.config] + model.weights
    if calibration:
        inputs.append(calibration)
    outputs = [program, manifest, report, timings] + ([data] if data else [])

    args = command_args(ctx, "lower")
    args.add("--options", options)
    args.add("--exported", exported.program)
    args.add("--signature", exported.signature)
    args.add("--model-description", model.description)
    args.add("--config", model.config)
    args.add_all("--weights", model.weights)
    if calibration:
        args.add("--calibration", calibration)
    args.add("--out-program", program)
    args.add("--out-manifest", manifest)
    args.add("--out-report", report)
    args.add("--out-timings", timings)
    if data:
        args.add("--out-data", data)
    run_command(
        ctx,
        args,
        mnemonic = "ExecutorchLower",
        progress_message = "Lowering %{label} with " + device.backend,
        inputs = inputs,
        outputs = outputs,
        memory = _memory(ctx, exported),
        packages = device.packages,
        remote = ctx.attr.remote,
    )
    return struct(
        data = data,
        manifest = manifest,
        operators = select_operators(ctx, [program], name + ".operators"),
        options = options,
        program = program,
        provenance = declare_provenance(ctx, device, model, program, data, manifest, name),
        report = report,
        sbom = declare_sbom(ctx, device, model, program, manifest, name),
        timings = timings,
    )

def lowered_files(files):
    """The files of a program that an app carries.

    Args:
        files: from `lower_for_device`.

    Returns:
        A depset of Files.
    """
    return depset([files.program] + ([files.data] if files.data else []))

_GROUPS = ["manifest", "operators", "options", "provenance", "report", "sbom", "timings"]

def lowered_groups(files):
    """The output groups of a program.

    Args:
        files: from `lower_for_device`.

    Returns:
        A dict from the name of a group to a depset of Files.
    """
    return {name: depset([getattr(files, name)]) for name in _GROUPS}

def lowered_program_info(ctx, device, exported, files):
    """The provider of a program.

    Args:
        ctx: the rule context.
        device: `ExecutorchDeviceInfo`.
        exported: `ExportedProgramInfo`.
        files: from `lower_for_device`.

    Returns:
        An `ExecutorchProgramInfo`.
    """
    return ExecutorchProgramInfo(
        label = public_label(ctx.label),
        program = files.program,
        data = files.data,
        manifest = files.manifest,
        report = files.report,
        provenance = files.provenance,
        sbom = files.sbom,
        device = device,
        exported = exported,
        model = exported.model,
    )

def _executorch_lower_impl(ctx):
    device = ctx.attr.device[ExecutorchDeviceInfo]
    if ctx.file.calibration and not calibrates(device):
        refuse(
            ctx,
            "calibration is set, and nothing of a lowering for {} is calibrated.".format(display_label(device.label)),
            "Remove it, or choose a device whose scheme needs it.",
        )
    exported = ctx.attr.exported[ExportedProgramInfo]
    name = public_name(ctx.label)
    files = lower_for_device(ctx, device, exported, name)
    return [
        DefaultInfo(files = lowered_files(files)),
        OutputGroupInfo(
            _validation = validate_operators(ctx, device, files.manifest, name),
            **lowered_groups(files)
        ),
        lowered_program_info(ctx, device, exported, files),
    ]

LOWER_ATTRS = COMMAND_ATTRS | STATEMENT_ATTRS | TRANSITION_ATTRS | {
    "allow_noncanonical": attr.bool(mandatory = True),
    "allow_undelegated": attr.bool(mandatory = True),
    "allow_unquantized": attr.bool(mandatory = True),
    "calibration": attr.label(allow_single_file = [".safetensors"]),
    "exported": attr.label(mandatory = True, providers = [ExportedProgramInfo]),
    "external_data": attr.bool(mandatory = True),
    "memory": attr.string(mandatory = True),
    "remote": attr.string(mandatory = True),
}

executorch_lower_shared = rule(
    implementation = _executorch_lower_impl,
    attrs = LOWER_ATTRS | {
        "device": attr.label(mandatory = True, providers = [ExecutorchDeviceInfo]),
    },
    cfg = normalize,
    doc = "Lowers an exported program for a device.",
    provides = [ExecutorchProgramInfo],
    toolchains = [TOOLCHAIN_TYPE],
)

executorch_lower = public_rule(
    doc = "A program, lowered for a device.",
    providers = [ExecutorchProgramInfo],
)
