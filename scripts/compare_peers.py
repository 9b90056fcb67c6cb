#!/usr/bin/env python3
"""Measure hydrant beside llama.cpp and OpenVINO GenAI, interleaved in one run, and print the ratios.

    compare_peers.py --models DIR [--llama DIR] [--openvino PYTHON SCRIPT IR_DIR] [--rounds 3] [--only TEXT ...] [--json FILE]

DIR holds smollm2-135m-{q4_0,q4_1,q8_0,bf16}.gguf; the llama.cpp folder its llama-bench and llama-batched-bench; SCRIPT prints one
JSON line a run with prefill_tps, decode_tps and total_tps for PYTHON SCRIPT IR_DIR/FORMAT --prompt N --new N --batch N --threads N.
In each round every program of a case runs once, one after the other, so that a drift of the machine's speed meets all of them (a prefill is
short: three measured runs each, the median of them counts); a ratio is the median over the rounds of hydrant's figure divided by the peer's of the same round.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

# name, format, hydrant's bench arguments, which figure, {peer: its arguments}
DECODE, PREFILL, TOTAL = "decode", "prefill", "total"


def repeats(figure):
    return 3 if figure == PREFILL else 1


def cases():
    for f in ("q4_0", "q4_1", "q8_0", "bf16"):
        yield f"decode-512-{f}", f, dict(prompt=512, new=128), DECODE, dict(llama="bench")
    yield "decode-8064-q8_0", "q8_0", dict(prompt=8064, new=64), DECODE, dict(llama="bench")
    yield "decode-8064-q8_0-h2o", "q8_0", dict(prompt=8064, new=64, policy="h2o", budget="20%"), DECODE, dict(llama="bench")
    for n in (512, 2048):
        for f in ("q8_0", "q4_0"):
            yield f"prefill-{n}-{f}", f, dict(prompt=n, new=1), PREFILL, dict(llama="bench", openvino="single")
        yield f"prefill-{n}-bf16", "bf16", dict(prompt=n, new=1), PREFILL, dict(llama="bench")
    batch = dict(prompt=512, new=512, batch=32)
    yield "batch32-q8_0", "q8_0", batch, TOTAL, dict(llama="batched", openvino="full")
    yield "batch32-q8_0-h2o", "q8_0", dict(batch, policy="h2o", budget=204), TOTAL, dict(llama="batched", openvino="evict")


def json_lines(command, env=None):
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True)
    if out.returncode:
        sys.exit(f"{' '.join(command)}: exit status {out.returncode}\n{out.stderr[-1000:]}")
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


def hydrant(a, fmt, want, figure):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "rows.json")
        command = [a.hydrant, "bench", "--model", f"{a.models}/smollm2-135m-{fmt}.gguf", "--prompt-len", str(want["prompt"]),
                   "--output-len", str(want["new"]), "--batch", str(want.get("batch", 1)), "--policy", want.get("policy", "full"),
                   "--budget", str(want.get("budget", "20%")), "--repeats", str(repeats(figure)), "--threads", str(a.threads), "--no-agreement",
                   "--json", path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows = json.load(open(path))["rows"]
        return rows[0][f"{figure}_tokens_per_second"]


def llama(a, fmt, want, figure, how):
    env = dict(os.environ, LD_LIBRARY_PATH=a.llama)
    model = f"{a.models}/smollm2-135m-{fmt}.gguf"
    if how == "bench":
        n = ["-p", str(want["prompt"]), "-n", "0"] if figure == PREFILL else ["-p", "0", "-n", str(want["new"]), "-d", str(want["prompt"])]
        row = json_lines([f"{a.llama}/llama-bench", "-m", model, "-t", str(a.threads), "-r", str(repeats(figure)), "-o", "jsonl", *n], env)[-1]
        return statistics.median(row["samples_ts"])
    row = json_lines([f"{a.llama}/llama-batched-bench", "-m", model, "-t", str(a.threads), "-tb", str(a.threads), "-b", "2048", "-ub", "512",
                      "-npp", str(want["prompt"]), "-ntg", str(want["new"]), "-npl", str(want["batch"]),
                      "-c", str(want["batch"] * (want["prompt"] + want["new"])), "--output-format", "jsonl"], env)[-1]
    return row["pl"] * row["tg"] / row["t"]


def openvino(a, fmt, want, figure, how):
    python, script, models = a.openvino
    extra = {"single": ["--cache-gb", "2", "--max-tokens-batch", "512", "--runs", str(1 + repeats(figure))], "full": ["--cache-gb", "4", "--runs", "1"],
             "evict": ["--cache-gb", "4", "--runs", "1", "--evict", "224", "--agg", "SUM"]}[how]
    rows = json_lines([python, script, f"{models}/{fmt}", "--prompt", str(want["prompt"]), "--new", str(max(want["new"], 2)), "--batch",
                       str(want.get("batch", 1)), "--threads", str(a.threads), *extra])
    return statistics.median(row[f"{figure}_tps"] for row in rows[-repeats(figure):])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hydrant", default="build/release/runtime/apps/hydrant")
    p.add_argument("--models", required=True)
    p.add_argument("--llama")
    p.add_argument("--openvino", nargs=3)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--only", nargs="*")
    p.add_argument("--json")
    a = p.parse_args()
    programs = {"llama": llama if a.llama else None, "openvino": openvino if a.openvino else None}
    todo = [c for c in cases() if not a.only or any(text in c[0] for text in a.only)]
    got = {c[0]: {} for c in todo}
    for _ in range(a.rounds):
        for name, fmt, want, figure, peers in todo:
            got[name].setdefault("hydrant", []).append(hydrant(a, fmt, want, figure))
            for peer, how in peers.items():
                if programs[peer]:
                    got[name].setdefault(peer, []).append(programs[peer](a, fmt, want, figure, how))
    print(f"{'case':24} {'program':10} {'min':>8} {'median':>8} {'max':>8}  tok/s   hydrant / peer")
    for name, runs in got.items():
        for program, values in runs.items():
            ratio = "" if program == "hydrant" else f"{statistics.median(h / v for h, v in zip(runs['hydrant'], values)):.2f}"
            print(f"{name:24} {program:10} {min(values):8.1f} {statistics.median(values):8.1f} {max(values):8.1f}          {ratio}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(got, f, indent=1)


if __name__ == "__main__":
    main()
