#!/usr/bin/env python3
"""The sample's drift: measured as it was simulated, over failed frames, on any ranks, also by a run that goes on; aligned images."""
import sys

import h5py
import numpy
from program import check, main, says

OPTICS = {"voltage_V": 80000, "semiangle_mrad": 25, "scan_step_A": [0.5, 0.45], "detector_pitch_mrad": [2.5, 2.5],
          "detector_center_px": [13.3, 12.6], "rotation_deg": 37, "aberrations": {"C10_A": -80}}
STEP = numpy.array([0.53, -0.31])
SIMULATE = {"seed": 7, "output_master": "s_{frame}_master.h5", "frames": 6, "scan_shape": [60, 64], "detector_shape": [26, 27],
            "object": "crystal", "lattice_A": 3.905, "lattice_rotation_deg": 11.3, "atom_sigma_A": 0.6, "phase_rad": 0.15, "vacancies": 6,
            "dose_per_position": 1000, "dtype": "uint16", "drift_A": STEP.tolist()}
JOB = {"task": "reconstruct", "series": {"files": "s_*_master.h5"}, "optics": OPTICS, "methods": {"ssb": {}, "phase": {"strength": [0.03, 0.1, 1]}},
       "output": {"file": "out.h5", "align": True}, "compute": {"backend": "cpu"}}
PARTS = ["drift/shift", "drift/shift_pixels", "drift/step_pixels", "drift/trust", "drift/least_trust", "drift/known", "drift/reference",
         "drift/complete", "aligned/phase/phase", "aligned/ssb/phase", "aligned/inside"]


def simulate(folder, **more):
    folder.save_job({"task": "simulate", "optics": OPTICS, "simulate": {**SIMULATE, **more}})
    folder.call("run", extra=["--overwrite"])


def reconstruct(folder, name="out.h5", status=0, ranks=None, extra=("--overwrite",), **output):
    folder.save_job({**JOB, "output": {**JOB["output"], "file": name, **output}})
    text = folder.call("run", status=status, ranks=ranks, extra=extra)
    with h5py.File(folder.path / name) as file:
        entry = file["entry"]
        return text, {part: entry[part][()] for part in [*PARTS, "phase/phase", "frames/state"] if part in entry}


def identical(found, expected, what):
    check(found.keys() == expected.keys(), f"{what}: {found.keys() ^ expected.keys()}")
    for part in expected:
        check(found[part].tobytes() == expected[part].tobytes(), f"{what}: {part} differs")


def it_is_what_was_simulated(folder):
    simulate(folder)
    text, found = reconstruct(folder)
    expected = numpy.arange(6)[:, None] * STEP
    away = numpy.abs(found["drift/shift"] - expected).max()
    check(away <= 0.05, f"shifts are up to {away} A off: {found['drift/shift'].tolist()}")
    with h5py.File(folder.path / "out.h5") as file:
        pixel = [file[f"entry/phase/{axis}"][1] for axis in ("row", "column")]
        check(file["entry/drift/shift"].attrs["units"] == "angstrom", "unit")
        says(file["entry/drift/image"][()].decode(), "phase/phase, strength 0.1")
    check(numpy.allclose(found["drift/shift_pixels"] * pixel, found["drift/shift"], rtol=1e-12), "pixels and Angstrom")
    check((found["drift/trust"] >= 0.5).all() and found["drift/known"].all() and found["drift/complete"] == 1, f"{found['drift/trust']}")
    check(found["drift/reference"].tolist() == [-1, 0, 1, 2, 3, 4], "references")
    says(text, "drift of the sample up to frame 5")
    says(folder.use("info", "out.h5"), "drift     ", "up to frame 5")
    folder.use("preview", "out.h5", "--to", "pictures")
    says((folder.path / "pictures/report.html").read_text(), "drift of the sample", "trust in each step")


def aligned_images_are_alike_and_do_not_wrap(folder):
    simulate(folder)
    _, found = reconstruct(folder)
    first_row, end_row, first_column, end_column = found["aligned/inside"].T
    check(found["aligned/inside"][0].tolist() == [0, *found["phase/phase"].shape[2:3], 0, *found["phase/phase"].shape[3:]], "the first moves")
    check(found["aligned/phase/phase"][0].tobytes() == found["phase/phase"][0].tobytes(), "the first frame changes")
    box = numpy.s_[:, 1, first_row.max():end_row.min(), first_column.max():end_column.min()]
    for name, least, most in (("aligned/phase/phase", 0.8, 1), ("phase/phase", -1, 0.7)):
        images = found[name][box]
        alike = [numpy.corrcoef(images[0].ravel(), image.ravel())[0, 1] for image in images[1:]]
        check(all(least <= one <= most for one in alike), f"{name}: correlations {alike}")
    for frame, (a, b, c, d) in enumerate(found["aligned/inside"]):
        image = found["aligned/phase/phase"][frame, 1].copy()
        check(image[a:b, c:d].any() and (b - a, d - c) > (80, 80), f"frame {frame} is empty")
        image[a:b, c:d] = 0
        check(not image.any(), f"frame {frame} has something outside")
    text = folder.call("run", "output.align=false", status=2, extra=["--resume"])
    says(text, "output.align")


