#!/usr/bin/env python3
"""What happens to results: replaced, removed, moved or cut while they are written, on full disks, opened by some ranks only.

usage: outputs.py PROGRAM INJECT_LIBRARY SERIES_FOLDER GROUP
GROUP: overwrite, names, vanish, disk, uneven. Needs h5py and numpy. Prints the faults tried and survived.
"""
import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
from faults import DONE, N_FRAMES, PENDING, Failure, Series, check, expect_text, finish, kill_some, session, start, wait_for_done, wait_until_gone


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def expect(condition, text):
    if not condition:
        raise Failure(text)


def previous(output):
    return sorted(output.parent.glob(output.name + ".previous-*"))


def slowed(series, output, extra=(), ranks=2):
    slow = {"PS_INJECT_PATH": output.name, "PS_INJECT_WRITE_US": "8000"}
    return start(series.command(output, extra, ranks=ranks, inject=slow))


def kill_all(process):
    for pid in session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    finish(process)
    wait_until_gone(process)


def clean(output):
    for path in output.parent.glob(output.name + "*"):
        path.unlink()


# ---- --overwrite ---------------------------------------------------------------------------------------------------------------------


def test_overwrite(series, count):
    output = series.folder / "again.h5"
    for ranks in (1, 3):
        check(series.run(output, ranks=ranks), [0], "first run")
        old = digest(output)
        for wanted in (None, 0, 1, 5):  # killed before the new file stands there, and after so many frames
            process = slowed(series, output, ["--overwrite"], ranks)
            if wanted is None:
                time.sleep(0.1)
            else:
                while process.poll() is None and not previous(output):
                    time.sleep(0.005)
                wait_for_done(series, process, output, wanted)
            kill_all(process)
            keepers = [path for path in [output, *previous(output)] if digest(path) == old]
            expect(keepers, f"{ranks} ranks, killed after {wanted} frames: the old result is gone")
            series.check_truth(output)
            series.check_truth(keepers[0])
            count(f"{ranks} ranks, --overwrite killed after {wanted} frames: the old result is {keepers[0].name}")
        process = slowed(series, output, ["--overwrite"], ranks)
        while process.poll() is None and series.check_truth(output).count(PENDING) == 0:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGTERM)
        finish(process)
        wait_until_gone(process)
        expect(any(digest(path) == old for path in previous(output)), "after SIGTERM the old result is gone")
        series.check_finished(output, "--overwrite")
        expect(not previous(output), f"the new result is complete, and {previous(output)} stand there still")
        expect(digest(output) != old, "--resume went on with the old result")
        count(f"{ranks} ranks, resumed to the new result, the old ones gone")
        clean(output)
    output.write_text("no output of this program")
    text = check(series.run(output, ["--overwrite"]), [0], "over a foreign file")
    expect_text(text, ["is no output of ptyseries and is kept as"], "a foreign file")
    expect([path.read_text() for path in previous(output)] == ["no output of this program"], "a foreign file was not kept")
    series.check_finished(output, "over a foreign file")
    expect(len(previous(output)) == 1, "a foreign file went when the output was complete")
    count("a file that is no output is kept")
    overwrite_simulation(series, count)


def overwrite_simulation(series, count):
    """A new simulation over an old one, killed at any moment: all files of a frame are of one of the two, or the old ones are kept."""
    folder, job = series.folder / "sim", series.folder / "sim.json"
    folder.mkdir()
    settings = json.loads((series.folder / "simulate.json").read_text())
    settings["simulate"]["output_master"] = "sim/f_{frame}_master.h5"
    settings["simulate"]["frames"] = 2
    job.write_text(json.dumps(settings))
    command = [series.program, "run", str(job)]
    check(finish(start(command)), [0], "simulation")
    old = {path.name: digest(path) for path in folder.iterdir()}
    for delay in (0.02, 0.1, 0.2, 0.3, 0.5):
        process = start([*command, "--overwrite", "--set", "simulate.seed=77"])
        time.sleep(delay)
        kill_all(process)
        for name, was in old.items():
            found = [path for path in folder.glob(name + "*") if digest(path) == was]
            replaced = (folder / name.replace(name.split("_", 2)[2], "master.h5")).exists()
            expect(found or replaced, f"simulation killed after {delay} s: {name} is gone, without a new recording")
        shutil.rmtree(folder)
        folder.mkdir()
        check(finish(start(command)), [0], "simulation")
    check(finish(start([*command, "--overwrite", "--set", "simulate.seed=77"])), [0], "simulation over another")
    left = sorted(path.name for path in folder.iterdir())
    expect(left == sorted(old), f"after a complete simulation these stand there: {left}")
    count("a simulation over another")


