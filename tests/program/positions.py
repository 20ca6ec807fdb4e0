#!/usr/bin/env python3
"""Patterns that are not one per scan position: refused with all numbers, or mapped as the job says, to the same results."""
import sys

import numpy
from program import COLUMNS, DETECTOR, ROWS, check, main, recording, same, says


def plain(folder):
    folder.save("frame_1.npy", recording(1))
    folder.save_job()
    return folder.run()


def a_count_that_does_not_fit_is_refused(folder):
    folder.save_job()
    cases = [(ROWS * (COLUMNS + 1), ["6 x 7 = 42 positions", "48 patterns", "6 x 8", "series.flyback is 1"]),
             (ROWS * (COLUMNS + 1) - 1, ["47", "1 x 47", "series.flyback is 1"]),
             (2 * ROWS * COLUMNS, ["84", "7 x 12", "series.repeats is 2"]),
             (ROWS * COLUMNS + 4, ["46", "4 patterns too many", "series.skip_leading"]),
             (ROWS * COLUMNS - 5, ["37", "5 patterns are missing"])]
    for n, parts in cases:
        folder.save("frame_1.npy", numpy.ones((n, *DETECTOR), "uint16"))
        says(folder.call("check", status=2), *parts)
        says(folder.call("run", status=4), *parts)
    folder.save("frame_1.npy", numpy.ones((8 * 9, *DETECTOR), "uint16"))
    says(folder.call("check", "series.scan_shape=null", status=2), "72 patterns are no square", "8 x 9", "8 x (8 + 1)")


def flyback_is_left_out(folder):
    expected = plain(folder)
    counts = recording(1).reshape(ROWS, COLUMNS, *DETECTOR)
    with_flyback = numpy.concatenate([counts, numpy.full((ROWS, 2, *DETECTOR), 999, "uint16")], axis=1)
    folder.save("frame_1.npy", with_flyback.reshape(-1, *DETECTOR))
    same(folder.run("series.flyback=2"), expected, [0], "flyback")
    folder.save("frame_1.npy", with_flyback.reshape(-1, *DETECTOR)[:-2])
    same(folder.run("series.flyback=2"), expected, [0], "flyback, not behind the last row")
    says(folder.call("check", "series.flyback=1", status=2), "7 positions and 1 flyback", "52")


def serpentine_rows_are_turned(folder):
    expected = plain(folder)
    counts = recording(1).reshape(ROWS, COLUMNS, *DETECTOR)
    counts[1::2] = counts[1::2, ::-1].copy()
    folder.save("frame_1.npy", counts.reshape(-1, *DETECTOR))
    same(folder.run("series.serpentine=true"), expected, [0], "serpentine")
    wrong = folder.run()
    check(wrong.results["phase/phase"].tobytes() != expected.results["phase/phase"].tobytes(), "the option is not needed here")


def skipped_frames_are_left_out(folder):
    expected = plain(folder)
    extra = numpy.full((3, *DETECTOR), 500, "uint16")
    folder.save("frame_1.npy", numpy.concatenate([extra, recording(1), extra[:2]]))
    same(folder.run("series.skip_leading=3", "series.skip_trailing=2"), expected, [0], "skipped patterns")


def repeats_are_summed(folder):
    counts = numpy.stack([recording(1), recording(2), recording(3)], axis=1)
    folder.save("frame_1.npy", counts.sum(axis=1).astype("uint32"))
    folder.save_job()
    expected = folder.run()
    folder.save("frame_1.npy", counts.reshape(-1, *DETECTOR))
    same(folder.run("series.repeats=3"), expected, [0], "repeats")


def the_mapping_is_part_of_the_science(folder):
    counts = numpy.concatenate([recording(1).reshape(ROWS, COLUMNS, *DETECTOR)] * 2, axis=1)[:, : COLUMNS + 1]
    folder.save("frame_1.npy", counts.reshape(-1, *DETECTOR))
    folder.save_job()
    output = folder.run("series.flyback=1")
    says(output.signature.decode(), "series.flyback=1", "series.serpentine=false", "series.saturation=file")
    text = folder.call("run", "series.flyback=1", "series.serpentine=true", extra=["--resume"], status=2)
    says(text, "series.serpentine: was false, now true")
    folder.call("run", "series.flyback=1", extra=["--resume"])
    says(folder.call("check", "series.flyback=1"), "1 flyback position")


sys.exit(main([a_count_that_does_not_fit_is_refused, flyback_is_left_out, serpentine_rows_are_turned, skipped_frames_are_left_out,
               repeats_are_summed, the_mapping_is_part_of_the_science]))
