#!/usr/bin/env python3
"""The fit task: optics of simulated recordings found blindly, on several ranks, from a start, within bounds; its twin; its files; refusals."""
import cmath
import copy
import json
import math
import sys

import h5py
import numpy
from program import check, main, says

ABERRATIONS = {"C10_A": -80, "C12_A": 25, "phi12_rad": 0.4, "C21_A": 600, "phi21_rad": -1.1, "C23_A": 450, "phi23_rad": 0.3}
KNOWN = {"voltage_V": 80000, "semiangle_mrad": 25, "scan_step_A": [0.7, 0.6], "detector_pitch_mrad": [2.5, 2.5]}
TRUTH = {**KNOWN, "detector_center_px": [13.3, 12.6], "rotation_deg": 137, "detector_transpose": True, "aberrations": ABERRATIONS}
CRYSTAL = {"seed": 7, "output_master": "s_{frame}_master.h5", "frames": 2, "scan_shape": [48, 40], "detector_shape": [26, 27],
           "object": "crystal", "lattice_A": 3.905, "lattice_rotation_deg": 11.3, "atom_sigma_A": 0.6, "phase_rad": 0.15, "vacancies": 3,
           "dose_per_position": 300, "dtype": "uint16"}
FIT = {"task": "fit", "series": {"files": "s_000_master.h5"}, "optics": KNOWN, "output": {"file": "fit.h5"}, "compute": {"backend": "cpu"}}


def simulate(folder, optics=TRUTH, **more):
    folder.save_job({"task": "simulate", "optics": optics, "simulate": {**CRYSTAL, **more}})
    folder.call("run", extra=["--overwrite"])


def fit(folder, ranks=None, status=0, extra=("--overwrite",), **changes):
    """Runs a fit job; what it said, and the optics that it wrote."""
    folder.save_job({**copy.deepcopy(FIT), **changes})
    text = folder.call("run", ranks=ranks, status=status, extra=extra)
    return text, json.loads((folder.path / "fit_optics.json").read_text()) if status == 0 else None


def term(optics, n, m):
    a = optics["aberrations"]
    return a.get(f"C{n}{m}_A", 0) * cmath.exp(1j * m * a.get(f"phi{n}{m}_rad", 0))


def is_found(optics, truth, what, third_order=True):
    away = math.remainder(optics["rotation_deg"] - truth["rotation_deg"], 360)
    check(abs(away) <= 1, f"{what}: rotation is {away} deg off")
    check(optics["detector_transpose"] == truth.get("detector_transpose", False), f"{what}: transposition")
    for m in (0, 2):
        check(abs(term(optics, 1, m) - term(truth, 1, m)) <= 3, f"{what}: C1{m} is {term(optics, 1, m)}, expected {term(truth, 1, m)}")
    for m in (1, 3) if third_order else ():
        away = abs(term(optics, 2, m) - term(truth, 2, m)) / abs(term(truth, 2, m))
        check(away <= 0.2, f"{what}: C2{m} is {term(optics, 2, m)}, expected {term(truth, 2, m)}")


