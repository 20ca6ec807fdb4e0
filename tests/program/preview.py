#!/usr/bin/env python3
"""Pictures and pages of outputs: they replace earlier ones and nothing else, whatever stands in their directory."""
import hashlib
import os
import shutil
import subprocess
import sys

from program import JOB, check, fail, main, recording, says

HISTOGRAM = {"task": "histogram", "series": JOB["series"], "histogram": {"bins": 16, "range": "auto"}, "output": {"file": "h.h5"},
             "compute": {"backend": "cpu"}}
OUTPUTS = (("out.h5", "series_phase.png"), ("h.h5", "mean.png"))


def make(folder):
    folder.save("frame_0.npy", recording(1))
    for job in (JOB, HISTOGRAM):
        folder.save_job(job)
        folder.call("run")
    shutil.rmtree(folder.path / "place", ignore_errors=True)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def whole(place):
    """What stands there is pictures and one page, each to its end."""
    names = sorted(path.name for path in place.iterdir())
    for name in names:
        data = (place / name).read_bytes()
        if name.endswith(".png"):
            check(data.startswith(b"\x89PNG") and data.endswith(b"IEND\xaeB`\x82"), f"{name} is no whole PNG")
        else:
            check(name == "report.html" and data.endswith(b"</body></html>\n"), f"{name} is no whole page")
    return names


def links_are_replaced_and_not_followed(folder):
    make(folder)
    for output, picture in OUTPUTS:
        place, expected = folder.path / f"place_{output}", folder.path / f"expected_{output}"
        folder.use("preview", output, "--to", expected)
        for make_link in (os.symlink, os.link):
            place.mkdir()
            victims = {}
            for name in (picture, "report.html"):
                victim = folder.path / f"victim_{name}"
                shutil.copy(expected / name, victim)
                if make_link is os.symlink:
                    victim.write_bytes(b"of someone else")
                make_link(victim, place / name)
                victims[victim] = digest(victim)
            os.symlink("nowhere", place / "total.png")
            folder.use("preview", output, "--to", place)
            for victim, was in victims.items():
                check(digest(victim) == was, f"{victim.name} was changed through its {make_link.__name__}")
                check((place / victim.name[len("victim_"):]).stat().st_nlink == 1, "a link is still there")
            names = whole(place) if output == "h.h5" else whole_but(place, "total.png")
            check(names == whole(expected), f"{names} stand there")
            check(not (folder.path / "nowhere").exists(), "a link that led nowhere was followed")
            shutil.rmtree(place)


def whole_but(place, name):
    (place / name).unlink()
    return whole(place)


def nothing_foreign_is_replaced(folder):
    """The output, its hard link, a link to it, another output, a recording, a text; a folder, a FIFO: each named page or picture."""
    make(folder)
    place = folder.path / "place"
    for output, picture in OUTPUTS:
        other = next(name for name, _ in OUTPUTS if name != output)
        is_output, foreign = ("is the output that is shown",), ("is no PNG picture and no page of a preview",)
        cases = {"hard link": (lambda path: os.link(folder.path / output, path), is_output),
                 "symbolic link": (lambda path: os.symlink(folder.path / output, path), is_output),
                 "another output": (lambda path: shutil.copy(folder.path / other, path), foreign),
                 "recording": (lambda path: shutil.copy(folder.path / "frame_0.npy", path), foreign),
                 "text": (lambda path: path.write_text("a report of someone else"), foreign),
                 "folder": (lambda path: path.mkdir(), ("is a folder",)), "FIFO": (os.mkfifo, ("is a FIFO",))}
        for name in (picture, "report.html"):
            for kind, (put, words) in cases.items():
                place.mkdir()
                path = place / name
                put(path)
                before = digest(folder.path / output), digest(path) if path.is_file() else None
                text = folder.use("preview", output, "--to", place, status=2)
                says(text, str(path), *words, "is not replaced; --to DIR names another directory")
                check(before == (digest(folder.path / output), digest(path) if path.is_file() else None), f"{kind} {name} was changed:\n{text}")
                check(name == picture or len(list(place.iterdir())) == 1, f"{kind}: pictures were drawn beside a page that is refused")
                check(not list(place.glob("*.partial-*")), "a temporary name was left")
                shutil.rmtree(place)


def an_output_that_is_named_like_the_page_stays(folder):
    make(folder)
    for output, picture in OUTPUTS:
        for name in ("report.html", picture):
            place = folder.path / "place"
            place.mkdir()
            shutil.copy(folder.path / output, place / name)
            was = digest(place / name)
            says(folder.use("preview", place / name, "--to", place, status=2), name, "is the output that is shown")
            check(digest(place / name) == was, f"{name}, an output, was changed")
            shutil.rmtree(place)


def a_place_that_is_no_directory_is_named(folder):
    make(folder)
    place = folder.path / "place"
    for output, _ in OUTPUTS:
        default = folder.path / f"{output}.preview"
        for put, words in ((lambda path: path.write_text("mine"), "is a file"), (os.mkfifo, "is a FIFO"),
                           (lambda path: os.symlink("nowhere", path), "is a symbolic link that leads nowhere")):
            for path, extra in ((place, ["--to", place]), (default, [])):
                put(path)
                says(folder.use("preview", output, *extra, status=2), str(path.name), words, "expected a directory for the pictures; --to DIR names one")
                check(path.is_fifo() or path.is_symlink() or path.read_text() == "mine", "what stood there was changed")
                path.unlink()
        says(folder.use("preview", output, "--to", "", status=2), "--to: found an empty name, expected a directory")
        says(folder.use("preview", output, "--to", folder.path / "no" / "place", status=1), "no/place: cannot create this directory")
        says(folder.use("preview", output, "--to", folder.path / output, status=2), output, "is a file, expected a directory")


def a_full_disk_leaves_what_stood_there(folder):
    """A file size limit stands for it: the page, which holds the pictures, does not fit; then not even a picture does."""
    make(folder)
    for output, picture in OUTPUTS:
        place = folder.path / f"place_{output}"
        folder.use("preview", output, "--to", place)
        was = {name: digest(place / name) for name in whole(place)}
        for blocks, name in ((None, "report.html"), (0, ".png")):
            largest = max(path.stat().st_size for path in place.glob("*.png"))
            blocks = (largest + 1023) // 1024 + 1 if blocks is None else blocks
            check(blocks == 0 or blocks * 1024 < (place / "report.html").stat().st_size, "the page fits")
            done = subprocess.run(["bash", "-c", f"ulimit -f {blocks}; exec \"$@\"", "bash", folder.program, "preview", output, "--to", place],
                                  cwd=folder.path, capture_output=True, text=True, timeout=120)
            if done.returncode != 1:
                fail(f"{output}, {blocks} blocks: exit status {done.returncode}\n{done.stdout}{done.stderr}")
            says(done.stderr, name, "File too large")
            check({name: digest(place / name) for name in whole(place)} == was, f"{output}, {blocks} blocks: what stood there was changed")


if __name__ == "__main__":
    sys.exit(main([links_are_replaced_and_not_followed, nothing_foreign_is_replaced, an_output_that_is_named_like_the_page_stays,
                   a_place_that_is_no_directory_is_named, a_full_disk_leaves_what_stood_there]))
