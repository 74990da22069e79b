"""The processors of dab-ffi/dist: how each archive is compiled, and how the sample is linked and run with it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

CORTEX = "arm-none-eabi-gcc -mthumb -mcpu="
HARD = " -mfloat-abi=hard -mfpu="
# Where a machine of QEMU has memory that can hold code, and memory for data.
MPS2 = (0x00000000, 0x20000000)
VIRT = (0x80000000, 0x80100000)


@dataclass(frozen=True)
class Target:
    """One archive."""

    name: str
    # Rust's name of the target.
    triple: str
    # For people: what it runs on.
    runs_on: str
    # The C compiler with the flags of the processor.
    compiler: str
    # The machine of QEMU, and its memory; none for hosts.
    machine: str = ""
    memory: tuple[int, int] = MPS2
    # More flags for rustc.
    flags: str = ""
    # dab-ffi/install's OPT: fast on hosts, small on devices.
    opt: str = "s"
    # Folders of an Arduino library: {build.mcu}, and below it {fpu}-{float-abi} if the board names them.
    arduino: tuple[str, ...] = ()

    @property
    def device(self) -> bool:
        return "linux" not in self.triple


TARGETS = [
    Target("linux-x86_64", "x86_64-unknown-linux-gnu", "Linux on x86-64", "gcc", opt="3"),
    Target("linux-aarch64", "aarch64-unknown-linux-gnu", "Linux on 64-bit Arm: Raspberry Pi, Jetson",
           "aarch64-linux-gnu-gcc", opt="3"),
    Target("cortex-m0", "thumbv6m-none-eabi", "Cortex-M0, M0+, M1, M23: SAMD21, RP2040, nRF51", CORTEX + "cortex-m0",
           "qemu-system-arm -M microbit", arduino=("cortex-m0", "cortex-m0plus")),
    Target("cortex-m3", "thumbv7m-none-eabi", "Cortex-M3: STM32F1, SAM3X", CORTEX + "cortex-m3",
           "qemu-system-arm -M mps2-an385", arduino=("cortex-m3",)),
    Target("cortex-m4", "thumbv7em-none-eabi", "Cortex-M4 and M7 without FPU, or with -mfloat-abi=soft or softfp",
           CORTEX + "cortex-m4 -mfloat-abi=soft", "qemu-system-arm -M mps2-an386",
           arduino=("cortex-m4", "cortex-m4/fpv4-sp-d16-softfp", "cortex-m7", "cortex-m7/fpv5-d16-softfp",
                    "cortex-m7/fpv5-sp-d16-softfp")),
    Target("cortex-m4f", "thumbv7em-none-eabihf", "Cortex-M4F, -mfloat-abi=hard: STM32F4, nRF52, SAMD51",
           CORTEX + "cortex-m4" + HARD + "fpv4-sp-d16", "qemu-system-arm -M mps2-an386",
           arduino=("cortex-m4/fpv4-sp-d16-hard",)),
    # Without double precision, which some of these processors do not have.
    Target("cortex-m7", "thumbv7em-none-eabihf", "Cortex-M7 with FPU, -mfloat-abi=hard: STM32F7, STM32H7, i.MX RT",
           CORTEX + "cortex-m7" + HARD + "fpv5-sp-d16", "qemu-system-arm -M mps2-an500",
           flags="-Ctarget-cpu=cortex-m7 -Ctarget-feature=-fp64",
           arduino=("cortex-m7/fpv5-d16-hard", "cortex-m7/fpv5-sp-d16-hard")),
    Target("cortex-m33", "thumbv8m.main-none-eabi", "Cortex-M33 without FPU, or with -mfloat-abi=soft or softfp",
           CORTEX + "cortex-m33 -mfloat-abi=soft", "qemu-system-arm -M mps2-an505", memory=(0x10000000, 0x38000000),
           arduino=("cortex-m33", "cortex-m33/fpv5-sp-d16-softfp")),
    Target("cortex-m33f", "thumbv8m.main-none-eabihf",
           "Cortex-M33 with FPU, -mfloat-abi=hard: nRF53, STM32L5, STM32U5, RP2350; also M35P, M55, M85",
           CORTEX + "cortex-m33" + HARD + "fpv5-sp-d16", "qemu-system-arm -M mps2-an505", memory=(0x10000000, 0x38000000),
           arduino=("cortex-m33/fpv5-sp-d16-hard",)),
    Target("rv32imc", "riscv32imc-unknown-none-elf", "RV32IMC: ESP32-C2, ESP32-C3, Ibex", "-march=rv32imc -mabi=ilp32",
           "qemu-system-riscv32 -M virt -bios none -cpu rv32,a=false,f=false,d=false", memory=VIRT, arduino=("esp32c3",)),
    Target("rv32imac", "riscv32imac-unknown-none-elf", "RV32IMAC: ESP32-C5, ESP32-C6, ESP32-H2, GD32VF103, FE310",
           "-march=rv32imac -mabi=ilp32", "qemu-system-riscv32 -M virt -bios none -cpu rv32,f=false,d=false", memory=VIRT,
           arduino=("esp32c6", "esp32h2", "esp32c5")),
    Target("rv32imafc", "riscv32imafc-unknown-none-elf", "RV32IMAFC, ABI ilp32f: ESP32-P4, CH32V307",
           "-march=rv32imafc -mabi=ilp32f", "qemu-system-riscv32 -M virt -bios none -cpu rv32,d=false", memory=VIRT,
           arduino=("esp32p4",)),
]  # fmt: skip


def compiler(target: Target) -> list[str] | None:
    """The C compiler of a target, if it is here. For RISC-V, GNU's or else clang."""
    command = target.compiler.split()
    if target.triple.startswith("riscv32"):
        if shutil.which("riscv64-unknown-elf-gcc"):
            return ["riscv64-unknown-elf-gcc", *command]
        if shutil.which("clang") and shutil.which("riscv64-unknown-elf-ld"):
            return ["clang", "--target=riscv32-unknown-elf", f"--ld-path={shutil.which('riscv64-unknown-elf-ld')}", *command]
        return None
    return command if shutil.which(command[0]) else None


