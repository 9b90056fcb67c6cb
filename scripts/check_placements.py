#!/usr/bin/env python3
"""Acceptance cases under random placements: the answers must not change.

    check_placements.py --hydrant PATH --cases FOLDER [--count N] [--seed S] [--share P]

Writes N random configurations of placement, prefetch, overlap and threads and runs FOLDER/check.py --merge over each, with a random
share P of the cases' models (all with --share 1). The files in configs/runs that place weights are run as well. Prints the
configuration that a failing run had; exit status 1 if one failed.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

RUNS = pathlib.Path(__file__).resolve().parent.parent / "configs" / "runs"


def shares(r):
    """Percentages of device, host and disk; the borders, where nothing is at some home, come often."""
    cuts = sorted(r.choice([0, 0, 100, 100, r.randint(0, 100), round(r.uniform(0, 100), 2)]) for _ in range(2))
    return {"device": cuts[0], "host": round(cuts[1] - cuts[0], 2), "disk": round(100 - cuts[1], 2)}


def configuration(r):
    placement = {"weights": shares(r)}
    if r.random() < 0.7:
        placement["cache"] = shares(r)
    if r.random() < 0.3:
        percent = r.choice([0, 0, 40, 70])
        placement["activations"] = {"device": percent, "host": 100 - percent}
    document = {"placement": placement}
    if r.random() < 0.5:
        document["cache_compute"] = r.choice(["device", "host"])
    if r.random() < 0.7:
        document["prefetch"] = {"weight_slots": r.choice([2, 2, 3, 5, 64]), "cache_slots": r.choice([2, 3, 7]), "disk_lanes": r.randint(1, 12)}
    if r.random() < 0.4:
        document["overlap"] = False
    if r.random() < 0.3:
        document["memory"] = {"link": r.choice(["500MB/s", "3GB/s"])}
    if r.random() < 0.5:
        document["threads"] = r.randint(1, 3)
    return document


def places(path):
    return "placement" in json.loads(path.read_text(encoding="utf-8"))


def run(a, r, models, name, document):
    chosen = [m for m in models if r.random() < a.share] or [r.choice(models)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as merge:
        json.dump(document, merge)
        merge.flush()
        batch = f"{r.randint(1, 5)},{r.randint(1, 3)}"
        done = subprocess.run([sys.executable, str(a.cases / "check.py"), "--hydrant", a.hydrant, "--merge", merge.name, "--batch", batch,
                               "--kinds", "full,stop,eviction,score", "--only", *(m + "/" for m in chosen)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no output"
    print(f"{'pass' if done.returncode == 0 else 'FAIL'} {name}: {last}, batch {batch}, {json.dumps(document)}", flush=True)
    if done.returncode != 0:
        print("\n".join(line for line in done.stdout.splitlines() if not line.startswith("pass")), flush=True)
    return done.returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hydrant", required=True)
    p.add_argument("--cases", required=True, type=pathlib.Path)
    p.add_argument("--count", type=int, default=10)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--share", type=float, default=0.15)
    a = p.parse_args()
    r = random.Random(a.seed)
    models = sorted(path.name for path in (a.cases / "models").iterdir())
    runs = [(path.name, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(RUNS.glob("*.json")) if places(path)]
    runs += [(f"random {i + 1}", configuration(r)) for i in range(a.count)]
    passed = [run(a, r, models, name, document) for name, document in runs]
    print(f"{sum(passed)} of {len(passed)} placements passed")
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
