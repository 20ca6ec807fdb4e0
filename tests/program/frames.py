#!/usr/bin/env python3
"""Frames without information: a failure with its reason, or a defined result; never a value that is not finite."""
import sys

import numpy
from program import DETECTOR, JOB, OPTICS, check, main, recording, same, says


def zeros(n=42, dtype="uint16"):
    return numpy.zeros((n, *DETECTOR), dtype)


def a_frame_without_counts_fails_alone(folder):
    """Also when it is the first, from which weights would come."""
    folder.save_job()
    for frame in range(3):
        folder.save(f"frame_{frame}.npy", recording(frame + 1))
    clean = folder.run("weights=uniform")
    for empty in (0, 1):
        for frame in range(3):
            folder.save(f"frame_{frame}.npy", zeros() if frame == empty else recording(frame + 1))
        others = [frame for frame in range(3) if frame != empty]
        for settings in (["weights=uniform"], ["weights=poisson"], ["weights=uniform", "series.bad_pixels.hot_sigma=8"]):
            found = folder.run(*settings, status=3)
            check(found.state() == [2 if frame == empty else 1 for frame in range(3)], f"{settings}: states {found.state()}")
            says(found.error(empty), "scan-mean counts inside the bright-field disc", "is 0, expected > 0")
            if settings == ["weights=uniform"]:
                same(found, clean, others, f"frame {empty} empty")


def a_series_without_counts_is_unusable(folder):
    folder.save_job()
    for frame in range(2):
        folder.save(f"frame_{frame}.npy", zeros())
    says(folder.call("check"), "holds no counts")
    says(folder.run(status=4).text, "2 of 2 frames failed")


def counts_outside_the_disc_only_are_no_frame(folder):
    folder.save_job()
    counts = zeros()
    counts[:, 0, :] = 3
    folder.save("frame_0.npy", counts)
    says(folder.run(status=4).error(0), "is 0, expected > 0")


def constant_frames_give_flat_images(folder):
    """Every position alike: nothing but the zero frequency, in every method, strength and weight; also all pixels alike."""
    folder.save_job()
    disc = recording(1).max(axis=0)
    for name, pattern in {"disc": disc, "flat": numpy.full(DETECTOR, 7, "uint16"), "one": (disc > 50).astype("uint16")}.items():
        folder.save("frame_0.npy", numpy.broadcast_to(pattern, (42, *DETECTOR)).copy())
        for weights in ("uniform", "poisson"):
            for precision in ("fast", "reference"):
                found = folder.run(f"weights={weights}", f"compute.precision={precision}")
                for result in ("phase/phase", "complex/phase", "complex/log_amplitude", "ssb/phase"):
                    largest = numpy.abs(found.results[result]).max()
                    check(largest <= 1e-5, f"{name}, {weights}, {precision}: {result} of up to {largest}")
                check(found.results["phase/chosen_strength"][0] > 0, "no strength was chosen")


def single_counts_give_finite_images(folder):
    folder.save_job()
    for n in (1, 5):
        counts = zeros()
        generator = numpy.random.default_rng(n)
        for _ in range(n * 42):
            counts[generator.integers(42), 4 + generator.integers(11), 3 + generator.integers(11)] += 1
        folder.save("frame_0.npy", counts)
        found = folder.run(status=0 if n == 5 else 4)
        check(found.state() == [1 if n == 5 else 2], f"{n} counts a position: {found.state()} {found.error(0)}")


def small_scans_work(folder):
    """One row, one column, one position, odd and even."""
    folder.save_job()
    for rows, columns in ((1, 9), (8, 1), (2, 2), (3, 5), (1, 2)):
        counts = numpy.concatenate([recording(1), recording(2)])[: rows * columns]
        folder.save("frame_0.npy", counts)
        found = folder.run(f"series.scan_shape=[{rows},{columns}]")
        check(found.results["phase/phase"].shape[-2:] == (rows * 2, columns * 2), f"{rows} x {columns}: {found.results['phase/phase'].shape}")


def a_single_position_is_refused(folder):
    folder.save_job()
    folder.save("frame_0.npy", recording(1)[:1])
    text = folder.call("check", "series.scan_shape=[1,1]", status=2)
    says(text, "no spatial frequency of the 1 x 1 scan", "nothing can be reconstructed")
    check("which fits a pitch" not in text, "the disc is not to blame")


def a_disc_larger_than_the_detector_is_refused(folder):
    folder.save_job({**JOB, "optics": {**OPTICS, "detector_pitch_mrad": [1.0, 1.0]}})
    folder.save("frame_0.npy", recording(1))
    says(folder.call("check", status=2), "covers all of the 20 x 18 detector", "which fits a pitch of")
    says(folder.call("run", status=2), "covers all of the 20 x 18 detector")


def a_clipped_disc_is_said(folder):
    folder.save_job()
    folder.save("frame_0.npy", recording(1)[:, 8:, :].copy())
    text = folder.call("check", "optics.detector_center_px=[1.3,8.6]")
    says(text, "% of the bright-field disc lies beyond the detector's edge", "beyond the detector's edge; ")
    text = folder.call("check", "optics.detector_center_px=null")
    says(text, "beyond the detector's edge")
    folder.run("optics.detector_center_px=null")


sys.exit(main([a_frame_without_counts_fails_alone, a_series_without_counts_is_unusable, counts_outside_the_disc_only_are_no_frame,
               constant_frames_give_flat_images, single_counts_give_finite_images, small_scans_work, a_single_position_is_refused,
               a_disc_larger_than_the_detector_is_refused, a_clipped_disc_is_said]))
