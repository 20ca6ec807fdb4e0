#!/usr/bin/env python3
"""Pixels that hold no counts: left out before anything is summed, counted by kind, and without a trace in other frames."""
import sys

import numpy
from program import CENTER, DETECTOR, IN_DISC, OPTICS, check, main, recording, same, says

N_FRAMES, ODD = 4, 2  # the frame in which something is wrong


def save_series(folder, dtype, change=None, offset=0):
    for frame in range(N_FRAMES):
        counts = recording(frame + 1, dtype) + numpy.asarray(offset, dtype)
        if change and frame == ODD:
            change(counts)
        folder.save(f"frame_{frame}.npy", counts)


def save_mask(folder, pixel=IN_DISC):
    mask = numpy.zeros(DETECTOR, "uint8")
    mask[pixel] = 1
    folder.save("mask.npy", mask)


def one_frame_is_odd(folder, dtype, change, settings=(), column=None):
    """The odd frame equals a run with the pixel masked in every frame; the others equal a run without anything odd."""
    others = [frame for frame in range(N_FRAMES) if frame != ODD]
    folder.save_job()
    save_mask(folder)
    for weights in ("poisson", "uniform"):
        save_series(folder, dtype)
        clean = folder.run(f"weights={weights}", *settings)
        masked = folder.run(f"weights={weights}", "series.bad_pixels.mask=mask.npy", *settings)
        save_series(folder, dtype, change)
        for ranks in (None, 3):
            found = folder.run(f"weights={weights}", *settings, ranks=ranks)
            same(found, clean, others, f"{weights}: frames without a marker")
            same(found, masked, [ODD], f"{weights}: the frame with a marker")
            check(found.frames["n_excluded"].tolist() == [0, 0, 1, 0], f"n_excluded {found.frames['n_excluded']}")
            if column:
                check(found.frames[column].tolist() == [0, 0, 3, 0], f"{column} {found.frames[column]}")
            says(found.text, "frame 2: 1 active pixels hold no count at some positions")
    return found


def set_pixel(value):
    def change(counts):
        counts[[3, 17, 40], IN_DISC[0], IN_DISC[1]] = value

    return change


def a_marker_in_one_frame_changes_that_frame_only(folder):
    one_frame_is_odd(folder, "uint16", set_pixel(65535))


def saturated_counts_are_left_out(folder):
    one_frame_is_odd(folder, "uint16", set_pixel(6000), ["series.saturation=5000"], "n_saturated")
    found = folder.run("series.saturation=null")
    check(found.frames["n_excluded"].tolist() == [0] * N_FRAMES, "counts were left out although all are allowed")


def negative_counts_are_left_out(folder):
    one_frame_is_odd(folder, "int16", set_pixel(-5), column="n_negative")


def values_that_are_not_finite_are_left_out(folder):
    found = one_frame_is_odd(folder, "float32", set_pixel(numpy.nan), column="n_nonfinite")
    save_series(folder, "float32", set_pixel(numpy.inf))
    same(folder.run("weights=uniform"), found, range(N_FRAMES), "infinities")


def a_marker_outside_the_disc_does_not_matter(folder):
    def change(counts):
        counts[5, 0, 0] = 65535

    folder.save_job()
    save_series(folder, "uint16")
    clean = folder.run()
    save_series(folder, "uint16", change)
    found = folder.run()
    same(found, clean, range(N_FRAMES), "a marker in the dark field")
    check(not found.frames["n_excluded"].any(), "pixels were left out")


def a_frame_without_a_usable_pixel_fails(folder):
    def change(counts):
        for position, (row, column) in enumerate(numpy.ndindex(DETECTOR)):  # every pixel at some position, none at most
            counts[position % len(counts), row, column] = 65535

    folder.save_job()
    save_series(folder, "uint16", change)
    found = folder.run(status=3)
    check(found.state() == [1, 1, 2, 1], f"states {found.state()}")
    says(found.error(ODD), "no usable pixel")


def hot_pixels_are_found_and_listed(folder):
    hot = [(2, 3), IN_DISC]
    folder.save_job()
    for frame in range(N_FRAMES):
        counts = recording(frame + 1)
        for row, column in hot:
            counts[:, row, column] = 5000
        folder.save(f"frame_{frame}.npy", counts)
    says(folder.call("check"), "look hot")
    says(folder.call("check", "series.bad_pixels.hot_sigma=8"), "2 hot")
    found = folder.run("series.bad_pixels.hot_sigma=8")
    check(found.optics["hot_pixels"].tolist() == [list(pixel) for pixel in hot], f"hot pixels {found.optics['hot_pixels']}")
    check(found.optics["n_bad_hot"] == 2 and found.optics["n_left_out"] == 1, "counts of hot pixels")
    says(found.text, "2 hot pixels are left out: (2, 3) (8, 9)")
    save_mask(folder)
    expected = folder.run("series.bad_pixels.mask=mask.npy")
    check(found.optics["n_bright"] == expected.optics["n_bright"], "a hot pixel is among the bright ones")
    same(found, expected, range(N_FRAMES), "hot pixels as a mask")


def masks_are_counted_by_kind(folder):
    folder.save_job()
    save_series(folder, "uint16")
    save_mask(folder)
    says(folder.call("check", "series.bad_pixels.mask=mask.npy"), "1 by the mask file", "1 of all inside the disc")


def the_disc_is_measured_where_optics_leave_it_open(folder):
    folder.save_job()
    save_series(folder, "uint16")
    found = folder.run("optics.detector_center_px=null", "optics.semiangle_mrad=null")
    says(found.optics["origin"].decode(), "detector_center_px", "semiangle_mrad", "patterns of frame 0")
    used = found.optics["used"].decode()
    says(used, '"detector_center_px":[9.', '"semiangle_mrad":1')
    folder.call("run", "optics.detector_center_px=null", "optics.semiangle_mrad=null", extra=["--resume"])
    twice = folder.run("optics.detector_center_px=null", "optics.semiangle_mrad=null", ranks=3)
    same(twice, found, range(N_FRAMES), "measured on three ranks")
    wrong = [CENTER[0] + 3, CENTER[1]]
    says(folder.run(f"optics.detector_center_px={wrong}").text, "the bright-field disc of frame_0 lies at (9.")
    says(folder.call("check", f"optics.semiangle_mrad={OPTICS['semiangle_mrad'] / 2}"), "2 times larger (was the detector binned")


sys.exit(main([a_marker_in_one_frame_changes_that_frame_only, saturated_counts_are_left_out, negative_counts_are_left_out,
               values_that_are_not_finite_are_left_out, a_marker_outside_the_disc_does_not_matter, a_frame_without_a_usable_pixel_fails,
               hot_pixels_are_found_and_listed, masks_are_counted_by_kind, the_disc_is_measured_where_optics_leave_it_open]))
