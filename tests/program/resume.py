#!/usr/bin/env python3
"""Going on with an output: what was measured stays measured, and files behind recordings that changed are noticed, whichever they are."""
import copy
import os
import shutil
import sys

import h5py
import numpy
from program import COLUMNS, DETECTOR, JOB, ROWS, Output, check, main, recording, same, says

N_FRAMES, PER_FILE = 6, 15
MEASURED = ["weights", "dose", "mean_pattern", "bad", "active", "used", "origin", "upsampling", "backend", "n_bad_hot"]


def job(**series):
    wanted = copy.deepcopy(JOB)
    wanted["series"] = {"files": ["frame_*_master.h5"], "scan_shape": [ROWS, COLUMNS], **series}
    return wanted


def save_master(folder, frame, counts, per_file=PER_FILE):
    """A master and its data files; names of the latter."""
    names = []
    with h5py.File(folder.path / f"frame_{frame}_master.h5", "w") as master:
        group = master.create_group("entry/data")
        for i, first in enumerate(range(0, len(counts), per_file)):
            names.append(f"frame_{frame}_data_{i + 1:06d}.h5")
            with h5py.File(folder.path / names[-1], "w") as data:
                data.create_dataset("entry/data/data", data=counts[first:first + per_file], chunks=(1, *counts.shape[1:]))
            group[f"data_{i + 1:06d}"] = h5py.ExternalLink(names[-1], "entry/data/data")
    return names


def save_series(folder, make=recording, wanted=None):
    folder.save_job(wanted or job())
    return [save_master(folder, frame, make(frame + 1)) for frame in range(N_FRAMES)]


def reopen(folder, frames, output="out.h5"):
    """As after a stop: these frames are still to do, and nothing of them is there."""
    with h5py.File(folder.path / output, "r+") as file:
        entry = file["entry"]
        for frame in frames:
            for name in ("frames/state", "ssb/phase", "phase/phase", "complex/phase", "complex/log_amplitude"):
                entry[name][frame] = 0


def resume(folder, *settings, status=0, ranks=None, extra=(), output="out.h5"):
    text = folder.call("run", f"output.file={output}", *settings, status=status, ranks=ranks, extra=["--resume", *extra])
    return Output(folder.path / output, text)


def refuses(folder, *parts, settings=(), ranks=None):
    """Refused, with these words, and the file stays as it is."""
    before = (folder.path / "out.h5").read_bytes()
    says(folder.call("run", *settings, status=2, ranks=ranks, extra=["--resume"]), "cannot be resumed", *parts)
    check((folder.path / "out.h5").read_bytes() == before, "a refused output was changed")


def hide(folder, name):
    (folder.path / name).rename(folder.path / f"{name}.hidden")


def show(folder, name):
    (folder.path / f"{name}.hidden").rename(folder.path / name)


def same_measured(found, expected, what):
    for name in MEASURED:
        if name in expected.optics:
            check(numpy.array_equal(found.optics[name], expected.optics[name]), f"{what}: optics_0/{name} changed")


def same_run(found, expected, what):
    check(found.state() == [1] * N_FRAMES, f"{what}: states {found.state()}\n{found.text}")
    same(found, expected, list(range(N_FRAMES)), what)
    same_measured(found, expected, what)


# ---- what was measured --------------------------------------------------------------------------------------------------------------


def stop_hide_and_resume(folder, expected, names, what):
    """After four of six frames the recording that everything was measured in cannot be read any more."""
    hide(folder, names[0][1])
    for ranks in (1, 3):
        shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
        reopen(folder, [4, 5])
        found = resume(folder, ranks=ranks)
        same_run(found, expected, f"{what}, {ranks} ranks")
        says(found.text, "frame 0 is done and stays", names[0][1])
    show(folder, names[0][1])


def weights_belong_to_the_file(folder):
    names = save_series(folder)
    expected = folder.run(output="expected.h5")
    check(expected.optics["weights"].std() > 0.01 and expected.optics["mean_pattern"].any(), "no weights were measured")
    stop_hide_and_resume(folder, expected, names, "weights")


