#!/usr/bin/env python3
"""A fit of every frame of a series: the same on any ranks, also after a kill; frames that fail, that moved far, that stand out."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy
from fit import CRYSTAL, KNOWN, is_found
from program import check, main, says

TRUTH = {**KNOWN, "detector_center_px": [13.3, 12.6], "rotation_deg": 37, "aberrations": {"C10_A": -80, "C12_A": 25, "phi12_rad": 0.4}}
SERIES = {**CRYSTAL, "scan_shape": [32, 28], "dose_per_position": 1000, "defocus_step_A": 15, "drift_A": [0.5, 0.3]}
FIT = {"task": "fit", "series": {"files": "s_*_master.h5"}, "optics": {**KNOWN, "detector_transpose": False},
       "fit": {"per_frame": True, "free": ["rotation_deg", "C10", "C12"], "optics_file": "{stem}_found.json"}, "output": {"file": "fit.h5"},
       "compute": {"backend": "cpu"}}
CURVES = ["frame", "explained", "rotation", "C10", "C12_cos", "C12_sin"]


def simulate(folder, frames, optics=TRUTH, **more):
    folder.save_job({"task": "simulate", "optics": optics, "simulate": {**SERIES, "frames": frames, **more}})
    folder.call("run", extra=["--overwrite"])


def follow(folder, status=0, ranks=None, extra=("--overwrite",)):
    """Runs the fit; what it said, its curves and flags, and the optics of each frame."""
    folder.save_job(FIT)
    text = folder.call("run", status=status, ranks=ranks, extra=extra)
    check(not [path.name for path in folder.path.glob("fit.h5.*")], "files of a run that goes on are left")
    with h5py.File(folder.path / "fit.h5") as file:
        record = file["entry/fit"]
        found = {name: record[name][()].tolist() for name in CURVES}
        for name in ("was_refitted", "is_outlier", "failure", "evaluations"):
            found[name] = [record[f"fit_{i}/{name}"][()] for i in range(int(record["n_fits"][()]))]
        found["state"] = file["entry/frames/state"][()].tolist()
    found["optics"] = {path.name: path.read_text() for path in sorted(folder.path.glob("*_found.json"))}
    return text, found


def same(found, expected, what):
    for name in expected:
        check(found[name] == expected[name], f"{what}: {name} is {found[name]}, expected {expected[name]}")


def optics_of(found, frame):
    return json.loads(found["optics"][f"s_{frame:03d}_found.json"])


def every_frame_is_followed(folder):
    """A defocus that moves from frame to frame, on ranks that have several frames each, and more than there are frames."""
    simulate(folder, 4)
    _, found = follow(folder)
    for frame in range(4):
        truth = json.loads((folder.path / f"s_{frame:03d}_optics.json").read_text())
        is_found(optics_of(found, frame), truth, f"frame {frame}", third_order=False)
    steps = numpy.diff(found["C10"])
    check((numpy.abs(steps) > 10).all() and (numpy.abs(steps) < 20).all(), f"C10 moves by {steps}")
    check(found["frame"] == [0, 1, 2, 3] and not any(found["is_outlier"]) and not any(found["was_refitted"]), f"{found}")
    check(numpy.allclose(found["C10"], [optics_of(found, i)["aberrations"]["C10_A"] for i in range(4)], rtol=1e-12), "curve of C10")
    folder.use("preview", "fit.h5", "--to", "pictures")
    says((folder.path / "pictures/report.html").read_text(), "Over the series", "C10 / A")
    for ranks in (2, 3, 5):
        same(follow(folder, ranks=ranks)[1], found, f"{ranks} ranks")


def rows_of(journal):
    """How many whole rows a journal has; the first has pictures behind it."""
    if not journal.exists():
        return 0
    content = journal.read_bytes()
    line = content.split(b"\n")[0]
    row = int(line.split(b"rows of ")[1].split()[0]) + 16 if b"rows of " in line and content.count(b"\n") else len(content) + 1
    return (len(content) - len(line) - 1) // row


def kill(folder, ranks, rows):
    """A run that is killed when its journal has that many fits."""
    launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    folder.save_job(FIT)
    journal = folder.path / "fit.h5.fit-journal"
    process = subprocess.Popen([*launcher, folder.program, "run", "job.json"], cwd=folder.path, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 100
    while process.poll() is None and rows_of(journal) < rows:
        check(time.monotonic() < until, "no fit was settled in time")
        time.sleep(0.005)
    check(process.poll() is None, "the run ended before it could be killed")
    for child in subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout.split():
        os.kill(int(child), signal.SIGKILL)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return journal


def a_killed_run_goes_on(folder):
    """After the first fit, and within the second wave, with a row that was cut off; on other ranks than before."""
    simulate(folder, 19, scan_shape=[24, 20])
    _, expected = follow(folder)
    for ranks, others, rows in ((None, 3, 1), (3, None, 17)):
        (folder.path / "fit.h5").unlink()
        for name in expected["optics"]:
            (folder.path / name).unlink()
        journal = kill(folder, ranks, rows)
        os.truncate(journal, journal.stat().st_size - 100 * (rows > 1))
        check(not (folder.path / "fit.h5").exists(), "an output of a part of the fits")
        says(folder.call("run", status=2), "fit.h5.fit-journal", "--resume goes on", "--overwrite begins anew")
        folder.save_job({**FIT, "fit": {**FIT["fit"], "strength": 0.1}})
        says(folder.call("run", status=2, extra=["--resume"]), "differ from this one's")
        text, found = follow(folder, ranks=others, extra=["--resume"])
        says(text, "going on: ", " of 19 fits are there")
        there = int(text.split("going on: ")[1].split()[0])
        check(rows - 1 <= there < 19 and there >= 1, f"{there} fits are there, {rows} were")
        same(found, expected, f"killed on {ranks} ranks after {rows}")


def frames_fail_alone(folder):
    """One is noise, one cannot be opened; the others are as without them, on any ranks, and those that failed can be done after all."""
    simulate(folder, 5, phase_rad=1e-6, log_amplitude=0)
    noise = (folder.path / "s_002_data_000001.h5").read_bytes()
    simulate(folder, 5)
    _, whole = follow(folder)
    good = {name: (folder.path / name).read_bytes() for name in ("s_002_data_000001.h5", "s_004_master.h5")}
    (folder.path / "s_002_data_000001.h5").write_bytes(noise)
    (folder.path / "s_004_master.h5").write_bytes(b"damaged")
    for path in folder.path.glob("*_found.json"):
        path.unlink()
    text, found = follow(folder, status=3)
    check(found["state"] == [1, 1, 2, 1, 2] and found["frame"] == [0, 1, 2, 3], f"{found['state']}, {found['frame']}")
    check([bool(failure) for failure in found["failure"]] == [False, False, True, False] and not any(found["is_outlier"]), f"{found}")
    says(text, "no optics explain the data clearly better")
    check(found["C10"][2] == 0 and "s_002_found.json" not in found["optics"], "a failed fit has optics")
    for frame in (0, 1, 3):
        check(optics_of(found, frame) == optics_of(whole, frame), f"frame {frame} has other optics")
    same(follow(folder, status=3, ranks=3)[1], found, "3 ranks")
    says(follow(folder, status=3, extra=["--resume"])[0], "is complete already", "2 of 5 frames failed")
    for name, content in good.items():
        (folder.path / name).write_bytes(content)
    same(follow(folder, extra=["--overwrite"])[1], whole, "done after all")


def put(folder, frame, others):
    """A frame of another series in the place of this one's."""
    shutil.copy(others / "s_000_data_000001.h5", folder.path / f"s_{frame:03d}_data_000001.h5")


