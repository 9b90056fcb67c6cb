#!/usr/bin/env python3
"""The grids of the H2O paper's tables 3, 4, 5 and 7, measured with `hydrant bench`.

    sweep.py (--model PATH | --synthetic NAME) [--tables 3,4,5,7] [--scale 0.1] [--output FOLDER] [-- BENCH FLAGS]

Each cell is one run of `hydrant bench`: a prompt and output length, a batch and a placement, with the full cache and with H2O, every
token generated, nothing extrapolated. --scale multiplies lengths and batches, to fit the machine; 1 is the paper's size. What stands
after -- goes to every run: -- --memory-device 16GB --memory-link 12GB/s.

    table 3   512 + 32, 512 + 512, 512 + 1024, on the device and offloaded
    table 4   1978 + 64, the shape of XSUM, on the device and offloaded; --text FILE gives the prompts
    table 5   2048 + 2048, 5000 + 5000, 7000 + 1024, on the device
    table 7   512 + 32, 512 + 512, 512 + 1024, on the device; with --synthetic also with 4-bit weights

FOLDER then holds sweep.csv (a line for each policy of each cell; one that did not fit into memory says why), throughput.svg and
memory.svg (against the batch), and comparison.svg and comparison.txt (offloaded against the device alone). Cells that are in sweep.csv
are not run again, so a sweep that was stopped goes on. Needs matplotlib for the pictures (Debian: python3-matplotlib).
"""
import argparse
import csv
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEVICE = "100,0,100,0,100,0"
OFFLOADED = ("20,80,0,100,0,100", "0,100,0,100,0,100")  # the paper's settings of OPT-30B
OWN = ("table", "model", "command")  # columns beside those of hydrant bench

# Prompt, output, batches: those that the paper's systems ran, on the device and (tables 3 and 4) offloaded.
GRIDS = {
    3: [(512, 32, (2, 4, 144, 728)), (512, 512, (1, 4, 80, 416)), (512, 1024, (1, 4, 48, 264))],
    4: [(1978, 64, (1, 44, 180))],
    5: [(2048, 2048, (24, 64)), (5000, 5000, (4,)), (7000, 1024, (1,))],
    7: [(512, 32, (2, 4, 70)), (512, 512, (1, 4, 52)), (512, 1024, (1, 4, 44))],
}


def scaled(value, scale):
    return max(1, round(value * scale))


def cells(a):
    """(table, flags of hydrant bench), in the order they are run in."""
    out = []
    for table in a.tables:
        formats = [[], ["--synthetic-format", "q4_0"]] if table == 7 and a.synthetic else [[]]
        for prompt, output, batches in GRIDS[table]:
            for batch in sorted({scaled(b, a.scale) for b in batches}):
                for placement in (DEVICE, *OFFLOADED) if table in (3, 4) else (DEVICE,):
                    for weights in formats:
                        flags = ["--synthetic", a.synthetic] if a.synthetic else ["--model", a.model]
                        flags += [*weights, "--prompt-len", str(scaled(prompt, a.scale)), "--output-len", str(scaled(output, a.scale)),
                                  "--batch", str(batch), "--placement", placement, "--policy", "full,h2o", "--budget", a.budget,
                                  "--warmup", str(a.warmup), "--repeats", str(a.repeats)]
                        if table == 4 and a.text:
                            flags += ["--text", a.text]
                        out.append((table, flags + a.flags))
    return out


def number(row, key):
    return float(row[key]) if row.get(key) not in (None, "") else None


