# PlatformIO reads this when it builds a project with dab: it adds the archive that fits the board.
#
# The compiler knows the processor best: the flags of the board go to it, and its macros say which archive fits. To choose
# by hand, write `custom_dab_target = cortex-m4f` into platformio.ini.
import os
import subprocess

Import("env")  # noqa: F821  (PlatformIO defines it)


def macros():
    """What the compiler defines with the flags of this project."""
    flags = env.subst("$CCFLAGS $CFLAGS").split()  # noqa: F821
    flags = [f for f in flags if f.startswith(("-m", "--target", "-march"))]
    command = [env.subst("$CC"), *flags, "-dM", "-E", "-x", "c", os.devnull]  # noqa: F821
    said = subprocess.run(command, capture_output=True, text=True, env=env["ENV"]).stdout  # noqa: F821
    return {line.split()[1]: line.split(maxsplit=2)[2:] for line in said.splitlines() if line.startswith("#define ")}, flags


def fitting():
    """Archives that would do, the best first. The same rule as lib/cmake/dab/dab-archive.cmake."""
    has, flags = macros()
    hard = "__ARM_PCS_VFP" in has
    if "__linux__" in has and "__ILP32__" not in has:
        return ["linux-x86_64"] if "__x86_64__" in has else ["linux-aarch64"] if "__aarch64__" in has else []
    if "__ARM_ARCH_6M__" in has or "__ARM_ARCH_8M_BASE__" in has:
        return ["cortex-m0"]
    if "__ARM_ARCH_7M__" in has:
        return ["cortex-m3"]
    if "__ARM_ARCH_7EM__" in has:
        if not hard:
            return ["cortex-m4", "cortex-m3"]
        return ["cortex-m7", "cortex-m4f"] if "-mcpu=cortex-m7" in flags else ["cortex-m4f"]
    if "__ARM_ARCH_8M_MAIN__" in has or "__ARM_ARCH_8_1M_MAIN__" in has:
        return ["cortex-m33f"] if hard else ["cortex-m33"]
    if has.get("__riscv_xlen") == ["32"] and "__riscv_mul" in has and "__riscv_compressed" in has:
        if "__riscv_float_abi_single" in has:
            return ["rv32imafc"]
        if "__riscv_float_abi_soft" in has:
            return ["rv32imac", "rv32imc"] if "__riscv_atomic" in has else ["rv32imc"]
    return []


here = os.path.join(env["PROJECT_LIBDEPS_DIR"], env["PIOENV"], "dab")  # noqa: F821
here = os.getcwd() if os.path.isfile("library.json") else here
lib = os.path.join(here, "lib")
chosen = env.GetProjectOption("custom_dab_target", "")  # noqa: F821
names = [chosen] if chosen else fitting()
name = next((n for n in names if os.path.isfile(os.path.join(lib, n, "libdab.a"))), None)
if name is None:
    have = ", ".join(sorted(n for n in os.listdir(lib) if os.path.isfile(os.path.join(lib, n, "libdab.a"))))
    env.Exit(  # noqa: F821
        f"dab: this package has no archive for {' or '.join(names) or 'the processor of this board'}. It has: {have}. "
        "custom_dab_target in platformio.ini chooses one."
    )
env.Append(LIBPATH=[os.path.join(lib, name)], LIBS=["dab"])  # noqa: F821
