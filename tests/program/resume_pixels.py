#!/usr/bin/env python3
"""Going on with an output when the recordings that dead pixels, discs and groups were found in cannot be read any more: nothing changes."""
import shutil
import sys

import h5py
import numpy
from program import IN_DISC, OPTICS, check, main, recording, same, says
from resume import N_FRAMES, hide, job, resume, save_series, show

OF_A_RUN = {"process", "rank", "host", "device", "written_at", "seconds", "peak_memory_bytes", "state", "note"}
HOT = {"hot_sigma": 8}
turn = 0


def everything(path):
    """Every dataset of an output that does not tell of the run or of the machine."""
    found = {}

    def visit(name, item):
        parts = name.split("/")
        if isinstance(item, h5py.Dataset) and not parts[1].startswith("process") and parts[-1] not in OF_A_RUN:
            found[name] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


def same_file(folder, what, but=()):
    """All of out.h5 is as in expected.h5, but for rows of the frames `but`, which are not done, and for what the drift then is between the others."""
    found, expected = everything(folder.path / "out.h5"), everything(folder.path / "expected.h5")
    check(set(found) == set(expected), f"{what}: other datasets: {set(found) ^ set(expected)}")
    for name, values in expected.items():
        if but and name.startswith("entry/drift/"):
            continue
        a, b = numpy.asarray(found[name]), numpy.asarray(values)
        if b.ndim > 0 and b.shape[0] == N_FRAMES:
            keep = [frame for frame in range(N_FRAMES) if frame not in but]
            a, b = a[keep], b[keep]
        check(a.shape == b.shape and a.tobytes() == b.tobytes(), f"{what}: {name} differs")


def pending(folder, frames):
    """These frames are as a run leaves them that was killed before it came to them; the first of a group has its disc from the start."""
    with h5py.File(folder.path / "out.h5", "r+") as file:
        entry = file["entry"]
        starts = [entry["frames/optics"][()].tolist().index(group) for group in set(entry["frames/optics"][()].tolist())]
        for frame in frames:
            kept = ("n_hot", "n_dead", "disc_row", "disc_column", "disc_radius") if frame in starts else ()
            for name in ("state", "crc32", "n_excluded", "error", "n_hot", "n_dead", "disc_row", "disc_column", "disc_radius", "dose", "power"):
                if name not in kept:
                    entry["frames"][name][frame] = b"" if name == "error" else 0
            for name in ("ssb/phase", "phase/phase", "complex/phase", "complex/log_amplitude", "phase/residual", "complex/residual"):
                entry[name][frame] = 0


def stays(folder, names, what, hidden=(0, ), left=(4, 5), status=0):
    """Stopped with the frames `left` to do; then the recordings `hidden` cannot be read; then those are there again. On 1 and 3 ranks in turn."""
    global turn
    groups = everything(folder.path / "expected.h5")["entry/frames/optics"].tolist()
    check(len(set(groups)) == 1 + max(groups), f"groups {groups}")
    turn += 1
    for ranks in (None, 3) if turn == 1 else ((None, 3)[turn % 2],):
        shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
        pending(folder, left)
        lost = [frame for frame in hidden if frame in left]
        for frame in hidden:
            hide(folder, names[frame][1])
        found = resume(folder, ranks=ranks, status=3 if lost else status)
        for frame in hidden:
            show(folder, names[frame][1])
        same_file(folder, f"{what}, {ranks} ranks, without {hidden}\n{found.text}", lost)
        if lost:
            resume(folder, ranks=ranks, extra=["--retry-failed"], status=status)
            same_file(folder, f"{what}, {ranks} ranks, with {hidden} again")


def run_expected(folder, n_dead=None, status=0):
    expected = folder.run(output="expected.h5", status=status)
    if n_dead is not None:
        check(expected.optics["n_bad_dead"] == n_dead, f"{expected.optics['n_bad_dead']} dead pixels, expected {n_dead}")
    return expected


def with_pixels(pixels):
    """A maker of recordings of seeds 1 ...; pixels: {seed: [(row, column, value), ...]}, seed 0: all others."""
    def make(seed):
        counts = recording(seed)
        for row, column, value in pixels.get(seed, pixels.get(0, [])):
            counts[:, row, column] = value
        return counts
    return make


DEAD, OTHER, THIRD = (*IN_DISC, 0), (10, 8, 0), (11, 9, 0)


