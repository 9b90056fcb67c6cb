#!/usr/bin/env python3
"""Compares the card with the CPU on one model: tokens, and the positions that the cache keeps at the end.

Two devices round differently, so that a near-tie of two tokens or two scores may fall either way, and what follows
differs. A row agrees up to its first differing token; that must be a near-tie: the CPU's log-probabilities of the two
tokens lie within --gap in f32, and within --default-gap with the default types, which the devices round differently. In
f32 a row whose tokens are all alike must have kept the same, but for one position in --kept, whose scores may tie.
Exit status 1 if one is not.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

PROMPTS = ["Once upon a time, in a village by the sea,", "The three laws of motion say that",
           "To make bread, first", "In the beginning there was", "A good engineer", "The history of the city"]


def run(hydrant, model, device, policy, dtype, folder):
    inputs = folder / "in.jsonl"
    inputs.write_text("".join(json.dumps({"id": i, "prompt": p}) + "\n" for i, p in enumerate(PROMPTS)))
    words = [hydrant, "generate", "--model", model, "--device", device, "--prompts", str(inputs), "--max-new-tokens", "48",
             "--ignore-eos", "--compute-dtype", dtype, "--logprobs", "5", "--report-kept", "--quiet"] + policy
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["id"]: row for row in rows if "id" in row}


def positions(kept):
    """All the numbers in nested lists, with where they stand."""
    if isinstance(kept, dict):
        return {(k, *p) for k, v in kept.items() for p in positions(v)}
    if isinstance(kept, list) and kept and isinstance(kept[0], (list, dict)):
        return {(i, *p) for i, v in enumerate(kept) for p in positions(v)}
    return {(p,) for p in kept} if isinstance(kept, list) else {(kept,)}


def compare(cpu, card, gap, most):
    """Yield per row: id, tokens that agree, the share of kept positions that differ, the gap at the first difference or None."""
    for key, a in cpu.items():
        b = card[key]
        ours, theirs = a["token_ids"], b["token_ids"]
        same = next((i for i, (x, y) in enumerate(zip(ours, theirs)) if x != y), len(ours))
        at = None
        if same < len(ours):
            choices = {c["id"]: c["logprob"] for c in a["top_logprobs"][same]}
            at = a["logprobs"][same] - choices.get(theirs[same], float("-inf"))
        kept, other = positions(a.get("kept")), positions(b.get("kept"))
        apart = len(kept - other) / max(len(kept), 1)
        yield {"id": key, "same_tokens": same, "tokens": len(ours), "same_kept": apart == 0, "kept_apart": apart,
               "gap": at, "ok": at <= gap if at is not None else apart <= most}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hydrant", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--devices", nargs=2, default=["cpu", "cuda"])
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--default-gap", type=float, default=0.1)
    parser.add_argument("--kept", type=float, default=0.01)
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    report, ok = {}, True
    with tempfile.TemporaryDirectory() as scratch:
        for dtype, gap, most in (("f32", args.gap, args.kept), ("auto", args.default_gap, 1)):
            for policy in (["--policy", "full"], ["--policy", "h2o", "--budget", "20%"]):
                cpu, card = (run(args.hydrant, args.model, device, policy, dtype, pathlib.Path(scratch))
                             for device in args.devices)
                rows = list(compare(cpu, card, gap, most))
                name = policy[1] if dtype == "f32" else f"{policy[1]}, default types"
                report[name] = rows
                ok = ok and all(row["ok"] for row in rows)
                for row in rows:
                    print(f"{name}, row {row['id']}: {row['same_tokens']} of {row['tokens']} tokens, "
                          f"{100 * row['kept_apart']:.2g} % of what is kept differs"
                          + ("" if row["gap"] is None else f", after a gap of {row['gap']:.2g}"))
    if args.output:
        args.output.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
