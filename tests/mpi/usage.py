#!/usr/bin/env python3
"""What a run says bounded it: in the log, the output, info, the report and check --time; on one rank and on three; with the file, then the
output made slow.

usage: usage.py PROGRAM INJECT
"""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "program"))
from program import JOB, check, main, recording, says  # noqa: E402

import h5py  # noqa: E402
import numpy  # noqa: E402

N_FRAMES, RESOURCES = 6, ["file", "decode", "bus", "device", "cores", "output"]
INJECT = sys.argv[2]


def save_series(folder):
    for frame in range(N_FRAMES):
        folder.save(f"frame_{frame}.npy", recording(frame))
    folder.save_job(JOB)


def run(folder, output, *extra, ranks=None, slow=None, status=0):
    """slow: (which, part of a path, microseconds that each such call takes longer)."""
    launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    environment = dict(os.environ)
    if slow:
        environment |= {"LD_PRELOAD": INJECT, f"PS_INJECT_{slow[0]}_US": slow[2], "PS_INJECT_PATH": slow[1]}
    done = subprocess.run([*launcher, folder.program, "run", "job.json", "--set", f"output.file={output}", *extra], cwd=folder.path, text=True,
                          capture_output=True, timeout=120, env=environment)
    check(done.returncode == status, f"exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stderr


def usage_of(folder, output, number=1):
    with h5py.File(folder.path / output, "r") as file:
        group = file[f"entry/process_{number}/usage"]
        found = {name: group[name][()] for name in group}
        check(list(group["busy"].attrs["resources"]) == RESOURCES, f"resources {group['busy'].attrs['resources']}")
        found["seconds"] = file["entry/frames/seconds"][()][file["entry/frames/process"][()] == number]
        found["ranks"] = file["entry/frames/rank"][()][file["entry/frames/process"][()] == number]
    found["text"] = found["text"].decode()
    return found


def agrees(found, n_ranks):
    """Shares lie where shares can lie, and sums are the sums of what they are of."""
    least, most = found["busy_range"].T
    check(found["n_ranks"] == n_ranks, f"{found['n_ranks']} ranks, expected {n_ranks}")
    check(found["work_seconds"] > 0 and found["start_seconds"] > 0 and found["processor_seconds"] > 0, f"seconds {found}")
    check((0 <= least).all() and (least <= found["busy"] + 1e-12).all() and (found["busy"] <= most + 1e-12).all() and (most <= 1).all(),
          f"shares {found['busy']} between {least} and {most}")
    check((found["busy_seconds"] <= n_ranks * found["work_seconds"] * (1 + 1e-9)).all(), f"busy {found['busy_seconds']} s")
    check((found["busy"][[2, 3]] == 0).all(), "a backend without a device used the bus or a device")
    check((found["busy"][[0, 4, 5]] > 0).all(), f"file, cores and output of a run were not all used: {found['busy']}")
    check(0 <= found["idle"] <= 1 - found["busy"].max() + 1e-9, f"idle for {found['idle']}, busiest {found['busy'].max()}")
    check(((0 <= found["busiest_rank"]) & (found["busiest_rank"] < n_ranks)).all(), f"ranks {found['busiest_rank']}")
    sums = found["seconds"].sum(axis=0)
    check(numpy.allclose(found["stage_seconds"][:-1], sums[:-1], rtol=1e-9, atol=1e-12), f"stages {found['stage_seconds']}, frames' {sums}")
    check(found["stage_seconds"][-1] >= sums[-1], f"writing {found['stage_seconds'][-1]} s, frames' {sums[-1]}")


def one_and_three_ranks_record_it(folder):
    save_series(folder)
    for ranks in (None, 1, 3):
        output = f"out_{ranks}.h5"
        log = run(folder, output, ranks=ranks)
        found = usage_of(folder, output)
        agrees(found, ranks or 1)
        says(log, found["text"], "seconds of the frames' stages, over all ranks: read ")
        says(found["text"], f" s on frames{' (means of 3 ranks' if ranks == 3 else ''}", "cores ", "output ")
        says(folder.use("info", output), found["text"], "seconds over all ranks: read ")
        folder.use("preview", output)
        page = (folder.path / f"{output}.preview" / "report.html").read_text()
        says(page, "Run 1: ", found["text"], "<td>cores</td>")
        check(log.count(found["text"]) == 1, "more than one rank told it")


def what_is_slow_is_what_bounds(folder):
    save_series(folder)
    for ranks in (1, 3):
        for which, part, delay, resource in (("READ", ".npy", "15000", "file"), ("WRITE", "out_slow", "5000", "output")):
            output = f"out_slow_{which}_{ranks}.h5"
            run(folder, output, ranks=ranks, slow=(which, part, delay))
            found = usage_of(folder, output)
            agrees(found, ranks)
            check(RESOURCES[int(found["busy"].argmax())] == resource, f"slow {resource} on {ranks} ranks, busy {found['busy']}")
            check(f"the {resource}" in found["text"].split(":")[0], found["text"])
            if ranks == 1:
                says(found["text"], f"bound by the {resource}, ")


def runs_that_go_on_record_their_own(folder):
    save_series(folder)
    folder.save("frame_1.npy", recording(1)[:10])
    run(folder, "out.h5", status=3)
    folder.save("frame_1.npy", recording(1))
    run(folder, "out.h5", "--resume", "--retry-failed", ranks=3)
    first, second = usage_of(folder, "out.h5", 1), usage_of(folder, "out.h5", 2)
    agrees(first, 1)
    check(first["seconds"].shape[0] == N_FRAMES - 1 and second["seconds"].shape[0] == 1, "frames of both runs")
    check(second["n_ranks"] == 3 and second["stage_seconds"][0] > 0, f"{second}")
    says(folder.use("info", "out.h5"), first["text"], second["text"])
    run(folder, "out.h5", "--resume")  # nothing to do: nothing to say
    check(usage_of(folder, "out.h5", 3)["n_ranks"] == 0, "a run without frames has a usage")


def files_without_room_go_on(folder):
    save_series(folder)
    folder.save("frame_1.npy", recording(1)[:10])
    run(folder, "out.h5", status=3)
    with h5py.File(folder.path / "out.h5", "r+") as file:
        del file["entry/process_1/usage"]
    folder.save("frame_1.npy", recording(1))
    text = folder.use("info", "out.h5")
    check("on frames" not in text, f"info knows what is not there\n{text}")
    run(folder, "out.h5", "--resume", "--retry-failed")
    folder.use("info", "out.h5")


def check_says_what_will_bound(folder):
    save_series(folder)
    text = folder.use("check", "job.json", "--time")
    says(text, "s from frame to frame", "\nbound ", "; seconds a frame: file ", " cores ", " output ")
    estimate = json.loads(folder.use("check", "job.json", "--time", "--json"))["time_estimate"]
    busy = [estimate[f"{resource}_seconds"] for resource in RESOURCES]
    check(all(busy[i] > 0 for i in (0, 1, 4, 5)) and busy[2] == busy[3] == 0, f"{estimate}")
    check(estimate["cores_seconds"] == estimate["frame_seconds"] and estimate["busiest"] == RESOURCES[busy.index(max(busy))], f"{estimate}")
    period = max(busy[0] + busy[1], busy[4] + busy[1], busy[5])
    check(abs(estimate["period_seconds"] - period) <= 1e-9 * period, f"{estimate}, expected a period of {period}")
    environment = dict(os.environ, LD_PRELOAD=INJECT, PS_INJECT_READ_US="30000", PS_INJECT_PATH=".npy")
    done = subprocess.run([folder.program, "check", "job.json", "--time"], cwd=folder.path, text=True, capture_output=True, timeout=120,
                          env=environment)
    says(done.stdout, "bound by the file, ")
    check(not list(folder.path.glob("out*")), "check left something behind")


sys.exit(main([one_and_three_ranks_record_it, what_is_slow_is_what_bounds, runs_that_go_on_record_their_own, files_without_room_go_on,
               check_says_what_will_bound]))