def it_finds_what_made_the_counts(folder):
    simulate(folder)
    text, optics = fit(folder)
    is_found(optics, TRUTH, "blind")
    says(text, "the detector is transposed", "twin: rotation", "told by the phase's skewness", "fit_optics.json")
    with h5py.File(folder.path / "fit.h5") as file:
        record = file["entry/fit/fit_0"]
        names = [name.decode() for name in record["parameter"][()]]
        n = len(names)
        check({"rotation_deg", "C10_A", "C12_cos_A", "C12_sin_A", "C21_cos_A", "C23_sin_A"} <= set(names), f"parameters {names}")
        check(record["correlation"].shape == (n, n) and numpy.allclose(numpy.diag(record["correlation"]), 1), "correlations")
        check(numpy.array_equal(record["correlation"][()], record["correlation"][()].T), "correlations are not symmetric")
        check((record["error"][()] > 0).all() and record["is_known"][()].all(), "errors")
        check(abs(record["value"][names.index("C10_A")] + 80) <= 5 * record["error"][names.index("C10_A")] + 2, "C10 against its error")
        check(record["explained_after"][()] > 5 * record["explained_before"][()] > 0, "explained power")
        check(abs(record["explained_by_twin"][()] / record["explained_after"][()] - 1) <= 1e-4, "the twin explains as much")
        check(record["phase_after"].shape == (48, 40) and record["landscape"].shape == (41, 41), "pictures")
        best = numpy.unravel_index(record["landscape"][()].argmax(), (41, 41))
        check(max(abs(best[0] - 20), abs(best[1] - 20)) <= 1, f"the landscape's peak is at {best}")
        check(json.loads(record["optics_after"][()])["rotation_deg"] == optics["rotation_deg"], "the optics in the output")
    says(folder.use("info", "fit.h5"), "rotation_deg", "explained", "C10_A", "twin")
    folder.use("preview", "fit.h5", "--to", "pictures")
    pictures = {path.name for path in (folder.path / "pictures").iterdir()}
    check({"fit_0_landscape.png", "fit_0_phase_before.png", "fit_0_phase_after.png", "fit_0_residual_phase.png", "report.html"} <= pictures,
          f"pictures: {pictures}")
    says((folder.path / "pictures/report.html").read_text(), "C12_cos_A", "Explained power")


def the_optics_can_be_used(folder):
    """The picture with the fitted optics is that with the true ones, and the fit finds itself again from its own file."""
    simulate(folder)
    _, optics = fit(folder)
    images = []
    for name, used in (("truth", "s_000_optics.json"), ("fitted", "fit_optics.json")):
        folder.save_job({"task": "reconstruct", "series": {"files": "s_000_master.h5"}, "optics": used, "upsampling": 1,
                         "methods": {"phase": {"strength": 0.1}}, "output": {"file": f"{name}.h5"}, "compute": {"backend": "cpu"}})
        folder.call("run", extra=["--overwrite"])
        with h5py.File(folder.path / f"{name}.h5") as file:
            images.append(file["entry/phase/phase"][0].ravel())
    correlation = numpy.corrcoef(images)[0, 1]
    check(correlation >= 0.99, f"pictures with true and fitted optics correlate by {correlation}")
    (folder.path / "start.json").write_text(json.dumps(optics))
    text, again = fit(folder, optics="start.json")
    is_found(again, TRUTH, "from its own file")
    says(text, "told by the values or bounds that are given")


def optics_far_from_the_truth_are_said(folder):
    """A defocus far beyond what is searched ends at a false maximum, which leaves what the true optics explain."""
    truth = {**KNOWN, "scan_step_A": [1.2, 1.2], "voltage_V": 300000, "semiangle_mrad": 20, "detector_pitch_mrad": [2.0, 2.0],
             "detector_center_px": [13.3, 12.6], "rotation_deg": 30}
    known = {name: truth[name] for name in KNOWN}
    for defocus, is_far in ((-2000, True), (-150, False)):
        simulate(folder, {**truth, "aberrations": {"C10_A": defocus}}, scan_shape=[48, 48], frames=1, dose_per_position=3000)
        text, optics = fit(folder, optics=known)
        check((abs(term(optics, 1, 0) - defocus) > 100) == is_far, f"C10 {term(optics, 1, 0)}, made with {defocus}")
        check(("of what stands out of the counts' noise is explained" in text) == is_far, text)


def ranks_agree(folder):
    simulate(folder)
    one = fit(folder)[1]
    for ranks in (2, 3):
        check(fit(folder, ranks=ranks)[1] == one, f"{ranks} ranks find other optics")


