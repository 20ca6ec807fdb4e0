#!/usr/bin/env python3
"""Fault injection: whatever hits a run, its output tells the truth, and --resume finishes it to the same bytes.

usage: faults.py PROGRAM INJECT_LIBRARY SERIES_FOLDER GROUP [--seed N] [--kills N]
GROUP: kill, signals, space, read, memory, room, data, library, device (PROGRAM is then the one that loses devices). Needs h5py and numpy. Prints the faults tried and survived.
"""
import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy

PATIENCE_S = 90  # a run that takes longer hangs
N_FRAMES = 8
IMAGES = ["ssb/phase", "phase/phase", "complex/phase", "complex/log_amplitude"]
PENDING, DONE, FAILED = 0, 1, 2


class Failure(Exception):
    pass


class Series:
    """A small simulated series, its job, and what an undisturbed run makes of it."""

    def __init__(self, arguments, folder):
        self.program, self.inject, self.folder = arguments.program, arguments.inject, folder
        self.job = folder / "reconstruct.json"
        shutil.copy(Path(arguments.series) / "simulate.json", folder)
        shutil.copy(Path(arguments.series) / "reconstruct.json", self.job)
        check(self.run_alone(folder / "simulate.json"), [0], "simulation")
        self.expected_path = folder / "expected.h5"
        begin = time.monotonic()
        check(self.run(self.expected_path), [0], "undisturbed run")
        self.seconds = time.monotonic() - begin
        self.expected = self.images(self.expected_path)

    def command(self, output, extra=(), ranks=2, inject=None, address_space_KiB=None):
        settings = [f"{name}={value}" for name, value in (inject or {}).items()]
        preload = ["env", f"LD_PRELOAD={self.inject}", *settings] if inject else []
        if address_space_KiB:
            preload += ["sh", "-c", f'ulimit -v {address_space_KiB}; exec "$@"', "sh"]
        return ["mpirun", "--oversubscribe", "-n", str(ranks), *preload, self.program, "run", str(self.job), "--set",
                f"output.file={output}", *extra]

    def run_alone(self, job):
        return finish(start([self.program, "run", str(job)]))

    def run(self, output, extra=(), **options):
        return finish(start(self.command(output, extra, **options)))

    def images(self, path):
        with h5py.File(path, "r") as file:
            return {name: file["entry"][name][()] for name in IMAGES}

    def check_truth(self, path):
        """The file opens, and every frame it calls done holds the undisturbed run's bytes. Returns the states."""
        if not path.exists():
            return []
        with h5py.File(path, "r") as file:
            states = file["entry/frames/state"][()]
            for frame in numpy.flatnonzero(states == DONE):
                for name in IMAGES:
                    if file["entry"][name][frame].tobytes() != self.expected[name][frame].tobytes():
                        raise Failure(f"frame {frame} is called done, but its {name} differs")
        return states.tolist()

    def check_finished(self, path, what):
        """--resume finishes the file to the undisturbed run's bytes and leaves nothing else beside it."""
        check(self.run(path, ["--resume", "--retry-failed"]), [0], f"resume after {what}")
        if self.check_truth(path) != [DONE] * N_FRAMES:
            raise Failure(f"after {what} and --resume not every frame is done")
        left = [name.name for name in path.parent.iterdir() if name.name.startswith(path.name) and "partial" in name.name]
        if left:
            raise Failure(f"after {what} and --resume these are left: {left}")


