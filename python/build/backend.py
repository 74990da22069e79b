"""Makes the wheel: the Python files, and the C library of dab beside them.

`pip wheel ./python` calls this (PEP 517). It needs cargo; who installs the wheel does not. $DAB_LIBRARY names a libdab.so that
is built already. Nothing is downloaded: there are no build requirements.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent
LIBRARY = {"darwin": "libdab.dylib", "win32": "dab.dll"}.get(sys.platform, "libdab.so")


def _project():
    """The fields of pyproject.toml that this backend uses: one key a line, as they stand there."""
    fields, section = {}, ""
    for line in (HERE / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        elif " = " in line:
            key, value = line.split(" = ", 1)
            fields[f"{section}.{key}"] = value.strip().strip('"')
    return fields


def _library():
    """The shared library: $DAB_LIBRARY, or built by cargo."""
    given = os.environ.get("DAB_LIBRARY")
    if given:
        return Path(given)
    if not (ROOT / "dab-ffi/Cargo.toml").exists():
        raise SystemExit(f"dab-uncertainty is built in dab's repository: {ROOT} has no dab-ffi (or set DAB_LIBRARY)")
    if not shutil.which("cargo"):
        raise SystemExit("dab-uncertainty needs cargo to build its library: install Rust from https://rustup.rs")
    command = ["cargo", "rustc", "-p", "dab-ffi", "--lib", "--crate-type", "cdylib", "--profile", "c"]
    command += ["--message-format", "json-render-diagnostics"]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "CARGO_PROFILE_C_OPT_LEVEL": "3"})
    if run.returncode != 0:
        raise SystemExit("cargo could not build the library: see its messages above")
    for line in run.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["target"]["name"] == "dab":
            for name in message["filenames"]:
                if name.endswith(LIBRARY):
                    return Path(name)
    raise SystemExit(f"cargo built no {LIBRARY}")


def _list(value):
    return [item.strip().strip('"') for item in value.strip("[]").split(",") if item.strip()]


def _metadata(fields):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {fields['project.name']}",
        f"Version: {fields['project.version']}",
        f"Summary: {fields['project.description']}",
        "License: MIT OR Apache-2.0",
        f"Requires-Python: {fields['project.requires-python']}",
        f"Project-URL: Repository, {fields['project.urls.Repository']}",
        "Description-Content-Type: text/markdown",
    ]
    lines += [f"Requires-Dist: {need}" for need in _list(fields["project.dependencies"])]
    extras = "project.optional-dependencies."
    for extra, needs in ((key[len(extras):], _list(value)) for key, value in fields.items() if key.startswith(extras)):
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    return "\n".join(lines) + "\n\n" + (HERE / "README.md").read_text(encoding="utf-8")


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into `wheel_directory` and gives its name."""
    fields = _project()
    name, version = fields["project.name"].replace("-", "_"), fields["project.version"]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}"
    info = f"{name}-{version}.dist-info"
    package = HERE / "src/dab_uncertainty"
    files = {f"dab_uncertainty/{p.name}": p.read_bytes() for p in sorted(package.glob("*")) if p.suffix in (".py", ".typed")}
    files[f"dab_uncertainty/{LIBRARY}"] = _library().read_bytes()
    files[f"{info}/METADATA"] = _metadata(fields).encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: dab\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        if (ROOT / licence).exists():
            files[f"{info}/licenses/{licence}"] = (ROOT / licence).read_bytes()
    record = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}")
    record.append(f"{info}/RECORD,,")
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    out = f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            # One date for all: the same sources give the same wheel.
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if path.endswith(LIBRARY) else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return out


def build_sdist(sdist_directory, config_settings=None):
    """There is none: the library is built from the whole repository."""
    raise SystemExit("dab-uncertainty has no source package: build the wheel in dab's repository, `pip wheel ./python`")
