#!/usr/bin/env python3
"""Ranks that see other recordings than each other end together, before anything is written, and say which host sees what.

usage: inputs.py PROGRAM
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

SCAN, DETECTOR = (5, 7), (16, 16)
OPTICS = {"voltage_V": 300000, "semiangle_mrad": 10, "scan_step_A": [0.5, 0.5], "detector_pitch_mrad": [2, 2], "detector_center_px": [7.5, 7.5]}
TASKS = {"histogram": {"histogram": {"bins": 10, "range": [0, 60]}},
         "reconstruct": {"optics": OPTICS, "methods": {"ssb": {}}, "compute": {"backend": "cpu"}}}


def require(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def write_recordings(folder, n):
    folder.mkdir()
    generator = numpy.random.default_rng(5)
    rows, columns = numpy.indices(DETECTOR) - 7.5
    disc = 30.0 * (numpy.hypot(rows, columns) < 5)
    for i in range(n):
        numpy.save(folder / f"scan_{i}.npy", generator.poisson(disc, (*SCAN, *DETECTOR)).astype("u2"))


def write_job(folder, task, output):
    job = {"task": task, "series": {"files": ["scan_*.npy"]}, "output": {"file": str(output)}, **TASKS[task]}
    path = folder / f"{task}.json"
    path.write_text(json.dumps(job))
    return str(path)


def run(program, first, others):
    """The first rank's job, and that of two others."""
    command = ["mpirun", "--oversubscribe", "-n", "1", program, "run", first, ":", "-n", "2", program, "run", others]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def check(program, whole, other, task, output, expected):
    status, text = run(program, write_job(whole, task, output), write_job(other, task, output))
    require(status == 1 and "sees other inputs than another rank" in text, f"{task}, {other.name}: exit status {status}\n{text}")
    for part in expected:
        require(part in text, f"{task}, {other.name}: '{part}' is not said\n{text}")
    require(not list(output.parent.glob(f"{output.name}*")), f"{task}, {other.name}: something was written")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="ptyseries-inputs-") as name:
        folder = Path(name)
        whole, fewer, broken = (folder / part for part in ("whole", "fewer", "broken"))
        write_recordings(whole, 3)
        write_recordings(fewer, 2)
        write_recordings(broken, 3)
        (broken / "scan_1.npy").write_bytes(b"\x93NUMPY no header")
        for task in TASKS:
            output = folder / f"{task}.h5"
            check(program, whole, fewer, task, output, ["2 recordings, 0 unreadable"])
            check(program, whole, broken, task, output, ["3 recordings, 1 unreadable, the first because:", "scan_1.npy"])
            job = write_job(whole, task, output)
            status, text = run(program, job, job)
            require(status == 0 and output.exists(), f"{task}: ranks that see the same: exit status {status}\n{text}")
    print("ranks that see other recordings end together and say so")
    return 0


if __name__ == "__main__":
    sys.exit(main())
