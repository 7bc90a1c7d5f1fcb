"""Compares the sources that the patches of torch and executorch rest on with an installed version.

    bazel run //tools/compat:check [-- --packages FOLDER] [--environment FOLDER] [--update]

Without options the version is the toolchain's own. `--packages` names a folder that
`pip install --no-deps --target FOLDER executorch==X` made, which hides what the toolchain has;
`--environment` a virtual environment, such as those below ~/.cache/rules_executorch/env. Nothing
of them is imported. Exit status 1 means that a source differs; what is not installed is named.

`--update` writes the digests of that version into the `patches.json` of the checkout, for a person
who has looked at each difference and mended the patches it concerns.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# The toolchain's launcher keeps all other folders off the module path.
sys.path.insert(0, str(Path(__file__).absolute().parents[2] / "python"))

from rules_executorch.compat import sources  # noqa: E402

_SHOWN = 24
"""Lines of a difference that are shown."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """A source of a patch that is not the one recorded.

    Attributes:
        patch: its name.
        target: `MODULE:NAME`.
        digest: of the source that is there; None if it is not there.
        installed: whether there is any module of its top-level package.
    """

    patch: str
    target: str
    digest: str | None
    installed: bool


def tables(checkout: Path) -> dict[Path, dict[str, Any]]:
    """The `patches.json` of a checkout, by path."""
    found = sorted((checkout / "python/rules_executorch").glob("**/patches.json"))
    return {path: json.loads(path.read_text(encoding="utf-8")) for path in found}


def recorded(patch: Mapping[str, Any]) -> dict[str, str]:
    """The sources of a patch and their digests."""
    return {**patch["replaces"], **patch["rests_on"]}


def compare(table: Mapping[str, Any], folders: Sequence[str]) -> Iterator[Finding]:
    """What differs between the sources that a table records and those in some folders."""
    for name, patch in table["patches"].items():
        for target, expected in recorded(patch).items():
            digest = _digest(target, folders)
            if digest != expected:
                package = target.partition(":")[0].partition(".")[0]
                installed = any(os.path.isdir(os.path.join(folder, package)) for folder in folders)
                yield Finding(name, target, digest, installed)


def other_files(table: Mapping[str, Any], folders: Sequence[str]) -> list[str]:
    """Modules whose file is another one than recorded, so that lowering has to look into it."""
    found = []
    for module, expected in table["files"].items():
        try:
            if sources.file_digest(module, folders) != expected:
                found.append(module)
        except sources.NoSource:
            pass
    return found


def _digest(target: str, folders: Sequence[str]) -> str | None:
    try:
        return sources.digest(target, folders)
    except sources.NoSource:
        return None


def difference(finding: Finding, expected: str, folders: Sequence[str], own: Sequence[str]) -> str:
    """What changed, as lines of a diff, where the toolchain's own version is the recorded one."""
    if finding.digest is None:
        return "it is not there any more"
    if _digest(finding.target, own) != expected:
        return "the recorded source is not the toolchain's own either, so there is none to compare"
    before, after = (sources.source(finding.target, where) for where in (own, folders))
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
    shown = lines[2 : 2 + _SHOWN]
    more = len(lines) - 2 - len(shown)
    return "\n".join(shown + ([f"... and {more} more lines"] if more > 0 else []))


def updated(table: dict[str, Any], folders: Sequence[str]) -> dict[str, Any]:
    """The same table with the digests of the sources in some folders.

    Raises:
        sources.NoSource: one of them is not there; the patch has to be mended first.
    """
    modules = set()
    for patch in table["patches"].values():
        for part in ("replaces", "rests_on"):
            patch[part] = {target: sources.digest(target, folders) for target in patch[part]}
            modules |= {target.partition(":")[0] for target in patch[part]}
    table["files"] = {name: sources.file_digest(name, folders) for name in sorted(modules)}
    return table


def environment_folders(environment: str) -> list[str]:
    """Where a virtual environment has its packages, in order.

    Raises:
        OSError, subprocess.CalledProcessError: it has no Python that runs.
    """
    command = [os.path.join(environment, "bin", "python"), "-I", "-c"]
    script = "import json, sys; print(json.dumps(sys.path))"
    done = subprocess.run([*command, script], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def report(checkout: Path, folders: Sequence[str], own: Sequence[str]) -> bool:
    """Prints what differs, patch by patch; whether nothing does."""
    same = True
    count = 0
    for table in tables(checkout).values():
        by_patch: dict[str, list[Finding]] = {}
        for finding in compare(table, folders):
            by_patch.setdefault(finding.patch, []).append(finding)
        count += len(table["patches"])
        for name, findings in by_patch.items():
            patch = table["patches"][name]
            absent = sorted({f.target.partition(".")[0] for f in findings if not f.installed})
            findings = [finding for finding in findings if finding.installed]
            if absent:
                print(f"{name}: {', '.join(absent)} not installed, not compared")
            if not findings:
                continue
            same = False
            total = len(recorded(patch))
            print(f"{name} ({patch['kind']}): {len(findings)} of {total} sources differ")
            print(f"  without it, {patch['reason']}")
            print(f"  upstream: {patch['upstream'] or 'none known'}")
            for finding in findings:
                role = "replaces" if finding.target in patch["replaces"] else "rests on"
                print(f"  it {role} {finding.target}:")
                text = difference(finding, recorded(patch)[finding.target], folders, own)
                print("".join(f"    {line}\n" for line in text.splitlines()), end="")
        for module in other_files(table, folders):
            if not any(f.target.startswith(module + ":") for fs in by_patch.values() for f in fs):
                print(f"{module}: the file differs, the sources in it do not")
    verdict = "All sources are" if same else "Not all sources are"
    print(f"{verdict} those that the {count} patches were made for.")
    return same


def main(argv: Sequence[str]) -> int:
    """Compares, or updates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--environment", metavar="FOLDER")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args(argv)
    checkout = Path(
        os.environ.get("BUILD_WORKSPACE_DIRECTORY", Path(__file__).absolute().parents[2])
    )
    where = os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd())
    own = [folder for folder in sys.path if folder]
    for folder in [*args.packages, *filter(None, [args.environment])]:
        if not os.path.isdir(os.path.join(where, folder)):
            print(f"check: {folder} is not a folder.", file=sys.stderr)
            return 2
    folders = own
    if args.environment:
        try:
            folders = environment_folders(os.path.join(where, args.environment))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"check: {args.environment} has no Python that runs: {error}", file=sys.stderr)
            return 2
    folders = [os.path.join(where, folder) for folder in args.packages] + folders
    if args.update:
        try:
            new = {path: updated(table, folders) for path, table in tables(checkout).items()}
        except sources.NoSource as error:
            print(f"check: nothing was written: {error}. Mend that patch first.", file=sys.stderr)
            return 1
        for path, table in new.items():
            path.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
        return 0
    return 0 if report(checkout, folders, own) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
