"""scripts/gpu_check.sh and its report, without a card: stand-ins for the driver, the build and hydrant. Every flag that it gives
hydrant must be one that the command says it has: gpu_check_test.py HYDRANT."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
HYDRANT = sys.argv.pop(1) if len(sys.argv) > 1 else None

# A card at 2e12 bytes a second whose bus brings 5e10; steps take 1.1 times what their bytes do.
PROGRAM = """#!/usr/bin/env python3
import json, os, pathlib, sys
words = sys.argv[1:]
at = {w: words[i + 1] for i, w in enumerate(words[:-1]) if w.startswith("--")}
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(words) + "\\n")
if words[0] == "generate":
    for i, line in enumerate(open(at["--prompts"])):
        tokens = [1, 2, 3 + (at["--device"] == "cuda" and os.environ.get("DIFFERS") == "1")]
        print(json.dumps({"id": i, "token_ids": tokens, "logprobs": [-1] * 3,
                          "kept": [[2 if at["--device"] == "cuda" and os.environ.get("KEEPS") == "2" else 1]],
                          "top_logprobs": [[{"id": t, "logprob": -1 if t < 4 else -9} for t in (1, 2, 3, 4)]] * 3}))
elif words[0] == "profile":
    json.dump({"copy_to_device": [{"under_way": 1, "bytes_per_second": 5e10}]}, open(at["--output"], "w"))
elif words[0] == "bench":
    moves = "--placement" in at
    batch = int(at["--batch"].split(",")[0])
    rows = [{"policy": p, "budget_slots": 9, "batch": batch, "prompt_len": 512, "output_len": 8, "fits": p != "full" or not moves,
             "misfit": "too large", "prefill_tokens_per_second": 1e4, "decode_tokens_per_second": batch / 0.022, "kv_bytes": 2**20,
             "decode_bytes_per_second": 1e12, "bandwidth_share": 1 / 1.2, "weight_bytes": 1.4e10, "weight_format": "f16",
             "host_bytes_per_step": 1e9 if moves else 0, "cache_to_device_bytes_per_step": 0}
            for p in at["--policy"].split(",")]
    json.dump({"model": "a shape", "rows": rows}, open(at["--json"], "w"))
    if "--trace" in at:
        lanes = [("compute", 0, 6), ("load_weights", 2, 8), ("compute", 3, 4)]
        json.dump([{"name": "thread_name", "tid": n, "args": {"name": n}} for n in ("compute", "load_weights")] +
                  [{"ph": "X", "tid": n, "name": "x", "ts": b * 1e6, "dur": (e - b) * 1e6} for n, b, e in lanes],
                  open(at["--trace"], "w"))