def read(path):
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def write(path, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    with tempfile.NamedTemporaryFile("w", dir=path.parent, newline="", encoding="utf-8", delete=False) as f:
        writer = csv.DictWriter(f, names)
        writer.writeheader()
        writer.writerows(rows)
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(f.name, 0o666 & ~umask)
    os.replace(f.name, path)


def measure(a, table, flags):
    """The cell's rows; nothing when hydrant refused it. Memory that is not enough (exit code 3) gives rows that say so."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "bench.json"
        done = subprocess.run([a.hydrant, "bench", *flags, "--json", str(result)], stdout=subprocess.DEVNULL)
        if done.returncode == 130:
            sys.exit(130)
        if done.returncode not in (0, 3) or not result.exists():
            return []
        rows = json.loads(result.read_text(encoding="utf-8"))["rows"]
    own = {"table": table, "model": a.synthetic or a.model, "command": shlex.join(flags)}
    return [own | {k: "" if v is None else v for k, v in row.items()} for row in rows]


def run(a, path):
    rows, failed = read(path), []
    known = {(str(r["table"]), r["command"]) for r in rows}
    todo = [(table, flags) for table, flags in cells(a) if (str(table), shlex.join(flags)) not in known]
    for i, (table, flags) in enumerate(todo):
        print(f"[{i + 1} of {len(todo)}] table {table}: {shlex.join(flags)}", flush=True)
        new = measure(a, table, flags)
        if not new:
            failed.append(shlex.join(flags))
            continue
        rows += new
        write(path, rows)
    return rows, failed


def lengths(row):
    return f"table {row['table']}: {row['prompt_len']} + {row['output_len']}"


def system(row):
    return f"{row['policy']}, {row['weight_format']} weights, {row['placement']}"


def groups(rows, key):
    out = {}
    for row in rows:
        out.setdefault(key(row), []).append(row)
    return out


def comparison(rows):
    """[(lengths and policy, best row on the device, best row offloaded)], either None when none fits."""
    def best(some):
        measured = [r for r in some if number(r, "total_tokens_per_second") is not None]
        return max(measured, key=lambda r: number(r, "total_tokens_per_second"), default=None)

    out = []
    for name, some in groups(rows, lambda r: f"{lengths(r)}, {r['policy']}").items():
        device = [r for r in some if r["placement"] == DEVICE]
        if len(device) < len(some):
            out.append((name, best(device), best(r for r in some if r["placement"] != DEVICE)))
    return out


def comparison_text(pairs, title):
    def text(row):
        return f"{number(row, 'total_tokens_per_second'):.1f} tok/s (batch {row['batch']})" if row else "does not fit"

    lines = [title, f"{'the best batch of each':<40}{'on the device':>28}{'offloaded':>28}"]
    return "\n".join(lines + [f"{name:<40}{text(d):>28}{text(o):>28}" for name, d, o in pairs]) + "\n"


def title_of(rows):
    r = rows[0]
    made_up = "SYNTHETIC WEIGHTS, " if str(r["synthetic"]).lower() == "true" else ""
    return f"{made_up}{r['model']}; KV {r['kv_dtype']}, {r['isa']}, {r['threads']} threads, {r['repeats']} repeats"


def draw_against_batch(rows, series, unit, path):
    from matplotlib import pyplot

    panels = groups(rows, lengths)
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(5.5 * columns, 0.5 + 4.5 * lines), squeeze=False, constrained_layout=True)
    for panel in axes.flat[len(panels):]:
        panel.axis("off")
    for panel, (name, some) in zip(axes.flat, panels.items()):
        for label, points in groups(some, system).items():
            for key, scale, style in series:
                here = sorted((int(p["batch"]), number(p, key) * scale) for p in points if number(p, key) is not None)
                if here:
                    panel.plot(*zip(*here), style, label=f"{label}{'' if style == 'o-' else ', peak'}")
        missing = sorted({int(p["batch"]) for p in some if str(p["fits"]).lower() != "true"})
        panel.set(title=name + (f"\nsome do not fit at batch {', '.join(map(str, missing))}" if missing else ""), xlabel="batch",
                  ylabel=unit, xscale="log")
        batches = sorted({int(p["batch"]) for p in some})
        panel.set_xticks(batches, [str(b) for b in batches])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        if panel.lines:
            panel.set_ylim(0, 1.1 * max(max(line.get_ydata()) for line in panel.lines))
            panel.legend(fontsize="x-small")
    figure.suptitle(title_of(rows))
    figure.savefig(path)


def draw_comparison(pairs, title, path):
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(9, 1 + 0.6 * len(pairs)), constrained_layout=True)
    for offset, index, label in ((-0.2, 1, "on the device"), (0.2, 2, "offloaded")):
        speeds = [number(p[index], "total_tokens_per_second") if p[index] else 0 for p in pairs]
        panel.barh([i + offset for i in range(len(pairs))], speeds, 0.38, label=label)
    panel.set(yticks=range(len(pairs)), yticklabels=[p[0] for p in pairs], xlabel="tokens / s, the best batch (none: does not fit)",
              title=title)
    panel.invert_yaxis()
    panel.legend()
    figure.savefig(path)


def report(rows, folder):
    pairs, title = comparison(rows), title_of(rows)
    if pairs:
        text = comparison_text(pairs, title)
        (folder / "comparison.txt").write_text(text, encoding="utf-8")
        print(text, end="")
    try:
        import matplotlib
    except ImportError:
        print("no pictures: matplotlib is not installed", file=sys.stderr)
        return
    matplotlib.use("Agg")
    measured = [r for r in rows if number(r, "total_tokens_per_second") is not None]
    if measured:
        draw_against_batch(rows, [("total_tokens_per_second", 1, "o-")], "tokens / s, whole run", folder / "throughput.svg")
        draw_against_batch(rows, [("kv_bytes", 2.0**-20, "o-"), ("peak_bytes", 2.0**-20, ".--")], "MiB: KV, and peak of the process",
                           folder / "memory.svg")
    if pairs:
        draw_comparison(pairs, title, folder / "comparison.svg")


def arguments(words):
    words, flags = (words[:words.index("--")], words[words.index("--") + 1:]) if "--" in words else (words, [])
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    of = p.add_mutually_exclusive_group(required=True)
    of.add_argument("--model", help="a model folder or .gguf file")
    of.add_argument("--synthetic", help="a shape, with weights that are made up: a name or file of configs/models")
    p.add_argument("--tables", default="3,4,5,7")
    p.add_argument("--scale", type=float, default=1, help="of lengths and batches")
    p.add_argument("--budget", default="20%", help="of H2O")
    p.add_argument("--text", help="where table 4 cuts its prompts from")
    p.add_argument("--warmup", type=int, default=0)
    p.add_argument("--repeats", type=int, default=1)
    p.add_argument("--hydrant", default=str(ROOT / "build/release/runtime/apps/hydrant"))
    p.add_argument("--output", type=pathlib.Path, default=pathlib.Path("sweep"), help="a folder")
    p.add_argument("--dry-run", action="store_true", help="print the commands")
    a = p.parse_args(words)
    try:
        a.tables = sorted({int(t) for t in a.tables.split(",")})
    except ValueError:
        p.error(f"--tables: must be some of 3,4,5,7, not {a.tables}")
    if not set(a.tables) <= GRIDS.keys():
        p.error(f"--tables: must be some of 3,4,5,7, not {','.join(map(str, a.tables))}")
    if not a.scale > 0:
        p.error(f"--scale: must be above 0, not {a.scale}")
    if a.text and (a.synthetic or 4 not in a.tables):
        p.error("--text: is for table 4 of a model with a tokenizer")
    a.flags = flags
    return a


def main():
    a = arguments(sys.argv[1:])
    if a.dry_run:
        for _, flags in cells(a):
            print(shlex.join([a.hydrant, "bench", *flags]))
        return
    a.output.mkdir(parents=True, exist_ok=True)
    rows, failed = run(a, a.output / "sweep.csv")
    if rows:
        report(rows, a.output)
    for command in failed:
        print(f"refused: {command}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