def dead_pixels_belong_to_the_file(folder):
    names = save_series(folder, with_pixels({0: [DEAD, OTHER]}))
    run_expected(folder, 2)
    stays(folder, names, "dead pixels")
    stays(folder, names, "dead pixels", hidden=(0, 1))
    stays(folder, names, "dead pixels", left=(0, 2, 5))
    stays(folder, names, "dead pixels", hidden=(0, 2), left=range(N_FRAMES))


def a_gap_belongs_to_the_file(folder):
    def cross(value):
        def make(seed):
            counts = recording(seed)
            counts[:, 8:10, :] = counts[:, :, 11:13] = value
            return counts
        return make

    for value in (0, 65535):
        names = save_series(folder, cross(value))
        check(run_expected(folder).optics["n_bad_dead"] > 20, "no gap was found")
        stays(folder, names, f"a gap of {value}")


def pixels_of_one_recording_stay_its_own(folder):
    """Dead or hot in the first only, in a later one only, in both but elsewhere; done before or after."""
    cases = (({1: [DEAD]}, 1, [0] * 6),
             ({6: [DEAD]}, 0, [0, 0, 0, 0, 0, 1]),
             ({1: [DEAD], 2: [OTHER], 5: [OTHER, THIRD]}, 1, [0, 1, 0, 0, 2, 0]),
             ({2: [(*IN_DISC, 5000)], 6: [(*IN_DISC, 5000)]}, 0, [0, 1, 0, 0, 0, 1]),
             ({1: [(*IN_DISC, 5000), OTHER], 5: [THIRD, (*IN_DISC, 4000)]}, 1, [0, 0, 0, 0, 1, 0]))
    for pixels, n_dead, excluded in cases:
        names = save_series(folder, with_pixels(pixels), job(bad_pixels=HOT))
        found = run_expected(folder, n_dead).frames["n_excluded"].tolist()
        check(found == excluded, f"{pixels}: n_excluded {found}")
        stays(folder, names, f"{pixels}")
        stays(folder, names, f"{pixels}", left=(1, 4, 5))
        stays(folder, names, f"{pixels}", hidden=(0, 4), left=(0, 1, 5))


def masks_and_dead_pixels(folder):
    """A mask file that names one of the dead pixels; a marker that one frame has."""
    def make(seed):
        counts = with_pixels({0: [DEAD, OTHER]})(seed)
        if seed in (2, 5):
            counts[3, 8, 8] = 65535
        return counts

    mask = numpy.zeros(recording(1).shape[1:], "uint8")
    mask[IN_DISC] = mask[0, 0] = 1
    folder.save("mask.npy", mask)
    names = save_series(folder, make, job(bad_pixels={"mask": "mask.npy", **HOT}))
    check(run_expected(folder, 1).frames["n_excluded"].tolist() == [0, 1, 0, 0, 1, 0], "no frame with markers")
    stays(folder, names, "masks")
    stays(folder, names, "masks", left=(0, 1, 4))