# ---- killed among names --------------------------------------------------------------------------------------------------------------


def values(folder):
    """What the recording there holds: chunks of counts as they lie in the files that its master links to, and the truth."""
    found = []
    with h5py.File(folder / "f_000_master.h5") as master:
        for name in sorted(master["entry/data"]):
            data = master["entry/data"][name]
            found.append([data.id.read_direct_chunk((i, 0, 0))[1] for i in range(len(data))])
    with h5py.File(folder / "f_000_truth.h5") as truth:
        found.append(truth["entry/truth/phase"][()].tobytes())
    return found


def left_over(folder):
    return sorted(path.name for path in folder.glob("*.previous-*"))


def contents(folder):
    return {path.name: digest(path) for path in folder.iterdir()}


def test_names(series, count):
    """A simulation that replaces another, killed at every single link, rename and removal, with and without hard links: the old recording
    or the new one is there, under its own names or under second ones that the next start tells of, and it goes on to the new one."""
    old, new = series.folder / "old", series.folder / "new"
    job, command = series.folder / "names.json", [series.program, "run", str(series.folder / "names.json")]
    settings = json.loads((series.folder / "simulate.json").read_text())
    settings["simulate"].update(output_master="names/f_{frame}_master.h5", frames=1, positions_per_file=100)
    job.write_text(json.dumps(settings))
    other = ["--set", "simulate.seed=77", "--set", "simulate.positions_per_file=150"]  # one data file less
    folder = series.folder / "names"
    for kept, extra in ((old, []), (new, other)):
        check(finish(start([*command, *extra])), [0], "simulation")
        folder.rename(kept)
    old_digests, old_values, new_values = contents(old), values(old), values(new)
    expect(old_values != new_values, "the two recordings are the same")
    for links in (True, False):
        n_told = 0
        for n in range(1, 100):
            shutil.copytree(old, folder)
            inject = {"PS_INJECT": f"kill_name:{n}", "PS_INJECT_PATH": "names/f_000", **({} if links else {"PS_INJECT_NO_LINKS": "1"})}
            preload = ["env", f"LD_PRELOAD={series.inject}", *[f"{name}={value}" for name, value in inject.items()]]
            status, text = finish(start([*preload, *command, *other, "--overwrite"]))
            if status == 0:
                expect(values(folder) == new_values and not left_over(folder), "the new recording is not whole")
                shutil.rmtree(folder)
                break
            what = f"killed at name {n}, {'with' if links else 'without'} links"
            expect(status in (-9, 137), f"{what}: exit {status}:\n{text}")
            n_told += judge_killed(folder, [*command, *other], old_digests, (old_values, new_values), what)
            shutil.rmtree(folder)
        expect(10 < n < 99 and n_told > 5, f"{n} calls that give names, {n_told} times second names were left")
        count(f"a simulation killed at each of {n - 1} names, {n_told} times with second names left")


def judge_killed(folder, command, old_digests, old_and_new, what):
    """1 when second names were left."""
    left, before = left_over(folder), contents(folder)
    complete = (folder / "f_000_master.h5").exists()
    has_old = set(old_digests.values()) <= set(before.values())
    expect(has_old or (complete and values(folder) == old_and_new[1]), f"{what}: neither recording is there: {sorted(before)}")
    status, text = finish(start(command))
    expect(status == 2 and contents(folder) == before, f"{what}: run again without --resume, exit {status}:\n{text}")
    expect_text(text, ["--overwrite replaces it, --resume goes on"], what)
    if left:
        expect("killed while it replaced" in text and any(name in text for name in left), f"{what}: {left} are not told of:\n{text}")
    status, text = finish(start([*command, "--resume"]))
    if left:
        expect("killed while it replaced" in text and any(name in text for name in left), f"{what}: {left} are not told of:\n{text}")
    if status == 2:
        expect_text(text, ["this job has"], what)
        expect(contents(folder) == before and values(folder) == old_and_new[0], f"{what}: --resume refused, but the old one is not whole:\n{text}")
    else:
        check((status, text), [0], what)
        expect(values(folder) == old_and_new[1], f"{what}: --resume did not come to the new recording:\n{text}")
        expect(not left_over(folder) or "which is whole" in text, f"{what}: {left_over(folder)} stand there still:\n{text}")
    check(finish(start([*command, "--overwrite"])), [0], what)
    expect(values(folder) == old_and_new[1] and not left_over(folder), f"{what}: --overwrite did not come to the new recording alone")
    return bool(left)


# ---- removed, moved, replaced, cut ---------------------------------------------------------------------------------------------------


