#!/usr/bin/env python3
"""Compares the card with the CPU on one model: tokens, and the positions that the cache keeps at the end.

Two devices round differently, so that a near-tie of two tokens or two scores may fall either way, and what follows
differs. A row agrees up to its first differing token; that must be a near-tie: the CPU's log-probabilities of the two
tokens lie within --gap. Exit status 1 if one is not.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

PROMPTS = ["Once upon a time, in a village by the sea,", "The three laws of motion say that",
           "To make bread, first", "In the beginning there was", "A good engineer", "The history of the city"]


def run(hydrant, model, device, policy, folder):
    inputs = folder / "in.jsonl"
    inputs.write_text("".join(json.dumps({"id": i, "prompt": p}) + "\n" for i, p in enumerate(PROMPTS)))
    words = [hydrant, "generate", "--model", model, "--device", device, "--prompts", str(inputs), "--max-new-tokens", "48",
             "--ignore-eos", "--compute-dtype", "f32", "--logprobs", "5", "--report-kept", "--quiet"] + policy
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["id"]: row for row in rows if "id" in row}


def compare(cpu, card, gap):
    """Yield per row: id, tokens that agree, whether the cache kept the same, the gap at the first difference or None."""
    for key, a in cpu.items():
        b = card[key]
        ours, theirs = a["token_ids"], b["token_ids"]
        same = next((i for i, (x, y) in enumerate(zip(ours, theirs)) if x != y), len(ours))
        at = None
        if same < len(ours):
            choices = {c["id"]: c["logprob"] for c in a["top_logprobs"][same]}
            at = a["logprobs"][same] - choices.get(theirs[same], float("-inf"))
        yield {"id": key, "same_tokens": same, "tokens": len(ours), "same_kept": a.get("kept") == b.get("kept"),
               "gap": at, "ok": at is None or at <= gap}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hydrant", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--devices", nargs=2, default=["cpu", "cuda"])
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    report, ok = {}, True
    with tempfile.TemporaryDirectory() as scratch:
        for policy in (["--policy", "full"], ["--policy", "h2o", "--budget", "20%"]):
            cpu, card = (run(args.hydrant, args.model, device, policy, pathlib.Path(scratch)) for device in args.devices)
            rows = list(compare(cpu, card, args.gap))
            report[policy[1]] = rows
            ok = ok and all(row["ok"] for row in rows)
            for row in rows:
                print(f"{policy[1]} row {row['id']}: {row['same_tokens']} of {row['tokens']} tokens, kept "
                      f"{'alike' if row['same_kept'] else 'differently'}"
                      + ("" if row["gap"] is None else f", then a gap of {row['gap']:.2g}"))
    if args.output:
        args.output.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
