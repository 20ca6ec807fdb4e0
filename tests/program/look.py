#!/usr/bin/env python3
"""Every recording of a series is looked at: gaps and dead pixels, hot pixels of its own, discs that move, what it says of itself."""
import json
import sys

import h5py
import numpy
from program import CENTER, COLUMNS, DETECTOR, IN_DISC, JOB, OPTICS, RADIUS, ROWS, check, main, recording, same, says

N_FRAMES, ODD = 4, 2  # the frame that differs
OTHERS = [0, 1, 3]


def save_series(folder, change=None, which=(ODD,)):
    for frame in range(N_FRAMES):
        counts = recording(frame + 1)
        if change and frame in which:
            change(counts)
        folder.save(f"frame_{frame}.npy", counts)


def save_mask(folder, change):
    mask = numpy.zeros((1, *DETECTOR), "uint16")
    change(mask, 1)
    folder.save("mask.npy", (mask[0] != 0).astype("uint8"))


def shifted(seed, rows, columns):
    """A recording whose disc lies elsewhere."""
    return numpy.roll(recording(seed), (rows, columns), (1, 2))


def a_pixel_of_its_own(folder, value, column, settings=()):
    """It is left out of its frame as a mask would, on any number of ranks; the other frames keep their bytes."""
    def change(counts, value=value):
        counts[:, IN_DISC[0], IN_DISC[1]] = value

    folder.save_job()
    save_series(folder)
    clean = folder.run(*settings)
    check(clean.frames["n_hot"].tolist() == [0] * 4 and clean.frames["n_dead"].tolist() == [0] * 4, "a clean series has odd pixels")
    save_mask(folder, change)
    masked = folder.run("series.bad_pixels.mask=mask.npy", *settings)
    save_series(folder, change)
    says(folder.call("check", *settings), "in these recordings, but not in the first of their group, are left out of them: frame_2 (1)")
    for ranks in (None, 3):
        found = folder.run(*settings, ranks=ranks)
        same(found, clean, OTHERS, "frames without the pixel")
        same(found, masked, [ODD], "the frame with the pixel")
        check(found.frames[column].tolist() == [0, 0, 1, 0], f"{column} {found.frames[column]}")
        check(found.frames["n_excluded"].tolist() == [0, 0, 1, 0], f"n_excluded {found.frames['n_excluded']}")
    return found


def a_hot_pixel_that_appears(folder):
    found = a_pixel_of_its_own(folder, 5000, "n_hot", ["series.bad_pixels.hot_sigma=8"])
    check(found.optics["n_bad_hot"] == 0, "the group has a hot pixel")
    says(folder.call("check"), "pixels look hot in these recordings: frame_2 (1); series.bad_pixels.hot_sigma")


def a_dead_pixel_that_appears(folder):
    a_pixel_of_its_own(folder, 0, "n_dead")


def own_pixels_and_markers(folder):
    def change(counts, value=0):
        counts[:, IN_DISC[0], IN_DISC[1]] = value

    def both(counts):
        change(counts)
        counts[7, 10, 8] = 65535

    folder.save_job()
    save_series(folder, lambda counts: counts.__setitem__((slice(None), [IN_DISC[0], 10], [IN_DISC[1], 8]), 0), range(N_FRAMES))
    expected = folder.run()
    save_series(folder, both)
    found = folder.run()
    check(found.frames["n_excluded"].tolist() == [0, 0, 2, 0], f"n_excluded {found.frames['n_excluded']}")
    check(found.optics["n_bad_dead"] == 0 and expected.optics["n_bad_dead"] == 2, "dead pixels of the group")


def gaps_are_left_out_without_a_mask(folder):
    """Two rows and two columns through the disc: zeros, or the marker at every position."""
    def cross(counts, value):
        counts[:, 8:10, :] = value
        counts[:, :, 11:13] = value

    folder.save_job()
    save_mask(folder, cross)
    for value in (0, 65535):
        save_series(folder, lambda counts: cross(counts, value), range(N_FRAMES))
        masked = folder.run("series.bad_pixels.mask=mask.npy")
        for ranks in (None, 3):
            found = folder.run(ranks=ranks)
            same(found, masked, range(N_FRAMES), f"a gap of {value}")
            check(not found.frames["n_excluded"].any(), "frames have systems of their own")
        bad = found.optics["bad"]
        check((bad & 8).astype(bool).sum() == found.optics["n_bad_dead"] > 20 and not bad[0].any(), "dead pixels of the group")
        says(found.text, "pixels inside the bright-field disc of frame_0 count nothing")
        says(folder.call("check"), "pixels inside the bright-field disc of frame_0 count nothing")


