# SPDX-License-Identifier: BSD-3-Clause
"""The Fortran view of the interface: which procedures there are, and each parameter's kind, after client/fortran/differences.txt."""

import fnmatch
import os
import sys
from dataclasses import dataclass, field

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'abi'))
import description
from kinds import INTS, SCALARS, VECTORS

ADDRESS, COUNT, OFFSET = 'MPI_ADDRESS_KIND', 'MPI_COUNT_KIND', 'MPI_OFFSET_KIND'
# C's integer types as Fortran's.
INTEGERS = {'int': None, 'MPI_Count': COUNT, 'MPI_Aint': ADDRESS, 'MPI_Offset': OFFSET}
SECTION_FILES = ('handles.txt', 'constants.txt')


@dataclass
class Differences:
    kinds: dict = field(default_factory=dict)
    lengths: dict = field(default_factory=dict)
    hand: set = field(default_factory=set)
    deprecated: set = field(default_factory=set)
    separate: set = field(default_factory=set)
    plain: set = field(default_factory=set)
    none: list = field(default_factory=list)

    def kind_of(self, function, p):
        """The Fortran kind of a parameter."""
        for pattern in (f'{function.name}.{p.name}', f'{function.name}.{p.name}{p.direction}', f'*.{p.name}{p.direction}', f'*.{p.name}'):
            if pattern in self.kinds:
                return self.kinds[pattern]
        if p.kind in ('cbuf', 'buf'):
            return 'choice'
        if p.kind in ('cptr', 'ptr') and not p.direction:
            return 'choice'
        return p.kind

    def is_bound(self, function):
        return not any(fnmatch.fnmatchcase(function.name, pattern) for pattern in self.none)


def read_differences(path):
    d = Differences()
    for section in description.read_sections(path):
        for line in section.lines:
            if section.kind == 'kind':
                d.kinds[line] = section.title
            elif section.kind == 'length':
                name, constant = line.split()
                d.lengths[name] = constant
            elif section.kind == 'none':
                d.none.append(line)
            else:
                getattr(d, section.kind).add(line)
    return d


@dataclass
class Argument:
    """A dummy argument: name, Fortran kind, the parameter it stands for, and the integer kind if it is one."""
    name: str
    kind: str
    p: object
    integer: str = None


@dataclass
class Procedure:
    """A Fortran procedure in one of its forms (small or large counts)."""
    function: object
    large: bool
    arguments: list

    @property
    def name(self):
        return self.function.name + ('_c' if self.large else '')

    @property
    def has_choice(self):
        return any(a.kind == 'choice' for a in self.arguments)

    def is_nonblocking(self):
        # A request comes back, or the buffer is used until a later synchronization (MPI-5.0 section 19.1.17).
        one_sided = self.function.chapter == 'rma'
        split = self.function.name.endswith(('_begin', '_end'))
        attached = 'attach' in self.function.name
        return one_sided or split or attached or any(a.kind == 'request' and a.p.direction == '>' for a in self.arguments)


def c_integer(p, large):
    """The C integer type of a scalar or array parameter, or None."""
    if p.kind in SCALARS:
        return SCALARS[p.kind][1 if large else 0]
    if p.kind in INTS or p.kind in ('ints', 'weights', 'ranges'):
        return 'int'
    if p.kind in VECTORS:
        return VECTORS[p.kind][1 if large else 0]
    return {'aints': 'MPI_Aint', 'bigcounts': 'MPI_Count'}.get(p.kind)


def procedure(function, differences, large):
    arguments = []
    for p in function.parameters:
        if (p.large_only and not large) or differences.kind_of(function, p) == 'absent':
            continue
        arguments.append(Argument(p.name, differences.kind_of(function, p), p, INTEGERS.get(c_integer(p, large))))
    return Procedure(function, large, arguments)


def signature(proc):
    """What Fortran tells two specific procedures of a generic one apart by."""
    return [(a.kind if c_integer(a.p, proc.large) is None else
             ('int8' if a.integer else 'int4', a.kind in VECTORS or a.kind == 'ints')) for a in proc.arguments]


def procedures(functions, differences):
    """All procedures: (small, large or None)."""
    pairs = []
    for function in functions:
        if not differences.is_bound(function):
            continue
        small = procedure(function, differences, False)
        large = procedure(function, differences, True) if function.has('large') else None
        # Where address and count integers are of one kind, forms that differ in nothing else are one (MPI-5.0 section 19.2).
        if large and function.name not in differences.separate and signature(small) == signature(large):
            large = None
        pairs.append((small, large))
    return pairs


def read(api):
    """(functions, sections of handles and constants, differences)"""
    here = os.path.dirname(os.path.realpath(__file__))
    functions = description.read_functions(api)
    sections = [s for file in SECTION_FILES for s in description.read_sections(os.path.join(api, file))]
    return functions, sections, read_differences(os.path.join(here, 'differences.txt'))