def another_geometry_is_found_too(folder):
    truth = {**TRUTH, "rotation_deg": -71.5, "detector_transpose": False, "scan_step_A": [0.55, 0.8],
             "aberrations": {"C10_A": 140, "C12_A": 40, "phi12_rad": -1.0, "C21_A": 900, "phi21_rad": 2.0}}
    simulate(folder, truth, scan_shape=[52, 36], seed=11, dose_per_position=3000)
    known = {**KNOWN, "scan_step_A": truth["scan_step_A"]}
    is_found(fit(folder, optics=known)[1], truth, "blind", third_order=False)
    near = {**known, "rotation_deg": -69, "detector_transpose": False, "aberrations": {"C10_A": 120}}  # the plain way takes its time
    reference = fit(folder, optics=near, compute={"backend": "cpu", "precision": "reference"}, fit={"frequencies": 40})[1]
    is_found(reference, truth, "reference precision, from a start", third_order=False)


def the_twin_follows_the_users_word(folder):
    simulate(folder)
    twin = {**TRUTH, "rotation_deg": -43, "aberrations": {**ABERRATIONS, "C10_A": 80, "C12_A": -25}}
    is_found(fit(folder, fit={"phase_sign": "negative"})[1], twin, "phase_sign")
    is_found(fit(folder, fit={"bounds": {"C10": [0, 400]}})[1], twin, "bounds of C10")
    is_found(fit(folder, fit={"bounds": {"rotation_deg": [-90, 0]}})[1], twin, "bounds of the rotation")
    text, optics = fit(folder, optics={**KNOWN, "rotation_deg": -50, "detector_transpose": True})
    is_found(optics, twin, "a rotation that is given")
    says(text, "told by the values or bounds that are given")


def named_quantities_are_fitted_alone(folder):
    simulate(folder, dose_per_position=3000)
    given = {**TRUTH, "aberrations": {**ABERRATIONS, "C10_A": -40}, "detector_center_px": [13.0, 13.0]}
    _, optics = fit(folder, optics=given, fit={"free": ["C10", "detector_center_px"]})
    check(abs(optics["aberrations"]["C10_A"] + 80) <= 3, f"C10 is {optics['aberrations']['C10_A']}")
    check(math.dist(optics["detector_center_px"], TRUTH["detector_center_px"]) <= 0.15, f"centre {optics['detector_center_px']}")
    check(optics["rotation_deg"] == 137 and abs(term(optics, 2, 1) - term(TRUTH, 2, 1)) < 1e-6, "what is not free has changed")
    text, optics = fit(folder, optics=given, fit={"free": ["C10"], "bounds": {"C10": [-60, -30]}})
    check(abs(optics["aberrations"]["C10_A"] + 60) < 1e-6, f"C10 is {optics['aberrations']['C10_A']}, its bound -60")
    says(text, "C10_A ended at its bound -60")


def noise_is_refused(folder):
    simulate(folder, phase_rad=1e-6, log_amplitude=0)
    text, _ = fit(folder, status=4)
    says(text, "no optics explain the data clearly better than others")
    check(not (folder.path / "fit.h5").exists() and not (folder.path / "fit_optics.json").exists(), "a fit that failed left files")
    text, _ = fit(folder, status=4, ranks=3)
    says(text, "no optics explain the data clearly better than others")


def reconstruct(folder, name, optics, extra=("--overwrite",), status=0, **options):
    folder.save_job({"task": "reconstruct", "series": {"files": "s_*_master.h5"}, "optics": optics, "upsampling": 1,
                     "methods": {"phase": {"strength": 0.1}}, "output": {"file": name}, "compute": {"backend": "cpu"}})
    text = folder.call("run", extra=extra, status=status, **options)
    with h5py.File(folder.path / name) as file:
        note = file["entry/process_1"].get("fit")
        return text, file["entry/phase/phase"][()], json.loads(file["entry/optics_0/used"][()]), note and note[()].decode()


