#!/usr/bin/env python3
"""Recordings whose fit ends its process: attempts are counted and come to an end, in a fit of a series and before a reconstruction.

usage: fit_attempts.py PROGRAM (the one of killing_frame.c)
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "program"))
import h5py
from follow import FIT, KNOWN, simulate
from program import check, main, says

FIRST_COUNT, N_FRAMES = 60000, 4
KILLED = (-9, 137)


def mark(folder):
    """Each frame has a first count of its own, far from the disc, by which it is told apart."""
    simulate(folder, N_FRAMES)
    for frame in range(N_FRAMES):
        with h5py.File(folder.path / f"s_{frame:03d}_data_000001.h5", "r+") as file:
            counts = file["entry/data/data"]
            pattern = counts[0]
            pattern[0, 0] = FIRST_COUNT + frame
            counts[0] = pattern


def run(folder, *extra, deadly=None, ranks=None, status=(0,)):
    launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    environment = {**os.environ, "PS_KILL_HOW": "read", "PS_KILLING_COUNT": str(FIRST_COUNT + deadly) if deadly is not None else "-1"}
    done = subprocess.run([*launcher, folder.program, "run", "job.json", "--resume", *extra], cwd=folder.path, env=environment,
                          capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    check(done.returncode in status, f"frame {deadly} kills on {ranks} ranks: exit status {done.returncode}, expected {status}\n{text}")
    return text


def optics(folder):
    return {path.name: path.read_text() for path in folder.path.glob("*_found.json")}


def restart(folder):
    for path in [*folder.path.glob("*_found.json"), *folder.path.glob("fit.h5*")]:
        path.unlink()


def a_series_gets_on_without_it(folder):
    mark(folder)
    folder.save_job(FIT)
    run(folder)
    expected = optics(folder)
    for ranks, deadly in ((None, 2), (3, 2), (None, 0)):
        restart(folder)
        run(folder, deadly=deadly, ranks=ranks, status=KILLED)
        run(folder, deadly=deadly, ranks=ranks, status=KILLED)
        says((folder.path / "fit.h5.fit-tries").read_text(), f"2 {folder.path.resolve()}/s_{deadly:03d}_master.h5")
        says(run(folder, deadly=deadly, ranks=ranks, status=(3,)), "its fit was begun 2 times and never ended", "--retry-failed")
        with h5py.File(folder.path / "fit.h5") as file:
            check(file["entry/frames/state"][()].tolist() == [2 if frame == deadly else 1 for frame in range(N_FRAMES)], "states")
            says(file[f"entry/fit/fit_{deadly}/failure"][()].decode(), "never ended")
        check(not list(folder.path.glob("fit.h5.*")), "files of a run that goes on are left")
        found = optics(folder)
        others = {name for name in expected if name != f"s_{deadly:03d}_found.json"}
        check(found.keys() == others, f"optics of {found.keys()}")
        if deadly > 0:
            check(all(found[name] == expected[name] for name in others), "other optics than without a kill")
            run(folder, "--retry-failed")
            check(optics(folder) == expected, "done after all, with other optics")


def a_reconstruction_takes_the_next(folder):
    """What was begun is counted beside the output, which is not there yet."""
    mark(folder)
    folder.save_job({"task": "reconstruct", "series": {"files": "s_*_master.h5"}, "methods": {"ssb": {}}, "output": {"file": "fit.h5"},
                     "optics": {**KNOWN, "detector_transpose": False, "fit": {"free": ["rotation_deg", "C10", "C12"]}},
                     "compute": {"backend": "cpu"}})
    for ranks in (None, 3):
        for _ in range(2):
            run(folder, deadly=0, ranks=ranks, status=KILLED)
            check(not (folder.path / "fit.h5").exists(), "an output without optics")
        text = run(folder, ranks=ranks)
        says(text, "its fit was begun 2 times and never ended", "the next usable recording is fitted instead", "optics fitted on frame 1")
        restart(folder)
        says(run(folder, ranks=ranks), "optics fitted on frame 0")
        restart(folder)


if __name__ == "__main__":
    sys.exit(main([a_series_gets_on_without_it, a_reconstruction_takes_the_next]))