def link_command(target: Target, package: Path, check: Path, program: Path) -> list[str] | None:
    """Compiles and links the sample of `package` for `target`, as a user without Rust would."""
    command = compiler(target)
    if command is None:
        return None
    sample = package / "examples"
    files = [sample / "main.c", sample / "model.c"]
    archive = package / "lib" / target.name / "libdab.a"
    common = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{package / 'include'}"]
    if not target.device:
        static = ["-static"] if target.name == "linux-aarch64" else []
        return [*command, *common, *static, *map(str, files), str(archive), "-o", str(program)]
    flash, ram = target.memory
    freestanding = ["-std=gnu11", "-ffreestanding", "-nostdlib", "-ffunction-sections", "-fdata-sections",
                    "-include", str(check / "board.h")]  # fmt: skip
    # Debian's clang brings no library of its own for RISC-V, and the sample needs none.
    builtins = [] if command[0] == "clang" else ["-lgcc"]
    if target.triple.startswith("riscv32"):
        freestanding += ["-mcmodel=medany", "-Wl,-melf32lriscv"]
    link = [f"-Wl,--defsym=flash={flash:#x},--defsym=ram={ram:#x},-T,{check / 'link.ld'}", "-Wl,--gc-sections,-z,noexecstack",
            "-Wl,-e," + ("reset" if target.triple.startswith("riscv32") else "start")]  # fmt: skip
    return [*command, *common[1:], *freestanding, *map(str, files), str(check / "board.c"), str(archive), *builtins, *link,
            "-o", str(program)]  # fmt: skip


def run_command(target: Target, program: Path) -> list[str] | None:
    """Runs a linked sample: here, or in QEMU. None where there is nothing to run it on."""
    if target.name == "linux-x86_64":
        return [str(program)]
    if target.name == "linux-aarch64":
        emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        return [emulator, str(program)] if emulator else None
    machine = target.machine.split()
    if not shutil.which(machine[0]):
        return None
    return [*machine, "-display", "none", "-chardev", "stdio,id=out", "-semihosting-config",
            "enable=on,target=native,chardev=out", "-kernel", str(program)]  # fmt: skip
