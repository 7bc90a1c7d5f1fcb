"""`java_app`: a jar with resources, and a script that runs it, by the JDK that Bazel finds."""

_COMPILE = """\
set -eu
java_home=$1 jar=$2 main=$3 sources=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$java_home/bin/javac" -nowarn -d "$work" @"$sources"
shift 4
for resource; do
  mkdir -p "$work/$(dirname "${resource#*=}")"
  cp -L "${resource%%=*}" "$work/${resource#*=}"
done
# Stored and not deflated: the model is read at the speed of the disk.
"$java_home/bin/jar" --create --no-compress --date=1980-01-01T00:00:02Z --file="$jar" --main-class="$main" -C "$work" .
"""

_RUN = """\
#!/usr/bin/env bash
# Runs {label}.
runfiles=${{RUNFILES_DIR:-$0.runfiles}}/_main
exec "$runfiles/{java}" -Djava.library.path="$runfiles/{native_folder}" -jar "$runfiles/{jar}" "$@"
"""

def _resource(file):
    return "{}={}".format(file.path, file.short_path)

def _java_app_impl(ctx):
    runtime = ctx.toolchains["@bazel_tools//tools/jdk:runtime_toolchain_type"].java_runtime
    jar = ctx.actions.declare_file(ctx.label.name + ".jar")
    sources = ctx.actions.args()
    sources.use_param_file("%s", use_always = True)
    sources.set_param_file_format("multiline")
    sources.add_all(ctx.files.srcs)
    args = ctx.actions.args()
    args.add(runtime.java_home)
    args.add(jar)
    args.add(ctx.attr.main_class)
    resources = ctx.actions.args()
    resources.add_all(ctx.files.resources, map_each = _resource)
    ctx.actions.run_shell(
        command = _COMPILE,
        arguments = [args, sources, resources],
        inputs = depset(ctx.files.srcs + ctx.files.resources, transitive = [runtime.files]),
        outputs = [jar],
        mnemonic = "JavaApp",
        progress_message = "Packing %{label}",
    )
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        script,
        _RUN.format(
            jar = jar.short_path,
            java = runtime.java_executable_runfiles_path,
            label = ctx.label,
            native_folder = ctx.file.native.short_path.rpartition("/")[0],
        ),
        is_executable = True,
    )
    runfiles = ctx.runfiles([jar, ctx.file.native], transitive_files = runtime.files)
    runfiles = runfiles.merge(ctx.attr.native[DefaultInfo].default_runfiles)
    return [DefaultInfo(
        executable = script,
        files = depset([script, jar]),
        runfiles = runfiles,
    )]

java_app = rule(
    implementation = _java_app_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".java"], mandatory = True),
        "main_class": attr.string(mandatory = True),
        "native": attr.label(allow_single_file = [".so"], mandatory = True, doc = "The library that the app loads."),
        "resources": attr.label_list(allow_files = True, doc = "Files in the jar, at their path below the workspace."),
    },
    executable = True,
    toolchains = ["@bazel_tools//tools/jdk:runtime_toolchain_type"],
)
