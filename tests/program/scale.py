#!/usr/bin/env python3
"""bench scale on its base problem alone: every other point is left out for its time, or for its memory, and named."""
import json
import sys
import xml.etree.ElementTree

from program import check, main, says

AXES = {"scan side, positions", "detector side, pixels", "aliases of a frequency (mean)", "frames in a batch"}
STAGES = ("put", "prepare", "reduce", "solve", "ssb")


def points_beyond_the_limit_are_named(folder):
    text = folder.use("bench", "scale", "--backend", "cpu", "--seconds", "0.000001", "--json", "a.json", "--svg", "a.svg")
    says(text, "processor seconds a frame", "left out: about ", "more than --seconds 1e-06", *AXES)
    table = json.loads((folder.path / "a.json").read_text())
    measured = [point for point in table["points"] if "left_out" not in point]
    check({point["axis"] for point in table["points"]} == AXES and len(measured) == 1, f"{len(measured)} points were measured")
    for stage in STAGES:
        found = measured[0][stage]
        check(found["seconds"] > 0 and found["bytes" if stage == "put" else "operations"] > 0 and found["relative_cost"] == 1, f"{stage}: {found}")
    check(measured[0]["put"]["bytes"] == 128 * 128 * 96 * 96 * 2, f"{measured[0]['put']}")
    aliases = [point["x"] for point in table["points"] if point["axis"].startswith("aliases")]
    check(min(aliases) < 1.5 and max(aliases) > 50, f"aliases {aliases}")
    root = xml.etree.ElementTree.parse(folder.path / "a.svg").getroot()
    check(root.tag.endswith("svg") and "reduce" in "".join(root.itertext()), "the picture is no plot of the stages")


def what_does_not_fit_is_named(folder):
    text = folder.use("bench", "scale", "--backend", "cpu", "--memory-GiB", "0.001", "--seconds", "0.000001", "--json", "a.json")
    table = json.loads((folder.path / "a.json").read_text())
    check(all("left_out" in point for point in table["points"]), "a point fitted a mebibyte")
    says(text, "left out: ")


def slips_are_refused(folder):
    says(folder.use("bench", "scale", "--seconds", "0", status=2), "--seconds and --memory-GiB must be above 0")
    says(folder.use("bench", "scale", "--secons", "1", status=2), "did you mean --seconds")


sys.exit(main([points_beyond_the_limit_are_named, what_does_not_fit_is_named, slips_are_refused]))