def hot_pixels_belong_to_the_file(folder):
    def make(seed):
        counts = recording(seed)
        if seed == 1:
            counts[:, 9, 10] = 2000
        return counts

    names = save_series(folder, make, job(bad_pixels={"hot_sigma": 8}))
    expected = folder.run(output="expected.h5")
    check(expected.optics["n_bad_hot"] == 1, "the hot pixel was not found")
    stop_hide_and_resume(folder, expected, names, "hot pixels")
    shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
    reopen(folder, [4])
    refuses(folder, "series.bad_pixels.hot_sigma: was 8, now 6", settings=["series.bad_pixels.hot_sigma=6"])


def a_measured_disc_belongs_to_the_file(folder):
    def make(seed):
        return recording(seed) if seed == 1 else numpy.roll(recording(seed), 1, axis=2)

    for open_values in ({"detector_center_px"}, {"detector_center_px", "detector_pitch_mrad"}):
        wanted = job()
        wanted["optics"] = {key: value for key, value in JOB["optics"].items() if key not in open_values}
        names = save_series(folder, make, wanted)
        expected = folder.run(output="expected.h5")
        check(b"patterns of frame 0" in expected.optics["origin"], "nothing was measured")
        stop_hide_and_resume(folder, expected, names, f"measured {open_values}")


def a_first_recording_that_comes_back_changes_nothing(folder):
    """It could not be read when the output was made, so everything was measured in the second."""
    wanted = job(bad_pixels={"hot_sigma": 8})
    del wanted["optics"]["detector_center_px"]
    names = save_series(folder, wanted=wanted)
    for ranks in (1, 3):
        hide(folder, names[0][1])
        before = folder.run(status=3, ranks=ranks)
        check(before.state() == [2, 1, 1, 1, 1, 1], f"states {before.state()}")
        check(before.frames["n_files"].tolist() == [0, 4, 4, 4, 4, 4], f"files {before.frames['n_files']}")
        reopen(folder, [3, 5])
        show(folder, names[0][1])
        found = resume(folder, extra=["--retry-failed"], ranks=ranks)
        check(found.state() == [1] * N_FRAMES, f"states {found.state()}\n{found.text}")
        same(found, before, [1, 2, 3, 4, 5], "a first recording that comes back")
        same_measured(found, before, "a first recording that comes back")
        check(found.frames["n_files"].tolist() == [4] * N_FRAMES and found.frames["file_crc32"][0, :4].all(), "its files are not recorded")


def the_order_of_time_belongs_to_the_file(folder):
    """A recording that cannot be read does not tell its time, but keeps its place."""
    names = save_series(folder, wanted=job(order="time"))
    for frame in range(N_FRAMES):
        with h5py.File(folder.path / f"frame_{frame}_master.h5", "r+") as master:
            time = f"2024-05-06T07:08:{30 - frame:02d}"
            master["entry/instrument/detector/detectorSpecific/data_collection_date"] = numpy.array(time.encode(), "S")
    expected = folder.run(output="expected.h5")
    check(expected.frames["source"][0].endswith(b"frame_5_master.h5"), f"order {expected.frames['source']}")
    for ranks in (1, 3):
        shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
        reopen(folder, [4, 5])
        hide(folder, names[5][1])
        same_run(resume(folder, ranks=ranks), expected, "order of time")
        show(folder, names[5][1])


def frames_with_markers_get_the_same_weights(folder):
    """Their own system leaves pixels out and takes its weights from the pattern in the file."""
    def make(seed):
        counts = recording(seed)
        if seed == 5:
            counts[3, 8, 9] = 65535
        return counts

    names = save_series(folder, make)
    expected = folder.run(output="expected.h5")
    check(expected.frames["n_excluded"].tolist() == [0, 0, 0, 0, 1, 0], "no frame with markers")
    stop_hide_and_resume(folder, expected, names, "markers")


