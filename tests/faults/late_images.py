#!/usr/bin/env python3
"""Results on their way to the output: through a queue with room for few images, from a device whose images arrive late, never or bad, and
with a stop in between. Whatever happens, done frames hold the bytes of an undisturbed run of the program itself, and no frame is lost.

usage: late_images.py PROGRAM LATE_PROGRAM INJECT_LIBRARY
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "program"))
import h5py
from program import JOB, check, main, recording, says

N_FRAMES = 5
PENDING, DONE, FAILED = 0, 1, 2
STRENGTHS = [0.01, {"amplitude": 0.02, "phase": 0.01}, 0.1, {"amplitude": 0.2, "phase": 0.1}, 0.3, 0.5, 0.9]
METHODS = {"ssb": {"estimator": "phase"}, "mf": {}, "phase": {"strength": [0.01 * 1.3**i for i in range(11)]}, "complex": {"strength": STRENGTHS}}
IMAGES_PER_FRAME = 1 + 1 + 11 + 2 * 7
LATE = INJECT = None


def save_series(folder, methods=METHODS):
    folder.save_job({**JOB, "series": {**JOB["series"], "files": ["frame_*.npy"]}, "methods": methods})
    for frame in range(N_FRAMES):
        folder.save(f"frame_{frame}.npy", recording(frame + 1))


def run(folder, program, output, *extra, ranks=None, status=0, preload=(), **environment):
    launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    command = [*launcher, *(["env", f"LD_PRELOAD={INJECT}", *preload] if preload else []), program, "run", "job.json", "--set", f"output.file={output}"]
    done = subprocess.run([*command, *extra], cwd=folder.path, env={**os.environ, "PS_IMAGES": "2", **environment}, capture_output=True, text=True,
                          timeout=120, check=False)
    text = done.stdout + done.stderr
    check(done.returncode == status, f"{environment} on {ranks} ranks: exit status {done.returncode}, expected {status}\n{text}")
    return text


def results(folder, output):
    """{dataset: its rows} of all results and checksums, and the states."""
    with h5py.File(folder.path / output, "r") as file:
        entry, found = file["entry"], {}
        for method in METHODS:
            for name in entry.get(method, {}):
                values = entry[method][name]
                if isinstance(values, h5py.Dataset) and values.shape[:1] == (N_FRAMES,) and name not in ("frame",):
                    found[f"{method}/{name}"] = [values[i].tobytes() for i in range(N_FRAMES)]
        for name in ("crc32", "dose", "data_norm"):
            found[name] = [entry["frames"][name][i].tobytes() for i in range(N_FRAMES)]
        return found, entry["frames/state"][()].tolist(), entry["frames/attempts"][()].tolist(), [t.decode() for t in entry["frames/error"][()]]


def same(folder, output, expected, states, what):
    found, found_states, attempts, _ = results(folder, output)
    check(found_states == states, f"{what}: states {found_states}, expected {states}")
    check(found.keys() == expected.keys(), f"{what}: {found.keys() ^ expected.keys()}")
    for name, rows in found.items():
        for frame in range(N_FRAMES):
            check(states[frame] != DONE or rows[frame] == expected[name][frame], f"{what}: {name} of frame {frame} differs")
    check(all(n == 0 for n, state in zip(attempts, states) if state != PENDING), f"{what}: attempts {attempts}")


def expected_results(folder, methods=METHODS):
    save_series(folder, methods)
    run(folder, folder.program, "expected.h5")
    found, states, _, _ = results(folder, "expected.h5")
    check(states == [DONE] * N_FRAMES and len(found) > 8, f"states {states}, results {list(found)}")
    return found


def few_images_at_a_time_give_the_same(folder):
    expected = expected_results(folder)
    for ranks in (None, 1, 3):
        for n in (2, 3, 5, 64):
            run(folder, LATE, "out.h5", "--overwrite", ranks=ranks, PS_IMAGES=str(n))
            same(folder, "out.h5", expected, [DONE] * N_FRAMES, f"{n} images, {ranks} ranks")
        for n in (2, 2 * IMAGES_PER_FRAME, 64):
            run(folder, LATE, "out.h5", "--overwrite", ranks=ranks, PS_IMAGES=str(n), PS_AS_DEVICE="1")
            same(folder, "out.h5", expected, [DONE] * N_FRAMES, f"{n} images as on a device, {ranks} ranks")


def one_thread_of_mpi_gives_the_same(folder):
    expected = expected_results(folder)
    for ranks in (None, 3):
        run(folder, LATE, "out.h5", "--overwrite", ranks=ranks, PS_IMAGES="3", PS_FEW_THREADS="1")
        same(folder, "out.h5", expected, [DONE] * N_FRAMES, f"one thread, {ranks} ranks")


def images_that_never_arrive_lose_the_device(folder):
    """What arrived before is written; the frame that it belongs to and those behind it are given back, and others do them."""
    expected = expected_results(folder)
    for threads in ({}, {"PS_FEW_THREADS": "1"}):
        for image in (1, 2, IMAGES_PER_FRAME, IMAGES_PER_FRAME + 5, 2 * IMAGES_PER_FRAME):
            lost = {"PS_LOST_IMAGE": str(image), "PS_LATE_RANKS": "1", "PS_IMAGES": "4", **threads}
            text = run(folder, LATE, "out.h5", "--overwrite", status=1, **lost)
            says(text, "the device fell off the bus with an image")
            n_done = (image - 1) // IMAGES_PER_FRAME
            found, states, attempts, _ = results(folder, "out.h5")
            check(states == [DONE] * n_done + [PENDING] * (N_FRAMES - n_done), f"image {image} lost: states {states}")
            check(attempts[n_done] == 1, f"image {image} lost: attempts {attempts}")
            run(folder, LATE, "out.h5", "--resume")
            same(folder, "out.h5", expected, [DONE] * N_FRAMES, f"image {image} lost and resumed")
            if image > IMAGES_PER_FRAME:
                continue
            says(run(folder, LATE, "out.h5", "--overwrite", ranks=3, **lost), "gave its frames back", "fell off the bus")
            same(folder, "out.h5", expected, [DONE] * N_FRAMES, f"image {image} lost on one of three ranks")
    waiting = {"PS_LOST_IMAGE": str(IMAGES_PER_FRAME), "PS_LATE_RANKS": "1", "PS_IMAGES": "64"}
    slow = ("PS_INJECT_PATH=out.h5", "PS_INJECT_WRITE_US=3000")
    says(run(folder, LATE, "out.h5", "--overwrite", ranks=3, preload=slow, **waiting), "gave its frames back", "fell off the bus")
    same(folder, "out.h5", expected, [DONE] * N_FRAMES, "a whole frame waited to be written")


def a_bad_image_fails_its_frame(folder):
    expected = expected_results(folder)
    for threads in ({}, {"PS_FEW_THREADS": "1"}):
        for frame, image in ((0, 1), (1, 5), (3, IMAGES_PER_FRAME)):
            bad = {"PS_BAD_IMAGE": str(frame * IMAGES_PER_FRAME + image), "PS_LATE_RANKS": "1", "PS_IMAGES": "3", **threads}
            says(run(folder, LATE, "out.h5", "--overwrite", status=3, **bad), "holds a value that is not finite")
            states = [FAILED if i == frame else DONE for i in range(N_FRAMES)]
            same(folder, "out.h5", expected, states, f"image {image} of frame {frame} bad")
            says(results(folder, "out.h5")[3][frame], "holds a value that is not finite")
            run(folder, LATE, "out.h5", "--resume", "--retry-failed")
            same(folder, "out.h5", expected, [DONE] * N_FRAMES, f"image {image} of frame {frame} once more")


def what_is_computed_is_written_before_a_stop(folder):
    """Writing is slow, so that results wait when the signal comes."""
    expected = expected_results(folder)
    slow = ("PS_INJECT_PATH=out.h5", "PS_INJECT_WRITE_US=3000")
    for ranks, frame in ((None, 4), (3, 1)):  # alone, the first three are a batch on the host
        for device in ({}, {"PS_AS_DEVICE": "1"}):
            text = run(folder, LATE, "out.h5", "--overwrite", ranks=ranks, status=75, preload=slow, PS_STOP_FRAME=str(frame), PS_LATE_RANKS="1",
                       PS_IMAGES="64", **device)
            says(text, "SIGTERM", "--resume")
            _, states, attempts, _ = results(folder, "out.h5")
            check(FAILED not in states and not any(attempts), f"stopped in frame {frame}: states {states}, attempts {attempts}")
            if ranks is None:
                check(states == [DONE] * 3 + [PENDING] * 2, f"stopped while frame {frame} was reduced: states {states}\n{text}")
            run(folder, LATE, "out.h5", "--resume", ranks=ranks)
            same(folder, "out.h5", expected, [DONE] * N_FRAMES, f"stopped in frame {frame}")


def a_full_disk_ends_the_rank(folder):
    """From some write on there is no space: the message and the status are those of the write, and what is done is whole."""
    expected = expected_results(folder)
    for threads in ({}, {"PS_FEW_THREADS": "1"}):
        for call in (60, 90, 130, 180):
            full = ("PS_INJECT_PATH=out.h5", f"PS_INJECT=no_space:{call}")
            (folder.path / "out.h5").unlink(missing_ok=True)
            text = run(folder, LATE, "out.h5", status=1, preload=full, PS_IMAGES="5", **threads)
            says(text, "No space left")
            if (folder.path / "out.h5").exists():
                found, states, _, _ = results(folder, "out.h5")
                check(FAILED not in states, f"no space from write {call} on: states {states}\n{text}")
                same(folder, "out.h5", expected, states, f"no space from write {call} on")
                run(folder, LATE, "out.h5", "--resume")
                same(folder, "out.h5", expected, [DONE] * N_FRAMES, f"no space from write {call} on, resumed")


if __name__ == "__main__":
    LATE, INJECT = sys.argv[2:4]
    del sys.argv[2:4]
    sys.exit(main([few_images_at_a_time_give_the_same, one_thread_of_mpi_gives_the_same, images_that_never_arrive_lose_the_device, a_bad_image_fails_its_frame,
          what_is_computed_is_written_before_a_stop, a_full_disk_ends_the_rank]))
