# SPDX-License-Identifier: BSD-3-Clause
"""The lists of planted bugs: reading them, and finding the place in the sources that an entry means.

An entry names its place by text and not by line, so that it outlives moved and reformatted code: the words of `old` must occur exactly
once (white space counts as one blank) in the entry's file, or, where `in` names a function, in that function. A file that moved is
looked for in its whole top folder.
"""
import functools
import os
import pathlib
import re
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NEEDED = ('id', 'file', 'old', 'new', 'why')
KNOWN = NEEDED + ('in', 'area', 'caught_by', 'survives')
SOURCES = ('.c', '.h', '.py')


class Mutant:
    """One planted bug."""

    def __init__(self, entry, defaults, origin):
        for key in NEEDED:
            if not isinstance(entry.get(key), str):
                raise ValueError(f'{origin}: an entry has no {key}: {entry.get("id") or entry}')
        for key in set(entry) - set(KNOWN):
            raise ValueError(f'{origin}: {entry["id"]}: unknown key {key}')
        self.id = entry['id']
        self.file = entry['file']
        self.function = entry.get('in')
        self.old = entry['old']
        self.new = entry['new']
        self.why = entry['why']
        self.survives = entry.get('survives')
        self.area = entry.get('area', defaults.get('area', pathlib.Path(origin).stem))
        self.caught_by = entry.get('caught_by', defaults.get('caught_by'))
        if not self.caught_by:
            raise ValueError(f'{origin}: {self.id} names no test that catches it')

    def plant(self, root):
        """Returns (path of the file below root, its text with the bug). Raises ValueError when there is no such place."""
        path = pathlib.Path(self.file)
        problem = f'{self.file} is not there'
        if (root / path).is_file():
            places, problem = find(text_of(root / path), self.old, self.function), None
            if len(places) == 1:
                return path, replaced(text_of(root / path), places[0], self.new)
            if places:
                raise ValueError(f'{len(places)} places in {self.file} read so; name the function with "in"')
        hits = []
        for other in sources(root / path.parts[0]):
            places = find(text_of(other), self.old, self.function)
            hits += [(other, place) for place in places]
        if len(hits) == 1:
            other, place = hits[0]
            return other.relative_to(root), replaced(text_of(other), place, self.new)
        where = f' in {self.function}' if self.function else ''
        raise ValueError(problem or f'no such text{where}, in {self.file} or elsewhere in {path.parts[0]}/' if not hits else
                         f'moved, and {len(hits)} places below {path.parts[0]}/ read so')


@functools.cache
def text_of(path):
    return path.read_text(encoding='utf-8')


@functools.cache
def sources(folder):
    return [path for path in sorted(folder.rglob('*')) if path.suffix in SOURCES and path.is_file()]


def find(text, old, function):
    """The spans (first, end) at which the words of `old` stand, in one function or in the whole text."""
    words = old.split()
    edge_before = r'(?<!\w)' if re.match(r'\w', words[0]) else ''
    edge_after = r'(?!\w)' if re.search(r'\w$', words[-1]) else ''
    pattern = re.compile(edge_before + r'\s+'.join(map(re.escape, words)) + edge_after)
    spans = [match.span() for match in pattern.finditer(text)]
    if function and spans:
        bodies = list(function_spans(text, function))
        spans = [span for span in spans if any(first <= span[0] and span[1] <= end for first, end in bodies)]
    return spans


def function_spans(text, name):
    """Where functions of this name are defined: from the line of their head to the brace in the first column."""
    for head in re.finditer(rf'^(?![ \t#/*}}]).*(?<!\w){re.escape(name)}\(', text, re.MULTILINE):
        end = text.find('\n}', head.start())
        stop = text.find(';\n', head.start())
        brace = text.find('\n{', head.start())
        if end >= 0 and 0 <= brace < end and not 0 <= stop < brace:
            yield head.start(), end + 2


def replaced(text, span, new):
    return text[:span[0]] + new + text[span[1]:]


def load(paths=None):
    """All entries of the lists (every .toml of this folder)."""
    mutants, seen = [], {}
    for path in paths or sorted(HERE.glob('*.toml')):
        with open(path, 'rb') as file:
            try:
                data = tomllib.load(file)
            except tomllib.TOMLDecodeError as error:
                raise ValueError(f'{path.name}: {error}') from None
        for entry in data.get('mutant', []):
            mutant = Mutant(entry, data, path.name)
            if mutant.id in seen:
                raise ValueError(f'{path.name}: the id {mutant.id} is taken in {seen[mutant.id]}')
            seen[mutant.id] = path.name
            mutants.append(mutant)
    return mutants


def check(root, mutants):
    """What is wrong with the entries, a line for each."""
    for mutant in mutants:
        try:
            path, text = mutant.plant(root)
            if text == text_of(root / path):
                yield f'{mutant.id}: old and new are the same'
        except ValueError as error:
            yield f'{mutant.id}: {error}'
        if not os.path.isdir(root / pathlib.Path(mutant.file).parts[0]):
            yield f'{mutant.id}: there is no folder {pathlib.Path(mutant.file).parts[0]}'
