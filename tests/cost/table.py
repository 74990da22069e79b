#!/usr/bin/env python3
"""What dab costs on a Cortex-M4F, as a table in Markdown:   tests/cost/table.py [FILE | --check | --memory | --calls]

Every row is a program of its own, linked with only what it needs and run under QEMU, whose clock counts instructions.
Text, rodata and RAM are what it has beyond an empty program; weights are not code. With FILE (docs/performance.md),
the table between its two marks is replaced. Needs arm-none-eabi-gcc, qemu-system-arm, the dab command (DAB=..., or cargo build
--release) and, for the row of emlearn, pip. With --check, no table: the limits below must hold. --memory prints the rows of the
memory alone, which need no dab command, --calls those of one function each.
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import stack

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
DAB = os.environ.get("DAB", os.path.join(TARGET, "release/dab"))
WORK = tempfile.mkdtemp()
BOARD = f"{ROOT}/examples/cortex-m-c"
ARCH = ["-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-mthumb"]
MARKS = ("<!-- cost: tests/cost/table.py docs/performance.md -->", "<!-- end of cost -->")
EMLEARN = "0.23.2"
# What --check holds: time that does not depend on the input, bytes of stack beyond the scratch (three views and their
# logits have frames of their own; without channels it was 1 KB), of code of a diagonal
# codebook, and of code of the loader with every kind, without and with channels; instructions at opt-level 3 over those
# of the plain C at -O2, and at opt-level s for the spectral shape. Channels have a limit of their own: views, logits and tails are code that a model of format 1.0
# does not need, and a device that has none leaves it out by a feature.
MOST_OVER_LEAST, STACK, CODEBOOK, LOADER, OVER_C = 1.05, 1728, 8 * 1024, 15 * 1024, 1.0
CHANNELS, OVER_C_SMALL = 28 * 1024, 1.1
# Instructions with weights of one byte over those with four.
OVER_FLOAT = 1.25
# Bytes of stack of the other calls on the motor's model. Loading builds a whole model before it goes to its place; a taught
# memory is scored beside the pass; the rest are passes with results of their own.
INIT_STACK, TEACH_STACK, CALL_STACK = 3 * 1024, 2560, 2048


def command(*arguments, **options):
    done = subprocess.run(arguments, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout


def floats(path, values):
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(values)}f", *values))


class Shape:
    """A model with random weights: the artifact, and the same numbers as the plain C wants them."""

    def __init__(self, name, inputs, dim, codes, covariance):
        self.name, self.inputs, self.dim, self.codes, self.full = name, inputs, dim, codes, covariance != "diagonal"
        self.folder = f"{WORK}/{name}"
        os.mkdir(self.folder)
        draw = random.Random(name).uniform
        raw = dim + dim * (dim + 1) // 2 if self.full else 2 * dim
        tensors = {"head.weight": ([raw, inputs], [draw(-1, 1) * 4 / inputs**0.5 for _ in range(raw * inputs)])}
        tensors["codes.mean"] = ([codes, dim], [draw(-2, 2) for _ in range(codes * dim)])
        tensors["codes.prior"] = ([codes], [1 / codes] * codes)
        covs = []
        for _ in range(codes):
            b = [[draw(-0.5, 0.5) for _ in range(dim)] for _ in range(dim)]
            for i in range(dim):
                for j in range(dim) if self.full else [i]:
                    covs.append(sum(x * y for x, y in zip(b[i], b[j])) + (0.3 if i == j else 0.0))
        tensors["codes.cov"] = ([codes, dim, dim] if self.full else [codes, dim], covs)
        header, data = {"__metadata__": {"covariance": covariance}}, b""
        for key, (shape, values) in tensors.items():
            begin = len(data)
            data += struct.pack(f"<{len(values)}f", *values)
            header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
        text = json.dumps(header).encode()
        with open(f"{self.folder}/weights.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)
        self.model = f"{self.folder}/model.dab"
        command(DAB, "pack", f"{self.folder}/weights.safetensors", "-o", self.model)
        self.plain(raw)

    def plain(self, raw):
        """The numbers of the artifact (docs/format.md) in the order of dab-core/benches/assess/plain.c."""
        with open(self.model, "rb") as file:
            data = file.read()
        offset, length = struct.unpack_from("<II", data, 32)
        rest = list(struct.unpack_from(f"<{length // 4}f", data, offset))
        take = lambda n: [rest.pop(0) for _ in range(n)] if n < 5000 else [rest[:n], rest.__delitem__(slice(n))][0]
        k, d = self.codes, self.dim
        weight, mean = take(raw * self.inputs), take(k * d)
        precision = take(k * d * (d + 1) // 2) if self.full else take(k * d)
        self.mean, self.log_det, self.prior = mean, take(k), take(k)
        if self.full:
            triangles = iter(precision)
            precision = [next(triangles) if j <= i else 0.0 for _ in range(k) for i in range(d) for j in range(d)]
        else:
            mean = [mean[c * d + i] for i in range(d) for c in range(k)]
            precision = [precision[c * d + i] for i in range(d) for c in range(k)]
        self.precision = precision
        floats(f"{self.folder}/weight.f32", [weight[r * self.inputs + i] for i in range(self.inputs) for r in range(raw)])
        floats(f"{self.folder}/mean.f32", mean)
        floats(f"{self.folder}/precision.f32", precision)
        floats(f"{self.folder}/log_det.f32", self.log_det)
        floats(f"{self.folder}/prior.f32", self.prior)


def library(opt):
    """libdab.a for the Cortex-M4F at an optimisation level."""
    prefix = f"{TARGET}/device/cost-{opt}"
    env = dict(os.environ, PREFIX=prefix, TARGET="thumbv7em-none-eabihf", OPT=opt)
    command(f"{ROOT}/dab-ffi/install", env=env)
    return prefix


def build(row, defines, flags, libraries=()):
    """The program of a row: its ELF file."""
    script = open(f"{BOARD}/link.ld").read().replace("64K", "4M").replace("16K", "1M")
    script = script.replace("  .data :", "  .weights : { *(.weights) } > FLASH\n  .data :")
    open(f"{WORK}/link.ld", "w").write(script)
    elf = f"{WORK}/{row}.elf"
    command("arm-none-eabi-gcc", "-std=gnu11", *ARCH, *flags, "-ffunction-sections", "-fdata-sections", f"-I{BOARD}",
            *[f"-D{d}" for d in defines], f"{ROOT}/tests/cost/cost.c", f"{BOARD}/board.c", *libraries, "-lm",
            "-nostartfiles", "--specs=nano.specs", "-T", f"{WORK}/link.ld", "-Wl,--gc-sections", "-o", elf)
    return elf


def sizes(elf):
    """Bytes of .text, of .rodata, and of RAM for variables."""
    lines = command("arm-none-eabi-size", "-A", elf).splitlines()
    found = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith(".")}
    return [found.get(".text", 0), found.get(".rodata", 0), found.get(".data", 0) + found.get(".bss", 0)]


def code(elf, empty):
    """Bytes of code and constants beyond an empty program's."""
    return sum(sizes(elf)[:2]) - sum(sizes(empty)[:2])


