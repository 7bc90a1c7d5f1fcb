"""What the analysis tests share."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _empty_files_impl(ctx):
    files = [ctx.actions.declare_file(name) for name in ctx.attr.names]
    for file in files:
        ctx.actions.write(file, "")
    return [DefaultInfo(files = depset(files))]

empty_files = rule(
    implementation = _empty_files_impl,
    attrs = {"names": attr.string_list(doc = "Paths below the package.")},
    doc = "Files that are there by name; an analysis test never reads them.",
)

def _folder_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(outputs = [folder], command = "mkdir -p \"$1\"", arguments = [folder.path])
    return [DefaultInfo(files = depset([folder]))]

folder = rule(
    implementation = _folder_impl,
    doc = "A directory as one file.",
)

def _refusal_test_impl(ctx):
    env = analysistest.begin(ctx)
    for words in ctx.attr.words:
        asserts.expect_failure(env, words)
    return analysistest.end(env)

_refusal_test = analysistest.make(
    _refusal_test_impl,
    attrs = {"words": attr.string_list(mandatory = True)},
    expect_failure = True,
)

def refusal_test(name, rule, words, **attributes):
    """Tests that a target is refused, and what the message says.

    The message names the target in any case.

    Args:
        name: name of the test.
        rule: the rule or macro of the target.
        words: list of strings that the message contains.
        **attributes: attributes of the target.
    """
    subject = name + "_subject"
    rule(
        name = subject,
        tags = ["manual"],
        **attributes
    )
    _refusal_test(
        name = name,
        size = "small",
        target_under_test = ":" + subject,
        words = ["ERROR in //{}:{}:".format(native.package_name(), subject)] + words,
    )

def action_of(env, mnemonic):
    """The one action of the target under test that has a mnemonic.

    Args:
        env: from `analysistest.begin`.
        mnemonic: the mnemonic.

    Returns:
        The action.
    """
    found = [a for a in analysistest.target_actions(env) if a.mnemonic == mnemonic]
    asserts.equals(env, 1, len(found), "actions with the mnemonic " + mnemonic)
    return found[0]

def basenames(files):
    """Sorted base names of files, without the Python sources and the toolchain.

    Args:
        files: depset or list of Files.

    Returns:
        A list of strings.
    """
    files = files.to_list() if type(files) == "depset" else files
    package = "tests/starlark/"
    return sorted([file.basename for file in files if file.short_path.startswith(package)])

def argument_after(action, option):
    """The argument that follows an option.

    Args:
        action: the action.
        option: the option, for example `--out-config`.

    Returns:
        A string, or None if the option is not there.
    """
    argv = action.argv
    for index in range(len(argv) - 1):
        if argv[index] == option:
            return argv[index + 1]
    return None
