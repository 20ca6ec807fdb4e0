#!/usr/bin/env python3
"""Outputs named so that a run would destroy what it reads, or be taken for a recording: refused, and nothing is touched."""
import hashlib
import json
import os
import shutil
import socket
import sys

import numpy
from program import COLUMNS, DETECTOR, JOB, OPTICS, ROWS, check, main, recording, says

import h5py

HISTOGRAM = {"task": "histogram", "series": JOB["series"], "histogram": {"bins": 16, "range": "auto"}, "output": {"file": "out.h5"},
             "compute": {"backend": "cpu"}}
SIMULATE = {"task": "simulate", "optics": "sim_000_optics.json",
            "simulate": {"output_master": "sim_{frame}_master.h5", "frames": 1, "seed": 1, "scan_shape": [4, 5], "detector_shape": [16, 18],
                         "object": "random", "phase_rad": 0.1, "dose_per_position": 1000}}


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.path.iterdir() if path.is_file()}


def refused(folder, output, *words, settings=(), ranks=(None, 3)):
    """check and run, on one rank and on three, with --overwrite and without, refuse the output and leave every file as it was."""
    before = digests(folder)
    where = [f"output.file={output}"] if output else []
    says(folder.call("check", *where, *settings, status=2), *words)
    for n in ranks:
        for extra in (["--overwrite"],) if n else ([], ["--overwrite"], ["--resume"]):
            says(folder.call("run", *where, *settings, status=2, ranks=n, extra=extra), *words)
    check(digests(folder) == before, f"{output}: files changed")