def each_group_keeps_its_mask(folder):
    """Recordings with masks of their own; the first of each cannot be read later."""
    names = save_series(folder)
    for frame in range(N_FRAMES):
        mask = numpy.zeros(DETECTOR, "uint32")
        mask[8, 8 + frame // 3] = 1
        with h5py.File(folder.path / f"frame_{frame}_master.h5", "r+") as master:
            master["entry/instrument/detector/pixel_mask"] = mask
    expected = folder.run(output="expected.h5")
    check(expected.frames["optics"].tolist() == [0, 0, 0, 1, 1, 1], "not two groups")
    hide(folder, names[3][0])
    stop_hide_and_resume(folder, expected, names, "masks")


def outputs_of_earlier_versions_go_on(folder):
    names = save_series(folder)
    expected = folder.run(output="expected.h5")
    with h5py.File(folder.path / "expected.h5", "r+") as file:
        entry = file["entry"]
        for name in ("n_files", "file_name", "file_bytes", "file_mtime_ns", "file_crc32", "file_whole_crc32", "attempts"):
            del entry["frames"][name]
        del entry["optics_0/mean_pattern"]
        lines = [line for line in entry["signature"][()].decode().splitlines(True) if "hot_sigma" not in line]
        del entry["signature"]
        entry["signature"] = numpy.array("".join(lines).encode(), "S")
    hide(folder, names[0][1])
    for ranks in (1, 3):
        shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
        reopen(folder, [4, 5])
        for frame in range(1, N_FRAMES):
            os.utime(folder.path / f"frame_{frame}_master.h5")
        found = resume(folder, ranks=ranks)
        check(found.state() == [1] * N_FRAMES, f"states {found.state()}")
        same(found, expected, list(range(N_FRAMES)), "an earlier version's output")
        says(found.text, "made by an earlier version", "for 5 frames")
    shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
    reopen(folder, [4, 5])
    with h5py.File(folder.path / "out.h5", "r+") as file:
        file["entry/optics_0/weights"][()] = 0
    before = (folder.path / "out.h5").read_bytes()
    says(folder.call("run", status=2, ranks=3, extra=["--resume"]), "neither the mean pattern nor the weights")
    check((folder.path / "out.h5").read_bytes() == before, "a refused output was changed")


def to_format_1(path):
    """Lays the output out as format 1: other names of two datasets, no links, lines of the signature in another order."""
    with h5py.File(path, "r+") as file:
        entry = file["entry"]
        for group, name, former in (("phase", "effective_degrees_of_freedom", "influence"), ("frames", "data_norm", "power"),
                                    ("complex", "effective_degrees_of_freedom", "influence")):
            check(isinstance(entry[group].get(former, getlink=True), h5py.SoftLink), f"{group}/{former} is no soft link")
            check(numpy.array_equal(entry[group][former], entry[group][name]), f"{group}/{former} is not {name}")
            del entry[group][former]
            entry[group].move(name, former)
        check(entry["format_version"][()] == 2, "format_version is not 2")
        entry["format_version"][()] = 1
        lines = entry["signature"][()].decode().splitlines(True)
        lines.sort(key=lambda line: not line.startswith("method.ssb"))
        entry["signature"][()] = "".join(lines).encode()


def outputs_of_format_1_go_on(folder):
    names = save_series(folder)
    expected = folder.run(output="expected.h5")
    shutil.copy(folder.path / "expected.h5", folder.path / "former.h5")
    to_format_1(folder.path / "former.h5")
    for ranks in (1, 3):
        shutil.copy(folder.path / "former.h5", folder.path / "out.h5")
        reopen(folder, [1, 4])
        text = folder.call("run", "output.file=out.h5", ranks=ranks, extra=["--resume"])
        says(text, "4 of 6 frames done and verified")
        with h5py.File(folder.path / "out.h5") as file, h5py.File(folder.path / "expected.h5") as new:
            for former, name in (("phase/influence", "phase/effective_degrees_of_freedom"), ("frames/power", "frames/data_norm"),
                                 ("complex/influence", "complex/effective_degrees_of_freedom"), ("frames/crc32", "frames/crc32")):
                check(numpy.array_equal(file["entry"][former], new["entry"][name]), f"{former} on {ranks} ranks is not {name}")
                check(former == name or name not in file["entry"], f"{name} was added to a file of format 1")
            check((file["entry/frames/state"][()] == 1).all(), "not all frames are done")
    for command, words in ((["info", "out.h5"], "method    phase"), (["preview", "out.h5"], "report.html"), (["pack", "out.h5"], "6 frames verified")):
        done = folder.use(*command)
        says(done, words)
    with h5py.File(folder.path / "out.packed.h5") as packed, h5py.File(folder.path / "out.h5") as file:
        check(numpy.array_equal(packed["entry/phase/influence"], file["entry/phase/influence"]), "the packed copy has another influence")
    folder.use("pack", "expected.h5")
    with h5py.File(folder.path / "expected.packed.h5") as packed:
        check(isinstance(packed["entry/frames"].get("power", getlink=True), h5py.SoftLink), "a packed link is no link")


def outputs_of_a_later_format_are_refused(folder):
    save_series(folder)
    folder.run()
    with h5py.File(folder.path / "out.h5", "r+") as file:
        file["entry/format_version"][()] = 3
    before = (folder.path / "out.h5").read_bytes()
    for ranks in (None, 3):
        says(folder.call("run", status=1, ranks=ranks, extra=["--resume"]), "/entry/format_version is 3, expected at most 2",
             "a later version of ptyseries made it")
    for command in ("info", "preview", "pack"):
        says(folder.use(command, "out.h5", status=1), "/entry/format_version is 3", "a later version")
    check((folder.path / "out.h5").read_bytes() == before, "a refused output was changed")


def only_the_first_backend_is_recorded(folder):
    """Nothing that an earlier run wrote about its optics is written over."""
    save_series(folder)
    expected = folder.run()
    with h5py.File(folder.path / "out.h5", "r+") as file:
        backend = file["entry/optics_0/backend"]
        backend[()] = b"another"
        file["entry/optics_0/weights"][()] *= 1.5
        scaled = file["entry/optics_0/weights"][()]
    reopen(folder, [2])
    found = resume(folder)
    check(found.optics["backend"] == b"another" and numpy.array_equal(found.optics["weights"], scaled), "the optics were written over")
    check(b"earlier frames of this file are by another" in found.frames["note"][2], "the frame does not say so")
    check(found.results["phase/phase"][2].tobytes() != expected.results["phase/phase"][2].tobytes(), "the file's weights were not used")


# ---- the files behind recordings ----------------------------------------------------------------------------------------------------


def data_files_that_were_exchanged_are_noticed(folder):
    names = save_series(folder)
    expected = folder.run(output="expected.h5")
    check(expected.frames["file_name"].shape == (N_FRAMES, 4), f"shape of file_name {expected.frames['file_name'].shape}")
    check(expected.frames["file_name"][2].tolist() == [b"frame_2_master.h5"] + [name.encode() for name in names[2]], "names of files")
    for ranks in (1, 3):
        for frame, last in ((1, 0), (4, 2)):  # one that is done, one that is not
            shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
            reopen(folder, [4, 5])
            victim, other = folder.path / names[frame][last], folder.path / names[0][last]
            whole = victim.read_bytes()
            shutil.copy(other, victim)
            refuses(folder, f"frame {frame}: ", f"{victim}: other content", "was made from other files", ranks=ranks)
            victim.write_bytes(whole + b"more")
            refuses(folder, f"frame {frame}: ", f"{victim}: was {len(whole)} bytes, now {len(whole) + 4}", ranks=ranks)
            victim.write_bytes(whole)  # at another time
            same_run(resume(folder, ranks=ranks), expected, "a copy of the same content")


def where_files_lie_does_not_matter(folder):
    names = save_series(folder)
    expected = folder.run(output="expected.h5")
    elsewhere = folder.path / "elsewhere"
    elsewhere.mkdir()
    for frame in range(N_FRAMES):
        for name in names[frame]:
            shutil.move(folder.path / name, elsewhere / name)
            os.utime(elsewhere / name, (1e9, 1e9))
        shutil.move(folder.path / f"frame_{frame}_master.h5", elsewhere / f"frame_{frame}_master.h5")
        (folder.path / f"other_{frame}_master.h5").symlink_to(elsewhere / f"frame_{frame}_master.h5")
    for files in ("elsewhere/frame_*_master.h5", "./elsewhere/../elsewhere/frame_*_master.h5", "other_*_master.h5"):
        shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
        reopen(folder, [0, 3])
        same_run(resume(folder, f'series.files=["{files}"]'), expected, files)
    order = ", ".join(f'"elsewhere/frame_{frame}_master.h5"' for frame in (1, 0, 2, 3, 4, 5))
    refuses(folder, "frame 0: ", "frame_1_master.h5 (in the place of frame_0_master.h5)", settings=[f"series.files=[{order}]"])


def missing_data_leaves_done_frames(folder):
    names = save_series(folder)
    expected = folder.run(output="expected.h5")
    for ranks in (1, 3):
        shutil.copy(folder.path / "expected.h5", folder.path / "out.h5")
        reopen(folder, [4])
        hide(folder, names[1][2])
        hide(folder, names[4][2])
        found = resume(folder, status=3, ranks=ranks)
        check(found.state() == [1, 1, 1, 1, 2, 1], f"states {found.state()}")
        says(found.text, "frame 1 is done and stays", names[1][2])
        says(found.error(4), names[4][2], "is missing")
        show(folder, names[1][2])
        show(folder, names[4][2])
        same_run(resume(folder, extra=["--retry-failed"], ranks=ranks), expected, "data that came back")


def partial_data_is_followed(folder):
    """A missing data file is filled; when it comes back, what is done stays and says so."""
    names = save_series(folder, wanted=job(allow_partial=True))
    hide(folder, names[1][0])
    hide(folder, names[5][2])
    before = folder.run()
    check(before.frames["n_missing"].tolist() == [0, 15, 0, 0, 0, 12], f"missing {before.frames['n_missing']}")
    check(before.frames["file_bytes"][1].tolist()[1] == -1, "the missing file is not recorded as missing")
    reopen(folder, [5])
    show(folder, names[1][0])
    show(folder, names[5][2])
    found = resume(folder)
    says(found.text, f"frame 1: {folder.path / names[1][0]} was not there when the output was made; the frame is done without it")
    check(found.frames["n_missing"].tolist() == [0, 15, 0, 0, 0, 0], f"missing {found.frames['n_missing']}")
    check(found.frames["file_bytes"][5].min() > 0, "the file that came back is not recorded")


def virtual_and_raw_files_count(folder):
    """Sources of virtual datasets, theirs too, and external raw files."""
    counts = [recording(frame + 1) for frame in range(4)]
    wanted = job(files=["frame_*.h5:/counts"])
    folder.save_job(wanted)
    (folder.path / "parts").mkdir()
    for frame, values in enumerate(counts):
        values.tofile(folder.path / f"parts/raw_{frame}.bin")
        with h5py.File(folder.path / f"parts/inner_{frame}.h5", "w") as file:
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_external(str(folder.path / f"parts/raw_{frame}.bin").encode(), 0, values.nbytes)
            space = h5py.h5s.create_simple(values.shape)
            h5py.h5d.create(file.id, b"raw", h5py.h5t.NATIVE_UINT16, space, plist)
        with h5py.File(folder.path / f"parts/outer_{frame}.h5", "w") as file:
            layout = h5py.VirtualLayout(values.shape, "uint16")
            layout[:] = h5py.VirtualSource(str(folder.path / f"parts/inner_{frame}.h5"), "raw", values.shape)
            file.create_virtual_dataset("whole", layout)
        with h5py.File(folder.path / f"frame_{frame}.h5", "w") as file:
            layout = h5py.VirtualLayout(values.shape, "uint16")
            source = h5py.VirtualSource(str(folder.path / f"parts/outer_{frame}.h5"), "whole", values.shape)
            layout[:20], layout[20:] = source[:20], source[20:]
            file.create_virtual_dataset("counts", layout)
    expected = folder.run()
    listed = [name.decode() for name in expected.frames["file_name"][2]]
    check(listed == ["frame_2.h5", "outer_2.h5", "inner_2.h5", "raw_2.bin"], f"files {listed}")
    for frame in (1, 3):
        reopen(folder, [3])
        path = folder.path / f"parts/raw_{frame}.bin"
        counts[0].tofile(path)
        refuses(folder, f"frame {frame}: {path}: other content")
        counts[frame].tofile(path)
        found = resume(folder)
        same(found, expected, list(range(4)), "raw files")
    hide(folder, "parts/inner_3.h5")
    reopen(folder, [3])
    says(resume(folder, status=3).error(3), "inner_3.h5", "missing")


def datasets_of_one_file_are_told_apart(folder):
    counts = [recording(frame + 1) for frame in range(3)]
    with h5py.File(folder.path / "stack.h5", "w") as file:
        for frame in range(3):
            file[f"scan_{frame}"] = counts[frame]
            file[f"copy/scan_{frame}"] = counts[2 - frame]
    wanted = job(files=[f"stack.h5:/scan_{frame}" for frame in range(3)])
    folder.save_job(wanted)
    expected = folder.run()
    reopen(folder, [1])
    other = ", ".join(f'"stack.h5:/copy/scan_{frame}"' for frame in range(3))
    refuses(folder, 'the dataset in', 'was "/scan_0", now "/copy/scan_0"', settings=[f"series.files=[{other}]"])
    same(resume(folder), expected, [0, 1, 2], "datasets of one file")


XML = """<?xml version="1.0"?><root><raw_file filename="{raw}"/><pix_x>{columns}</pix_x><pix_y>{rows}</pix_y>
<scan_parameters mode="acquire"><scan_resolution_x>{columns}</scan_resolution_x><scan_resolution_y>{rows}</scan_resolution_y>
</scan_parameters></root>"""


def empad_pairs_count(folder):
    """The .xml and the .raw, whichever of them is named."""
    wanted = job(files=["scan_*.xml"])
    wanted["optics"] = {**JOB["optics"], "detector_center_px": [9.3, 8.6]}
    folder.save_job(wanted)
    for frame in range(3):
        counts = numpy.zeros((ROWS * COLUMNS, 130, 128), "float32")
        counts[:, :DETECTOR[0], :DETECTOR[1]] = recording(frame + 1)
        counts.tofile(folder.path / f"scan_{frame}.raw")
        (folder.path / f"scan_{frame}.xml").write_text(XML.format(raw=f"scan_{frame}.raw", rows=ROWS, columns=COLUMNS))
    expected = folder.run()
    check([name.decode() for name in expected.frames["file_name"][1]] == ["scan_1.xml", "scan_1.raw"], "files")
    reopen(folder, [2])
    same(resume(folder, 'series.files=["scan_*.raw"]'), expected, [0, 1, 2], "the .raw named")
    whole = (folder.path / "scan_1.raw").read_bytes()
    (folder.path / "scan_1.raw").write_bytes(whole[:100] + b"\x41" + whole[101:])
    refuses(folder, "frame 1: ", "scan_1.raw: other content")
    (folder.path / "scan_1.raw").write_bytes(whole)
    text = (folder.path / "scan_2.xml").read_text()
    (folder.path / "scan_2.xml").write_text(text + "\n")
    refuses(folder, "frame 2: ", "scan_2.xml: was")


def merlin_headers_count(folder):
    folder.save_job(job(files=["scan_*.mib"]))
    for frame in range(3):
        counts = numpy.zeros((ROWS * COLUMNS, 256, 256), ">u2")
        counts[:, :DETECTOR[0], :DETECTOR[1]] = recording(frame + 1)
        with open(folder.path / f"scan_{frame}.mib", "wb") as file:
            for i, pattern in enumerate(counts):
                head = f"MQ1,{i + 1:06d},00384,01,0256,0256,U16,   1x1,01,2024-05-06 07:08:09.000000,0.001,0,0,"
                file.write(head.encode().ljust(384, b"\0") + pattern.tobytes())
        (folder.path / f"scan_{frame}.hdr").write_text(f"HDR,\nFrames in Acquisition (Number):\t{ROWS * COLUMNS}\nEnd\n")
    expected = folder.run()
    check([name.decode() for name in expected.frames["file_name"][1]] == ["scan_1.mib", "scan_1.hdr"], "files")
    text = (folder.path / "scan_1.hdr").read_text()
    (folder.path / "scan_1.hdr").write_text(text.replace("HDR,", "HDR,Comment"))
    reopen(folder, [2])
    refuses(folder, "frame 1: ", "scan_1.hdr: was")
    (folder.path / "scan_1.hdr").write_text(text)
    same(resume(folder), expected, [0, 1, 2], "the header as it was")


def whole_files_are_compared_when_asked(folder):
    """A change between the samples of a large file."""
    folder.save_job(job(files=["frame_*.npy"], verify="whole"))
    for frame in range(3):
        folder.save(f"frame_{frame}.npy", numpy.pad(recording(frame + 1), ((0, 0), (0, 108), (0, 110))))
    expected = folder.run(ranks=3)
    check(expected.frames["file_whole_crc32"].all() and expected.frames["file_bytes"][0, 0] > 1 << 20, "not whole, or not large")
    path = folder.path / "frame_1.npy"
    whole = bytearray(path.read_bytes())
    whole[100000] ^= 1
    path.write_bytes(whole)
    reopen(folder, [2])
    for ranks in (1, 3):
        refuses(folder, "frame 1: ", "frame_1.npy: other content: CRC-32 of the whole file", ranks=ranks)
    same(resume(folder, "series.verify=samples"), expected, [0, 2], "samples only")
    other = folder.run("series.verify=samples", output="other.h5")
    check(not other.frames["file_whole_crc32"].any(), "whole though not asked for")
    reopen(folder, [2], "other.h5")
    says(resume(folder, output="other.h5").text, "made with samples only: those of 3 files were compared")


def histograms_are_of_the_same_files(folder):
    names = save_series(folder)
    folder.save_job({"task": "histogram", "series": job()["series"], "histogram": {"bins": 16, "range": [0, 400]}, "output": {"file": "out.h5"},
                     "compute": {"backend": "cpu"}})
    folder.call("run")
    before = (folder.path / "out.h5").read_bytes()
    for ranks in (1, 3):
        path = folder.path / names[2][1]
        whole = path.read_bytes()
        shutil.copy(folder.path / names[1][1], path)
        says(folder.call("run", status=2, ranks=ranks, extra=["--resume"]), "from other files", f"frame 2: was {folder.path / 'frame_2_master.h5'}: 4 files")
        path.write_bytes(whole)
        os.utime(folder.path / "frame_4_master.h5", (1e9, 1e9))
        says(folder.call("run", ranks=ranks, extra=["--resume"]), "is complete already")
        hide(folder, names[2][1])
        says(folder.call("run", ranks=ranks, extra=["--resume"]), "is complete already", f"frame 2 ({folder.path / 'frame_2_master.h5'}) was counted and stays")
        show(folder, names[2][1])
        check((folder.path / "out.h5").read_bytes() == before, "a complete output was changed")


if __name__ == "__main__":
    sys.exit(main([weights_belong_to_the_file, hot_pixels_belong_to_the_file, a_measured_disc_belongs_to_the_file,
                   a_first_recording_that_comes_back_changes_nothing, the_order_of_time_belongs_to_the_file, frames_with_markers_get_the_same_weights, each_group_keeps_its_mask,
                   outputs_of_earlier_versions_go_on, outputs_of_format_1_go_on, outputs_of_a_later_format_are_refused, only_the_first_backend_is_recorded, data_files_that_were_exchanged_are_noticed,
                   where_files_lie_does_not_matter, missing_data_leaves_done_frames, partial_data_is_followed, virtual_and_raw_files_count,
                   datasets_of_one_file_are_told_apart, empad_pairs_count, merlin_headers_count, whole_files_are_compared_when_asked,
                   histograms_are_of_the_same_files]))
