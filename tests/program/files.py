#!/usr/bin/env python3
"""What stands where a file should: FIFOs, sockets, devices, folders, in every place that is read; and a limit of memory. Nothing hangs, and
the message says what was found."""
import json
import os
import resource
import socket
import subprocess
import sys

import h5py
import numpy
from program import DETECTOR, JOB, check, fail, main, recording, says

PATIENCE_S = 100  # what takes longer hangs
BESIDE_A_CORE = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}


def call(folder, *words, ranks=None, limit=None, environment=None):
    """Exit status and text of the program."""
    launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    before = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
    try:
        done = subprocess.run([*launcher, folder.program, *map(str, words)], cwd=folder.path, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE_S, preexec_fn=before, env=environment)
    except subprocess.TimeoutExpired:
        fail(f"{words}: still runs after {PATIENCE_S} s")
    return done.returncode, done.stdout + done.stderr


def put(kind, path):
    path.unlink(missing_ok=True)
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
        os.chdir(here)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


def write_master(path, link="data_1.h5", **more):
    counts = recording(1)
    with h5py.File(path.parent / "real.h5", "w") as file:
        file["entry/data/data"] = counts
    with h5py.File(path, "w") as file:
        file["entry/data/data_000001"] = h5py.ExternalLink(link, "/entry/data/data")
        for name, target in more.items():
            file[f"entry/instrument/detector/{name}"] = h5py.ExternalLink(target, "/mask")


def refused(folder, kind, expected, *words, status=None):
    found, text = call(folder, *words)
    check(found != 0 if status is None else found == status, f"{kind}, {words}: exit status {found}\n{text}")
    says(text, expected)


def words_of(kind):
    return {"FIFO": "a FIFO (named pipe)", "socket": "a socket", "device": "a device", "folder": "a folder"}[kind]


def special_recordings_are_refused(folder):
    for kind in ("FIFO", "socket", "device", "folder"):
        for name in ("frame_0.npy", "frame_0_master.h5", "frame_0.mib", "frame_0.raw", "frame_0.xml", "frame_0.emd"):
            put(kind, folder.path / name)
            folder.save_job({**JOB, "series": {"files": [name], "scan_shape": [6, 7]}})
            refused(folder, kind, words_of(kind), "info", name, status=4)
            refused(folder, kind, words_of(kind), "check", "job.json")
            refused(folder, kind, words_of(kind), "run", "job.json")
            if kind != "folder":
                refused(folder, kind, words_of(kind), "preview", name)
                refused(folder, kind, words_of(kind), "pack", name)
            (folder.path / name).rmdir() if kind == "folder" else (folder.path / name).unlink()


def a_special_data_file_fails_its_frame(folder):
    """Also on several ranks; the other frame is done."""
    write_master(folder.path / "frame_0_master.h5")
    write_master(folder.path / "frame_1_master.h5", link="real.h5")
    folder.save_job({**JOB, "series": {"files": ["frame_*_master.h5"], "scan_shape": [6, 7]}})
    for kind in ("FIFO", "socket", "device"):
        put(kind, folder.path / "data_1.h5")
        refused(folder, kind, words_of(kind), "info", "frame_0_master.h5", status=4)
        for ranks in (None, 3):
            found, text = call(folder, "run", "job.json", "--overwrite", ranks=ranks)
            check(found == 3, f"{kind} on {ranks} ranks: exit status {found}\n{text}")
            says(text, "data_1.h5", words_of(kind))


def files_behind_datasets_are_looked_at(folder):
    """Virtual sources (of a fixed size, unlimited, numbered), external storage, links anywhere in the file."""
    os.mkfifo(folder.path / "fifo.h5")
    counts = recording(1)
    shape = counts.shape
    with h5py.File(folder.path / "fixed.h5", "w", libver="latest") as file:
        layout = h5py.VirtualLayout(shape, "uint16")
        layout[:] = h5py.VirtualSource("fifo.h5", "data", shape)
        file.create_virtual_dataset("data", layout)
    with h5py.File(folder.path / "growing.h5", "w", libver="latest") as file:
        layout = h5py.VirtualLayout(shape, "uint16", maxshape=(None, *DETECTOR))
        source = h5py.VirtualSource("fifo.h5", "data", shape, maxshape=(None, *DETECTOR))
        layout[: h5py.h5s.UNLIMITED] = source[: h5py.h5s.UNLIMITED]
        file.create_virtual_dataset("data", layout)
    with h5py.File(folder.path / "storage.h5", "w") as file:
        file.create_dataset("data", shape, "uint16", external=[("fifo.h5", 0, h5py.h5f.UNLIMITED)])
    with h5py.File(folder.path / "link.h5", "w") as file:
        file["data"] = h5py.ExternalLink("fifo.h5", "/data")
    for name in ("fixed", "growing", "storage", "link"):
        for dataset in ("", ":/data"):
            if name == "link" and not dataset:
                continue
            refused(folder, "FIFO", "fifo.h5 is a FIFO (named pipe)" if name != "fixed" else "is a FIFO (named pipe)", "info",
                    f"{name}.h5{dataset}", status=4)
    write_master(folder.path / "frame_0_master.h5", link="real.h5", pixel_mask="fifo.h5", saturation_value="fifo.h5")
    status, text = call(folder, "info", "frame_0_master.h5")
    check(status == 0, text)