def measure(elf):
    """Least and most instructions, stack by painting, worst stack."""
    said = command("qemu-system-arm", "-M", "mps2-an386", "-icount", "shift=6", "-display", "none", "-chardev",
                   "stdio,id=out", "-semihosting-config", "enable=on,target=native,chardev=out", "-kernel", elf,
                   timeout=300)
    return *[int(word) for word in said.split()], stack.worst(elf, "call")


def emlearn(shape):
    """The C that emlearn generates for a mixture of the same k and d; None when it cannot be had."""
    if not shutil.which("pip3"):
        return None
    done = subprocess.run(["pip3", "download", "--quiet", "--no-deps", "-d", WORK, f"emlearn=={EMLEARN}"])
    if done.returncode:
        return None
    command(sys.executable, "-m", "zipfile", "-e", f"{WORK}/emlearn-{EMLEARN}-py3-none-any.whl", WORK)
    generate = f"""
import sys, types
import numpy
package = types.ModuleType("emlearn"); package.__path__ = [sys.argv[1] + "/emlearn"]; sys.modules["emlearn"] = package
from emlearn import mixture
k, d = {shape.codes}, {shape.dim}
model = types.SimpleNamespace(
    _means=numpy.array({shape.mean}).reshape(k, d), _covariance_type="full",
    _precisions_col=numpy.array({shape.precision}).reshape(k, d, d).transpose(0, 2, 1),
    _log_det=-0.5 * numpy.array({shape.log_det}), _log_weights=numpy.log(numpy.array({shape.prior})))
print(mixture.generate_code(model, name="gmm"))
"""
    done = subprocess.run([sys.executable, "-c", generate, WORK], capture_output=True, text=True)
    if done.returncode:
        print(f"emlearn: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    open(f"{WORK}/emlearn.h", "w").write(done.stdout)
    return f"{WORK}"


def scratch_of(model):
    """Bytes of scratch, as `dab inspect` says."""
    if not os.path.exists(DAB):
        sys.exit(f"table.py: there is no {DAB}: cargo build --release, or set DAB")
    return int(command(DAB, "inspect", model).split(" bytes of scratch")[0].split()[-1].replace(",", ""))


def dab(shape, opt, scratch, program="ROW_DAB"):
    """The program that assesses inputs of a model by libdab.a, or gives them to dab_guard."""
    prefix, artifact = library(opt), os.path.getsize(shape.model)
    defines = [program, f"FOLDER={shape.folder}", f"BYTES={artifact}", f"SCRATCH={scratch // 4}", f"INPUTS={shape.inputs}"]
    return build(f"{program}-{opt}", defines, ["-O2", f"-I{prefix}/include"], [f"{prefix}/lib/libdab.a"])


# Inputs, dimensions, codes and covariance of the shapes that are measured elsewhere, too.
SHAPES = {"a": (640, 8, 10, "spectral"), "b": (640, 8, 10, "cholesky"), "c": (2048, 80, 1000, "diagonal")}


class Int8:
    """A model with weights of one byte."""

    def __init__(self, shape):
        self.inputs, self.folder = shape.inputs, tempfile.mkdtemp(dir=WORK)
        self.model = f"{self.folder}/model.dab"
        rows = f"{self.folder}/rows.csv"
        with open(rows, "w") as file:
            file.write("\n".join([",".join("1" for _ in range(self.inputs))] * 2) + "\n")
        command(DAB, "quantise", shape.model, "--data", rows, "-o", self.model)


class Norm:
    """64 inputs, a LayerNorm, a dense layer and a residual around both."""

    inputs = 64

    def __init__(self):
        self.folder = tempfile.mkdtemp(dir=WORK)
        self.model = shutil.copy(f"{ROOT}/tests/cost/norm.dab", f"{self.folder}/model.dab")


class Motor:
    """The model of examples/motor."""

    folder = f"{ROOT}/examples/motor"
    model, inputs = f"{folder}/model.dab", 26


class Views:
    """A model with channels: written by DAB_BLESS=1 cargo test -p dab-tests --test same_bits."""

    inputs = 64

    def __init__(self, name):
        self.folder = f"{WORK}/{name}"
        os.mkdir(self.folder)
        self.model = shutil.copy(f"{ROOT}/tests/cost/{name}.dab", f"{self.folder}/model.dab")


def plain(shape, letter, flags):
    """The program that does the same in plain C."""
    return build(f"plain-{letter}", [f"ROW_PLAIN_{letter}", f"FOLDER={shape.folder}"], flags)


def check():
    """What the table promises, as tests."""
    failed = []

    def hold(what, value, most):
        print(f"{what}: {round(value, 3):,} of at most {most:,}")
        if value > most:
            failed.append(what)

    views = Views("three-views")
    for opt in ("3", "s"):
        least, most, painted, worst = measure(dab(Motor, opt, scratch_of(Motor.model)))
        hold(f"motor, opt-level {opt}: instructions, most over least", most / least, MOST_OVER_LEAST)
        hold(f"motor, opt-level {opt}: stack", worst, STACK)
        hold(f"motor, opt-level {opt}: stack found by painting", painted, worst)
        *_, worst = measure(dab(Motor, opt, scratch_of(Motor.model), "ROW_GUARD"))
        hold(f"motor, dab_guard, opt-level {opt}: stack", worst, CALL_STACK)
        # The deepest path is the one through several views.
        *_, painted, worst = measure(dab(views, opt, scratch_of(views.model)))
        hold(f"three views, opt-level {opt}: stack", worst, STACK)
        hold(f"three views, opt-level {opt}: worst stack over painted", worst / painted, 1.1)
        for call, name in CALLS.items():
            most = {"INIT": INIT_STACK, "TEACH": TEACH_STACK, "TAUGHT": TEACH_STACK}.get(call, CALL_STACK)
            hold(f"motor, {name}, opt-level {opt}: stack", stack.worst(one_call(call, opt), "call"), most)
    for shape, letter in ((Shape("a", *SHAPES["a"]), "A"), (Shape("c", *SHAPES["c"]), "C")):
        ours = measure(dab(shape, "3", scratch_of(shape.model)))[1]
        theirs = measure(plain(shape, letter, ["-O2"]))[1]
        hold(f"({shape.name}): instructions over plain C's", ours / theirs, OVER_C)
        if shape.full:
            small = measure(dab(shape, "s", scratch_of(shape.model)))[1]
            hold(f"({shape.name}), opt-level s: instructions over plain C's", small / theirs, OVER_C_SMALL)
    for name, floats in (("(b)", Shape("b", *SHAPES["b"])), ("motor", Motor)):
        before, after = (measure(dab(model, "3", scratch_of(model.model)))[1] for model in (floats, Int8(floats)))
        hold(f"{name}: instructions with int8 over those with float32", after / before, OVER_FLOAT)
    hold("code of a diagonal codebook", code(rust("codebook"), rust("empty")), CODEBOOK)
    hold("code of the loader, every kind, assess", code(rust("loader", *NO_CHANNELS), rust("empty")), LOADER)
    hold("code of the loader, every kind, channels, assess", code(rust("loader", *WITH_CHANNELS), rust("empty")), CHANNELS)
    if failed:
        sys.exit(f"not within the limits of tests/cost/table.py: {', '.join(failed)}")


# Features of examples/cortex-m: every kind of format 1.0; one kind alone.
NO_CHANNELS = ("--no-default-features", "--features", "kinds")
WITH_CHANNELS = ("--no-default-features", "--features", "kinds,channels")
DIAGONAL = ("--no-default-features", "--features", "diagonal,float32")
CHOLESKY_INT8 = ("--no-default-features", "--features", "cholesky,int8")


def rust(program, *options):
    """A Rust program of examples/cortex-m: its ELF file, a copy."""
    command("../cargo-for", "thumbv7em-none-eabihf", "build", "--quiet", "--release", "--bin", program, *options,
            cwd=f"{ROOT}/examples/cortex-m")
    return shutil.copy(f"{TARGET}/device/thumbv7em-none-eabihf/release/{program}", f"{WORK}/{program}{''.join(options)}")


def row(name, elf, inputs, artifact=None, scratch=None):
    """Name and cells of a row."""
    empty = build("empty", ["ROW_EMPTY"], ["-O2"])
    least, most, painted, worst = measure(elf)
    text, rodata, variables = (a - b for a, b in zip(sizes(elf), sizes(empty)))
    # The input's own memory, which the empty program has for one number, is the caller's in any case.
    ram = variables - 4 * (inputs - 1) + worst
    return name, [text, rodata, artifact, scratch, painted, worst, ram, least, most, f"{most / least:.3f}"]


# The functions of tests/cost/calls.h, as the table names them; those that --check allows more stack.
CALLS = {"INIT": "dab_model_init", "CHECK": "dab_model_check", "SELF_TEST": "dab_self_test", "SHAPE": "dab_model_shape",
         "RATES": "dab_set_rates", "THRESHOLD": "dab_threshold", "ASSESS_BATCH": "dab_assess_batch, one row",
         "PREDICT": "dab_predict", "PREDICT_BATCH": "dab_predict_batch, one row", "EXPLAIN": "dab_explain",
         "WITHOUT": "dab_assess_without", "ATTRIBUTE": "dab_attribute, 26 inputs", "MEANS": "dab_model_means",
         "BANDS": "dab_model_bands", "NAME": "dab_input_name", "MONITOR": "dab_model_monitor", "OBSERVE": "dab_monitor_observe",
         "EXPLORE": "dab_exploration_compute", "ENCODE": "dab_encode", "TEACH": "dab_teach", "TAUGHT": "dab_assess_taught"}


def one_call(call, opt):
    """The program that makes one call on the motor's model."""
    prefix, scratch = library(opt), scratch_of(Motor.model)
    defines = ["ROW_CALL", f"CALL={call}", f"FOLDER={Motor.folder}", f"BYTES={os.path.getsize(Motor.model)}",
               f"SCRATCH={scratch // 4}", f"INPUTS={Motor.inputs}"]
    return build(f"call-{call}-{opt}", defines, ["-O2", f"-I{prefix}/include"], [f"{prefix}/lib/libdab.a"])


def call_rows():
    """One row for each public function, on the motor's model; a full memory of 8 codes is taught."""
    for call, name in CALLS.items():
        for opt in ("3", "s"):
            yield row(f"motor: {name}, opt-level {opt}", one_call(call, opt), Motor.inputs, os.path.getsize(Motor.model))


def memory(codes, dim, opt):
    """The program that a full memory observes in."""
    prefix = library(opt)
    defines = ["ROW_MEMORY", f"CODES={codes}", f"INPUTS={dim}"]
    return build(f"memory-{opt}", defines, ["-O2", f"-I{prefix}/include"], [f"{prefix}/lib/libdab.a"])


def memory_rows():
    """What one observation costs, where all places are used."""
    for codes, dim in ((16, 4), (64, 8)):
        for opt in ("3", "s"):
            yield row(f"memory, {codes} codes, {dim} dimensions: observe, opt-level {opt}", memory(codes, dim, opt), dim)


def rows():
    """Every row."""
    full, cholesky, diagonal = (Shape(name, *shape) for name, shape in SHAPES.items())
    named = [("640→8, k 10, spectral", full, "A"), ("640→8, k 10, Cholesky", cholesky, None),
             ("2048→80, k 1000, diagonal", diagonal, "C"), ("motor: 26→24→16→4, k 4, Cholesky", Motor, None),
             ("640→8, k 10, Cholesky, int8", Int8(cholesky), None),
             ("2048→80, k 1000, diagonal, int8", Int8(diagonal), None),
             ("motor, int8", Int8(Motor), None),
             ("64→64→64→4, k 4, diagonal, with a LayerNorm", Norm(), None),
             ("64→16, k 40, constant, 10 classes: one view", Views("one-view"), None),
             ("the same three times: three views", Views("three-views"), None)]
    for name, shape, letter in named:
        for opt in ("3", "s"):
            scratch = scratch_of(shape.model)
            yield row(f"{name}: dab, opt-level {opt}", dab(shape, opt, scratch), shape.inputs,
                      os.path.getsize(shape.model), scratch)
        if letter:
            # gcc fuses multiply-adds unless it is told not to; dab never does, so that all machines round alike.
            for flags in (["-O2"], ["-O2", "-ffp-contract=off"]):
                yield row(f"{name}: plain C, {' '.join(flags)}", plain(shape, letter, flags), shape.inputs)
    for opt in ("3", "s"):
        scratch = scratch_of(Motor.model)
        yield row(f"motor: dab_guard, assessment, votes and drift, opt-level {opt}", dab(Motor, opt, scratch, "ROW_GUARD"),
                  Motor.inputs, os.path.getsize(Motor.model), scratch)
    yield from call_rows()
    yield from memory_rows()
    for name, *program in (("diagonal codebook of fixed size, no loader", "codebook"),
                           ("loader, diagonal and float32 alone, assess", "loader", *DIAGONAL),
                           ("loader, Cholesky and int8 alone, assess", "loader", *CHOLESKY_INT8),
                           ("loader, every kind of format 1.0, assess", "loader", *NO_CHANNELS),
                           ("loader, every kind, channels, assess", "loader", *WITH_CHANNELS),
                           ("loader, everything, int8 and LayerNorm too, assess", "loader")):
        text, rodata, _ = (a - b for a, b in zip(sizes(rust(*program)), sizes(rust("empty"))))
        yield f"Rust, opt-level s: {name}", [text, rodata, *[None] * 8]
    if header := emlearn(full):
        elf = build("emlearn", ["ROW_EMLEARN", f"INPUTS={full.dim}", f"CODES={full.codes}"],
                    ["-O2", f"-I{header}", f"-I{header}/emlearn", "-w"])
        yield row(f"mixture of 10 in 8 dimensions, no network: emlearn {EMLEARN}, -O2", elf, full.dim)


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    columns = ["program (Cortex-M4F)", "text", "rodata", "artifact", "scratch", "stack", "worst stack", "RAM in all",
               "instructions, least", "most", "most ÷ least"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    parts = {"--memory": memory_rows, "--calls": call_rows}
    for name, cells in parts.get("".join(sys.argv[1:]), rows)():
        shown = ("–" if c is None else c if isinstance(c, str) else f"{c:,}" for c in cells)
        lines.append(f"| {name} | {' | '.join(shown)} |")
        print(lines[-1], file=sys.stderr)
    table = "\n".join(lines)
    if sys.argv[1:] in ([], ["--memory"], ["--calls"]):
        print(table)
        return
    text = open(sys.argv[1]).read()
    before, rest = text.split(MARKS[0])
    open(sys.argv[1], "w").write(f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(WORK)
