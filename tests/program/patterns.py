#!/usr/bin/env python3
"""Patterns that were not measured: empty ones, and ones that hold no counts. They fail their frame, or are filled; chance is no fault."""
import sys

import numpy
from program import CENTER, DETECTOR, JOB, RADIUS, check, main, recording, same, says

N_FRAMES, ODD = 3, 1  # the frame in which something is wrong
OTHERS = [0, 2]


def save_series(folder, change=None, dtype="uint16"):
    for frame in range(N_FRAMES):
        counts = recording(frame + 1, dtype)
        if change and frame == ODD:
            change(counts)
        folder.save(f"frame_{frame}.npy", counts)


def fill(counts, positions):
    """What allow_partial makes of it: the pattern before, for the first ones the pattern behind."""
    good = [position for position in range(len(counts)) if position not in positions]
    for position in positions:
        before = [candidate for candidate in good if candidate < position]
        counts[position] = counts[before[-1] if before else good[0]]


def one_kind(folder, positions, value, columns, words, dtype="uint16"):
    """Fails with the places, or equals a recording filled by hand; other frames keep their bytes; ranks do not matter."""
    def change(counts):
        counts[positions] = value

    folder.save_job()
    save_series(folder, dtype=dtype)
    clean = folder.run()
    check(not clean.frames["n_empty"].any() and not clean.frames["n_marked_patterns"].any(), "odd patterns in a clean series")
    save_series(folder, lambda counts: fill(counts, positions), dtype)
    by_hand = folder.run()
    save_series(folder, change, dtype)
    says(folder.call("check"), f"frame_1 ({len(positions)})", "series.allow_partial fills")
    for ranks in (None, 3):
        refused = folder.run(status=3, ranks=ranks)
        check(refused.state() == [1, 2, 1], f"states {refused.state()}")
        says(refused.error(ODD), *words, "series.allow_partial")
        check("semiangle" not in refused.error(ODD), "the optics are blamed")
        same(refused, clean, OTHERS, "frames without odd patterns")
        filled = folder.run("series.allow_partial=true", ranks=ranks)
        same(filled, by_hand, [ODD], "filled patterns")
        same(filled, clean, OTHERS, "frames without odd patterns")
        for found in (refused, filled):
            for name in ("n_empty", "n_marked_patterns"):
                check(found.frames[name].tolist() == [0, len(positions) * (name == columns), 0], f"{name} {found.frames[name]}")
        says(filled.frames["note"][ODD].decode(), *words)
        check(not filled.frames["n_excluded"].any(), "pixels were left out for patterns that were filled")


def one_empty_pattern(folder):
    one_kind(folder, [17], 0, "n_empty", ["1 of 42 patterns is empty: position 17 (row.column 2.3)"])


def a_tail_that_was_never_written(folder):
    one_kind(folder, list(range(30, 42)), 0, "n_empty", ["12 of 42 patterns are empty: positions 30-41 (row.column 4.2-5.6)"])


def fill_values(folder):
    one_kind(folder, [40, 41], 1, "n_empty", ["2 of 42 patterns are empty: positions 40-41"])
    one_kind(folder, [3], 7.5, "n_empty", ["1 of 42 patterns is empty: position 3"], dtype="float32")


def copies_of_integers(folder):
    one_kind(folder, [3], -1, "n_marked_patterns", ["1 of 42 patterns is without counts", "position 3"], dtype="float32")
    one_kind(folder, [3], 65535, "n_marked_patterns", ["1 of 42 patterns is without counts", "position 3"], dtype="uint32")


def leading_and_scattered_ones(folder):
    one_kind(folder, [0, 1, 7, 20, 21, 41], 0, "n_empty", ["positions 0-1, 7, 20-21, 41 (row.column 0.0-0.1, 1.0, 2.6-3.0, 5.6)"])


def more_than_half(folder):
    one_kind(folder, [position for position in range(42) if position % 5 < 3], 0, "n_empty", ["26 of 42 patterns are empty: positions 0-2, 5-7", "40-41 (row.column 0.0-0.2"])


def all_ones(folder):
    one_kind(folder, [5, 6], 65535, "n_marked_patterns", ["2 of 42 patterns are without counts", "positions 5-6"])


def not_finite(folder):
    one_kind(folder, [0], numpy.nan, "n_marked_patterns", ["1 of 42 patterns is without counts", "position 0 "], "float32")


def saturated_as_a_whole(folder):
    def change(counts):
        counts[9] = 6000

    folder.save_job()
    save_series(folder, change)
    says(folder.run("series.saturation=5000", status=3).error(ODD), "1 of 42 patterns is without counts", "position 9 ")


def half_of_the_pixels_is_a_matter_of_pixels(folder):
    """A module that holds no counts at one position leaves its pixels out, as a marker does."""
    def change(counts):
        counts[5, :9] = 65535

    folder.save_job()
    save_series(folder, change)
    found = folder.run()
    check(found.state() == [1, 1, 1] and found.frames["n_excluded"][ODD] > 10, f"{found.state()} {found.frames['n_excluded']}")
    check(not found.frames["n_marked_patterns"].any(), "counted as a pattern")


def both_kinds_and_markers(folder):
    def change(counts):
        counts[3] = 0
        counts[4] = 65535
        counts[11, 9, 9] = 65535

    folder.save_job()
    save_series(folder, lambda counts: (change(counts), fill(counts, [3, 4])))
    by_hand = folder.run()
    save_series(folder, change)
    found = folder.run("series.allow_partial=true")
    same(found, by_hand, range(N_FRAMES), "filled, and a pixel left out")
    check(found.frames["n_excluded"].tolist() == [0, 1, 0], f"n_excluded {found.frames['n_excluded']}")
    says(found.frames["note"][ODD].decode(), "position 3 (row.column 0.3)", "position 4 (row.column 0.4)")
    says(folder.call("run", "series.allow_partial=true", extra=["--resume"]), "3 of 3 frames done")


def chance_is_no_fault(folder):
    """At a few electrons a position some patterns are empty; a tail that was never written is a fault at any dose."""
    generator = numpy.random.default_rng(4)
    row, column = numpy.indices(DETECTOR)
    disc = numpy.clip(RADIUS - numpy.hypot(row - CENTER[0], column - CENTER[1]) + 0.5, 0, 1)
    counts = generator.poisson(3 * disc / disc.sum(), (40 * 40, *DETECTOR)).astype("uint16")
    n_empty = int((counts.sum((1, 2)) == 0).sum())
    check(n_empty > 40, f"only {n_empty} patterns are empty by chance")
    folder.save_job({**JOB, "series": {"files": ["frame_0.npy"], "scan_shape": [40, 40]}, "methods": {"ssb": {"estimator": "wave"}}})
    folder.save("frame_0.npy", counts)
    found = folder.run()
    check(found.state() == [1] and found.frames["n_empty"][0] == 0, f"{found.state()} {found.frames['n_empty']}")
    counts[1500:] = 0
    folder.save("frame_0.npy", counts)
    text = folder.run(status=4).error(0)
    says(text, "patterns are empty", "-1599")


sys.exit(main([one_empty_pattern, a_tail_that_was_never_written, fill_values, copies_of_integers, leading_and_scattered_ones, more_than_half,
               all_ones, not_finite,
               saturated_as_a_whole, half_of_the_pixels_is_a_matter_of_pixels, both_kinds_and_markers, chance_is_no_fault]))