def wide_disc(folder, change, dtype="uint16"):
    """A recording with a larger disc, saved; its centre and radius in pixels."""
    generator = numpy.random.default_rng(3)
    center, radius = (31.4, 33.2), 18.7
    row, column = numpy.indices((64, 67))
    disc = numpy.clip(radius - numpy.hypot(row - center[0], column - center[1]) + 0.5, 0, 1)
    counts = generator.poisson(40 * disc + 0.2, (ROWS * COLUMNS, 64, 67)).astype(dtype)
    change(counts)
    folder.save("frame_0.npy", counts)
    return center, radius


def gaps_do_not_move_what_is_measured(folder):
    optics = {**OPTICS, "semiangle_mrad": 20.0, "detector_center_px": None, "detector_pitch_mrad": None}
    folder.save_job({**JOB, "optics": optics})
    for value, dtype in ((0, "uint16"), (65535, "uint16"), (numpy.nan, "float32")):
        def change(counts):
            counts[:, 30:33, :] = value
            counts[:, :, 36:41] = value

        center, radius = wide_disc(folder, change, dtype)
        used = json.loads(folder.run().optics["used"])
        found, pitch = used["detector_center_px"], used["detector_pitch_mrad"]
        check(max(abs(a - b) for a, b in zip(found, center)) <= 0.1, f"gap of {value}: centre {found}, expected {center}")
        check(abs(pitch[0] * radius / 20.0 - 1) <= 0.006, f"gap of {value}: pitch {pitch}, expected {20 / radius}")

    def pieces(counts):
        counts[:] = 0
        counts[:, 12:28, 5:30] = 40
        counts[:, 32:50, 20:60] = 40

    wide_disc(folder, pieces)
    says(folder.call("check", status=2), "cannot be measured in frame_0", "circle")


def discs_that_move(folder):
    folder.save_job()
    save_series(folder)
    clean = folder.run()
    check("moves within" not in clean.text and "too far" not in clean.text, "a disc that stays is doubted")
    for name, expected in (("disc_row", CENTER[0]), ("disc_column", CENTER[1]), ("disc_radius", RADIUS)):
        check(numpy.abs(clean.frames[name] - expected).max() <= 0.1, f"{name} {clean.frames[name]}")
    folder.save(f"frame_{ODD}.npy", shifted(ODD + 1, 1, 0))
    for ranks in (None, 3):
        found = folder.run(ranks=ranks)
        check(found.state() == [1] * 4 and abs(found.frames["disc_row"][ODD] - CENTER[0] - 1) <= 0.1, "a disc that moved a little")
        says(found.text, "the bright-field disc moves within the series: that of frame_0 is at (9.", "but frame_2 (at (10.")
        same(found, clean, OTHERS, "frames whose disc stays")
    says(folder.call("check"), "the bright-field disc moves within the series")
    folder.save(f"frame_{ODD}.npy", shifted(ODD + 1, 0, 4))
    for ranks in (None, 3):
        found = folder.run(status=3, ranks=ranks)
        check(found.state() == [1, 1, 2, 1] and abs(found.frames["disc_column"][ODD] - CENTER[1] - 4) <= 0.1, f"{found.state()}")
        says(found.error(ODD), "that of frame_0 at (9.", "optics.per_frame")
        same(found, clean, OTHERS, "frames whose disc stays")
    says(folder.call("check"), "frame_2", "too far off for the same optics")
    says(folder.call("run", status=3, extra=["--resume"]), "3 of 4 frames done")


def a_first_recording_that_is_the_odd_one(folder):
    """Optics that are given decide which recordings they hold for, also where the first is not among them."""
    folder.save_job()
    save_series(folder)
    folder.save("frame_0.npy", shifted(1, 0, 4))
    for ranks in (None, 3):
        found = folder.run(status=3, ranks=ranks)
        check(found.state() == [2, 1, 1, 1], f"states {found.state()}")
        says(found.error(0), "that of frame_1 at (9.", "optics.per_frame")
    says(folder.call("check"), "unusable: frame_0", "too far off for the same optics")


