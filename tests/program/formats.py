#!/usr/bin/env python3
"""What files say of themselves: scan shapes, order of axes, units, orientation, probe positions, numbers of frames. Used, or said, or refused."""
import copy
import json
import math
import sys

from program import COLUMNS, DETECTOR, JOB, OPTICS, ROWS, check, h5py, main, numpy, recording, same, says

WAVELENGTH_A = 0.025079340  # at 200 kV
PITCH_INV_A = OPTICS["detector_pitch_mrad"][0] * 1e-3 / WAVELENGTH_A


def cube():
    return recording(1).reshape(ROWS, COLUMNS, *DETECTOR)


def plain(folder):
    folder.save("frame_1.npy", recording(1))
    folder.save_job()
    return folder.run()


def job_without(*values, files="a.h5", shape=None):
    """The job for another file, with the named values of the optics left for the recording to tell."""
    job = copy.deepcopy(JOB)
    job["series"] = {"files": [files], "scan_shape": shape}
    for value in values:
        del job["optics"][value]
    return job


def refused(folder, *parts, settings=()):
    """`check` and `run` refuse the only recording with the same words."""
    says(folder.call("check", *settings, status=2), *parts)
    says(folder.call("run", *settings, status=4), *parts)


def another_shape_than_the_files_is_refused(folder):
    expected = plain(folder)
    folder.save("frame_1.npy", cube())
    same(folder.run(), expected, [0], "the file's shape")
    turned = "series.scan_shape=[7,6]"
    refused(folder, "the job's series.scan_shape is 7 x 6 = 42, but the file says a scan of 6 x 7 = 42 positions (shape of the array)",
            "series.scan_shape_override", settings=[turned])
    says(folder.call("run", turned, status=4, ranks=3), "but the file says a scan of 6 x 7")
    text = folder.call("check", turned, "series.scan_shape_override=true")
    says(text, "warning", "the job's 7 x 6 is taken instead")
    wrong = folder.run(turned, "series.scan_shape_override=true")
    check(wrong.results["phase/phase"].shape != expected.results["phase/phase"].shape, "the override does nothing")
    folder.save("frame_1.npy", recording(1)[None])  # a list of positions
    same(folder.run(), expected, [0], "a list")
    folder.call("check", "series.scan_shape=null", "series.scan_shape_override=true", status=2)


def one_of_three_with_another_shape_fails_alone(folder):
    expected = plain(folder)
    folder.save("frame_1.npy", cube())
    folder.save("frame_2.npy", cube().reshape(COLUMNS, ROWS, *DETECTOR))
    folder.save("frame_3.npy", cube())
    for ranks in (None, 3):
        found = folder.run(status=3, ranks=ranks)
        says(found.error(1), "is 6 x 7 = 42, but the file says a scan of 7 x 6")
        same(found, expected, [0], "beside it", [0])
        same(found, expected, [2], "beside it", [0])


def write_hspy(folder, counts, navigate, names=("y", "x", "ky", "kx"), sizes=None, units=("nm", "nm", "1/nm", "1/nm")):
    scales = {"nm": OPTICS["scan_step_A"][0] / 10, "1/nm": PITCH_INV_A * 10}
    with h5py.File(folder.path / "a.h5", "w") as file:
        group = file.create_group("Experiments/scan")
        group["data"] = counts
        for i, size in enumerate(sizes or counts.shape):
            axis = group.create_group(f"axis-{i}")
            axis.attrs.update({"name": names[i], "size": size, "scale": scales.get(units[i], 1.0), "offset": 0.0, "units": units[i]})
            if navigate:
                axis.attrs["navigate"] = navigate[i]
        group.create_group("metadata/Acquisition_instrument/TEM").attrs["beam_energy"] = 200.0


def hyperspy_axes_are_used(folder):
    expected = plain(folder)
    folder.save_job(job_without("scan_step_A", "detector_pitch_mrad", "voltage_V"))
    write_hspy(folder, cube(), (True, True, False, False))
    found = folder.run()
    optics = json.loads(found.optics["used"])
    for name, value in (("scan_step_A", 0.5), ("detector_pitch_mrad", 3.0), ("voltage_V", 200000)):
        values = numpy.atleast_1d(optics[name])
        check((numpy.abs(values / value - 1) <= 1e-6).all(), f"{name} is {values}, expected {value}")
    difference = numpy.abs(found.results["phase/phase"] - expected.results["phase/phase"]).max()
    check(difference <= 1e-3 * numpy.abs(expected.results["phase/phase"]).max(), f"differs by {difference}")
    write_hspy(folder, recording(1), (True, False, False), names=("scan", "ky", "kx"), units=("", "1/nm", "1/nm"))
    folder.call("check", "series.scan_shape=[6,7]", "optics.scan_step_A=[0.5,0.5]")


