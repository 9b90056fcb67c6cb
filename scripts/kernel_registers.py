#!/usr/bin/env python3
"""What each kernel takes of a card's multiprocessor: registers, static shared memory, stack and spills, as nvcc's assembler
says, in one table (Markdown). Compiles the kernels of a configured build once more, for its architectures or those named.

    scripts/kernel_registers.py [--build FOLDER] [--architectures 80,90] [--kernels WORD]

Exit status 1 if a kernel spills.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def commands(build):
    """[folder, words] of what nvcc compiles."""
    entries = json.loads((build / "compile_commands.json").read_text())
    found = [(e["directory"], shlex.split(e["command"])) for e in entries if e["file"].endswith(".cu")]
    found = [(folder, words) for folder, words in found if any(os.path.basename(w) == "nvcc" for w in words[:2])]
    if not found:
        sys.exit(f"kernel_registers.py: {build} compiles no kernels: no nvcc was found when it was configured")
    return found


def says(folder, words, architectures, output):
    """What the assembler says of one file's kernels; only device code is made."""
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-MT", "-MF", "-o"):
            skip = True
        elif word in ("-MD", "-c") or word.startswith("-Xptxas") or architectures and word.startswith("--generate-code"):
            pass
        else:
            kept.append(word)
    kept += [f"--generate-code=arch=compute_{a},code=sm_{a}" for a in architectures]
    kept += ["-Xptxas=-v", "--fatbin", "-o", output]
    done = subprocess.run(kept, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"kernel_registers.py: {shlex.join(kept)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def readable(symbols):
    """Names of kernels without namespaces and parameters, elements by their names."""
    dtype = re.search(r"enum class DType[^{]*{([^}]*)}", (ROOT / "runtime/base/dtype.hpp").read_text()).group(1)
    elements = re.findall(r"\b[a-z]\w*", re.sub(r"//.*", "", dtype))
    names = {}
    plain = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout.splitlines()
    for symbol, name in zip(symbols, plain):
        name = re.sub(r"\(hydrant::DType\)(\d+)", lambda m: elements[int(m[1])], name)
        name = re.sub(r"\((?:int|bool)\)|hydrant::|cuda::|\(anonymous namespace\)::|^void ", "", name)
        names[symbol] = re.sub(r"\(.*", "", name)
    return names


def measured(text):
    """{(symbol, architecture): registers, shared, stack, spilled}"""
    found, of, stack, spilled = {}, None, 0, 0
    for line in text.splitlines():
        if m := re.search(r"Compiling entry function '(\S+)' for 'sm_(\w+)'", line):
            of = m.groups()
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spilled = int(m[1]), int(m[2]) + int(m[3])
        elif of and (m := re.search(r"Used (\d+) registers", line)):
            shared = re.search(r"(\d+) bytes smem", line)
            found[of] = int(m[1]), int(shared[1]) if shared else 0, stack, spilled
            of = None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--architectures", default="", help="compute capabilities without points, instead of the build's")
    parser.add_argument("--kernels", default="", help="only files whose name has this in it")
    args = parser.parse_args()
    architectures = [a for a in args.architectures.split(",") if a]
    todo = [(folder, words) for folder, words in commands(args.build) if any(w.endswith(".cu") and args.kernels in w for w in words)]
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        texts = pool.map(lambda i: says(*todo[i], architectures, f"{scratch}/{i}"), range(len(todo)))
        found = {key: value for text in texts for key, value in measured(text).items()}
    names = readable(sorted({symbol for symbol, _ in found}))
    built = sorted({a for _, a in found})
    rows = {}
    for (symbol, architecture), value in found.items():
        rows.setdefault(names[symbol], {})[architecture] = value
    print("| kernel | " + " | ".join(f"registers sm_{a}" for a in built) + " | shared bytes | stack bytes | spilled bytes |")
    print("|---|" + "---|" * (len(built) + 3))
    for name, of in sorted(rows.items()):
        most = [max(value[i] for value in of.values()) for i in (1, 2, 3)]
        print(f"| {name} | " + " | ".join(str(of[a][0]) if a in of else "" for a in built) + " | " + " | ".join(map(str, most)) + " |")
    return 1 if any(value[3] for value in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
