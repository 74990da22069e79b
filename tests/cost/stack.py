#!/usr/bin/env python3
"""Worst-case stack of a function in a linked Cortex-M program:   tests/cost/stack.py PROGRAM FUNCTION

    worst(f) = frame(f) + max over the functions that f calls of worst(g)

Frames and calls are read from the disassembly, so that C, Rust and library code count alike. A call through a pointer
or a recursion has no bound: it is an error.
"""
import re
import subprocess
import sys

HEADER = re.compile(r"^([0-9a-f]+) <(.+)>:$")
# Address, encoding, mnemonic, operands.
LINE = re.compile(r"^\s*([0-9a-f]+):\t[0-9a-f ]+\t(\S+)(?:\t(.*))?$")
JUMP = re.compile(r"^(?:\w+, )?([0-9a-f]+) <([^+>]+)(\+0x[0-9a-f]+)?>")
BRANCHES = re.compile(r"^(bl?|b(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)|cbn?z)(\.[nw])?$")


def registers(operands):
    """How many registers a list such as {r4, r5, r7-r9, lr} names."""
    count = 0
    for part in re.search(r"\{(.*)\}", operands).group(1).split(","):
        ends = [int(n) for n in re.findall(r"\d+", part)]
        count += ends[1] - ends[0] + 1 if "-" in part else 1
    return count


def grows(mnemonic, operands):
    """Bytes that an instruction takes from the stack."""
    if mnemonic.startswith("push") or (mnemonic.startswith("stmdb") and operands.startswith("sp!")):
        return 4 * registers(operands)
    if mnemonic.startswith(("vpush", "vstmdb")) and "{" in operands:
        return (8 if "{d" in operands else 4) * registers(operands)
    if mnemonic.startswith("sub") and operands.startswith("sp"):
        amount = re.search(r"#(\d+)", operands)
        return int(amount.group(1)) if amount else sys.exit(f"a frame of unknown size: {mnemonic} {operands}")
    if mnemonic.startswith("str") and (stored := re.search(r"\[sp, #-(\d+)\]!", operands)):
        return int(stored.group(1))
    return 0


def functions(program):
    """Frame, callees and calls through pointers of every function, by address."""
    text = subprocess.run(["arm-none-eabi-objdump", "-d", program], capture_output=True, text=True, check=True).stdout
    found, names, here = {}, {}, None
    for line in text.splitlines():
        if header := HEADER.match(line):
            here = int(header.group(1), 16)
            names[header.group(2)] = here
            found[here] = [0, set(), False]
        elif (instruction := LINE.match(line)) and here is not None:
            _, mnemonic, operands = instruction.groups(default="")
            found[here][0] += grows(mnemonic, operands)
            found[here][2] |= mnemonic.startswith("blx") and not JUMP.match(operands)
            if BRANCHES.match(mnemonic) and (jump := JUMP.match(operands)) and not jump.group(3):
                found[here][1].add(int(jump.group(1), 16))
    return found, names


def worst(program, function):
    """Bytes of stack that a call of `function` takes at most."""
    found, names = functions(program)

    def depth(at, path):
        if at in path:
            return 0 if at == path[-1] else sys.exit("a recursion has no bound")
        frame, callees, pointer = found.get(at, (0, (), False))
        if pointer:
            sys.exit(f"a call through a pointer at {at:x} has no bound")
        return frame + max((depth(c, (*path, at)) for c in callees), default=0)

    return depth(names[function], ())


if __name__ == "__main__":
    print(worst(sys.argv[1], sys.argv[2]))