def a_lattice_is_doubted(folder):
    """A drift of about a lattice vector between frames of a perfect crystal cannot be seen; defects show it."""
    simulate(folder, vacancies=0, drift_A=[3.8293, 0.7652], frames=3)
    text, found = reconstruct(folder)
    check(numpy.abs(found["drift/step_pixels"]).max() <= 2 and (found["drift/trust"][1:] < 0.5).all(),
          f"steps {found['drift/step_pixels']}, trust {found['drift/trust']}")
    says(text, "little trust", "lattice vector")
    simulate(folder, drift_A=[3.8293, 0.7652], frames=3)
    text, found = reconstruct(folder)
    check(numpy.abs(found["drift/shift"][2] - [7.6586, 1.5304]).max() <= 0.05 and (found["drift/trust"] >= 0.5).all(),
          f"shifts {found['drift/shift']}, trust {found['drift/trust']}")
    check("little trust" not in text, text)


def failed_frames_are_skipped(folder):
    """Also by a run that does them after all."""
    simulate(folder)
    _, expected = reconstruct(folder, "whole.h5")
    names = [f"s_{frame:03d}_master.h5" for frame in (0, 3)]
    whole = [(folder.path / name).read_bytes() for name in names]
    for name in names:
        (folder.path / name).write_bytes(b"damaged")
    _, found = reconstruct(folder, status=3)
    check(found["frames/state"].tolist() == [2, 1, 1, 2, 1, 1], f"{found['frames/state']}")
    check(found["drift/known"].tolist() == [0, 1, 1, 0, 1, 1] and found["drift/reference"].tolist() == [-1, -1, 1, -1, 2, 4], "references")
    check(not found["drift/shift"][[0, 1, 3]].any() and not found["aligned/phase/phase"][[0, 3]].any(), "failed frames have shifts")
    check(not found["aligned/inside"][[0, 3]].any(), "failed frames have a range")
    away = numpy.abs(found["drift/shift"][[2, 4, 5]] - numpy.array([1, 3, 4])[:, None] * STEP).max()
    check(away <= 0.05, f"shifts are up to {away} A off")
    for name, content in zip(names, whole):
        (folder.path / name).write_bytes(content)
    _, found = reconstruct(folder, extra=("--resume", "--retry-failed"))
    identical(found, expected, "done after all")


def ranks_agree_and_runs_go_on(folder):
    simulate(folder, frames=5)
    _, expected = reconstruct(folder)
    for ranks in (2, 3, 7):
        identical(reconstruct(folder, f"{ranks}.h5", ranks=ranks)[1], expected, f"{ranks} ranks")
    with h5py.File(folder.path / "out.h5", "r+") as file:  # as a kill in the middle of measuring leaves it
        file["entry/drift/complete"][...] = 0
        file["entry/drift/shift"][...] = 0
        file["entry/aligned/phase/phase"][2:] = 0
    says(folder.use("info", "out.h5"), "not measured yet")
    _, found = reconstruct(folder, extra=("--resume",), ranks=2)
    identical(found, expected, "measured by the run that went on")
    text, found = reconstruct(folder, extra=("--resume",))
    identical(found, expected, "nothing to do")
    check("drift of the sample" not in text, "it was measured again")


def it_can_be_left_out(folder):
    simulate(folder, frames=2, scan_shape=[12, 13], vacancies=0)
    job = {**JOB, "output": {"file": "out.h5", "drift": False}}
    folder.save_job(job)
    folder.call("run")
    with h5py.File(folder.path / "out.h5") as file:
        check("drift" not in file["entry"] and "aligned" not in file["entry"], "drift in the output")
    folder.save_job({**job, "output": {"file": "out.h5", "drift": False, "align": True}})
    says(folder.call("run", status=2), "/output/align", "/output/drift leaves out")
    folder.save_job({"task": "fit", "series": {"files": "s_*_master.h5"}, "optics": OPTICS, "output": {"file": "f.h5", "align": True}})
    says(folder.call("run", status=2), "/output/align", "no series of images")
    folder.save_job({**JOB, "series": {"files": "s_000_master.h5"}})
    folder.call("run", extra=["--overwrite"])
    with h5py.File(folder.path / "out.h5") as file:
        check("drift" not in file["entry"], "the drift of one frame")


def packed_copies_keep_it(folder):
    simulate(folder, frames=2, scan_shape=[24, 22], vacancies=0)
    _, expected = reconstruct(folder)
    folder.use("pack", "out.h5")
    with h5py.File(folder.path / "out.packed.h5") as file:
        for part in PARTS:
            check(file["entry"][part][()].tobytes() == expected[part].tobytes(), f"{part} differs in the packed copy")
        check(file["entry/aligned/phase/row"].shape == (expected["phase/phase"].shape[2],), "axes")


if __name__ == "__main__":
    sys.exit(main([it_is_what_was_simulated, aligned_images_are_alike_and_do_not_wrap, a_lattice_is_doubted, failed_frames_are_skipped,
                   ranks_agree_and_runs_go_on, it_can_be_left_out, packed_copies_keep_it]))