def external_storage_is_whole_or_refused(folder):
    """HDF5 reads what is missing as zeros."""
    counts = recording(1)
    counts.tofile(folder.path / "counts.bin")
    with h5py.File(folder.path / "storage.h5", "w") as file:
        file.create_dataset("data", counts.shape, "uint16", external=[("counts.bin", 0, h5py.h5f.UNLIMITED)])
    check(call(folder, "info", "storage.h5")[0] == 0, "whole storage is refused")
    with open(folder.path / "counts.bin", "r+b") as file:
        file.truncate(counts.nbytes - 2)
    refused(folder, "short", f"has {counts.nbytes - 2} bytes, the data in it ends at byte {counts.nbytes}", "info", "storage.h5", status=4)
    (folder.path / "counts.bin").unlink()
    refused(folder, "gone", "counts.bin that holds its data is missing", "info", "storage.h5", status=4)


def special_masks_optics_and_jobs_are_refused(folder):
    folder.save("frame_0.npy", recording(1))
    for kind in ("FIFO", "socket", "device", "folder"):
        at = folder.path / "special"
        put(kind, at)
        for changes in ({"series": {**JOB["series"], "bad_pixels": {"mask": "special"}}},
                        {"series": {**JOB["series"], "bad_pixels": {"mask": "special:/mask"}}}, {"optics": "special"}):
            folder.save_job({**JOB, **changes})
            refused(folder, kind, words_of(kind), "check", "job.json")
            refused(folder, kind, words_of(kind), "run", "job.json")
        refused(folder, kind, words_of(kind), "check", "special")
        refused(folder, kind, words_of(kind), "run", "special")
        at.rmdir() if kind == "folder" else at.unlink()


def files_beside_a_recording_do_not_hang(folder):
    """The header of a Merlin file, the microscope's file of a master, the raw file that XML names."""
    write_master(folder.path / "frame_0_master.h5", link="real.h5")
    os.mkfifo(folder.path / "frame_0.h5")
    check(call(folder, "info", "frame_0_master.h5")[0] == 0, "the microscope's file")
    (folder.path / "scan.xml").write_text('<?xml version="1.0"?><root><raw_file filename="scan.raw"/><scan_parameters mode="acquire">'
                                          "<scan_resolution_x>2</scan_resolution_x><scan_resolution_y>2</scan_resolution_y>"
                                          "</scan_parameters></root>")
    os.mkfifo(folder.path / "scan.raw")
    refused(folder, "FIFO", "scan.raw, is a FIFO (named pipe)", "info", "scan.xml", status=4)


def a_memory_limit_is_no_hang(folder):
    """Libraries that start threads of their own when they are loaded wait for memory for ever, and a fork waits for them."""
    folder.save("frame_0.npy", recording(1))
    folder.save_job()
    environment = {name: value for name, value in os.environ.items() if name not in BESIDE_A_CORE}
    for megabytes in (120, 160, 200):
        status, text = call(folder, "info", "frame_0.npy", limit=megabytes << 20, environment=environment)
        check(status in (0, 1, 127), f"{megabytes} MB: exit status {status}\n{text}")
        call(folder, "--version", limit=megabytes << 20, environment=environment)


if __name__ == "__main__":
    sys.exit(main([special_recordings_are_refused, a_special_data_file_fails_its_frame, files_behind_datasets_are_looked_at,
                   external_storage_is_whole_or_refused, special_masks_optics_and_jobs_are_refused, files_beside_a_recording_do_not_hang,
                   a_memory_limit_is_no_hang]))
