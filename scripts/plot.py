#!/usr/bin/env python3
"""Draw what `hydrant bench --json FILE` measured, or the lanes of one step of what `--trace FILE` wrote.

    plot.py FILE.json [FILE.json ...] [--output PICTURE.svg] [--x batch|prompt_len|output_len|budget_slots]
    plot.py --lanes TRACE.json [--step N] [--output PICTURE.svg]

Four panels over the chosen axis, a line for each policy and budget: tokens per second of the whole run and of decoding (with the
least and the most of the repeats), KV bytes beside peak memory, and agreement with the full cache. Rows of several files are drawn
together; nothing is interpolated beyond the measured points. Of a trace, step N (the last by default): a row for each lane, a bar
for each piece of its work, and what share of the step the lane was busy. Needs matplotlib (Debian: python3-matplotlib).
"""
import argparse
import json
import sys

PANELS = [  # title, key, scale, unit
    ("whole run", "total_tokens_per_second", 1, "tokens / s"),
    ("decoding", "decode_tokens_per_second", 1, "tokens / s"),
    ("memory: KV (solid) and peak (dashed)", "kv_bytes", 2.0**-20, "MiB"),
    ("agreement with the full cache", "agreement", 100, "% of tokens"),
]


def read(paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            document = json.load(f)
        if not isinstance(document, dict) or not document.get("rows"):
            sys.exit(f"{path}: no rows; is it from hydrant bench --json?")
        rows += document["rows"]
    return rows


def label(row, x):
    name = row["policy"] + (f" {row['budget']}" if row["budget"] and x != "budget_slots" else "")
    fixed = [f"{key.split('_')[0]} {row[key]}" for key in ("batch", "prompt_len", "output_len") if key != x]
    return f"{name} ({', '.join(fixed)})"


def lines(rows, x):
    """{label: rows in ascending order of x}"""
    out = {}
    for row in rows:
        out.setdefault(label(row, x), []).append(row)
    return {name: sorted(points, key=lambda r: r[x]) for name, points in out.items()}


def draw(rows, x, output):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8), constrained_layout=True)
    for panel, (title, key, scale, unit) in zip(axes.flat, PANELS):
        for name, points in lines(rows, x).items():
            points = [p for p in points if p[key] is not None]
            if not points:
                continue
            at = [p[x] for p in points]
            line = panel.plot(at, [p[key] * scale for p in points], marker="o", label=name)[0]
            if key + "_min" in points[0]:
                panel.fill_between(at, [p[key + "_min"] * scale for p in points], [p[key + "_max"] * scale for p in points],
                                   color=line.get_color(), alpha=0.2)
            if key == "kv_bytes":
                panel.plot(at, [p["peak_bytes"] * scale for p in points], linestyle="--", marker=".", color=line.get_color())
        panel.set(title=title, xlabel=x, ylabel=unit, ylim=(0, None))
        panel.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small")
    first = rows[0]
    figure.suptitle(f"weights {first['weight_format']}, activations {first['activations']}, KV {first['kv_dtype']}, "
                    f"{first['isa']}, {first['threads']} threads, {first['repeats']} repeats")
    figure.savefig(output)


def spans_of(path):
    """[(lane, name, begin ms, end ms, bytes)]"""
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    events = document.get("traceEvents") if isinstance(document, dict) else None
    if not events:
        sys.exit(f"{path}: no spans; is it from hydrant --trace?")
    return [(e["cat"], e["name"], e["ts"] / 1e3, (e["ts"] + e["dur"]) / 1e3, e.get("args", {}).get("bytes", 0))
            for e in events if e["ph"] == "X"]


def draw_lanes(path, step, output):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    spans = spans_of(path)
    steps = [s for s in spans if s[0] == "steps"]
    chosen = steps[-1:] if step is None else [s for s in steps if s[1] == f"step {step}"]
    if not chosen:
        sys.exit(f"{path}: no step {step}; there are {len(steps)}")
    _, title, begin, end, _ = chosen[0]
    inside = [s for s in spans if s[0] != "steps" and s[3] > begin and s[2] < end]
    lanes = sorted({s[0] for s in inside}, key=lambda lane: (lane != "compute", lane))
    figure, axis = pyplot.subplots(figsize=(12, 1.2 + 0.6 * len(lanes)), constrained_layout=True)
    labels = []
    for row, lane in enumerate(lanes):
        mine = [s for s in inside if s[0] == lane]
        pieces = [(max(s[2], begin) - begin, min(s[3], end) - max(s[2], begin)) for s in mine]
        axis.broken_barh(pieces, (row - 0.4, 0.8), facecolors=[f"C{i % 2 + 2 * row}" for i in range(len(mine))], linewidth=0)
        busy, moved = sum(p[1] for p in pieces) / (end - begin), sum(s[4] for s in mine)
        labels.append(f"{lane}\n{100 * busy:.0f} %" + (f", {moved / 1e6:.1f} MB" if moved else ""))
    axis.set(yticks=range(len(lanes)), yticklabels=labels, xlim=(0, end - begin), xlabel="ms", title=title)
    axis.invert_yaxis()
    figure.savefig(output)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*")
    p.add_argument("--lanes", metavar="TRACE.json")
    p.add_argument("--step", type=int)
    p.add_argument("--output", default="bench.svg")
    p.add_argument("--x", default="batch", choices=("batch", "prompt_len", "output_len", "budget_slots"))
    a = p.parse_args()
    if bool(a.files) == bool(a.lanes):
        p.error("files of bench, or --lanes with a trace")
    if a.lanes:
        draw_lanes(a.lanes, a.step, a.output)
    else:
        draw(read(a.files), a.x, a.output)


if __name__ == "__main__":
    main()
