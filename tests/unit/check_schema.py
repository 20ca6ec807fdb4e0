"""Holds configs/*.schema.json against what the program said about the same jobs.

Usage: check_schema.py CONFIGS VERDICTS.json, a list of {"job": ..., "refused": null or the program's message}. Exit status 77 where the
jsonschema package is missing.
"""
import json
import sys
from pathlib import Path

try:
    from jsonschema import Draft202012Validator
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

# What a schema cannot say, because it takes two values together; with the words of the program's message.
ONLY_THE_PROGRAM = ("bright-field disc", "lowest edge below the highest", "first below end", "lowest below the highest", "bounds of what is not free")


def make_validator(schemas):
    job = schemas["job.schema.json"]
    try:
        from referencing import Registry, Resource
    except ImportError:  # jsonschema before 4.18
        from jsonschema import RefResolver

        return Draft202012Validator(job, resolver=RefResolver("", job, store=schemas))
    registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in schemas.items())
    return Draft202012Validator(job, registry=registry)


def main(configs, verdicts):
    schemas = {path.name: json.loads(path.read_text()) for path in Path(configs).glob("*.schema.json")}
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    validator = make_validator(schemas)
    wrong = 0
    cases = json.loads(Path(verdicts).read_text())
    for case in cases:
        refused = case["refused"]
        valid = validator.is_valid(case["job"])
        if valid == (refused is None) or (valid and any(words in refused for words in ONLY_THE_PROGRAM)):
            continue
        wrong += 1
        if wrong <= 10:
            reasons = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(case["job"])]
            print(f"program: {refused or 'accepted'}\nschema: {reasons or 'accepted'}\njob: {json.dumps(case['job'])}\n")
    accepted = sum(case["refused"] is None for case in cases)
    print(f"{len(cases)} jobs, {accepted} of them valid: {wrong} disagreements")
    return 1 if wrong or accepted < 100 or len(cases) - accepted < 1000 else 0


sys.exit(main(*sys.argv[1:]))