def remove(output):
    output.unlink()


def move(output):
    output.rename(output.parent / "moved.h5")


def replace(output):
    other = output.parent / "other"
    other.write_text("of someone else")
    other.replace(output)


def cut(output):
    os.truncate(output, output.stat().st_size // 3)


def remove_folder(output):
    shutil.rmtree(output.parent)


def test_vanish(series, count):
    for ranks in (1, 3):
        for what, strike, words in (("removed", remove, "the output was removed"), ("moved", move, "the output was moved to"),
                                    ("replaced", replace, "replaced by another file"), ("cut", cut, "the output was cut from"),
                                    ("folder removed", remove_folder, "the output was removed")):
            folder = series.folder / "away"
            folder.mkdir()
            output = folder / "vanishing.h5"
            process = slowed(series, output, ranks=ranks)
            wait_for_done(series, process, output, 2)
            strike(output)
            text = check(finish(process), [1], f"{what}, {ranks} ranks")
            expect_text(text, [words], f"{what}, {ranks} ranks")
            saved = sorted([*folder.glob("*.recovered-*"), *Path.cwd().glob("*.recovered-*")]) if folder.exists() else sorted(
                Path.cwd().glob("*.recovered-*"))
            if what == "replaced":
                expect(output.read_text() == "of someone else", "the file of someone else was touched")
            if what in ("removed", "replaced", "folder removed"):
                expect(len(saved) == 1, f"{what}: saved {saved}:\n{text}")
                expect(series.check_truth(saved[0]).count(DONE) >= 2, f"{what}: what was done is not in {saved[0]}")
                folder.mkdir(exist_ok=True)
                shutil.move(saved[0], output)
                series.check_finished(output, what)
            if what == "moved":
                (folder / "moved.h5").rename(output)
                series.check_finished(output, what)
            expect(not list(folder.glob("*.recovered-*")), f"{what}: saved for no reason")
            shutil.rmtree(folder, ignore_errors=True)
            count(f"{what}, {ranks} ranks: exit 1")


# ---- full disks ----------------------------------------------------------------------------------------------------------------------


def at_limits(series, name, command, target, sizes, count):
    """A file size limit stands for a full disk: every file stops growing there, and what HDF5 had in hand cannot be written. MPI needs
    larger files itself."""
    for size in sizes:
        limited = ["sh", "-c", f"ulimit -f {size}; exec \"$@\"", "sh", *map(str, command)]
        status, text = finish(start(limited))
        expect(status == 1, f"{name}, limit {size}: exit {status}:\n{text}")
        expect_text(text, ["File too large", "larger than allowed"], f"{name}, limit {size}")
        expect("crash" not in text and "Assertion" not in text and "SIGSEGV" not in text, f"{name}, limit {size}:\n{text}")
        left = [path for path in target.parent.iterdir() if "partial" in path.name or path.name.endswith((".part", ".lock")) or path == target]
        expect(not left, f"{name}, limit {size}: left {left}")
        count(f"{name}, no file larger than {size} blocks: exit 1, nothing left")


def on_small_disk(series, name, command, small, kilobytes, count):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", small], capture_output=True)
    if mounted.returncode != 0:
        return print("  skipped: a full disk needs the right to mount a tmpfs")
    try:
        status, text = finish(start([str(word) for word in command]))
        expect(status == 1, f"{name}, disk of {kilobytes} KiB: exit {status}:\n{text}")
        expect_text(text, ["No space left"], f"{name}, disk of {kilobytes} KiB")
        expect("crash" not in text and "SIGSEGV" not in text, f"{name}, disk of {kilobytes} KiB:\n{text}")
        left = [path.name for path in small.iterdir()]
        expect(not left, f"{name}, disk of {kilobytes} KiB: left {left}")
    finally:
        subprocess.run(["umount", small], check=True)
    count(f"{name}, disk of {kilobytes} KiB: exit 1, nothing left")


def test_disk(series, count):
    small = series.folder / "small"
    small.mkdir()
    packed = series.folder / "packs" / "packed.h5"
    packed.parent.mkdir()
    pack = [series.program, "pack", series.expected_path, "--to"]
    histogram = series.folder / "histogram.json"
    histogram.write_text(json.dumps({"task": "histogram", "series": json.loads(series.job.read_text())["series"],
                                     "histogram": {"bins": 64, "range": "auto"}, "output": {"file": "histograms/h.h5"}, "compute": {"backend": "cpu"}}))
    (series.folder / "histograms").mkdir()
    simulate = series.folder / "simulate_small.json"
    settings = json.loads((series.folder / "simulate.json").read_text())
    settings["simulate"]["output_master"] = "sims/f_{frame}_master.h5"
    settings["simulate"]["frames"] = 1
    simulate.write_text(json.dumps(settings))
    (series.folder / "sims").mkdir()
    at_limits(series, "pack", [*pack, packed], packed, (1, 2, 100, 300, 500), count)
    for kilobytes in (4, 60, 200, 300):
        on_small_disk(series, "pack", [*pack, small / "p.h5"], small, kilobytes, count)
    for kilobytes in (4, 60, 120):
        on_small_disk(series, "simulate", [series.program, "run", simulate, "--set", "simulate.output_master=small/f_{frame}_master.h5"], small,
                      kilobytes, count)
    for kilobytes in (4, 60, 200):
        for launcher in ([], ["mpirun", "--oversubscribe", "-n", 3]):
            command = [*launcher, series.program, "run", histogram, "--set", "output.file=small/h.h5"]
            on_small_disk(series, f"histogram, {3 if launcher else 1} ranks", command, small, kilobytes, count)
    interrupted_copies(series, count)


def interrupted_copies(series, count):
    """Signals and short writes while the file is copied for the runs 17 to 32 are no full disk."""
    output = series.folder / "short_written.h5"
    shutil.copy(series.expected_path, output)
    for _ in range(15):
        check(series.run(output, ["--resume"], ranks=1), [0], "resume")
    inject = {"PS_INJECT": "short_write:1", "PS_INJECT_PATH": "short_written.h5.partial-"}
    text = check(series.run(output, ["--resume"], ranks=1, inject=inject), [0], "resume with short writes")
    expect("going on with" in text, f"not resumed:\n{text}")
    expect(series.check_truth(output) == [DONE] * N_FRAMES, "a copy with short writes is not whole")
    with h5py.File(output) as file:
        runs = [name for name in file["entry"] if name.startswith("process_")]
    expect(len(runs) == 17, f"17 runs happened, a reader sees {runs}")
    count("short and interrupted writes: the copy is whole")


# ---- opened by some ranks only -------------------------------------------------------------------------------------------------------


def test_uneven(series, count):
    """Closing would wait for the rank that has no file, so nobody closes and the program leaves by MPI_Abort. (Here it would not wait: the
    injected refusal opens the file, because opening waits for all ranks too.)"""
    histogram = series.folder / "histogram.json"
    histogram.write_text(json.dumps({"task": "histogram", "series": json.loads(series.job.read_text())["series"],
                                     "histogram": {"bins": 16, "range": "auto"}, "output": {"file": "uneven_h.h5"}, "compute": {"backend": "cpu"}}))
    output = series.folder / "uneven.h5"
    for rank in (0, 1, 2):
        inject = {"PS_INJECT": "hdf5_refuse:1", "PS_INJECT_PATH": "uneven", "PS_INJECT_RANK": str(rank)}
        text = check(series.run(output, ranks=3, inject=inject), [1], f"rank {rank} cannot open the output")
        expect_text(text, ["cannot open for writing through MPI-IO"], f"rank {rank}")
        expect_text(text, ["left by MPI_Abort with 1"], f"rank {rank}")
        series.check_finished(output, f"rank {rank} could not open it")
        output.unlink()
        count(f"rank {rank} cannot open the output: exit 1")
        preload = ["env", f"LD_PRELOAD={series.inject}", *[f"{name}={value}" for name, value in inject.items()]]
        command = ["mpirun", "--oversubscribe", "-n", "3", *preload, series.program, "run", str(histogram)]
        text = check(finish(start(command)), [1], f"rank {rank} cannot open the histogram")
        expect_text(text, ["cannot open through MPI-IO"], f"rank {rank}, histogram")
        expect_text(text, ["left by MPI_Abort with 1"], f"rank {rank}, histogram")
        count(f"rank {rank} cannot open the histogram: exit 1")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("program", "inject", "series", "group"):
        parser.add_argument(name)
    arguments = parser.parse_args()
    groups = {"overwrite": test_overwrite, "names": test_names, "vanish": test_vanish, "disk": test_disk, "uneven": test_uneven}
    n = 0

    def count(text):
        nonlocal n
        n += 1
        print(f"  survived: {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="ptyseries-outputs-") as folder:
        os.chdir(folder)
        try:
            groups[arguments.group](Series(arguments, Path(folder)), count)
        except Failure as failure:
            print(f"after {n} faults survived: {failure}", file=sys.stderr)
            return 1
    print(f"{arguments.group}: {n} faults tried, all survived")
    return 0


if __name__ == "__main__":
    sys.exit(main())
