#!/usr/bin/env python3
"""Says what did not run, from ctest's own record: skipped tests, and parts of passed ones that they skipped, each with its reason.

usage: skipped.py NAME=JUNIT_FILE ...    files written by ctest --output-junit. Needs nothing beyond Python itself.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# What tests print when they skip something, alone on a line; cmocka's own line comes once for each test, and once more in its summary.
PART = re.compile(r"^\s*(?:skipped: .+|contract: .+ left out: .+|\[  SKIPPED \] \w+)$", re.MULTILINE)


def reasons_of(case):
    """Each once, in the order in which the test printed them."""
    output = case.findtext("system-out") or ""
    return list(dict.fromkeys(match.group().strip().replace("[  SKIPPED ]", "skipped:") for match in PART.finditer(output)))


def why_not_run(case):
    skipped = case.find("skipped")
    code = skipped.get("message") if skipped is not None else None
    return "; ".join(reasons_of(case)) or f"it gave no reason ({code or case.get('status')})"


def report(name, path):
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    if not cases:
        raise SystemExit(f"{path}: no test is recorded")
    skipped = [case for case in cases if case.get("status") in ("notrun", "disabled")]
    partly = [case for case in cases if case not in skipped and reasons_of(case)]
    print(f"{name}: {len(cases)} tests, {len(skipped)} of them skipped, {len(partly)} skipped parts of themselves")
    for case in skipped:
        print(f"  {case.get('name')}: {why_not_run(case)}")
    for case in partly:
        print(f"  {case.get('name')}, in part: {'; '.join(reasons_of(case))}")


def main():
    for argument in sys.argv[1:]:
        name, _, path = argument.partition("=")
        if Path(path).exists():
            report(name, path)
        else:
            print(f"{name}: no test ran")


if __name__ == "__main__":
    main()