def start(command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def finish(process):
    """Waits for a run; a hang is a failure. Returns (exit status, output)."""
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        for pid in session(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise Failure(f"hung for {PATIENCE_S} s:\n{output}") from None
    return process.returncode, output


def check(outcome, allowed, what):
    status, output = outcome
    if status not in allowed:
        raise Failure(f"{what}: exit status {status}, expected one of {allowed}:\n{output}")
    return output


def expect_text(output, texts, what):
    if not any(text in output for text in texts):
        raise Failure(f"{what}: the message names none of {texts}:\n{output}")


def session(leader):
    """Process ids of a session's members that live: mpirun starts its ranks in process groups of their own."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    members.append(int(entry.name))
    return members


def ranks_of(leader, program):
    """Those that run the program, without the helpers that each of them forks to look at recordings."""

    def runs_it(pid):
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program)
        return False

    def parent(pid):
        with contextlib.suppress(OSError):
            return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        return 0

    return [pid for pid in session(leader) if runs_it(pid) and not runs_it(parent(pid))]


def kill_some(process, whom, choose, program):
    """kill -9 of one rank, of mpirun, or of everything."""
    ranks = ranks_of(process.pid, program)
    victims = {"rank": [choose.choice(ranks)] if ranks else [], "mpirun": [process.pid], "all": session(process.pid)}[whom]
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(victims) > 0


def wait_until_gone(process):
    """Everything of the killed job is gone before it is looked at, as on a cluster."""
    end = time.monotonic() + PATIENCE_S
    while session(process.pid):
        if time.monotonic() > end:
            raise Failure(f"processes of a killed run live on: {session(process.pid)}")
        time.sleep(0.02)


def wait_for_done(series, process, output, wanted):
    while process.poll() is None and (not output.exists() or series.check_truth(output).count(DONE) < wanted):
        time.sleep(0.005)


def test_kill(series, choose, arguments, count):
    slow = {"PS_INJECT_PATH": "killed.h5", "PS_INJECT_WRITE_US": "3000"}
    begin = time.monotonic()
    check(series.run(series.folder / "killed.h5", inject=slow), [0], "slowed run")
    seconds = time.monotonic() - begin
    for i in range(arguments.kills):
        output = series.folder / f"killed.h5_{i}.h5"
        whom = choose.choice(["rank", "mpirun", "all"])
        process = start(series.command(output, ["--resume"], inject=slow))
        if i % 2:  # at any moment of the run, or some milliseconds after so many frames are done
            moment = f"{choose.uniform(0, seconds):.3f} s"
            time.sleep(float(moment.split()[0]))
        else:
            moment = f"{choose.randrange(N_FRAMES)} done frames"
            wait_for_done(series, process, output, int(moment.split()[0]))
            time.sleep(choose.uniform(0, 0.1))
        struck = kill_some(process, whom, choose, series.program)
        finish(process)
        wait_until_gone(process)
        what = f"kill -9 of {whom} after {moment} (kill {i})"
        states = series.check_truth(output)
        series.check_finished(output, what)
        count(f"{what}: {'no file yet' if not states else f'{states.count(DONE)} frames were done'}", struck)
        output.unlink()


def test_signals(series, choose, arguments, count):
    slow = {"PS_INJECT_PATH": "signalled.h5", "PS_INJECT_WRITE_US": "20000"}
    output = series.folder / "signalled.h5"
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        process = start(series.command(output, inject=slow))
        while PENDING not in series.check_truth(output) or DONE not in series.check_truth(output):
            if process.poll() is not None:
                raise Failure(f"ended before it was signalled:\n{process.communicate()[0]}")
            time.sleep(0.01)
        os.kill(choose.choice(ranks_of(process.pid, series.program)), number)
        text = check(finish(process), [75], f"signal {number.name} to one rank")
        expect_text(text, ["--resume"], number.name)
        n_done = series.check_truth(output).count(DONE)
        if not 0 < n_done < N_FRAMES:
            raise Failure(f"{number.name}: {n_done} frames done, expected some")
        series.check_finished(output, number.name)
        count(f"{number.name} to one rank: exit 75 with {n_done} frames done", True)
        output.unlink()


def test_space(series, choose, arguments, count):
    full = series.expected_path.stat().st_size
    small = series.folder / "small"
    small.mkdir()
    for fraction in (0.02, 0.4, 0.9):
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={int(full * fraction)}", "tmpfs", small], capture_output=True)
        if mounted.returncode != 0:
            print("  skipped: a full disk needs the right to mount a tmpfs")
            break
        try:
            output = small / "out.h5"
            text = check(series.run(output), [1, 3], f"disk of {fraction} of the output")
            expect_text(text, ["No space left"], "full disk")
            series.check_truth(output)
            if list(small.iterdir()):
                raise Failure(f"a disk that was full keeps {list(small.iterdir())}")
            subprocess.run(["mount", "-o", f"remount,size={2 * full}", small], check=True)
            series.check_finished(output, "a full disk")
        finally:
            subprocess.run(["umount", small], check=True)
        count(f"disk of {fraction} of the output", True)
    for kind in ("no_space", "write_error"):
        for call in (1, 20, 60, 120, 250, 400, 600):
            output = series.folder / "limited.h5"
            outcome = series.run(output, inject={"PS_INJECT": f"{kind}:{call}", "PS_INJECT_PATH": "limited.h5"})
            text = check(outcome, [0, 1, 3], f"{kind} at write {call}")
            if outcome[0] != 0:
                expect_text(text, ["No space left", "Input/output error", "write"], f"{kind} at write {call}")
            series.check_truth(output)
            series.check_finished(output, f"{kind} at write {call}")
            count(f"{kind} at write {call}: exit {outcome[0]}", outcome[0] != 0)
            output.unlink()
    output = series.folder / "absent" / "out.h5"
    check(series.run(output), [1, 2], "output in a folder that is not there")
    count("output folder missing", True)


def test_read(series, choose, arguments, count):
    for kind, calls in (("read_error", (1, 2, 5, 9)), ("short_read", (1, 2, 3, 5, 8))):
        for call in calls:
            output = series.folder / "unread.h5"
            outcome = series.run(output, inject={"PS_INJECT": f"{kind}:{call}", "PS_INJECT_PATH": "frame_003_data_"})
            check(outcome, [0, 3, 4], f"{kind} at read {call}")
            states = series.check_truth(output)
            if kind == "read_error" and FAILED not in states and outcome[0] != 4:
                raise Failure(f"{kind} at read {call}: no frame is called failed: {states}")
            series.check_finished(output, f"{kind} at read {call}") if output.exists() else None
            count(f"{kind} at read {call}: exit {outcome[0]}, {states.count(FAILED)} failed", True)
            output.unlink(missing_ok=True)


def test_memory(series, choose, arguments, count):
    for bytes_ in (1, 4096, 65536):
        for call in sorted(choose.sample(range(1, 60), 4)):
            output = series.folder / "starved.h5"
            inject = {"PS_INJECT": f"malloc:{call}", "PS_INJECT_BYTES": str(bytes_)}
            outcome = series.run(output, inject=inject)
            check(outcome, [0, 1, 2, 3, 4], f"malloc {call} of at least {bytes_} bytes fails")
            series.check_truth(output)
            series.check_finished(output, f"malloc {call} of {bytes_}")
            count(f"malloc {call} of at least {bytes_} bytes: exit {outcome[0]}", outcome[0] != 0)
            output.unlink()


def test_room(series, choose, arguments, count):
    """Memory that does not do: fewer frames at a time and the same bytes; a refusal before anything is made; blame only where it is due."""
    for ranks in (1, 3):
        output = series.folder / "narrow.h5"
        for call in (1, 2, 5, 11, 12, 20):  # one array of a system, a frame or a reduction that cannot be had
            inject = {"PS_INJECT": f"aligned:{call}", "PS_INJECT_BYTES": "60000"}
            what = f"aligned allocation {call} fails once, {ranks} ranks"
            text = check(series.run(output, ranks=ranks, inject=inject), [0], what)
            if series.check_truth(output) != [DONE] * N_FRAMES:
                raise Failure(f"{what}: not every frame is done:\n{text}")
            count(what, "trying again" in text)
            output.unlink()
        inject = {"PS_INJECT": "aligned_room:1", "PS_INJECT_BYTES": "400000"}  # less than g of one frame, which each has for itself
        what = f"no room for two frames at a time, {ranks} ranks"
        text = check(series.run(output, ranks=ranks, inject=inject), [0], what)
        expect_text(text, ["trying again with 1 at a time"], what)
        if series.check_truth(output) != [DONE] * N_FRAMES:
            raise Failure(f"{what}: not every frame is done:\n{text}")
        count(what, True)
        output.unlink()
        inject = {"PS_INJECT": "aligned:1", "PS_INJECT_TIMES": "0", "PS_INJECT_BYTES": "200000"}  # what one frame needs
        what = f"no room for one frame, {ranks} ranks"
        text = check(series.run(output, ranks=ranks, inject=inject), [1], what)
        expect_text(text, ["gave its frames back: no memory even for one frame at a time"], what)
        if series.check_truth(output) != [PENDING] * N_FRAMES:
            raise Failure(f"{what}: a frame was blamed:\n{text}")
        series.check_finished(output, what)
        count(what, True)
        output.unlink()
    refuse_what_does_not_fit(series, count)


def refuse_what_does_not_fit(series, count):
    """From much to little address space: done, then refused with numbers, and nothing in between."""
    for ranks in (1, 3):
        n_done = n_refused = 0
        for mebibytes in range(1000, 250, -50):
            output = series.folder / "limited.h5"
            status, text = series.run(output, ranks=ranks, address_space_KiB=mebibytes * 1024)
            what = f"{mebibytes} MiB of address space, {ranks} ranks"
            if "does not fit into memory" in text:
                check((status, text), [2], what)
                expect_text(text, ["ulimit -v"], what)
                n_refused += 1
            elif status == 0:
                n_done += 1
                if series.check_truth(output) != [DONE] * N_FRAMES:
                    raise Failure(f"{what}: not every frame is done:\n{text}")
            else:
                break  # not even MPI starts
            if output.exists() == (status != 0):
                raise Failure(f"{what}: exit status {status}, and the output {'exists' if status else 'is missing'}:\n{text}")
            output.unlink(missing_ok=True)
        if not n_done or not n_refused:
            raise Failure(f"{ranks} ranks: {n_done} limits sufficed and {n_refused} were refused, expected some of both")
        count(f"address space of 1000 MiB and less, {ranks} ranks: {n_done} times done, {n_refused} times refused", True)


def test_data(series, choose, arguments, count):
    files = sorted(series.folder.glob("**/*_data_*.h5"))
    victim = files[3]
    whole = victim.read_bytes()
    damages = {"missing": None, "truncated": whole[: len(whole) // 2], "empty": b""}
    for i in range(4):
        damaged = bytearray(whole)
        for _ in range(40):
            damaged[choose.randrange(len(whole) // 3, len(whole))] ^= 1 << choose.randrange(8)
        damages[f"flipped bits {i}"] = bytes(damaged)
    for name, content in damages.items():
        output = series.folder / "damaged.h5"
        victim.unlink()
        if content is not None:
            victim.write_bytes(content)
        text = check(series.run(output), [0, 3], f"data file {name}")
        states = series.check_truth(output) if not name.startswith("flipped") else states_of(output)
        if not name.startswith("flipped") and states.count(FAILED) != 1:
            raise Failure(f"data file {name}: states {states}, expected one failed frame:\n{text}")
        if FAILED in states:
            expect_text(text, [victim.name], f"data file {name}")
        victim.write_bytes(whole)
        count(f"data file {name}: {states.count(FAILED)} failed, the others done", True)
        if not name.startswith("flipped"):
            shutil.copystat(files[2], victim)
            series.check_finished(output, f"data file {name}")
        output.unlink()


def test_library(series, choose, arguments, count):
    """The HDF5 library crashes on a recording: whenever it is opened, or (later) only where nothing looked at it before."""
    output, victim = series.folder / "crashed.h5", "frame_003_master.h5"
    inject = {"PS_INJECT": "hdf5_crash:1", "PS_INJECT_PATH": victim}
    for ranks in (1, 3):
        text = check(series.run(output, ranks=ranks, inject=inject), [3], f"crash at the first look, {ranks} ranks")
        expect_text(text, [f"{victim}: the HDF5 library crashes on it (SIGSEGV): the file is damaged"], "crash at the first look")
        states = series.check_truth(output)
        if states != [FAILED if frame == 3 else DONE for frame in range(N_FRAMES)]:
            raise Failure(f"crash at the first look: states {states}:\n{text}")
        series.check_finished(output, "crash at the first look")
        count(f"crash at the first look, {ranks} ranks: one frame failed", True)
        output.unlink()
    for call in (4, 5):
        inject["PS_INJECT"] = f"hdf5_crash:{call}"
        status, text = series.run(output, ranks=1, inject=inject)
        if status != 0:
            expect_text(text, [f"the HDF5 library crashed (SIGSEGV) on {series.folder}/input/{victim}"], f"crash at open {call}")
        series.check_truth(output)
        check(series.run(output, ["--resume"]), [0], f"resume after a crash at open {call}")
        count(f"crash at open {call}: exit {status}, resumed", status != 0)
        output.unlink()


def test_device(series, choose, arguments, count):
    output = series.folder / "lost.h5"

    def lose(ranks, after, allowed, what, n_ranks=2, fault="device"):
        os.environ.update(PS_LOST=fault, PS_LOST_RANKS=str(ranks), PS_LOST_AFTER=str(after))
        return check(series.run(output, ["--resume"], ranks=n_ranks), allowed, what)

    def expect_states(expected, what, text):
        states = series.check_truth(output)
        if states != expected:
            raise Failure(f"{what}: states {states}, expected {expected}:\n{text}")

    def finish_it(what):
        lose(0, 0, [0], f"resume after {what}")
        expect_states([DONE] * N_FRAMES, f"resume after {what}", "")
        output.unlink()

    for ranks, after in ((2, 0), (2, 2), (1, 1)):
        what = f"ranks of mask {ranks} lose their device after {after} frames"
        text = lose(ranks, after, [0], what)
        expect_text(text, ["gave its frames back: the device fell off the bus"], what)
        expect_states([DONE] * N_FRAMES, what, text)
        count(what, True)
        output.unlink()
    lose(7, 1, [1], "every device is lost", n_ranks=3)
    n_done = series.check_truth(output).count(DONE)
    if not 0 < n_done < N_FRAMES:
        raise Failure(f"every device lost: {n_done} frames done, expected some")
    finish_it("every device was lost")
    count(f"every device lost after {n_done} frames: exit 1", True)

    for n_ranks in (1, 3):
        what = f"a group's system cannot be made, {n_ranks} ranks"
        text = lose(7, 0, [3], what, n_ranks, "system")
        expect_text(text, ["failed: these optics make no system"], what)
        expect_states([FAILED] * N_FRAMES, what, text)
        count(f"{what}: its frames failed", True)
        output.unlink()
        what = f"no memory for a system, {n_ranks} ranks"
        text = lose(7, 0, [1], what, n_ranks, "memory")
        expect_text(text, ["gave its frames back: no memory even for one frame at a time", "no memory for a system"], what)
        expect_states([PENDING] * N_FRAMES, what, text)
        finish_it(what)
        count(f"{what}: no frame was blamed", True)
        what = f"memory for one frame at a time, {n_ranks} ranks"
        expect_states([DONE] * N_FRAMES, what, lose(7, 0, [0], what, n_ranks, "batch"))
        count(f"{what}: all done", True)
        output.unlink()
    what = "no memory for a system on one of three ranks"
    text = lose(2, 0, [0], what, 3, "memory")
    expect_states([DONE] * N_FRAMES, what, text)
    count(f"{what}: the others did its frames", True)
    output.unlink()
    what = "the first scales are not numbers"
    text = lose(1, 2, [3], what, 1, "scales")  # for the batch, then for its first frame alone
    if series.check_truth(output).count(FAILED) != 1:
        raise Failure(f"{what}: expected one failed frame:\n{text}")
    with h5py.File(output, "r") as file, h5py.File(series.expected_path, "r") as expected:
        for name in ("weights", "scale_phase"):
            if file["entry/optics_0"][name][()].tobytes() != expected["entry/optics_0"][name][()].tobytes():
                raise Failure(f"{what}: optics_0/{name} is not written by the next frame")
    count(f"{what}: one frame failed, the next has them written", True)
    output.unlink()
    for ranks, after in ((2, 1), (1, 9), (4, 20)):
        what = f"MPI fails in look {after} at the queue on ranks of mask {ranks}"
        text = lose(ranks, after, [1], what, 3, "queue")
        expect_text(text, ["cannot go on and cannot tell the others"], what)
        series.check_truth(output)
        finish_it(what)
        count(f"{what}: all ranks ended, resumed", True)


def states_of(path):
    with h5py.File(path, "r") as file:
        return file["entry/frames/state"][()].tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("program", "inject", "series", "group"):
        parser.add_argument(name)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=30)
    arguments = parser.parse_args()
    groups = {"kill": test_kill, "signals": test_signals, "space": test_space, "read": test_read, "memory": test_memory, "room": test_room, "data": test_data,
              "library": test_library, "device": test_device}
    n_tried = n_struck = 0

    def count(text, struck):
        nonlocal n_tried, n_struck
        n_tried += 1
        n_struck += struck
        print(f"  survived: {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="ptyseries-faults-") as folder:
        os.environ.update(PS_LOST="device", PS_LOST_RANKS="0", PS_LOST_AFTER="0")
        try:
            series = Series(arguments, Path(folder))
            groups[arguments.group](series, random.Random(arguments.seed), arguments, count)
        except Failure as failure:
            print(f"after {n_tried} faults survived: {failure}", file=sys.stderr)
            return 1
    print(f"{arguments.group}: {n_tried} faults tried, {n_struck} struck while the run was at work, all survived (seed {arguments.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
