#!/usr/bin/env python3
"""Dectris masters and markers through the whole program: the picture is the one of the plain recording, whatever the type, the order of the
data files and the rank that reads them; what does not fit is refused with both numbers."""
import sys

import h5py
import numpy
from program import COLUMNS, IN_DISC, JOB, RESULTS, ROWS, check, fail, main, recording, says

DETECTOR = "entry/instrument/detector"
SPECIFIC = f"{DETECTOR}/detectorSpecific"
N = ROWS * COLUMNS


def write_master(folder, pieces, name="frame_0_master.h5", images=COLUMNS, triggers=ROWS, numbers=True, **said):
    """pieces: (file, first position, counts) in the order of the links."""
    with h5py.File(folder.path / name, "w") as master:
        for index, (file, first, counts) in enumerate(pieces):
            with h5py.File(folder.path / file, "w") as data:
                dataset = data.create_dataset("entry/data/data", data=counts, chunks=(1, *counts.shape[1:]))
                if numbers:
                    dataset.attrs["image_nr_low"], dataset.attrs["image_nr_high"] = first + 1, first + len(counts)
            master[f"entry/data/data_{index + 1:06d}"] = h5py.ExternalLink(file, "/entry/data/data")
        master[f"{SPECIFIC}/nimages"], master[f"{SPECIFIC}/ntrigger"] = images, triggers
        for place, value in said.items():
            master[f"{DETECTOR}/{place}"] = value


def save_job(folder, shape=None, **series):
    said = {"scan_shape": shape} if shape else {}
    folder.save_job({**JOB, "series": {"files": ["frame_0*"], **said, **series}})


def close(found, expected, what):
    """To the rounding of single precision: sums of integers and of floating-point counts take other paths."""
    for name in RESULTS:
        if name not in expected.results:
            continue
        a, b = found.results[name], expected.results[name]
        largest = numpy.abs(b).max() if b.size else 0
        if not numpy.abs(a - b).max(initial=0) <= 2e-4 * largest + 1e-12:
            fail(f"{what}: {name} differs by {numpy.abs(a - b).max()} of {largest}")


def marked():
    """Counts with a pixel without counts inside the disc, everywhere, and some that come and go."""
    counts, none = recording(1), numpy.zeros(recording(1).shape, bool)
    none[:, IN_DISC[0], IN_DISC[1]] = True
    none[::5, IN_DISC[0] + 2, IN_DISC[1] - 1] = True
    return counts, none


def plain_result(folder):
    counts, none = marked()
    counts[none] = 65535
    folder.save("plain.npy", counts)
    folder.save_job({**JOB, "series": {"files": ["plain.npy"], "scan_shape": [ROWS, COLUMNS]}})
    return folder.run()


def markers_are_known_in_every_type(folder):
    """What the file stores decides, also when it is converted when read, on one rank and on three."""
    plain = plain_result(folder)
    kinds = {"int64": -1, "uint64": 2**64 - 1, "int32": 2**31 - 1, "int16": -1, "uint32": 2**32 - 1, "float32": 4294967295.0,
             "float64": 4294967295.0}
    cases = [(dtype, value, {}) for dtype, value in kinds.items()]
    cases += [("int64", 2**63 - 1, {}), ("int64", 2**32 - 1, {}), ("float32", 65535.0, {}), ("float64", 2.0**64, {})]
    cases += [(dtype, 65535, {"bit_depth_image": 16}) for dtype in ("uint32", "int32", "uint64", "int64", "float32")]
    for number, (dtype, value, said) in enumerate(cases):
        counts, none = marked()
        counts = counts.astype(dtype)
        counts[none] = numpy.array(value, dtype)
        write_master(folder, [("data_1.h5", 0, counts)], **said)
        save_job(folder)
        found = folder.run(ranks=3 if number % 4 == 0 else None)
        close(found, plain, f"{dtype} with {value} {said}")
        a, b = found.frames["n_excluded"][0], plain.frames["n_excluded"][0]
        check(a == b > 0, f"{dtype} with {value} {said}: {a} values left out, expected {b}")


def saturation_stands_in_modules(folder):
    plain = plain_result(folder)
    counts, none = marked()
    counts[none] = 5000
    write_master(folder, [("data_1.h5", 0, counts)], **{"detectorSpecific/detectorModule_000/countrate_correction_count_cutoff": 6000,
                                                        "detectorSpecific/detectorModule_001/countrate_correction_count_cutoff": 4500})
    save_job(folder)
    close(folder.run(), plain, "saturated counts")


