#!/usr/bin/env python3
"""Frames that kill their process or lose their device: they are found, failed with the reason, and everything else is done.

usage: attempts.py PROGRAM (the one of killing_frame.c)
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "program"))
import h5py
import numpy
from program import IN_DISC, JOB, Output, check, main, recording, same, says

N_FRAMES, FIRST_COUNT = 9, 60000
PENDING, DONE, FAILED = 0, 1, 2
KILLED = (-9, 137)


def save_series(folder, n_frames=N_FRAMES):
    """Each frame has a first count of its own, far from the disc, by which it is told apart."""
    folder.save_job({**JOB, "series": {**JOB["series"], "files": ["frame_*.npy"]}})
    for frame in range(n_frames):
        counts = recording(frame + 1)
        counts[0, 0, 0] = FIRST_COUNT + frame
        folder.save(f"frame_{frame}.npy", counts)


def run(folder, *extra, deadly=None, how="kill", ranks=None, status=(0,), output="out.h5", slow_ms=0):
    """One start with --resume, with a frame that ends it in some way; what it printed."""
    launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    environment = {**os.environ, "PS_KILL_HOW": how, "PS_KILLING_COUNT": str(FIRST_COUNT + deadly) if deadly is not None else "-1"}
    if slow_ms:
        environment["PS_REDUCE_MS"] = str(slow_ms)
    done = subprocess.run([*launcher, folder.program, "run", "job.json", "--set", f"output.file={output}", "--resume", *extra],
                          cwd=folder.path, env=environment, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    check(done.returncode in status, f"{how} by frame {deadly} on {ranks} ranks: exit status {done.returncode}, expected {status}\n{text}")
    return text


def rows(folder):
    with h5py.File(folder.path / "out.h5", "r") as file:
        frames = file["entry/frames"]
        return frames["state"][()].tolist(), frames["attempts"][()].tolist(), [text.decode() for text in frames["error"][()]]


def what_the_first_showed_is_there_from_the_start(folder):
    """Killed at the very first frame, whose recording cannot be read afterwards: others are held against its disc and lack its dead pixel."""
    folder.save_job({**JOB, "series": {**JOB["series"], "files": ["frame_*.npy"]}})
    for frame in range(N_FRAMES):
        counts = numpy.roll(recording(frame + 1), {1: 1, 4: 2, 5: -1}.get(frame, 0), axis=2)
        if frame == 0:
            counts[:, IN_DISC[0], IN_DISC[1]] = 0
        counts[0, 0, 0] = FIRST_COUNT + frame
        folder.save(f"frame_{frame}.npy", counts)
    text = run(folder, output="expected.h5", status=(3,))
    expected = Output(folder.path / "expected.h5", text)
    check(expected.state() == [FAILED if frame == 4 else DONE for frame in range(N_FRAMES)], f"states {expected.state()}")
    check(expected.optics["n_bad_dead"] == 1, "no dead pixel")
    for ranks in (None, 3):
        (folder.path / "out.h5").unlink(missing_ok=True)
        run(folder, deadly=0, ranks=ranks, status=KILLED)
        whole = (folder.path / "frame_0.npy").read_bytes()
        (folder.path / "frame_0.npy").write_bytes(b"damaged")
        found = Output(folder.path / "out.h5", run(folder, ranks=ranks, status=(3,)))
        (folder.path / "frame_0.npy").write_bytes(whole)
        check(found.state() == [FAILED if frame in (0, 4) else DONE for frame in range(N_FRAMES)], f"states {found.state()}\n{found.text}")
        same(found, expected, list(range(1, N_FRAMES)), f"without the first, {ranks} ranks")
        check(found.error(4) == expected.error(4), f"{found.error(4)}, expected {expected.error(4)}")


def expected_output(folder):
    text = run(folder, output="expected.h5")
    return Output(folder.path / "expected.h5", text)


def check_found(folder, expected, deadly, text, what):
    """The deadly frame failed for its count, all others have the bytes of an undisturbed run."""
    state, attempts, errors = rows(folder)
    check(state == [FAILED if frame == deadly else DONE for frame in range(N_FRAMES)], f"{what}: states {state}\n{text}")
    check(attempts == [2 if frame == deadly else 0 for frame in range(N_FRAMES)], f"{what}: attempts {attempts}")
    says(errors[deadly], "began 2 times and never ended: killed its process or device")
    same(Output(folder.path / "out.h5", text), expected, [frame for frame in range(N_FRAMES) if frame != deadly], what)


def check_retried(folder, expected, what, ranks=None):
    """Whatever it was is over: --retry-failed begins to count anew."""
    text = run(folder, "--retry-failed", ranks=ranks)
    state, attempts, _ = rows(folder)
    check(state == [DONE] * N_FRAMES and not any(attempts), f"{what}, once more: states {state}, attempts {attempts}\n{text}")
    same(Output(folder.path / "out.h5", text), expected, list(range(N_FRAMES)), f"{what}, once more")


def a_frame_that_kills_its_process_is_found(folder):
    save_series(folder)
    expected = expected_output(folder)
    for ranks in (None, 3):
        for deadly in (0, 4, 8):
            what = f"frame {deadly} kills on {ranks} ranks"
            (folder.path / "out.h5").unlink(missing_ok=True)
            run(folder, deadly=deadly, ranks=ranks, status=KILLED)
            state, attempts, _ = rows(folder)
            check(attempts[deadly] == 1 and max(attempts) == 1 and FAILED not in state, f"{what}: {state} {attempts}")
            says(run(folder, deadly=deadly, ranks=ranks, status=KILLED), "tried last, one at a time")
            state, attempts, _ = rows(folder)
            check(attempts[deadly] == 2 and sorted(attempts)[-2] < 2 and FAILED not in state, f"{what}, again: {state} {attempts}")
            check_found(folder, expected, deadly, run(folder, deadly=deadly, ranks=ranks, status=(3,)), what)
            check_retried(folder, expected, what, ranks)


def a_frame_that_loses_devices_is_found(folder):
    """One rank after the other loses its device; with a third one left, one start is enough. When none is left, that counts once."""
    save_series(folder)
    expected = expected_output(folder)
    for deadly in (0, 4, 8):
        what = f"frame {deadly} loses devices"
        (folder.path / "out.h5").unlink(missing_ok=True)
        for status in ((1,), (1,), (3,)):
            text = run(folder, deadly=deadly, how="device", status=status)
        check_found(folder, expected, deadly, text, what)
        (folder.path / "out.h5").unlink()
        text = run(folder, deadly=deadly, how="device", ranks=3, status=(3,))
        check(text.count("gave its frames back") == 2, f"{what} on 3 ranks:\n{text}")
        check_found(folder, expected, deadly, text, f"{what} on 3 ranks")
        check_retried(folder, expected, what, 3)
        (folder.path / "out.h5").unlink()
        run(folder, deadly=deadly, how="device", ranks=2, status=(1,))
        state, attempts, _ = rows(folder)
        check(state.count(PENDING) >= 1 and max(attempts) == attempts[deadly] == 1, f"{what} on 2 ranks: {state} {attempts}")
        check_found(folder, expected, deadly, run(folder, deadly=deadly, how="device", ranks=2, status=(3,)), f"{what} on 2 ranks")


def a_polite_stop_counts_nothing(folder):
    save_series(folder)
    expected = expected_output(folder)
    for ranks in (None, 3):
        (folder.path / "out.h5").unlink(missing_ok=True)
        for _ in range(4):
            text = run(folder, deadly=2, how="stop", ranks=ranks, status=(75,))
            state, attempts, _ = rows(folder)
            check(not any(attempts) and FAILED not in state and PENDING in state, f"{ranks} ranks: {state} {attempts}\n{text}")
        check_retried(folder, expected, "a polite stop", ranks)


def kills_at_different_frames_blame_none(folder):
    """Whatever kills a job from outside meets other frames each time; those in hand are tried alone later and are done."""
    n_frames = 30
    save_series(folder, n_frames)
    expected = expected_output(folder)
    for ranks in (None, 3):
        (folder.path / "out.h5").unlink(missing_ok=True)
        run(folder, deadly=0, ranks=ranks, status=KILLED, slow_ms=400)
        state, attempts, _ = rows(folder)
        others = [frame for frame in range(n_frames) if attempts[frame] == 0 and state[frame] == PENDING]
        check(others, f"{ranks} ranks: every frame was in hand")
        run(folder, deadly=others[-1], ranks=ranks, status=KILLED, slow_ms=10)
        state, attempts, _ = rows(folder)
        check(max(attempts) == 1 and attempts[0] == 1 and attempts.count(1) > 2, f"{ranks} ranks: {state} {attempts}")
        text = run(folder, ranks=ranks)
        state, attempts, _ = rows(folder)
        check(state == [DONE] * n_frames and not any(attempts), f"{ranks} ranks: {state} {attempts}\n{text}")
        same(Output(folder.path / "out.h5", text), expected, list(range(n_frames)), "different frames")


if __name__ == "__main__":
    sys.exit(main([a_frame_that_kills_its_process_is_found, a_frame_that_loses_devices_is_found, a_polite_stop_counts_nothing,
                   kills_at_different_frames_blame_none, what_the_first_showed_is_there_from_the_start]))
