"""How fast is a batch from NumPy beside the same loop in C?

    python/benchmarks/batch.py [MODEL]

Prints rows a second of Model.assess and of dab_assess_batch called from C, and their ratio. The aim is 95 %; nothing fails below
it, since a busy machine moves the ratio by a tenth. python/tests/test_package.py holds what makes it fast: one call into C a
batch and no copy of its rows. Needs a C compiler.
"""

import ctypes as c
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
try:
    import dab_uncertainty as dab
except ModuleNotFoundError:
    sys.path.insert(0, str(HERE.parent / "src"))
    import dab_uncertainty as dab

ROWS, ROUNDS = 4096, 40

SOURCE = """
#include "dab.h"
#include <time.h>
/* Seconds of the fastest of `rounds` batches. */
double batches(const dab_model *m, const float *x, size_t rows, size_t inputs, void *s, size_t bytes, dab_assessment *out, int rounds) {
    double best = 1e9;
    int i;
    for (i = 0; i < rounds; i++) {
        struct timespec a, b;
        double t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        out->size = sizeof *out;
        if (dab_assess_batch(m, x, rows, inputs, s, bytes, out) != DAB_OK) return -1;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        t = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        if (t < best) best = t;
    }
    return best;
}
"""


def main():
    model = dab.Model(sys.argv[1] if len(sys.argv) > 1 else HERE.parent.parent / "examples/motor/model.dab")
    rows = np.random.default_rng(0).normal(size=(ROWS, model.shape.inputs)).astype(np.float32)
    out = model.assess(rows)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "loop.c", Path(dab.library_path()).resolve()
        source.write_text("#define _POSIX_C_SOURCE 199309L\n" + SOURCE)
        line = ["cc", "-std=c99", "-O2", "-shared", "-fPIC", "-I", HERE.parent.parent / "include", source, library]
        subprocess.run([*map(str, line), f"-Wl,-rpath,{library.parent}", "-o", f"{folder}/loop.so"], check=True)
        loop = c.CDLL(f"{folder}/loop.so").batches
        loop.restype = c.c_double
        p, n = c.c_void_p, c.c_size_t
        loop.argtypes = [p, p, n, n, p, n, p, c.c_int]
        scratch = np.empty(1 << 16, np.float32)
        in_c = in_python = 1e9
        # In turn, and processor time, so that other work on the machine meets both.
        for _ in range(ROUNDS):
            in_c = min(in_c, loop(model.handle, rows.ctypes.data, *rows.shape, scratch.ctypes.data, scratch.nbytes, out.ctypes.data, 1))
            start = time.thread_time()
            model.assess(rows, out=out)
            in_python = min(in_python, time.thread_time() - start)
    ratio = in_c / in_python
    print(f"C {ROWS / in_c:,.0f} rows/s, Python {ROWS / in_python:,.0f} rows/s, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