def a_reconstruction_fits_its_optics_first(folder):
    """The same pictures as with the optics file of a fit, on any ranks; what it found stays with its output."""
    simulate(folder)
    _, optics = fit(folder)
    _, expected, _, _ = reconstruct(folder, "with_file.h5", "fit_optics.json")
    wanted = {**KNOWN, "fit": {}}
    text, images, used, note = reconstruct(folder, "fitted.h5", wanted)
    check(images.any() and images.tobytes() == expected.tobytes(), f"other pictures: up to {numpy.abs(images - expected).max()}")
    check(used["rotation_deg"] == optics["rotation_deg"] and used["aberrations"] == optics["aberrations"], "other optics")
    says(text, "optics fitted on frame 0", "twin: rotation")
    says(note or "", "C10_A", "+-", "explained power")
    check(reconstruct(folder, "ranks.h5", wanted, ranks=3)[1].tobytes() == expected.tobytes(), "3 ranks make other pictures")
    text, again, _, _ = reconstruct(folder, "fitted.h5", wanted, extra=("--resume",))
    check("optics fitted on" not in text and again.tobytes() == expected.tobytes(), "resuming fitted again, or changed the pictures")
    says(folder.call("check"), "optics are fitted first")
    simulate(folder, phase_rad=1e-6, log_amplitude=0)
    folder.save_job({"task": "reconstruct", "series": {"files": "s_*_master.h5"}, "optics": wanted, "methods": {"ssb": {}},
                     "output": {"file": "noise.h5"}, "compute": {"backend": "cpu"}})
    says(folder.call("run", status=4, ranks=2), "/optics/fit", "no optics explain the data clearly better")
    check(not (folder.path / "noise.h5").exists(), "an output without optics was left")


def wrong_optics_are_noticed(folder):
    """In check --data; right ones draw no such warning."""
    simulate(folder)
    truth = json.loads((folder.path / "s_000_optics.json").read_text())
    job = {"task": "reconstruct", "series": {"files": "s_000_master.h5"}, "optics": truth, "methods": {"ssb": {}}, "output": {"file": "o.h5"},
           "compute": {"backend": "cpu"}}
    folder.save_job(job)
    text = folder.call("check", extra=["--data"])
    check("off" not in text.replace("offers", ""), f"right optics are doubted: {text}")
    wrong = {**truth, "aberrations": {**truth["aberrations"], "C10_A": -30}}
    folder.save_job({**job, "optics": wrong})
    says(folder.call("check", extra=["--data"]), "C10 looks", "A off", "as given")
    check("C10 looks" not in folder.call("check"), "check looks at optics without --data")
    folder.save_job({**job, "optics": {**truth, "rotation_deg": truth["rotation_deg"] + 8}})
    says(folder.call("check", extra=["--data"]), "rotation looks", "degrees off")


def doubt(folder, text, optics, expected, methods, **options):
    """Runs a reconstruction with these optics; what it says of them, in the log and in the output."""
    folder.save_job({"task": "reconstruct", "series": {"files": "s_*_master.h5"}, "optics": optics, "methods": methods,
                     "output": {"file": "o.h5"}, "compute": {"backend": "cpu"}})
    said = folder.call("run", extra=["--overwrite"], **options)
    with h5py.File(folder.path / "o.h5") as file:
        record = file["entry/optics_0"]
        written = record["doubt"][()].decode()
        check(record["doubt_looked"][()] == 1 and record["doubt_seconds"][()] > 0, f"{text}: nobody looked")
    for part in expected:
        check(part in written and said.count(part) == 1, f"{text}: '{part}' is not once in {written}; {said}")
    check(expected or not written, f"{text}: {written}")
    return written


