#!/usr/bin/env python3
"""The include rule and the length cap, checked over the whole tree.

Each folder may include only what its row says (README.md, "The folders"). Some headers belong to some files only:
Boost to runtime/serve/server.* and offload/disk_*, CUDA to runtime/backends/cuda, Catch2 to test, nlohmann's full header to
.cpp files. A file of more than 400 lines fails. Exit status 1 and one line per offence.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAP = 400

BASE = {"runtime/base"}
DEVICE = BASE | {"policies", "runtime/device"}
MODEL = BASE | {"runtime/device", "runtime/model"}
ENGINE = DEVICE | {"runtime/kv", "runtime/model", "runtime/engine"}
# The folder itself is always allowed. The longest matching prefix of a file decides its row.
ALLOWED = {
    "policies": set(),
    "runtime/base": set(),
    "runtime/device": BASE | {"policies"},
    "runtime/text": BASE,
    "runtime/backends": DEVICE,
    "runtime/kv": DEVICE,
    "runtime/model": BASE | {"runtime/device"},
    "runtime/engine": ENGINE,
    "models": BASE | {"runtime/device/kinds.hpp", "runtime/model"},
    "offload": ENGINE - {"runtime/engine"} | {"runtime/engine/feed.hpp"},
    "runtime/apps": ENGINE | {"runtime/text", "runtime/backends/registry.hpp", "models", "offload"},
    "test": ENGINE | {"runtime/text", "runtime/backends", "runtime/apps", "models", "offload", "test"},
}
ONLY_IN = [  # pattern of an include, who may have it
    (re.compile(r"^boost/"), re.compile(r"^(runtime/serve/server\.|offload/disk_|test/)")),
    (re.compile(r"^(cuda|cublas|emu/|cooperative_groups)"), re.compile(r"^(runtime/backends|test)/cuda/")),
    (re.compile(r"^catch2/"), re.compile(r"^test/")),
    (re.compile(r"^(nlohmann/json\.hpp|runtime/base/json\.hpp)$"), re.compile(r"\.cpp$|^runtime/base/json\.hpp$|^test/")),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
SOURCES = {".hpp", ".cpp", ".inl", ".inc", ".cu", ".cuh"}


def row_of(path):
    fits = [folder for folder in ALLOWED if path == folder or path.startswith(folder + "/")]
    return max(fits, key=len, default=None)


def backend_of(path):
    parts = path.split("/")
    return parts[2] if path.startswith("runtime/backends/") and len(parts) > 3 else None


def check(path, text):
    """Yield (line number, offence)."""
    own = row_of(path)
    lines = text.splitlines()
    if len(lines) > CAP:
        yield len(lines), f"{len(lines)} lines, at most {CAP}"
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        quoted, target = found.group(1) == '"', found.group(2)
        for pattern, holders in ONLY_IN:
            if pattern.search(target) and not holders.search(path):
                yield number, f"may not include <{target}>"
        if not quoted:
            continue
        there = row_of(target)
        if there is None:
            yield number, f'"{target}" is not relative to the root'
        elif there != own and not any(target == a or target.startswith(a + "/") for a in ALLOWED[own]):
            yield number, f'{own} may not include "{target}"'
        elif there == own == "runtime/backends" and backend_of(target) not in (None, backend_of(path)):
            yield number, f'one backend may not include another: "{target}"'


def main():
    offences = 0
    for top in ("policies", "runtime", "offload", "models", "test"):
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            path = file.relative_to(ROOT).as_posix()
            for number, offence in check(path, file.read_text(encoding="utf-8")):
                print(f"{path}:{number}: {offence}")
                offences += 1
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