def write_linked(folder, name, counts):
    """Masters that reach their counts by external links, a virtual dataset and external storage; the files that hold them."""
    half = len(counts) // 2
    for number, part in enumerate((counts[:half], counts[half:]), 1):
        with h5py.File(folder.path / f"{name}_data_{number:06d}.h5", "w") as file:
            file["entry/data/data"] = part
    with h5py.File(folder.path / f"{name}_master.h5", "w") as file:
        group = file.create_group("entry/data")
        for number in (1, 2):
            group[f"data_{number:06d}"] = h5py.ExternalLink(f"{name}_data_{number:06d}.h5", "/entry/data/data")
    layout = h5py.VirtualLayout(shape=counts.shape, dtype=counts.dtype)
    for number, first in ((1, 0), (2, half)):
        layout[first : first + half] = h5py.VirtualSource(f"{name}_data_{number:06d}.h5", "/entry/data/data", shape=(half, *DETECTOR))
    with h5py.File(folder.path / f"{name}_virtual.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("/counts", layout)
    counts.tofile(folder.path / "counts.bin")
    with h5py.File(folder.path / f"{name}_storage.h5", "w") as file:
        file.create_dataset("/counts", counts.shape, counts.dtype, external=[("counts.bin", 0, h5py.h5f.UNLIMITED)])


def what_the_job_names_is_no_output(folder):
    folder.save("frame_0.npy", recording(0))
    folder.save("mask.npy", numpy.zeros(DETECTOR, "uint8"))
    (folder.path / "optics.json").write_text(json.dumps(OPTICS))
    folder.save_job({**JOB, "optics": "optics.json", "series": {**JOB["series"], "bad_pixels": {"mask": "mask.npy"}}})
    os.link(folder.path / "frame_0.npy", folder.path / "hard.h5")
    os.symlink("frame_0.npy", folder.path / "soft.h5")
    for name, role in (("frame_0.npy", "/series/files"), ("hard.h5", "frame_0.npy"), ("soft.h5", "frame_0.npy"), ("job.json", "the job itself"),
                       ("mask.npy", "/series/bad_pixels/mask"), ("optics.json", "/optics")):
        refused(folder, name, "/output/file: the run would write over", role, ranks=(None, 3) if name == "frame_0.npy" else (None,))
    folder.save("frame_1.npy", recording(1))
    refused(folder, "frame_1.npy", "/output/file", settings=["series.count=1"], ranks=(None,))
    for stem in ("frame_0", "frame_1"):
        shutil.copy(folder.path / "optics.json", folder.path / f"{stem}.json")
    refused(folder, "frame_1.json", "/optics/per_frame", settings=['optics={"per_frame": "{stem}.json"}'], ranks=(None,))
    shutil.copy(folder.path / "optics.json", folder.path / "out.h5.lock")
    refused(folder, "out.h5", "a lock of the run: the run would write over", settings=["optics=out.h5.lock"], ranks=(None,))


def what_recordings_link_to_is_no_output(folder):
    counts = recording(2)
    write_linked(folder, "scan", counts)
    folder.save_job({**JOB, "series": {"files": ["scan_master.h5"], "scan_shape": [ROWS, COLUMNS]}})
    says(folder.run(output="fine.h5").text, "1 frames")
    os.link(folder.path / "scan_data_000002.h5", folder.path / "other.h5")
    refused(folder, "scan_data_000001.h5", "linked from", "scan_master.h5")
    refused(folder, "other.h5", "scan_data_000002.h5, linked from", ranks=(None,))
    for kind, victim in (("virtual", "scan_data_000001.h5"), ("storage", "counts.bin")):
        refused(folder, victim, "linked from", f"scan_{kind}.h5", settings=[f"series.files=[\"scan_{kind}.h5\"]"], ranks=(None,))
    with h5py.File(folder.path / "deep.h5", "w") as file:
        file["counts"] = h5py.ExternalLink("scan_virtual.h5", "/counts")
    refused(folder, "scan_data_000002.h5", "linked from", "deep.h5", settings=["series.files=[\"deep.h5\"]"], ranks=(None,))


def numbered_sources_are_no_output(folder):
    """Sources of a virtual dataset that are numbered (%b): every file that such a name can mean."""
    half = recording(2)[:21]
    for number in range(2):
        with h5py.File(folder.path / f"part_{number}.h5", "w") as file:
            file["counts"] = half
    with h5py.File(folder.path / "numbered.h5", "w", libver="latest") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space = h5py.h5s.create_simple((42, *DETECTOR), (h5py.h5s.UNLIMITED, *DETECTOR))
        space.select_hyperslab((0, 0, 0), (h5py.h5s.UNLIMITED, 1, 1), (21, 1, 1), (21, *DETECTOR))
        plist.set_virtual(space, b"part_%b.h5", b"counts", h5py.h5s.create_simple(half.shape))
        h5py.h5d.create(file.id, b"counts", h5py.h5t.NATIVE_UINT16, h5py.h5s.create_simple((42, *DETECTOR), (h5py.h5s.UNLIMITED, *DETECTOR)), plist)
    folder.save_job({**JOB, "series": {"files": ["numbered.h5"], "scan_shape": [ROWS, COLUMNS]}})
    for number in range(2):
        refused(folder, f"part_{number}.h5", "the run would write over", f"part_{number}.h5", "linked from", "numbered.h5", ranks=(None,))


def files_of_a_damaged_master_are_no_output(folder):
    """It cannot say which they are, so those named after it count."""
    write_linked(folder, "scan", recording(2))
    whole = (folder.path / "scan_master.h5").read_bytes()
    (folder.path / "scan_master.h5").write_bytes(whole[: len(whole) // 3])
    folder.save("frame_0.npy", recording(0))
    folder.save_job({**JOB, "series": {"files": ["frame_0.npy", "scan_master.h5"], "scan_shape": [ROWS, COLUMNS]}})
    refused(folder, "scan_data_000002.h5", "the run would write over", "scan_data_000002.h5", "linked from", "scan_master.h5")


def companions_are_no_output(folder):
    frame = numpy.zeros((130, 128), "<f4")
    numpy.tile(frame, (4, 1, 1)).tofile(folder.path / "scan.raw")
    (folder.path / "scan.xml").write_text('<?xml version="1.0"?><root><raw_file filename="scan.raw"/><pix_x>2</pix_x><pix_y>2</pix_y></root>')
    for named, victim in (("scan.xml", "scan.raw"), ("scan.raw", "scan.xml")):
        folder.save_job({**JOB, "series": {"files": [named]}})
        before = digests(folder)
        says(folder.call("check", f"output.file={victim}", status=2), "the run would write over", victim)
        says(folder.call("run", f"output.file={victim}", status=2, extra=["--overwrite"]), "the run would write over", victim)
        check(digests(folder) == before, f"{victim} changed")


def places_that_hold_no_file_are_refused(folder):
    folder.save("frame_0.npy", recording(0))
    folder.save_job()
    os.mkfifo(folder.path / "pipe")
    (folder.path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder.path / "socket"))
    for name, words in ((".", "is a directory"), ("socket", "is a socket"), ("folder/", "not a directory"), ("folder", "is a directory"), ("/dev/null", "is a device"), ("pipe", "is a pipe"),
                        ("none/out.h5", "there is no directory"), ("frame_0.npy/out.h5", "/output/file")):
        refused(folder, name, "/output/file", words, ranks=(None,))
        refused(folder, name, "/output/file", words, settings=["series.files=[\"frame_0.npy\"]"], ranks=(None,))


def own_outputs_are_no_recordings(folder):
    write_linked(folder, "scan", recording(2))
    folder.save("a.npy", recording(0))
    folder.save_job({**JOB, "series": {"files": ["*_master.h5"], "scan_shape": [ROWS, COLUMNS]}})
    refused(folder, "late.h5", "/output/file: the pattern * of /series/files catches late.h5", settings=['series.files=["*"]'])
    folder.run(output="early.hdf")
    for pattern, output in (("*.h5", "late.h5"), ("{a.npy,l*.h5}", "late.h5"), ("../*/[kl]ate.h?", "late.h5")):
        refused(folder, output, "/output/file: the pattern", "catches late.h5", settings=[f"series.files=[\"{pattern}\"]"], ranks=(None,))
    refused(folder, "late.dat", "/series/files", "early.hdf is an output of ptyseries", settings=['series.files=["early.h*", "*_master.h5"]'])
    folder.save_job({**HISTOGRAM, "series": {"files": ["a.npy"], "scan_shape": [ROWS, COLUMNS]}})
    folder.call("run", "output.file=counts.hdf")
    refused(folder, "late.dat", "counts.hdf is an output of ptyseries", settings=['series.files=["a.npy", "counts.hd?"]'])
    folder.call("check", "output.file=counts.hdf")


def histograms_keep_what_they_read(folder):
    folder.save("frame_0.npy", recording(0))
    folder.save("centre.npy", numpy.zeros(DETECTOR))
    folder.save_job({**HISTOGRAM, "histogram": {**HISTOGRAM["histogram"], "centre": "centre.npy"}})
    refused(folder, "frame_0.npy", "/output/file: the run would write over", "/series/files")
    refused(folder, "centre.npy", "/output/file: the run would write over", "/histogram/centre", ranks=(None,))


def a_centre_that_cannot_be_used_is_said_by_check(folder):
    folder.save("frame_0.npy", recording(0))
    os.mkfifo(folder.path / "pipe.npy")
    folder.save("narrow.npy", numpy.zeros((DETECTOR[0], DETECTOR[1] - 1)))
    folder.save("centre.npy", numpy.zeros(DETECTOR))
    folder.save_job(HISTOGRAM)
    for name, words in (("none.npy", "none.npy"), ("pipe.npy", "pipe.npy: is a FIFO"), ("narrow.npy", "the pedestal is 20 x 17, the detector 20 x 18")):
        says(folder.call("check", f"histogram.centre={name}", status=2), words)
    folder.call("check", "histogram.centre=centre.npy")


def simulations_keep_what_they_read_and_did_not_make(folder):
    (folder.path / "sim_000_optics.json").write_text(json.dumps(OPTICS))
    folder.save_job(SIMULATE)
    refused(folder, None, "/simulate/output_master: the run would write over", "sim_000_optics.json")
    (folder.path / "sim_000_optics.json").rename(folder.path / "optics.json")
    folder.save_job({**SIMULATE, "optics": "optics.json"})
    write_linked(folder, "sim_000", recording(1))
    before = digests(folder)
    for extra, words in (([], "exists already"), (["--overwrite"], "no simulation made it"), (["--resume"], "no simulation made it")):
        says(folder.call("run", status=2, extra=extra), "sim_000_master.h5", words)
        check(digests(folder) == before, f"a real recording changed with {extra}")
    (folder.path / "sim_000_master.h5").unlink()
    before = digests(folder)
    for extra, words in (([], "exists already"), (["--overwrite"], "no simulation made it"), (["--resume"], "no simulation made it")):
        says(folder.call("run", status=2, extra=extra, ranks=3), "sim_000_data_000001.h5", words)
        check(digests(folder) == before, f"real data files changed with {extra}")
    for number in (1, 2):
        (folder.path / f"sim_000_data_{number:06d}.h5").unlink()
    folder.call("run")
    folder.call("run", "simulate.seed=2", extra=["--overwrite"], ranks=3)
    says(folder.call("run", status=2), "exists already")


def simulations_keep_data_files_that_are_not_theirs(folder):
    """A data file of that name which no recording of the simulation links to is neither replaced nor taken away."""
    (folder.path / "sim_000_optics.json").write_text(json.dumps(OPTICS))
    os.rename(folder.path / "sim_000_optics.json", folder.path / "optics.json")
    foreign, before = folder.path / "sim_000_data_000002.h5", b"not of this simulation"
    for per_file, status in ((5, 2), (20, 0)):
        job = {**SIMULATE, "optics": "optics.json", "simulate": {**SIMULATE["simulate"], "positions_per_file": per_file}}
        folder.save_job(job)
        for extra in ([], ["--overwrite"], ["--resume"]):
            foreign.write_bytes(before)
            folder.call("run", status=status if extra or per_file == 5 else 0, extra=extra)
            check(foreign.read_bytes() == before, f"{extra}: a foreign data file changed")
    folder.save_job({**SIMULATE, "optics": "optics.json", "simulate": {**SIMULATE["simulate"], "positions_per_file": 10}})
    foreign.unlink()
    folder.call("run", extra=["--overwrite"])
    folder.save_job({**SIMULATE, "optics": "optics.json"})
    (folder.path / "sim_000_data_000003.h5").write_bytes(before)
    folder.call("run", extra=["--overwrite"])
    check(not foreign.exists(), "the second data file of the longer recording is still there")
    check((folder.path / "sim_000_data_000003.h5").read_bytes() == before, "a data file that nobody linked to is gone")


def only_runs_that_happened_are_seen(folder):
    folder.save("frame_0.npy", recording(0))
    folder.save_job()
    folder.run()
    for n in range(1, 19):
        with h5py.File(folder.path / "out.h5") as file:
            runs = sorted((name for name in file["entry"] if name.startswith("process_")), key=lambda name: int(name.split("_")[1]))
            check(runs == [f"process_{i}" for i in range(1, n + 1)], f"after {n} runs: {runs}")
            check(all(file["entry"][run]["state"].asstr()[()] == "finished" for run in runs), f"after {n} runs: states")
        folder.call("run", extra=["--resume"], ranks=3 if n % 6 == 1 else None)


sys.exit(main([what_the_job_names_is_no_output, what_recordings_link_to_is_no_output, numbered_sources_are_no_output,
               files_of_a_damaged_master_are_no_output, companions_are_no_output,
               places_that_hold_no_file_are_refused, own_outputs_are_no_recordings, histograms_keep_what_they_read, a_centre_that_cannot_be_used_is_said_by_check,
               simulations_keep_what_they_read_and_did_not_make, simulations_keep_data_files_that_are_not_theirs,
               only_runs_that_happened_are_seen]))