def frames_that_moved_far_are_fitted_again(folder):
    """A defocus beyond the reach of its neighbours' is found blindly, and said to stand out; what comes after it is followed as before."""
    others = folder.path / "others"
    simulate(folder, 1, {**TRUTH, "aberrations": {"C10_A": -560}})
    others.mkdir()
    shutil.move(folder.path / "s_000_data_000001.h5", others)
    simulate(folder, 5, defocus_step_A=2)
    put(folder, 2, others)
    text, found = follow(folder)
    check(abs(found["C10"][2] + 560) <= 10, f"C10 is {found['C10']}")
    check([bool(flag) for flag in found["was_refitted"]] == [False, False, True, False, False], f"refitted: {found['was_refitted']}")
    check([bool(flag) for flag in found["is_outlier"]] == [False, False, True, False, False], f"outliers: {found['is_outlier']}")
    says(text, "frame 2: fitted again: the first fit, from frame 0", "frame 2: outlier: rotation")
    says(folder.use("info", "fit.h5"), "note      fitted again", "note      outlier: rotation")
    check(all(abs(found["C10"][i] - found["C10"][0]) <= 15 for i in (1, 3, 4)), f"C10 is {found['C10']}")
    same(follow(folder, ranks=3)[1], found, "3 ranks")


if __name__ == "__main__":
    sys.exit(main([every_frame_is_followed, a_killed_run_goes_on, frames_fail_alone, frames_that_moved_far_are_fitted_again]))
