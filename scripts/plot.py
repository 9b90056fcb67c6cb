#!/usr/bin/env python3
"""Draw what `hydrant bench --json FILE` measured.

    plot.py FILE.json [FILE.json ...] [--output PICTURE.svg] [--x batch|prompt_len|output_len|budget_slots]

Four panels over the chosen axis, a line for each policy and budget: tokens per second of the whole run and of decoding (with the
least and the most of the repeats), KV bytes beside peak memory, and agreement with the full cache. Rows of several files are drawn
together; nothing is interpolated beyond the measured points. Needs matplotlib (Debian: python3-matplotlib).
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


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+")
    p.add_argument("--output", default="bench.svg")
    p.add_argument("--x", default="batch", choices=("batch", "prompt_len", "output_len", "budget_slots"))
    a = p.parse_args()
    draw(read(a.files), a.x, a.output)


if __name__ == "__main__":
    main()