def signal_axes_in_front_are_refused(folder):
    folder.save_job(job_without())
    turned = cube().transpose(2, 3, 0, 1)
    write_hspy(folder, turned, (False, False, True, True))
    refused(folder, "the axes of /Experiments/scan/data are", "marked detector", "expected the scan's axes first")
    write_hspy(folder, turned, None, names=("ky", "kx", "y", "x"), units=("", "", "nm", "nm"))
    refused(folder, "ky, kx, y [nm], x [nm]")
    write_hspy(folder, turned, None, names=("a", "b", "y", "x"), units=("1/nm", "1/nm", "nm", "nm"))
    refused(folder, "a [1/nm], b [1/nm], y [nm], x [nm]")
    write_hspy(folder, cube(), (True, False, True, False))
    refused(folder, "expected the scan's axes first")
    write_hspy(folder, turned, (True, True, False, False), sizes=cube().shape)
    refused(folder, "/Experiments/scan/axis-0 says an axis of 6, but the dataset has 20 there")
    write_hspy(folder, cube(), (False, False, False, False))
    says(folder.call("check"), "are all said to be the detector's")


def named_axes_in_the_wrong_order_are_refused(folder):
    folder.save_job(job_without())
    turned = cube().transpose(2, 3, 0, 1)

    def write(counts, describe):
        with h5py.File(folder.path / "a.h5", "w") as file:
            describe(file, file.create_dataset("/entry/data/counts", data=counts))

    def labels(names):
        def describe(_, data):
            for i, name in enumerate(names):
                data.dims[i].label = name
        return describe

    def scales(names):
        def describe(file, data):
            for i, name in enumerate(names):
                file[f"/entry/data/{name}"] = numpy.arange(data.shape[i]) * 0.5
                file[f"/entry/data/{name}"].make_scale(name)
                data.dims[i].attach_scale(file[f"/entry/data/{name}"])
        return describe

    def attribute(name, value, on_group=False):
        return lambda file, data: (file["/entry/data"] if on_group else data).attrs.__setitem__(name, value)

    variable = h5py.string_dtype()
    for describe in (labels(["Qx", "Qy", "Rx", "Ry"]), labels(["Q_Nx", "Q_Ny", "R_Nx", "R_Ny"]), scales(["ky", "kx", "sy", "sx"]),
                     labels(["det_row", "det_col", "", ""]),
                     attribute("_ARRAY_DIMENSIONS", numpy.array(["q_y", "q_x", "y", "x"], dtype=variable)),
                     attribute("_ARRAY_DIMENSIONS", json.dumps(["detector_y", "detector_x", "y", "x"])),
                     attribute("axes", numpy.array(["diffraction_y", "diffraction_x", "y", "x"], dtype="S16"), on_group=True),
                     attribute("axes", "sig_y:sig_x:nav_y:nav_x"), attribute("dims", "y,x,scan_y,scan_x")):
        write(turned, describe)
        refused(folder, "the axes of /entry/data/counts are", "expected the scan's axes first, then detector row and detector column")
    for describe in (labels(["Rx", "Ry", "Qx", "Qy"]), scales(["sy", "sx", "ky", "kx"]), labels(["a", "b", "c", "d"]),
                     attribute("_ARRAY_DIMENSIONS", numpy.array(["y", "x", "q_y", "q_x"], dtype=variable)), attribute("axes", ".:.:.:."),
                     attribute("axes", numpy.arange(4)), attribute("dims", "one"), attribute("dims", "1,2,3,4,5,6,7,8")):
        write(cube(), describe)
        folder.call("check")
    write(recording(1).transpose(1, 2, 0), labels(["ky", "kx", "position"]))
    refused(folder, "ky, kx, position")


def steps_of_scales_are_used(folder):
    folder.save_job(job_without("scan_step_A", "detector_pitch_mrad"))
    with h5py.File(folder.path / "a.h5", "w") as file:
        data = file.create_dataset("data", data=cube())
        for i, (name, step, unit) in enumerate((("y", 0.05, "nm"), ("x", 0.05, "nm"), ("qy", 3.0, "mrad"), ("qx", 3.0, "mrad"))):
            file[name] = numpy.arange(data.shape[i]) * step
            file[name].attrs["units"] = unit
            file[name].make_scale(name)
            data.dims[i].attach_scale(file[name])
    optics = json.loads(folder.run().optics["used"])
    for name, value in (("scan_step_A", 0.5), ("detector_pitch_mrad", 3.0)):
        check(all(abs(found - value) <= 1e-9 for found in optics[name]), f"{name} is {optics[name]}, expected {value}")