def a_recording_without_a_disc(folder):
    folder.save_job()
    save_series(folder)
    check("no bright-field disc is seen" not in folder.call("check"), "a disc that is there is not seen")
    flat = numpy.random.default_rng(1).poisson(20, recording(1).shape)
    folder.save(f"frame_{ODD}.npy", flat.astype("uint16"))
    for command in ("check", "run"):
        says(folder.call(command), f"no bright-field disc is seen in these recordings, though frame_0 shows one: frame_{ODD}")


def a_disc_of_its_own_optics(folder):
    """Optics per frame are no series of one disc."""
    folder.save_job({**JOB, "optics": {"per_frame": "{stem}.json"}})
    for frame in range(N_FRAMES):
        shift = 4 * (frame == ODD)
        folder.save(f"frame_{frame}.npy", shifted(frame + 1, 0, shift))
        optics = {**OPTICS, "detector_center_px": [CENTER[0], CENTER[1] + shift]}
        (folder.path / f"frame_{frame}.json").write_text(json.dumps(optics))
    found = folder.run()
    check(found.state() == [1] * 4 and "moves within" not in found.text, "a disc with its own optics is doubted")


def save_master(folder, number, voltage, energy="entry/instrument/beam/incident_energy"):
    with h5py.File(folder.path / f"scan_{number}_master.h5", "w") as master:
        master["entry/data/data_000001"] = recording(number)
        if voltage:
            master[energy] = float(voltage)


def what_recordings_say(folder):
    folder.save_job({**JOB, "series": {"files": ["scan_*_master.h5"], "scan_shape": [ROWS, COLUMNS]}})
    for number in range(1, 5):
        save_master(folder, number, 200000)
    expected = folder.run()
    save_master(folder, 3, 80000)
    says(folder.call("check"), "voltage_V is 200000, but the recording scan_3 says 80000; the optics are used")
    says(folder.run().text, "voltage_V is 200000, but the recording scan_3 says 80000; the optics are used")
    for ranks in (None, 3):
        found = folder.run("optics.voltage_V=null", "upsampling=2", "weights=uniform", ranks=ranks)
        check(found.frames["optics"].tolist() == [0, 0, 1, 0], f"groups {found.frames['optics']}")
        says(found.text, "recordings give different values", "voltage_V 2e+05 by scan_1 and 2 more; voltage_V 8e+04 by scan_3")
        same(found, folder.run("upsampling=2", "weights=uniform"), [0, 1, 3], "recordings of 200 kV")
        same(found, folder.run("upsampling=2", "weights=uniform", "optics.voltage_V=80000"), [2], "the recording of 80 kV")
    save_master(folder, 3, None)
    save_master(folder, 1, None)
    silent = folder.run("optics.voltage_V=null")
    check(silent.frames["optics"].tolist() == [0] * 4, f"groups {silent.frames['optics']}")
    same(silent, expected, range(4), "what one recording does not say, another does")


def many_recordings(folder):
    """check looks at some of many, and at all when asked."""
    folder.save_job()
    for frame in range(70):
        folder.save(f"frame_{frame}.npy", shifted(frame + 1, 0, 4 * (frame == 34)))
    check("frame_34" not in folder.call("check"), "every recording was looked at")
    says(folder.call("check", extra=["--data"]), "frame_34", "too far off")


def a_stop_while_looking_is_polite(folder):
    folder.save_job()
    save_series(folder)
    for ranks in (None, 3):
        text = folder.call("run", status=75, ranks=ranks, extra=["--max-hours", "1e-9"])
        says(text, "stopped (time limit of 1e-09 h) while the recordings were looked at; run again")
        check(not (folder.path / "out.h5").exists(), "an output was begun")
    folder.run("series.bad_pixels.hot_sigma=8")


sys.exit(main([a_stop_while_looking_is_polite, a_hot_pixel_that_appears, a_dead_pixel_that_appears, own_pixels_and_markers, gaps_are_left_out_without_a_mask,
               gaps_do_not_move_what_is_measured, discs_that_move, a_first_recording_that_is_the_odd_one,
               a_recording_without_a_disc, a_disc_of_its_own_optics, what_recordings_say, many_recordings]))