def image_numbers_order_the_data(folder):
    counts = recording(1)
    folder.save("plain.npy", counts)
    folder.save_job({**JOB, "series": {"files": ["plain.npy"], "scan_shape": [ROWS, COLUMNS]}})
    plain = folder.run()
    cuts = [("data_1.h5", 30, counts[30:]), ("data_2.h5", 0, counts[:13]), ("data_3.h5", 13, counts[13:30])]
    write_master(folder, cuts)
    save_job(folder)
    for ranks in (None, 3):
        found = folder.run(ranks=ranks)
        for name in plain.results:
            check(found.results[name].tobytes() == plain.results[name].tobytes(), f"{ranks} ranks: {name} differs")
    write_master(folder, [cuts[1], cuts[0]])  # 13 to 29 are nowhere
    (folder.path / "out.h5").unlink()
    says(folder.call("run", status=4), "no data file holds the images 14 to 30")
    says(folder.run("series.allow_partial=true").text, "no data file holds the images 14 to 30: patterns 13 to 29 are filled")


def shapes_are_not_guessed(folder):
    """42 planned, 36 there: no square; a voltage that is none of electrons is not taken."""
    counts = recording(1)
    write_master(folder, [("data_1.h5", 0, counts[:36])])
    save_job(folder)
    for command in ("check", "run"):
        says(folder.call(command, status=2 if command == "check" else 4), "36 patterns", "42 were planned")
    check(folder.run("series.allow_partial=true").frames["state"][0] == 1, "filled")
    write_master(folder, [("data_1.h5", 0, counts[:36])], **{"detectorSpecific/photon_energy": 12398.4})
    save_job(folder, [6, 6])
    says(folder.run().text, "photon_energy is 12398.4 eV", "no voltage of an electron microscope")


def the_plan_beside_the_specific_group_counts(folder):
    """36 patterns in 9 rows of 4 are no 6 x 6, also where the plan stands one group higher."""
    write_master(folder, [("data_1.h5", 0, recording(1)[:36])], images=4, triggers=9)
    with h5py.File(folder.path / "frame_0_master.h5", "a") as master:
        for name in ("nimages", "ntrigger"):
            master.move(f"{SPECIFIC}/{name}", f"{DETECTOR}/{name}")
    save_job(folder)
    says(folder.call("check"), "scan 9 x 4")


def write_virtual(folder, counts, sources, name="data"):
    """A master whose data is virtual, of two files of which `sources` are named."""
    half, source_name = len(counts) // 2, "source_{}.h5"
    layout = h5py.VirtualLayout(counts.shape, counts.dtype)
    for part in range(2):
        with h5py.File(folder.path / source_name.format(part), "w") as file:
            file["counts"] = counts[part * half : (part + 1) * half]
        if part in sources:
            layout[part * half : (part + 1) * half] = h5py.VirtualSource(source_name.format(part), "counts", (half, *counts.shape[1:]))
    with h5py.File(folder.path / "frame_0_master.h5", "w", libver="latest") as master:
        master.create_virtual_dataset(f"entry/data/{name}", layout)
        master[f"{SPECIFIC}/nimages"], master[f"{SPECIFIC}/ntrigger"] = COLUMNS, ROWS


def virtual_data_in_a_master(folder):
    """Read like linked data; a source that is missing or not named is no pattern of zeros."""
    counts = recording(1)
    folder.save("plain.npy", counts)
    folder.save_job({**JOB, "series": {"files": ["plain.npy"], "scan_shape": [ROWS, COLUMNS]}})
    plain = folder.run()
    save_job(folder)
    for shape in (counts.shape, (N, 1, *counts.shape[1:])):
        for name in ("data", "data_000001"):
            write_virtual(folder, counts.reshape(shape), (0, 1), name)
            close(folder.run(), plain, f"virtual {name} of {len(shape)} axes")
        (folder.path / "source_1.h5").unlink()
        says(folder.call("check", status=2), "source_1.h5 of the virtual dataset is missing")
        write_virtual(folder, counts.reshape(shape), (0,))
        says(folder.call("check", status=2), "without a source for patterns")


def a_link_that_is_lost_leaves_a_hole(folder):
    """Without image numbers only the names of the links tell that patterns are missing; what is left may be a square."""
    counts = recording(1)
    pieces = [(f"data_{k}.h5", 12 * k, counts[12 * k : 12 * k + 12]) for k in range(3)] + [("data_3.h5", 30, counts[30:])]
    for lost in (1, 2):
        write_master(folder, pieces, numbers=False, images=1, triggers=1)
        with h5py.File(folder.path / "frame_0_master.h5", "a") as master:
            del master[f"entry/data/data_{lost:06d}"]
            del master[SPECIFIC]
        save_job(folder)
        for command in ("check", "run"):
            says(folder.call(command, status=2 if command == "check" else 4), f"no link data_{lost:06d} in /entry/data")
        says(folder.call("check", "series.scan_shape=[6,8]", "series.allow_partial=true"), "are filled from the nearest one")
        says(folder.call("check", "series.scan_shape=[6,6]"), "scan 6 x 6")


if __name__ == "__main__":
    sys.exit(main([the_plan_beside_the_specific_group_counts, virtual_data_in_a_master, a_link_that_is_lost_leaves_a_hole, markers_are_known_in_every_type, saturation_stands_in_modules, image_numbers_order_the_data, shapes_are_not_guessed]))
