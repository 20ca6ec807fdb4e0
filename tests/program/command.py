#!/usr/bin/env python3
"""The command line: what it says of itself, which mistakes it refuses and how, the log for machines, and what info tells of an output."""
import json
import subprocess
import sys

from program import JOB, check, main, recording, says

COMMANDS = ("check", "run", "info", "preview", "pack", "bench")


def call(folder, *words, status=0):
    done = subprocess.run([folder.program, *words], cwd=folder.path, capture_output=True, text=True, timeout=120)
    check(done.returncode == status, f"{words}: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done


def save_series(folder, **changes):
    for frame in range(3):
        folder.save(f"frame_{frame}.npy", recording(frame))
    folder.save_job({**JOB, **changes})


def help_names_commands_and_options(folder):
    for words, status in ((["--help"], 0), ([], 2)):
        done = call(folder, *words, status=status)
        text = done.stderr if status else done.stdout
        says(text, "usage: ptyseries COMMAND", *(f"\n  {name} " for name in COMMANDS))
    for command in COMMANDS:
        says(call(folder, command, "--help").stdout, f"usage: ptyseries {command}", "--help")
    says(call(folder, "run", "--help").stdout, "--resume ", "--set            VALUE", "75 interrupted")


def slips_are_refused_and_named(folder):
    save_series(folder)
    for words, parts in ((["rnu"], ["unknown command 'rnu', did you mean run"]), (["something"], ["unknown command 'something'; see"]),
                         (["run"], ["ptyseries run: missing argument; usage: ptyseries run JOB.json"]),
                         (["run", "job.json", "other.json"], ["unexpected argument 'other.json'"]),
                         (["run", "job.json", "--resum"], ["unknown option --resum, did you mean --resume"]),
                         (["run", "job.json", "--resume=1"], ["--resume takes no value"]),
                         (["run", "job.json", "--set"], ["--set"]),
                         (["run", "job.json", "--max-hours", "soon"], ["--max-hours: found 'soon', expected a number"]),
                         (["run", "job.json", "--max-hours", "1h"], ["--max-hours: found '1h', expected a number"]),
                         (["bench", "--repeats", "2.5"], ["--repeats: found '2.5', expected an integer"]),
                         (["bench", "--repeats="], ["--repeats: found '', expected an integer"]),
                         (["bench", "--repeats", "99999999999999999999"], ["--repeats: found '99999999999999999999'"])):
        says(call(folder, *words, status=2).stderr, *parts)
    check(not (folder.path / "out.h5").exists(), "a refused command made an output")
    call(folder, "run", "--", "job.json")  # behind it stand operands alone
    says(call(folder, "check", "--", "--set", status=2).stderr, "--set")


def log_lines_are_json_when_asked(folder):
    save_series(folder)
    hostile = 'a "quoted"\n\tback\\slash'
    done = call(folder, "run", "job.json", "--log-json", "--set", f"output.file={json.dumps(hostile + '/out.h5')}", status=2)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    check(lines and all(set(line) == {"time", "level", "rank", "message"} for line in lines), f"lines {lines}")
    check(any(line["level"] == "error" and hostile in line["message"] for line in lines), f"the name does not come back whole: {lines}")
    done = call(folder, "run", "job.json", "--log-json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    check({line["level"] for line in lines} == {"info"} and any("3 frames of 6 x 7" in line["message"] for line in lines), f"lines {lines}")


def info_tells_what_an_output_holds(folder):
    save_series(folder)
    folder.save("frame_1.npy", recording(1)[:10])
    folder.call("run", status=3)
    text = call(folder, "info", "out.h5").stdout
    says(text, "frames    3: 2 done, 1 failed, 0 pending", "images    12 x 14 pixels of 0.25 x 0.25 A: 0.3 x 0.35 nm", "method    phase, automatic",
         "method    complex, strengths 0.1, 0.3", "method    ssb", "optics 0  6 x 7 positions", "run 1     ptyseries", "finished", "frame_1.npy")
    folder.save("frame_1.npy", recording(1))
    folder.call("run", extra=["--resume", "--retry-failed"])
    says(call(folder, "info", "out.h5").stdout, "3 done, 0 failed", "run 1 ", "run 2 ")
    says(call(folder, "info", "job.json", status=4).stderr, "job.json")
    says(call(folder, "info", "absent.h5", status=4).stderr, "absent.h5")


sys.exit(main([help_names_commands_and_options, slips_are_refused_and_named, log_lines_are_json_when_asked, info_tells_what_an_output_holds]))
