#!/usr/bin/env python3
"""Rules for CUDA code that no compiler knows: kernels keep to what the emulator of the tests can run and check.

In runtime/backends/cuda: launches only through launch(); shared memory only through SHARED and DYN_SHARED; inline PTX
only in mma.cuh; nothing that asks which compiler or architecture it is outside portable.cuh and mma.cuh; no lock-step
(intrinsics without _sync, __activemask), no constant symbols, no cooperative groups, CUB or Thrust, no default stream.
Exit status 1 and one line per offence.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "runtime/backends/cuda"
RULES = [  # pattern, files that may have it, what to do instead
    (r"<<<", {"portable.cuh"}, "launch through launch()"),
    (r"(?<!void )__shared__", {"portable.cuh"}, "shared memory through SHARED or DYN_SHARED"),
    (r"\basm\b", {"mma.cuh"}, "inline PTX belongs in mma.cuh"),
    (r"__CUDACC__|__CUDA_ARCH__", {"portable.cuh", "mma.cuh"}, "one source for both compilers"),
    (r"__activemask|\b__shfl(_up|_down|_xor)?\(|\b__(any|all|ballot)\(", set(), "name the lanes: ..._sync with a mask"),
    (r"__constant__|cudaMemcpyToSymbol", set(), "pass parameters by value"),
    (r"#include <(cooperative_groups|cub/|thrust/|mma\.h)", set(), "not known to the emulator"),
    (r"cudaStreamLegacy|cudaStreamPerThread|cudaMemcpy\(|cudaMemset\(|cudaDeviceSynchronize", set(),
     "work goes to a stream of its own"),
]


def main():
    offences = 0
    for file in sorted(FOLDER.rglob("*")):
        if file.suffix not in {".cu", ".cuh", ".cpp", ".hpp"}:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            code = line.split("//", 1)[0]
            for pattern, holders, instead in RULES:
                if file.name not in holders and re.search(pattern, code):
                    print(f"{file.relative_to(ROOT)}:{number}: {instead}")
                    offences += 1
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
