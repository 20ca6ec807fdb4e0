#!/usr/bin/env python3
"""How g of a frame is held (compute.g_storage): what the plan chooses and says, what is refused, which results stay what they are."""
import copy
import json
import sys

import h5py
import numpy
from program import check, main, same, says

KNOWN = {"voltage_V": 80000, "semiangle_mrad": 25, "scan_step_A": [0.7, 0.6], "detector_pitch_mrad": [1.25, 1.25], "detector_center_px": [26.3, 25.6],
         "rotation_deg": 17, "aberrations": {"C10_A": -80}}
SPECIMEN = {"seed": 7, "output_master": "s_{frame}_master.h5", "frames": 3, "scan_shape": [24, 20], "detector_shape": [52, 53], "object": "crystal",
            "lattice_A": 3.905, "lattice_rotation_deg": 11.3, "atom_sigma_A": 0.6, "phase_rad": 0.15, "vacancies": 2, "dose_per_position": 3000,
            "dtype": "uint16"}
JOB = {"task": "reconstruct", "series": {"files": "s_*_master.h5"}, "optics": KNOWN, "weights": "poisson",
       "methods": {"ssb": {"estimator": "phase"}, "phase": {"strength": [0.1]}}, "output": {"file": "out.h5"}, "compute": {"backend": "cpu"}}
FIT = {"task": "fit", "series": {"files": "s_000_master.h5"}, "output": {"file": "fit.h5"}, "compute": {"backend": "cpu"},
       "optics": {name: KNOWN[name] for name in ("voltage_V", "semiangle_mrad", "scan_step_A", "detector_pitch_mrad")}}
GiB = 2**30


def simulate(folder, job=JOB):
    folder.save_job({"task": "simulate", "optics": KNOWN, "simulate": SPECIMEN})
    folder.call("run", extra=["--overwrite"])
    folder.save_job(job)


def plan_of(folder, *settings):
    """What check plans of memory, for a rank of its own."""
    return json.loads(folder.call("check", *settings, extra=["--json"]))["memory_per_rank"]


def stored(name):
    return f"compute.g_storage={name}"


def budget(bytes_):
    return f"compute.memory_budget_GiB={bytes_ / GiB:.12g}"


def room_for(folder, name):
    """A budget that one frame with its g in this form just fits into."""
    roomy = plan_of(folder, stored(name))
    one = roomy["peak_bytes"] - (roomy["frames_per_batch"] - 1) * (roomy["frame_bytes"] + roomy["g_bytes"])
    return max(one, roomy["least_bytes"]) + 1


def the_plan_says_what_it_chose(folder):
    simulate(folder)
    for name, holds in (("auto", True), ("none", False), ("exact", True), ("compact", True)):
        memory = plan_of(folder, stored(name))
        check(memory["g_storage"] == name and memory["holds_g"] == holds and memory["g_bytes"] > 0, f"{name}: {memory}")
        says(folder.call("check", stored(name)), "held whole" if holds else "not held", f"g_storage {name}")
    exact, compact = plan_of(folder, stored("exact")), plan_of(folder, stored("compact"))
    check(0.5 * exact["g_bytes"] < compact["g_bytes"] < 0.7 * exact["g_bytes"], f"{compact['g_bytes']} of {exact['g_bytes']} bytes")
    check(not plan_of(folder, "methods.ssb.estimator=wave")["holds_g"], "nothing goes through g again, and it is held")
    says(folder.call("check", stored("compact")), "less than a thousandth of their span")
    says(folder.run(stored("compact")).text, "held whole and compact")
    says(folder.use("info", "out.h5"), "held whole and compact")
    with h5py.File(folder.path / "out.h5") as file:
        process = file["entry/process_1"]
        said = process["memory"][()].decode()
        given = json.loads(process["job_effective"][()])["compute"]["g_storage"]
        check("held whole and compact" in said and given == "compact", f"provenance says {said}, {given}")


def holding_changes_no_bit_and_packing_little(folder):
    simulate(folder)
    none, first, every = folder.run(stored("none")), folder.run(), slice(None)
    same(first, none, every, "auto")
    for ranks in (None, 3):
        same(folder.run(stored("exact"), ranks=ranks), none, every, f"exact on {ranks} ranks")
    compact = folder.run(stored("compact"))
    same(folder.run(stored("compact"), ranks=3), compact, every, "compact on 3 ranks")
    for name in ("ssb/phase", "phase/phase"):
        a, b = compact.results[name], none.results[name]
        error = numpy.abs(a - b).max() / (b.max() - b.min())
        check(0 < error < 1e-3, f"{name}: compact g is {error} of the span off")
    check(compact.signature != none.signature and first.signature == none.signature, "what can be resumed")


def a_small_budget_refuses_what_was_asked_for_alone(folder):
    simulate(folder)
    exact, compact = room_for(folder, "exact"), room_for(folder, "compact")
    check(compact < exact, f"{compact} and {exact} bytes")
    says(folder.call("check", stored("exact"), budget(exact)), "held whole and exact")
    for command in ("check", "run"):
        text = folder.call(command, stored("exact"), budget(exact - exact // 50), status=2)
        says(text, "does not fit into memory", "/compute/memory_budget_GiB", '/compute/g_storage "auto" (found "exact")')
    check(not (folder.path / "out.h5").exists(), "an output of a job that was refused")
    tight, every = budget(compact), slice(None)
    says(folder.call("check", tight), "not held", "g_storage auto")
    same(folder.run(tight), folder.run(), every, "auto within little memory")
    same(folder.run(tight, stored("compact")), folder.run(stored("compact")), every, "compact within little memory")
    says(folder.call("check", stored("compact"), budget(compact - compact // 50), status=2), '(found "compact")')


def another_form_is_another_output(folder):
    simulate(folder)
    folder.run(stored("exact"))
    folder.call("run", stored("none"), extra=["--resume"])
    says(folder.call("run", stored("compact"), extra=["--resume"], status=2), "cannot be resumed", "g: was not there, now compact")
    for name in ("exact", "compact"):
        text = folder.call("check", stored(name), "compute.precision=reference", status=2)
        says(text, "/compute/g_storage", "reference precision", name, "auto or none")
    folder.call("check", stored("none"), "compute.precision=reference")
    says(folder.call("check", stored("packed"), status=2), "/compute/g_storage", '"packed"', "compact")


def a_fit_holds_it_too(folder):
    simulate(folder, copy.deepcopy(FIT))
    optics = {}
    for name in ("none", "auto", "exact", "compact"):
        says(folder.call("check", stored(name)), "held", f"g_storage {name}")
        says(folder.call("run", stored(name), extra=["--overwrite"]), f"g_storage {name}")
        says(folder.use("info", "fit.h5"), f"g_storage {name}")
        optics[name] = json.loads((folder.path / "fit_optics.json").read_text())
        optics[name].pop("comment", None)
    check(plan_of(folder)["holds_g"] and not plan_of(folder, stored("none"))["holds_g"], "what a fit's plan says")
    check(optics["auto"] == optics["none"] == optics["exact"], "holding g changes a fit")
    away = abs(optics["compact"]["aberrations"]["C10_A"] - optics["exact"]["aberrations"]["C10_A"])
    check(away < 0.5, f"compact g: C10 is {away} A off")
    says(folder.call("run", stored("exact"), extra=["--resume"], status=2), "differs from this one")


sys.exit(main([the_plan_says_what_it_chose, holding_changes_no_bit_and_packing_little, a_small_budget_refuses_what_was_asked_for_alone,
               another_form_is_another_output, a_fit_holds_it_too]))