def emd(folder, calibration=None, names=None):
    with h5py.File(folder.path / "a.h5", "w") as file:
        group = file.create_group("root/cube")
        group.attrs["emd_group_type"] = "array"
        group["data"] = cube()
        for i, name in enumerate(names or []):
            group[f"dim{i}"] = numpy.arange(2.0)
            group[f"dim{i}"].attrs["name"] = name
        for name, value in (calibration or {}).items():
            file[f"root/metadatabundle/calibration/{name}"] = value


def frequencies_become_angles_with_the_optics_voltage(folder):
    expected = plain(folder)
    folder.save_job(job_without("detector_pitch_mrad"))
    for size, unit in ((PITCH_INV_A, "A^-1"), (PITCH_INV_A * 10, "1/nm"), (PITCH_INV_A * 10, "1 / nm"), (PITCH_INV_A, "Å⁻¹"), (PITCH_INV_A, "1/Å")):
        emd(folder, {"Q_pixel_size": size, "Q_pixel_units": unit})
        found = folder.run()
        pitch = json.loads(found.optics["used"])["detector_pitch_mrad"]
        check(all(abs(value / 3.0 - 1) <= 1e-6 for value in pitch), f"{size} {unit}: a pitch of {pitch} mrad")
        says(json.dumps(found.optics["origin"].decode()), "Q_pixel_size")
    difference = numpy.abs(found.results["phase/phase"] - expected.results["phase/phase"]).max()
    check(difference <= 1e-3 * numpy.abs(expected.results["phase/phase"]).max(), f"differs by {difference}")
    emd(folder, {"Q_pixel_size": 2 * PITCH_INV_A, "Q_pixel_units": "A^-1"})
    folder.save_job(job_without())
    says(folder.call("check"), "detector_pitch_mrad is 3, but the recording a says 6")
    emd(folder, {"Q_pixel_size": PITCH_INV_A, "Q_pixel_units": "furlong", "R_pixel_size": 0.5, "R_pixel_units": "parsec"})
    says(folder.call("check"), "Q_pixel_size says", "'furlong', which is no unit of angle or reciprocal length", "'parsec', which is no unit of length")
    emd(folder, {"Q_pixel_size": 1, "Q_pixel_units": "pixels", "R_pixel_size": 1, "R_pixel_units": "pixels"})
    text = folder.call("check")
    check("pixel_size" not in text, f"nothing to say of pixels, but:\n{text}")


def orientation_is_said(folder):
    folder.save_job(job_without())
    emd(folder, {"QR_rotation": math.radians(-17), "QR_rotation_degrees": -17.0, "QR_flip": True})
    says(folder.call("check"), "QR_rotation_degrees -17: not used, the optics' rotation_deg is", "flipped (QR_flip): not used")
    emd(folder, {"QR_rotation": 12.5, "QR_flip": numpy.int8(1)})
    says(folder.call("check"), "QR_rotation 12.5", "flipped (QR_flip)")
    emd(folder, {"QR_rotation": 0.0, "QR_flip": False})
    text = folder.call("check")
    check("QR_" not in text, f"nothing to say of it, but:\n{text}")


def emd_axes_by_name(folder):
    folder.save_job(job_without())
    emd(folder, names=["Rx", "Ry", "Qx", "Qy"])
    folder.call("check")
    emd(folder, names=["Qx", "Qy", "Rx", "Ry"])
    refused(folder, "the axes of /root/cube are Qx, Qy, Rx, Ry; expected the scan's axes first")


def listed_positions_are_refused(folder):
    expected = plain(folder)
    folder.save_job(job_without(shape=[ROWS, COLUMNS]))
    n = ROWS * COLUMNS
    places = numpy.random.default_rng(3).random((n, 3))

    def write(datasets, attributes=None):
        with h5py.File(folder.path / "a.h5", "w") as file:
            file["/entry_1/data_1/data"] = recording(1)
            for name, values in datasets.items():
                file[name] = values
            for name, values in (attributes or {}).items():
                file[name].attrs.update(values)

    positioners = {f"/entry/instrument/{axis}/value": places[:, i] for i, axis in enumerate("ab")}
    movers = {f"/entry/sample/transformations/{axis}": places[:, i] for i, axis in enumerate("ab")}
    cases = [({"/entry_1/sample_1/geometry_1/translation": places}, None, "/entry_1/sample_1/geometry_1/translation lists"),
             ({"/chunks/0/positions": places[:, :2]}, None, "/chunks/0/positions lists"),
             ({"/scan": places[:, :2]}, None, "/scan lists"),
             ({"/probe_positions_0": places[:, :2].T}, None, "/probe_positions_0 lists"),
             ({"/ppX": places[:, 0], "/ppY": places[:, 1]}, None, "/ppX and /ppY lists"),
             ({"/entry/sample_x": places[:, 0], "/entry/sample_y": places[:, 1]}, None, "/entry/sample_x and /entry/sample_y lists"),
             ({"/positions/x": places[:, 0], "/positions/y": places[:, 1]}, None, "/positions/x and /positions/y lists"),
             (positioners, {f"/entry/instrument/{axis}": {"NX_class": "NXpositioner"} for axis in "ab"}, "/entry/instrument/a/value lists"),
             (movers, {name: {"transformation_type": "translation"} for name in movers}, "/entry/sample/transformations/a lists")]
    for datasets, attributes, words in cases:
        write(datasets, attributes)
        refused(folder, words, "only rasters are read")
        override = folder.run("series.scan_shape_override=true")
        same(override, expected, [0], "an override")
        says(override.text + folder.call("check", "series.scan_shape_override=true"), "they are taken as the job's raster")
    for datasets in ({"/entry/positions": places[:-1]}, {"/entry/sample_x": places[:, 0]}, {"/entry/beam/x": places[:, 0], "/entry/beam/y": places[:, 1]},
                     {"/entry/names_of_positions": [b"a"] * n}, {"/entry/data/x": numpy.arange(COLUMNS), "/entry/data/y": numpy.arange(ROWS)}):
        write(datasets)
        folder.call("check")


