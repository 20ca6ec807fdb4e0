#!/usr/bin/env python3
"""Series as they come: numbers that are missing or twice, orders of time, files that are missing, several kinds of recordings."""
import sys

import h5py
import numpy
from program import COLUMNS, DETECTOR, JOB, ROWS, check, main, recording, same, says

DATE = "entry/instrument/detector/detectorSpecific/data_collection_date"
MASTER_JOB = {**JOB, "series": {"files": ["*_master.h5"], "scan_shape": [ROWS, COLUMNS]}}


def save_master(folder, name, counts, time=None, per_file=20):
    """A Dectris master with its data files."""
    with h5py.File(folder.path / f"{name}_master.h5", "w") as master:
        group = master.create_group("entry/data")
        for number, first in enumerate(range(0, len(counts), per_file), 1):
            data_name = f"{name}_data_{number:06d}.h5"
            with h5py.File(folder.path / data_name, "w") as data:
                data["entry/data/data"] = counts[first : first + per_file]
            group[f"data_{number:06d}"] = h5py.ExternalLink(data_name, "/entry/data/data")
        if time:
            master[DATE] = numpy.bytes_(time)


def gaps_and_duplicates_are_said(folder):
    folder.save_job()
    for name in ("frame_001", "frame_002", "frame_005", "frame_2"):
        folder.save(f"{name}.npy", recording(1))
    text = folder.call("check")
    says(text, "there is no frame_3 to frame_4", "1 recording has the name and number of another")
    says(folder.run().text, "there is no frame_3 to frame_4", "1 recording has the name and number")


def time_orders_the_series_when_asked(folder):
    folder.save_job(MASTER_JOB)
    times = ["2024-05-06T10:00:00+02:00", "2024-05-06T09:59:59", "2024-05-06T07:30:00.25", "2024-05-06T07:30:00.5"]
    for number, time in enumerate(times, 1):
        save_master(folder, f"scan_{number}", recording(number), time)
    by_name = folder.run("weights=uniform")
    by_time = folder.run("weights=uniform", "series.order=time", "series.first=1", "series.stride=2")
    names = [source.decode().rsplit("/", 1)[-1] for source in by_time.frames["source"]]
    check(names == ["scan_4_master.h5", "scan_2_master.h5"], f"order {names}")  # of 3, 4, 1, 2
    same(by_time, by_name, [0, 1], "ordered by time", [3, 1])
    says(by_name.text, 'acquired before the one before in the order of names, the first: scan_3; series.order "time"')
    check("acquired before" not in by_time.text, "a series in order was doubted")
    says(folder.call("check", "series.order=time"), "in the order of their times")
    save_master(folder, "scan_5", recording(5))
    says(folder.call("check", "series.order=time", status=2), "scan_5_master.h5: tells no time of acquisition")
    save_master(folder, "scan_5", recording(5), times[0])
    says(folder.call("check", "series.order=time"), "1 recording has the acquisition time of the one before")
    save_master(folder, "scan_5", recording(5), "last Tuesday")
    says(folder.call("check", "series.order=time", status=2), 'last Tuesday')


def missing_data_fails_or_is_filled(folder):
    folder.save_job(MASTER_JOB)
    for number in (1, 2):
        save_master(folder, f"scan_{number}", recording(number))
    clean = folder.run()
    (folder.path / "scan_2_data_000002.h5").unlink()
    found = folder.run(status=3)
    check(found.state() == [1, 2], f"states {found.state()}")
    says(found.error(1), "scan_2_data_000002.h5", "missing", "from 20 on")
    same(found, clean, [0], "the frame whose data is there")
    filled = folder.run("series.allow_partial=true")
    check(filled.state() == [1, 1] and filled.frames["n_missing"].tolist() == [0, 20], f"filled {filled.frames['n_missing']}")
    same(filled, clean, [0], "the frame whose data is there")
    says(filled.text, "scan_2: the data file scan_2_data_000002.h5 is missing: patterns 20 to 39 are filled")
    says(filled.signature.decode(), "series.allow_partial=true")
    says(folder.call("check", "series.allow_partial=true"), "20 patterns of all recordings missing and filled")


def unlike_recordings_are_refused_with_the_list(folder):
    folder.save_job()
    folder.save("frame_1.npy", recording(1))
    folder.save("frame_2.npy", recording(2, "uint32"))
    folder.save("frame_3.npy", recording(3)[:, :, :-1].copy())
    says(folder.call("check", status=2), "2 of 3 recordings differ", "frame_2: scan 6 x 7, detector 20 x 18, uint32", "detector 20 x 17")


def the_voltage_may_come_from_the_recording(folder):
    folder.save_job(MASTER_JOB)
    save_master(folder, "scan_1", recording(1))
    expected = folder.run()
    with h5py.File(folder.path / "scan_1_master.h5", "a") as master:
        master["entry/instrument/beam/incident_energy"] = 200000.0
    found = folder.run("optics.voltage_V=null")
    same(found, expected, [0], "the recording's voltage")
    says(found.optics["origin"].decode(), "recording, /entry/instrument/beam/incident_energy")
    says(folder.call("check", "optics.voltage_V=300000"), "the recording scan_1 says 200000; the optics are used")


sys.exit(main([gaps_and_duplicates_are_said, time_orders_the_series_when_asked, missing_data_fails_or_is_filled,
               unlike_recordings_are_refused_with_the_list, the_voltage_may_come_from_the_recording]))
