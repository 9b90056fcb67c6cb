#!/usr/bin/env python3
"""Draw what `hydrant bench --json FILE` measured, or the lanes of one step of what `--trace FILE` wrote.

    plot.py FILE.json [FILE.json ...] [--output PICTURE.svg] [--x batch|prompt_len|output_len|budget_slots]
    plot.py --lanes TRACE.json [--step N] [--output PICTURE.svg]

Four panels over the chosen axis, a line for each policy, budget and whatever else the files do not share: tokens per second of the
whole run and of decoding (with the least and the most of the repeats), KV bytes beside peak memory, and agreement with the full
cache. Rows of several files are drawn together, those of several placements apart; cases that memory was too small for have no point,
synthetic weights are named in the title. Nothing is interpolated beyond the measured points. Of a trace, step N (the last by default):
a row for each lane, a bar for each piece of its work, and what share of the step the lane was busy. Needs matplotlib (Debian: python3-matplotlib).
"""
import argparse
import json
import os
import sys

PANELS = [  # title, key, scale, unit
    ("whole run", "total_tokens_per_second", 1, "tokens / s"),
    ("decoding", "decode_tokens_per_second", 1, "tokens / s"),
    ("memory: KV (solid) and peak (dashed)", "kv_bytes", 2.0**-20, "MiB"),
    ("agreement with the full cache", "agreement", 100, "% of tokens"),
]


SETTINGS = {  # of a whole file: in the title where all share it, else in each line's label
    "model": "{}", "weight_format": "weights {}", "activations": "activations {}", "kv_dtype": "KV {}", "isa": "{}",
    "threads": "{} threads", "weights_on_device": "{} % of weights on device", "cache_on_device": "{} % of cache on device",
    "placement": "placement {}",
}


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
    except ValueError:
        sys.exit(f"{path}: not JSON")


def import_pyplot():
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot.py needs matplotlib (Debian: apt-get install python3-matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure, output):
    try:
        figure.savefig(output)
    except (OSError, ValueError) as error:  # a folder that is not there; a kind of picture it does not know
        sys.exit(f"{output}: {error}")


def read(paths):
    rows = []
    for path in paths:
        document = load(path)
        try:
            for row in document["rows"]:
                missing = [key for _, key, _, _ in PANELS if key not in row]
                if missing:
                    raise KeyError(missing[0])
                rows.append({"model": os.path.basename(os.path.normpath(document["model"])), **row})
        except (KeyError, TypeError):
            sys.exit(f"{path}: not what hydrant bench --json writes")
    if not rows:
        sys.exit(f"{', '.join(paths)}: no rows to draw")
    return rows


def settings(rows, shared):
    """Keys of SETTINGS that all rows have alike, or those that they do not."""
    return [key for key in SETTINGS if (len({row.get(key) for row in rows}) == 1) == shared]


def label(row, x, told):
    name = row["policy"] + (f" {row['budget']}" if row["budget"] and x != "budget_slots" else "")
    fixed = [f"{key.split('_')[0]} {row[key]}" for key in ("batch", "prompt_len", "output_len") if key != x]
    return f"{name} ({', '.join(fixed + [SETTINGS[key].format(row.get(key)) for key in told])})"


def lines(rows, x):
    """{label: rows in ascending order of x}"""
    out = {}
    told = settings(rows, shared=False)
    for row in rows:
        out.setdefault(label(row, x, told), []).append(row)
    return {name: sorted(points, key=lambda r: r[x]) for name, points in out.items()}


def draw(rows, x, output):
    pyplot = import_pyplot()
    key_height = 0.06 * len(lines(rows, x))  # of a panel's: the labels have the width of the picture
    figure = pyplot.figure(figsize=(11, 8 + 4 * key_height), constrained_layout=True)
    grid = figure.add_gridspec(3, 2, height_ratios=(1, 1, key_height))
    panels = [figure.add_subplot(grid[i // 2, i % 2]) for i in range(len(PANELS))]
    for panel, (title, key, scale, unit) in zip(panels, PANELS):
        for name, points in lines(rows, x).items():
            points = [p for p in points if p["fits"] and p[key] is not None]
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
    below = figure.add_subplot(grid[2, :])
    below.axis("off")
    below.legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize="small")
    made_up = "SYNTHETIC WEIGHTS: " if rows[0]["synthetic"] else ""
    figure.suptitle(made_up + ", ".join(SETTINGS[key].format(rows[0].get(key)) for key in settings(rows, shared=True)), fontsize="medium")
    save(figure, output)


def spans_of(path):
    """[(lane, name, begin ms, end ms, bytes)]"""
    document = load(path)
    events = document.get("traceEvents") if isinstance(document, dict) else None
    if not events:
        sys.exit(f"{path}: no spans; is it from hydrant --trace?")
    return [(e["cat"], e["name"], e["ts"] / 1e3, (e["ts"] + e["dur"]) / 1e3, e.get("args", {}).get("bytes", 0))
            for e in events if e["ph"] == "X"]


def draw_lanes(path, step, output):
    pyplot = import_pyplot()
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
    save(figure, output)


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
