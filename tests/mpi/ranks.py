#!/usr/bin/env python3
"""Any number of ranks gives the same bytes: 1, 2, 3 and 5 ranks, more ranks than frames, one process without mpirun.

usage: ranks.py PROGRAM SERIES_FOLDER
"""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy

CURVES = [f"{method}/{curve}" for method in ("phase", "complex") for curve in ("residual", "effective_degrees_of_freedom", "gcv", "chosen_strength")]
RESULTS = ["ssb/phase", "phase/phase", "complex/phase", "complex/log_amplitude", "frames/dose", "frames/data_norm"] + CURVES


def run(program, job, *extra, ranks=None, status=0):
    command = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    done = subprocess.run([*command, program, "run", str(job), *extra], capture_output=True, text=True, timeout=120)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, extra))} on {ranks} ranks: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stderr


def results(path):
    with h5py.File(path, "r") as file:
        if not (file["entry/frames/state"][()] == 1).all():
            sys.exit(f"{path.name}: not every frame is done")
        return {name: file["entry"][name][()] for name in RESULTS}


def compare(found, expected, what):
    for name in RESULTS:
        if not numpy.isfinite(found[name]).all() or not found[name].any():
            sys.exit(f"{what}: {name} is empty or not finite")
        if found[name].tobytes() != expected[name].tobytes():
            sys.exit(f"{what}: {name} differs from one rank's by up to {numpy.abs(found[name] - expected[name]).max()}")


def same_bytes(program, folder, label, *extra):
    job = folder / "reconstruct.json"
    run(program, job, "--set", f"output.file={label}_one.h5", *extra)
    expected = results(folder / f"{label}_one.h5")
    for ranks in (1, 2, 3, 5, 11):
        output = folder / f"{label}_{ranks}.h5"
        run(program, job, "--set", f"output.file={output}", *extra, ranks=ranks)
        compare(results(output), expected, f"{label} on {ranks} ranks")
        output.unlink()
    print(f"{label}: the same bytes on 1, 2, 3, 5 and 11 ranks and without mpirun")


def per_frame_optics(folder):
    """Every frame its own defocus, so that each rank prepares several optics."""
    job = json.loads((folder / "reconstruct.json").read_text())
    (folder / "fits").mkdir()
    for frame, path in enumerate(sorted((folder / "input").glob("*_master.h5"))):
        optics = json.loads(json.dumps(job["optics"]))
        optics["aberrations"]["C10_A"] -= 5 * (frame // 3)
        (folder / "fits" / f"{path.stem.removesuffix('_master')}.json").write_text(json.dumps(optics))
    return ["--set", 'optics={"per_frame": "fits/{stem}.json"}']


def time_is_estimated(program, folder):
    done = subprocess.run([program, "check", str(folder / "reconstruct.json"), "--json", "--time"], capture_output=True, text=True, timeout=120)
    estimate = json.loads(done.stdout)["time_estimate"]
    if done.returncode != 0 or not (0 < estimate["prepare_seconds"] < estimate["frame_seconds"] < float("inf")):
        sys.exit(f"check --time: exit status {done.returncode}, estimate {estimate}\n{done.stderr}")


def main():
    program, source = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ptyseries-ranks-") as name:
        folder = Path(name)
        for job in ("simulate.json", "reconstruct.json"):
            shutil.copy(Path(source) / job, folder)
        run(program, folder / "simulate.json", ranks=2)
        same_bytes(program, folder, "fast")
        time_is_estimated(program, folder)
        same_bytes(program, folder, "reference", "--set", "compute.precision=reference")
        same_bytes(program, folder, "optics", *per_frame_optics(folder))
        text = run(program, folder / "reconstruct.json", "--set", "output.file=fast_one.h5", ranks=2, status=2)
        if "exists" not in text:
            sys.exit(f"an existing output was refused without saying so:\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