def write_mib(folder, numbers, hdr=""):
    counts = recording(1)
    with open(folder.path / "a.mib", "wb") as file:
        for number, frame in zip(numbers, counts[[n - 1 for n in numbers]]):
            header = f"MQ1,{number:06d},00384,01,{DETECTOR[1]:04d},{DETECTOR[0]:04d},U16,   1x1,01,2021-05-07 18:51:10.905800,0.1,0,"
            file.write(header.encode().ljust(384, b"\0") + frame.astype(">u2").tobytes())
    (folder.path / "a.hdr").write_text("HDR,\t\n" + hdr + "End\t")


def lost_frames_of_merlin(folder):
    expected = plain(folder)
    n = ROWS * COLUMNS
    folder.save_job(job_without(files="a.mib", shape=[ROWS, COLUMNS]))
    write_mib(folder, range(1, n + 1))
    folder.run("series.saturation=null")
    write_mib(folder, range(1, n + 1), f"ScanX:\t{COLUMNS}\nScanY:\t{ROWS}\n")
    folder.run("series.scan_shape=null")
    refused(folder, "but the file says a scan of 6 x 7 = 42 positions (ScanY and ScanX in the .hdr file)", settings=["series.scan_shape=[7,6]"])
    write_mib(folder, [i for i in range(1, n + 1) if i not in (10, 11, 30)])
    refused(folder, "3 of 42 patterns were lost, the first at position 9")
    for ranks in (None, 3):
        found = folder.run("series.allow_partial=true", "series.saturation=null", ranks=ranks)
        check(found.frames["n_missing"].tolist() == [3], f"{found.frames['n_missing']} positions are recorded as missing")
        says(found.text + folder.call("check", "series.allow_partial=true"), "3 patterns were lost, the first at position 9")
    filled = recording(1)
    filled[[9, 10]], filled[29] = filled[8], filled[28]
    folder.save("frame_1.npy", filled)
    folder.save_job()
    same(folder.run(), found, [0], "filled")
    check(expected.results["phase/phase"].tobytes() != found.results["phase/phase"].tobytes(), "filled positions change nothing")


def jobs_are_utf8(folder):
    folder.save("frame_1.npy", recording(1))
    folder.save_job()
    text = (folder.path / "job.json").read_bytes()
    for bad, words in ((text.replace(b"frame_", b"caf\xe9_"), "(0xE9) is not UTF-8; save it as UTF-8"),
                       (text.decode().encode("utf-16"), "begins with the byte order mark of UTF-16"),
                       (text.replace(b"frame_", b"\xed\xa0\x80"), "(0xED) is not UTF-8")):
        (folder.path / "job.json").write_bytes(bad)
        says(folder.call("check", status=2), "job.json", words)
        says(folder.call("run", status=2), "job.json", words)
    (folder.path / "job.json").write_bytes(b"\xef\xbb\xbf" + text)
    folder.call("check")
    (folder.path / "optics.json").write_bytes(json.dumps(OPTICS).encode()[:-1] + b', "comment": "\xb5m"}')
    says(folder.call("check", "optics=optics.json", status=2), "optics.json", "(0xB5) is not UTF-8")


sys.exit(main([another_shape_than_the_files_is_refused, one_of_three_with_another_shape_fails_alone, hyperspy_axes_are_used,
               signal_axes_in_front_are_refused, named_axes_in_the_wrong_order_are_refused, steps_of_scales_are_used,
               frequencies_become_angles_with_the_optics_voltage, orientation_is_said, emd_axes_by_name, listed_positions_are_refused,
               lost_frames_of_merlin, jobs_are_utf8]))
