#!/usr/bin/env -S python3 -S -E
"""Doxygen's input filter: the plain comments of the headers become comments that Doxygen shows, and links of pages ones that it knows.

    scripts/doxygen_filter.py FILE.h        the header with /** in front of declarations, /**< behind members, @file in its first comment
    scripts/doxygen_filter.py PAGE.md       the page with links to whole pages only: Doxygen has names of its own for headings

A comment that is followed by an empty line belongs to no declaration and stays as it is, and so does one inside parentheses. Lines stay
where they are, so that Doxygen's warnings name the right ones."""

import re
import sys

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
SPECIAL = re.compile(r'([\\@<>&#%])')


def escaped_line(line):
    """What Doxygen would take for commands, tags or emphasis is text here; lines that are set in, and `code`, it shows as they are."""
    if re.match(r'(/\*| \*)? {4,}', line):
        return line
    parts = line.split('`')
    even = len(parts) % 2 == 0  # a backtick without its partner
    for i in range(0, len(parts), 1 if even else 2):
        parts[i] = re.sub(r'(?<=[\w ([])\*(?=\w)|(?<=\w)\*(?=[\s,)*])', '&lowast;', SPECIAL.sub(r'\\\1', parts[i]))
    return '`'.join(parts)


def shown(comment, opening, ending):
    lines = comment[2:-2].split('\n')
    return opening + '\n'.join(escaped_line(line) for line in lines) + ending


def kind_of(text, begin, end, depth):
    """The opening that Doxygen needs for the comment text[begin:end]; None: it is left alone."""
    before = text[text.rfind('\n', 0, begin) + 1:begin].rstrip()
    after = text[end:end + 400]
    if begin == 0:
        return '/**'
    if depth > 0:
        return None
    if before:
        is_member = before[-1] in ';,' or re.search(r'[\w)\]}]$', before) and re.match(r'\s*\n', after)
        return '/**<' if is_member and not before.startswith('#') else None
    return '/**' if re.match(r'[ \t]*\n[ \t]*[^\s/}]', after) else None


def filtered(text):
    result, position, depth = [], 0, 0
    for match in TOKEN.finditer(text):
        code = text[position:match.start()]
        depth += code.count('(') - code.count(')')
        result.append(code)
        token = match.group()
        opening = kind_of(text, match.start(), match.end(), depth) if token.startswith('/*') else None
        result.append(shown(token, opening, '*/' if match.start() else f'@file {sys.argv[1]} */') if opening else token)
        position = match.end()
    result.append(text[position:])
    return ''.join(result)


def whole_pages(text):
    text = re.sub(r'\[([^\]]*)\]\(#[^)]*\)', r'\1', text)
    return re.sub(r'\]\(([\w./-]+\.md)#[^)]*\)', r'](\1)', text)


with open(sys.argv[1], encoding='utf-8') as file:
    sys.stdout.write((whole_pages if sys.argv[1].endswith('.md') else filtered)(file.read()))