"""
BUILD = """#!/usr/bin/env bash
mkdir -p "$1/runtime/apps" "$1/test/cuda"
cp program "$1/runtime/apps/hydrant"
for name in ops rows; do printf '#!/bin/sh\\necho $1\\nexit ${TEST_FAILS:-0}\\n' > "$1/test/cuda/test_card_$name"; done
printf 'test_card_ops [devices]\\ntest_card_rows [rows]~"a thousand prompts*"\\n' > "$1/test/cuda/card_tests.txt"
chmod +x "$1"/test/cuda/test_* "$1/runtime/apps/hydrant"
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "bin").mkdir()
        (self.root / "scripts").mkdir()
        for name in ("gpu_check.sh", "gpu_report.py", "gpu_parity.py"):
            shutil.copy(SCRIPTS / name, self.root / "scripts")
        (self.root / "scripts/kernel_registers.py").write_text("print('| a_kernel | 32 |')\n")
        (self.root / "program").write_text(PROGRAM)
        (self.root / "toolkit/lib64").mkdir(parents=True)
        (self.root / "toolkit/lib64/libcublas.so.13").touch()
        self.tool("nvcc", "")
        self.tool("nvidia-smi", "echo 'Some Card, 8.0, 40000, 580.1'")
        path = self.root / "scripts" / "build.sh"
        path.write_text(BUILD)
        path.chmod(0o755)

    def tool(self, name, body):
        path = self.root / "bin" / name
        path.write_text("#!/bin/sh\n" + body + "\n")
        path.chmod(0o755)

    def check(self, *words, **environment):
        names = {**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.root / "calls"),
                 "CUDA_HOME": str(self.root / "toolkit"), **environment}
        return subprocess.run([self.root / "scripts/gpu_check.sh", *words], capture_output=True, text=True, env=names)

    def report(self):
        folder = self.root / "build/gpu_check"
        return json.loads((folder / "gpu_check.json").read_text()), (folder / "gpu_check.md").read_text()

    def calls(self):
        return [json.loads(line) for line in (self.root / "calls").read_text().splitlines()]

    def test_all_parts_run_and_are_reported(self):
        done = self.check("--model", "a.gguf")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        data, text = self.report()
        self.assertEqual([p["part"] for p in data["parts"] if p["part"] != "memcheck"],
                         ["build", "kernels", "ops", "rows", "parity", "profile", "resident", "weights_on_host", "cache_on_host"])
        self.assertEqual((self.root / "build/gpu_check/rows.log").read_text(), '[rows]~"a thousand prompts*"\n')
        self.assertEqual((data["card"], data["capability"], data["failed"]), ("Some Card", "8.0", []))
        self.assertEqual(data["overlap"], {"copy_seconds": 6, "hidden_seconds": 4})
        # 7e9 weights, two operations each, ten thousand tokens a second.
        self.assertAlmostEqual(data["bench"]["resident"]["rows"][0]["prefill_tflops"], 140)
        bars = {b["what"]: b for b in data["bars"]}
        slow = bars["resident decode step, h2o, batch 1: of the time of its bytes"]
        self.assertAlmostEqual(slow["measured"], 1.2)
        self.assertFalse(slow["met"])
        bus = bars["weights on host, h2o, batch 32: decode step, of the bus time of its bytes"]
        self.assertAlmostEqual(bus["measured"], 1.1)  # 22 ms for 20 ms of bytes
        self.assertIn("4.00 s passed while the card computed", text)
        self.assertIn("24 of 24 rows have the same tokens to the end", text)
        self.assertIn("does not fit: too large", text)
        self.assertEqual(len({line.count("|") for line in text.splitlines() if line.startswith("| h2o")}), 1)

    def test_what_fails_is_named_and_the_rest_goes_on(self):
        done = self.check("--model", "a.gguf", TEST_FAILS="3", DIFFERS="1")
        self.assertEqual(done.returncode, 1)
        data, text = self.report()
        self.assertIn("ops", data["failed"])
        self.assertIn("parity", data["failed"])
        self.assertIn("resident", data["bench"])
        self.assertIn("Failed: ", text)

    def test_what_was_built_before_is_not_checked(self):
        self.check("--model", "a.gguf")
        (self.root / "scripts/build.sh").write_text("#!/bin/sh\nexit 1\n")
        done = self.check("--model", "a.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not built", done.stderr)

    def test_a_card_that_keeps_others_does_not_pass(self):
        self.assertEqual(self.check("--model", "a.gguf", KEEPS="2").returncode, 1)
        self.assertEqual(self.report()[0]["failed"], ["parity"])

    def test_what_is_missing_is_said_first(self):
        self.tool("nvidia-smi", "echo 'No devices were found'; exit 6")
        done = self.check()
        self.assertEqual(done.returncode, 2)
        self.assertIn("no card answers: No devices were found", done.stderr)
        (self.root / "bin" / "nvidia-smi").unlink()
        done = self.check()
        self.assertEqual(done.returncode, 2)
        self.assertIn("missing: nvidia-smi (NVIDIA's driver)", done.stderr)
        self.assertFalse((self.root / "build").exists())
        self.assertEqual(self.check("--fast").returncode, 2)

    def test_synthetic_weights_stand_in_for_a_model(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("parity: left out", done.stdout)
        self.assertTrue(any("llama-2-7b" in call for call in self.calls()))
        data = self.report()[0]
        self.assertIsNone(data["parity"])
        self.assertTrue(any(b["what"].startswith("quantised decode step") for b in data["bars"]))

    @unittest.skipUnless(HYDRANT, "no program is given")
    def test_hydrant_knows_every_flag(self):
        self.check("--model", "a.gguf")
        self.check()
        for call in self.calls():
            known = subprocess.run([HYDRANT, call[0], "--help"], capture_output=True, text=True).stdout
            for word in call:
                if word.startswith("--"):
                    self.assertIn(word, known, call[0])


if __name__ == "__main__":
    unittest.main()
