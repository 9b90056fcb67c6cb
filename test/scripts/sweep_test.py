"""scripts/sweep.py: the grid, going on after a stop, what becomes of cells that do not fit. A stand-in for hydrant answers at once."""
import csv
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

SWEEP = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "sweep.py"

# Batches above 100 on the device do not fit; prompts of 5000 are refused.
STAND_IN = """#!/usr/bin/env python3
import json, sys
words = sys.argv[2:]
at = {w: words[i + 1] for i, w in enumerate(words[:-1]) if w.startswith("--")}
with open(sys.argv[0] + ".calls", "a") as calls:
    calls.write("call\\n")
if at["--prompt-len"] == "5000":
    sys.exit(2)
batch, device = int(at["--batch"]), at["--placement"].startswith("100,")
fits = not device or batch <= 100
rows = [{"policy": policy, "batch": batch, "prompt_len": int(at["--prompt-len"]), "output_len": int(at["--output-len"]),
         "placement": at["--placement"], "synthetic": "--synthetic" in at, "fits": fits, "misfit": None if fits else "too, large",
         "total_tokens_per_second": batch * (2 if policy == "h2o" else 1) if fits else None, "kv_bytes": 1, "peak_bytes": 2,
         "weight_format": at.get("--synthetic-format", "f16"), "kv_dtype": "bf16", "isa": "x", "threads": 1, "repeats": 1}
        for policy in at["--policy"].split(",")]
json.dump({"rows": rows}, open(at["--json"], "w"))
sys.exit(0 if fits else 3)
"""


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.hydrant = pathlib.Path(self.folder.name) / "hydrant"
        self.hydrant.write_text(STAND_IN)
        self.hydrant.chmod(0o755)

    def sweep(self, *words, code=0):
        done = subprocess.run([sys.executable, str(SWEEP), "--hydrant", str(self.hydrant), "--output", f"{self.folder.name}/out", *words],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def commands(self, *words):
        lines = [shlex.split(line) for line in self.sweep("--dry-run", *words).stdout.splitlines()]
        return [{w: line[i + 1] for i, w in enumerate(line[:-1]) if w.startswith("--")} for line in lines]

    def rows(self):
        with open(f"{self.folder.name}/out/sweep.csv", newline="") as f:
            return list(csv.DictReader(f))

    def calls(self):
        calls = pathlib.Path(f"{self.hydrant}.calls")
        return len(calls.read_text().splitlines()) if calls.exists() else 0

    def grid(self, *words):
        return {(int(c["--prompt-len"]), int(c["--output-len"]), int(c["--batch"])) for c in self.commands(*words)}

    def test_the_grids_are_the_papers(self):
        self.assertEqual({cell[:2] for cell in self.grid("--model", "m", "--tables", "3")}, {(512, 32), (512, 512), (512, 1024)})
        self.assertEqual(self.grid("--model", "m", "--tables", "4"), {(1978, 64, 1), (1978, 64, 44), (1978, 64, 180)})
        self.assertEqual(self.grid("--model", "m", "--tables", "5"),
                         {(2048, 2048, 24), (2048, 2048, 64), (5000, 5000, 4), (7000, 1024, 1)})
        offloaded = self.commands("--synthetic", "opt-30b", "--tables", "3")
        self.assertEqual({c["--placement"] for c in offloaded}, {"100,0,100,0,100,0", "20,80,0,100,0,100", "0,100,0,100,0,100"})
        self.assertEqual({c["--policy"] for c in offloaded}, {"full,h2o"})
        resident = self.commands("--synthetic", "opt-6.7b", "--tables", "7")
        self.assertEqual({c["--placement"] for c in resident}, {"100,0,100,0,100,0"})
        self.assertEqual({c.get("--synthetic-format") for c in resident}, {None, "q4_0"})
        self.assertEqual({c.get("--synthetic-format") for c in self.commands("--model", "m", "--tables", "7")}, {None})
        self.assertEqual(self.calls(), 0)
        self.assertFalse(pathlib.Path(f"{self.folder.name}/out").exists())

    def test_scale_is_of_lengths_and_batches_and_flags_go_through(self):
        self.assertEqual(self.grid("--model", "m", "--tables", "4", "--scale", "0.1"), {(198, 6, 1), (198, 6, 4), (198, 6, 18)})
        self.assertEqual(self.grid("--model", "m", "--tables", "5", "--scale", "0.001"), {(2, 2, 1), (5, 5, 1), (7, 1, 1)})
        self.assertTrue(all(c["--text"] == "t" for c in self.commands("--model", "m", "--tables", "4", "--text", "t")))
        self.assertTrue(all(c["--memory-link"] == "3GB/s" for c in self.commands("--model", "m", "--", "--memory-link", "3GB/s")))

    def test_rows_are_kept_and_say_what_did_not_fit(self):
        done = self.sweep("--synthetic", "opt-6.7b", "--tables", "4")
        rows, calls = self.rows(), self.calls()
        self.assertEqual(calls, 9)
        self.assertEqual(len(rows), 18)
        self.assertEqual([r["misfit"] for r in rows if r["fits"] == "False"], ["too, large"] * 2)
        self.assertTrue(all(r["synthetic"] == "True" and r["table"] == "4" for r in rows))
        self.assertIn("SYNTHETIC WEIGHTS", done.stdout)
        self.assertRegex(done.stdout, r"table 4: 1978 \+ 64, h2o +88\.0 tok/s \(batch 44\) +360\.0 tok/s \(batch 180\)")
        self.sweep("--synthetic", "opt-6.7b", "--tables", "4")
        self.assertEqual((self.rows(), self.calls()), (rows, calls))
        self.sweep("--synthetic", "opt-6.7b", "--tables", "4", "--repeats", "2")
        self.assertEqual((len(self.rows()), self.calls()), (36, 18))

    def test_a_refused_cell_is_told_and_tried_again(self):
        for _ in range(2):
            done = self.sweep("--model", "m", "--tables", "5", code=1)
            self.assertIn("refused: --model m --prompt-len 5000", done.stderr)
        self.assertEqual((len(self.rows()), self.calls()), (6, 5))

    def test_words_that_mean_nothing_are_refused(self):
        for words in (["--model", "m", "--tables", "6"], ["--model", "m", "--tables", "x"], ["--model", "m", "--scale", "0"],
                      ["--synthetic", "s", "--text", "t"], ["--model", "m", "--synthetic", "s"], []):
            self.sweep(*words, code=2)


if __name__ == "__main__":
    unittest.main()