def groups_keep_their_own(folder):
    """Recordings with masks of their own, each group with dead pixels of its own, the first of each hidden."""
    names = save_series(folder, with_pixels({1: [DEAD], 2: [DEAD], 3: [DEAD], 4: [OTHER], 5: [OTHER, THIRD], 6: [OTHER]}))
    for frame in range(N_FRAMES):
        mask = numpy.zeros(recording(1).shape[1:], "uint32")
        mask[8, 8 + frame // 3 * 3] = 1
        with h5py.File(folder.path / f"frame_{frame}_master.h5", "r+") as master:
            master["entry/instrument/detector/pixel_mask"] = mask
    expected = run_expected(folder, 1)
    check(expected.frames["optics"].tolist() == [0, 0, 0, 1, 1, 1], "not two groups")
    check(expected.frames["n_excluded"].tolist() == [0, 0, 0, 0, 1, 0], f"n_excluded {expected.frames['n_excluded']}")
    for hidden in ((0, ), (3, ), (0, 3), (3, 4), (3, 4, 5)):
        stays(folder, names, "groups", hidden, left=(1, 2) if 5 in hidden else (2, 4, 5))
    stays(folder, names, "groups", (0, 3), left=(0, 1, 3, 5))


def what_recordings_say_belongs_to_the_file(folder):
    """Groups by the voltage that recordings tell; one that does not tell it goes with the first that does."""
    wanted = job()
    wanted.update(upsampling=2, optics={key: value for key, value in OPTICS.items() if key != "voltage_V"})
    names = save_series(folder, with_pixels({1: [DEAD], 3: [OTHER]}), wanted)
    for frame, voltage in enumerate((200000, None, 80000, None, 80000, 200000)):
        if voltage:
            with h5py.File(folder.path / f"frame_{frame}_master.h5", "r+") as master:
                master["entry/instrument/beam/incident_energy"] = float(voltage)
    found = run_expected(folder, 1).frames["optics"].tolist()
    check(found == [0, 0, 1, 0, 1, 0], f"groups {found}")
    for hidden in ((0, ), (2, ), (0, 2), (2, 4), (0, 5)):
        stays(folder, names, "voltages", hidden, left=(1, 3) if 4 in hidden or 5 in hidden else (3, 4, 5))


def shifted(shifts, pixels=None):
    """seed: columns that its disc is shifted by."""
    return lambda seed: numpy.roll(with_pixels(pixels or {})(seed), shifts.get(seed, 0), axis=2)


def refusals_stay(folder):
    """Each disc is held against that of the first recording, which another would not refuse, or refuse too."""
    names = save_series(folder, shifted({2: 1, 3: 1, 5: 2, 6: -1}))
    expected = run_expected(folder, status=3)
    check(expected.state() == [1, 1, 1, 1, 2, 1], f"states {expected.state()}")
    for hidden, left in (((0, ), (4, 5)), ((0, ), (0, 4, 5)), ((0, 1), (2, 3, 4, 5)), ((0, 3), range(N_FRAMES))):
        stays(folder, names, "refusals", hidden, left, status=3)


def the_first_stays_the_first(folder):
    """The series' first recording could not be read at the start and came back: others are not held against it, then or later."""
    names = save_series(folder, shifted({1: 2, 6: -1}, {1: [OTHER], 2: [DEAD], 4: [THIRD]}), job(bad_pixels=HOT))
    for ranks in (None, 3):
        hide(folder, names[0][1])
        before = folder.run(output="expected.h5", status=3, ranks=ranks)
        check(before.state() == [2, 1, 1, 1, 1, 1] and before.optics["first_frame"] == 1, f"states {before.state()}")
        check(before.optics["n_bad_dead"] == 1 and before.frames["n_excluded"].tolist() == [0, 0, 0, 1, 0, 0], "dead pixels")
        show(folder, names[0][1])
        shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
        pending(folder, [2, 5])
        found = resume(folder, extra=["--retry-failed"], status=3, ranks=ranks)
        says(found.error(0), "that of frame_1 at (9.", "optics.per_frame")
        for hidden in ((), (0, ), (1, ), (0, 1)):
            pending(folder, [2, 3, 5])
            for frame in hidden:
                hide(folder, names[frame][1])
            found = resume(folder, status=3, ranks=ranks)
            for frame in hidden:
                show(folder, names[frame][1])
            check(found.state() == [2, 1, 1, 1, 1, 1], f"states {found.state()}\n{found.text}")
            same(found, before, list(range(1, N_FRAMES)), f"without {hidden}")
            check(found.frames["n_excluded"].tolist() == [0, 0, 0, 1, 0, 0], f"without {hidden}: {found.frames['n_excluded']}")


def outputs_that_looked_at_nothing_are_told_apart(folder):
    """Of an earlier version: its frames were done with the dead pixels."""
    save_series(folder, with_pixels({0: [DEAD]}))
    folder.run()
    with h5py.File(folder.path / "out.h5", "r+") as file:
        for name in ("n_empty", "n_marked_patterns", "n_hot", "n_dead", "disc_row", "disc_column", "disc_radius"):
            del file["entry/frames"][name]
        file["entry/optics_0/bad"][()] = 0
        lines = file["entry/signature"][()].decode().splitlines(True)
        del file["entry/signature"]
        file["entry/signature"] = numpy.array("".join("optics.0.bad pixels crc=0\n" if "bad pixels crc" in line else line for line in lines).encode(), "S")
    says(folder.call("run", status=2, extra=["--resume"]), "cannot be resumed", "bad pixels crc")


if __name__ == "__main__":
    sys.exit(main([dead_pixels_belong_to_the_file, a_gap_belongs_to_the_file, pixels_of_one_recording_stay_its_own, masks_and_dead_pixels,
                   groups_keep_their_own, what_recordings_say_belongs_to_the_file, refusals_stay, the_first_stays_the_first,
                   outputs_that_looked_at_nothing_are_told_apart]))
