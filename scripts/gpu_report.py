#!/usr/bin/env python3
"""Puts together what gpu_check.sh has measured: gpu_check.json, and gpu_check.md to read. From bench_*.json, profile.json,
parity.json, trace.json, kernels.log and parts.jsonl of the folder; what is not there is not reported."""
import argparse
import json
import pathlib


def read(path):
    return json.loads(path.read_text()) if path.exists() else None


def overlap(trace):
    """Seconds that copies took, and how many of them passed while the compute lane worked."""
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    names = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    spans = {}
    for e in events:
        if e.get("ph") == "X":
            spans.setdefault(names.get(e["tid"], str(e["tid"])), []).append((e["ts"], e["ts"] + e["dur"]))
    compute = []  # spans within spans counted once
    for begin, end in sorted(spans.get("compute", [])):
        if compute and begin <= compute[-1][1]:
            compute[-1][1] = max(end, compute[-1][1])
        else:
            compute.append([begin, end])
    moved = hidden = 0.0
    for lane, list_ in spans.items():
        if not lane.startswith("load"):
            continue
        for begin, end in list_:
            moved += end - begin
            hidden += sum(max(0.0, min(end, b) - max(begin, a)) for a, b in compute)
    return {"copy_seconds": moved / 1e6, "hidden_seconds": hidden / 1e6}


# Bits that a weight takes as it is stored.
BITS = {"f32": 32, "f16": 16, "bf16": 16, "q8_0": 8.5, "q4_0": 4.5, "q4_1": 5, "q4_k": 4.5, "q6_k": 6.5625}


def prefill_tflops(row):
    """Of products alone: two operations for each weight and token. None where weights are of several formats."""
    bits, speed = BITS.get(row.get("weight_format")), row.get("prefill_tokens_per_second")
    return 2 * row["weight_bytes"] * 8 / bits * speed / 1e12 if bits and speed else None


def bars(benches, profile):
    """[what, measured, the most or least it should be, met]: what a step takes beside the bytes that it must move."""
    found = []
    for name in ("resident", "quantised"):
        for r in benches.get(name, {}).get("rows", []):
            if r.get("fits", True) and r.get("bandwidth_share"):
                found.append([f"{name} decode step, {r['policy']}, batch {r['batch']}: of the time of its bytes", 1 / r["bandwidth_share"], 1.15])
    up = (profile or {}).get("copy_to_device")
    for name in ("weights_on_host", "cache_on_host"):
        for r in benches.get(name, {}).get("rows", []):
            moved = (r.get("host_bytes_per_step") or 0) + (r.get("cache_to_device_bytes_per_step") or 0)
            if r.get("fits", True) and up and moved and r.get("decode_tokens_per_second"):
                step = r["batch"] / r["decode_tokens_per_second"]
                found.append([f"{name.replace('_', ' ')}, {r['policy']}, batch {r['batch']}: decode step, of the bus time of its bytes",
                              step / (moved / up[0]["bytes_per_second"]), 1.10])
    return [{"what": what, "measured": measured, "most": most, "met": measured <= most} for what, measured, most in found]


def number(value, digits=1):
    return "" if value is None else f"{value:,.{digits}f}"


def table(rows):
    lines = ["| policy | slots | batch | prompt + output | prefill tok/s | TFLOPS | decode tok/s | GB/s | share of the card's | "
             "bus bytes a step | KV MiB |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        if not r.get("fits", True):
            lines.append(f"| {r['policy']} | {r.get('budget_slots') or ''} | {r['batch']} | {r['prompt_len']} + {r['output_len']} "
                         f"| does not fit: {r.get('misfit')} ||||||||")
            continue
        share = r.get("bandwidth_share")
        bus = (r.get("host_bytes_per_step") or 0) + (r.get("cache_to_device_bytes_per_step") or 0)
        lines.append(f"| {r['policy']} | {r['budget_slots']} | {r['batch']} | {r['prompt_len']} + {r['output_len']} | "
                     f"{number(r['prefill_tokens_per_second'])} | {number(prefill_tflops(r), 2)} | "
                     f"{number(r['decode_tokens_per_second'])} | "
                     f"{number((r.get('decode_bytes_per_second') or 0) / 1e9)} | "
                     f"{'' if share is None else f'{100 * share:.0f} %'} | {number(bus, 0)} | {number(r['kv_bytes'] / 2**20)} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    for word in ("card", "capability", "memory", "driver", "failed"):
        parser.add_argument("--" + word, default="")
    args = parser.parse_args()
    folder = args.folder
    parts = [json.loads(line) for line in (folder / "parts.jsonl").read_text().splitlines()]
    benches = {p.stem.removeprefix("bench_"): read(p) for p in sorted(folder.glob("bench_*.json"))}
    trace = read(folder / "trace.json")
    report = {"card": args.card, "capability": args.capability, "memory_mib": args.memory, "driver": args.driver,
              "failed": args.failed.split(), "parts": parts, "parity": read(folder / "parity.json"),
              "profile": read(folder / "profile.json"), "overlap": overlap(trace) if trace else None, "bench": benches}
    report["bars"] = bars(benches, report["profile"])
    for bench in benches.values():
        for row in bench["rows"]:
            row["prefill_tflops"] = prefill_tflops(row) if row.get("fits", True) else None
    (folder / "gpu_check.json").write_text(json.dumps(report, indent=1) + "\n")

    lines = [f"# {args.card}: compute capability {args.capability}, {args.memory} MiB, driver {args.driver}", "",
             "Failed: " + (args.failed or "nothing") + ".", "", "| part | seconds |", "|---|---|"]
    lines += [f"| {p['part']} | {p['seconds']} |" for p in parts]
    if report["parity"]:
        rows = [row for policy in report["parity"].values() for row in policy]
        lines += ["", f"Parity with the CPU: {sum(r['same_tokens'] == r['tokens'] for r in rows)} of {len(rows)} rows have the "
                  f"same tokens to the end, {sum(r['ok'] for r in rows)} up to a near-tie; "
                  f"{sum(r['same_kept'] for r in rows)} kept the same positions."]
    if report["overlap"] and report["overlap"]["copy_seconds"]:
        o = report["overlap"]
        lines += ["", f"Copies with weights on the host: {o['copy_seconds']:.2f} s, of which {o['hidden_seconds']:.2f} s passed "
                  "while the card computed."]
    if report["bars"]:
        lines += ["", "| bar | measured | at most | met |", "|---|---|---|---|"]
        lines += [f"| {b['what']} | {b['measured']:.2f} | {b['most']:.2f} | {'yes' if b['met'] else 'NO'} |" for b in report["bars"]]
    for name, bench in benches.items():
        lines += ["", f"## {name.replace('_', ' ')}: {bench['model']}", ""] + table(bench["rows"])
    kernels = folder / "kernels.log"
    if kernels.exists():
        lines += ["", "## Kernels", "", kernels.read_text().rstrip()]
    (folder / "gpu_check.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