def a_run_notices_wrong_optics(folder):
    """With any method, on any ranks, once for an output."""
    simulate(folder)
    truth = json.loads((folder.path / "s_000_optics.json").read_text())
    wrong = {**truth, "aberrations": {**truth["aberrations"], "C10_A": -30}}
    for methods in ({"ssb": {}}, {"phase": {"strength": 0.1}}, {"complex": {"strength": 0.1}}, {"mf": {}}):
        doubt(folder, f"right, {methods}", truth, (), methods)
        doubt(folder, f"C10 off, {methods}", wrong, ("C10 looks", "as given"), methods)
    doubt(folder, "turned", {**truth, "rotation_deg": truth["rotation_deg"] + 8}, ("rotation looks", "degrees off"), {"phase": {"strength": 0.1}})
    written = [doubt(folder, f"{ranks} ranks", wrong, ("C10 looks",), {"ssb": {}, "mf": {}}, ranks=ranks) for ranks in (None, 3)]
    check(written[0] == written[1], f"ranks differ: {written}")
    says(folder.use("info", "o.h5"), "warning   optics 0: C10 looks")
    folder.use("preview", "o.h5", "--to", "doubted")
    says((folder.path / "doubted/report.html").read_text(), "C10 looks")
    with h5py.File(folder.path / "o.h5", "r+") as file:
        file["entry/frames/state"][...] = 0
    check("C10 looks" not in folder.call("run", extra=["--resume"]), "looked twice")


def memory_is_planned(folder):
    """A budget is kept to, said by check, and changes no answer; one that is too small is refused before anything is read."""
    simulate(folder)
    roomy = fit(folder)[1]
    memory = json.loads(folder.call("check", extra=["--json"]))["memory_per_rank"]
    check(memory["peak_bytes"] > memory["frame_bytes"] > 0 and memory["band_bytes"] > 0, f"memory {memory}")
    GiB = 1024**3
    tight = {**FIT["compute"], "memory_budget_GiB": 1.001 * memory["peak_bytes"] / GiB}
    check(fit(folder, compute=tight)[1] == roomy, "another budget finds other optics")
    small = {**FIT["compute"], "memory_budget_GiB": 0.001}
    check(memory["frame_bytes"] > 0.001 * GiB, "the frame is larger than that budget")
    text = fit(folder, compute=small, status=2)[0]
    says(text, "does not fit into memory", "g of its bands", "/compute/memory_budget_GiB")
    says(folder.call("check", status=2), "does not fit into memory")
    folder.save_job({"task": "reconstruct", "series": FIT["series"], "optics": {**KNOWN, "fit": {}}, "methods": {"phase": {"strength": 0.1}},
                     "output": {"file": "small.h5"}, "compute": small})
    says(folder.call("run", status=2), "this fit does not fit into memory")


def files_are_kept(folder):
    simulate(folder)
    (folder.path / "fit_optics.json").write_text("{}")
    text, _ = fit(folder, status=2)
    says(text, "no fit wrote it")
    check((folder.path / "fit_optics.json").read_text() == "{}", "a file of the user is gone")
    (folder.path / "fit_optics.json").unlink()
    first = fit(folder, extra=())[1]
    says(fit(folder, extra=(), status=2)[0], "already")
    text, again = fit(folder, extra=("--resume",))
    says(text, "is complete already")
    check(again == first, "resuming changed the optics")
    says(fit(folder, extra=("--resume",), status=2, fit={"strength": 0.1})[0], "differs")
    says(fit(folder, status=2, fit={"frame": 1})[0], "/fit/frame: found 1", "1 usable")
    fit(folder, fit={"frame": 1, "optics_file": "{stem}_found.json"}, series={"files": "s_*_master.h5"})
    check((folder.path / "s_001_found.json").exists(), "{stem} is the recording's name")
    says(folder.call("check"), "auto: rotation", "s_001")
    check(json.loads(folder.call("check", extra=["--json"]))["fits"] == [1], "check --json")


if __name__ == "__main__":
    sys.exit(main([it_finds_what_made_the_counts, the_optics_can_be_used, optics_far_from_the_truth_are_said, ranks_agree, another_geometry_is_found_too,
                   the_twin_follows_the_users_word, named_quantities_are_fitted_alone, noise_is_refused,
                   a_reconstruction_fits_its_optics_first, wrong_optics_are_noticed, a_run_notices_wrong_optics, memory_is_planned,
                   files_are_kept]))
