"""What is in the archives: a bill of materials (CycloneDX 1.5, JSON) from cargo's own data.

`cargo tree` says which crates are linked, `cargo metadata` their licences and addresses, Cargo.lock their checksums. The same
sources give the same bytes: there is no time in it, and its number is made of its contents.
"""

import json
import subprocess
import tomllib
import uuid
from pathlib import Path


def cargo(root: Path, *arguments: str) -> str:
    command = ["cargo", *arguments, "--locked", "--manifest-path", str(root / "Cargo.toml")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"dist: {' '.join(command)}:\n{done.stderr}")
    return done.stdout


def linked(root: Path, triple: str) -> dict[str, set[str]]:
    """The crates in the archive for `triple`: `name version` and those that each of them uses. Macros are not linked."""
    tree = cargo(
        root, "tree", "-p", "dab-ffi", "--no-default-features", "--features", "prove-no-panic", "--edges",
        "normal,no-proc-macro", "--target", triple, "--prefix", "depth", "--format", " {p}", "--no-dedupe",
    )  # fmt: skip
    uses: dict[str, set[str]] = {}
    path: list[str] = []
    for line in tree.splitlines():
        depth, name, version = line.split()[:3]
        crate = f"{name} {version.removeprefix('v')}"
        uses.setdefault(crate, set())
        path = path[: int(depth)] + [crate]
        if len(path) > 1:
            uses[path[-2]].add(crate)
    return uses


def bill(root: Path, version: str, triples: list[str], rust: dict[str, str], files: dict[str, str]) -> str:
    """The bill. `rust`: the compiler of each archive, whose core library is in it; `files`: archives and their SHA-256."""
    uses: dict[str, set[str]] = {}
    for triple in triples:
        for crate, used in linked(root, triple).items():
            uses.setdefault(crate, set()).update(used)
    known = {f"{p['name']} {p['version']}": p for p in json.loads(cargo(root, "metadata", "--format-version", "1"))["packages"]}
    lock = tomllib.loads((root / "Cargo.lock").read_text())["package"]
    checksums = {f"{p['name']} {p['version']}": p.get("checksum") for p in lock}

    def reference(crate: str) -> str:
        name, number = crate.split()
        return f"pkg:cargo/{name}@{number}"

    def component(crate: str) -> dict:
        package = known[crate]
        name, number = crate.split()
        made = {"type": "library", "bom-ref": reference(crate), "name": name, "version": number, "purl": reference(crate)}
        if package["description"]:
            made["description"] = " ".join(package["description"].split())
        # Older crates write "MIT/Apache-2.0".
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksums.get(crate):
            made["hashes"] = [{"alg": "SHA-256", "content": checksums[crate]}]
        if package["repository"]:
            made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        return made

    main = f"dab-ffi {version}"
    compilers = sorted(set(rust.values()))
    components = [component(crate) for crate in sorted(uses) if crate != main]
    for compiler in compilers:
        components.append(
            {
                "type": "library",
                "bom-ref": f"rust-core-{compiler}",
                "name": "core",
                "version": compiler,
                "description": "Rust's core library and compiler-builtins, of the compiler that made the archive",
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
                "externalReferences": [{"type": "vcs", "url": "https://github.com/rust-lang/rust"}],
            }
        )
    for name, digest in sorted(files.items()):
        components.append(
            {
                "type": "file",
                "bom-ref": f"file:{name}",
                "name": name,
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "properties": [{"name": "dab:rustc", "value": rust[name]}],
            }
        )
    dependencies = [{"ref": reference(c), "dependsOn": sorted(reference(u) for u in uses[c])} for c in sorted(uses)]
    dependencies += [{"ref": f"file:{name}", "dependsOn": [reference(main), f"rust-core-{rust[name]}"]} for name in sorted(files)]
    made = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(main)},
        "components": components,
        "dependencies": dependencies,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))
    return json.dumps({"serialNumber": f"urn:uuid:{number}", **made}, indent=2, sort_keys=True) + "\n"
