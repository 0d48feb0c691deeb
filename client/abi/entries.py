# SPDX-License-Identifier: BSD-3-Clause
"""Writes entries.h and entries.c: the semantics functions that carry out a schedule, start it, or keep it for later starts.

What differs between the forms of an operation is the same for all operations; what a person writes is one function for all forms,
entry_x(), which gets the schedule and the arguments. Those that belong together come as one: a buffer with its count and type as
struct buffer, one with a block for each rank as struct blocks."""

from header import wrap
from kinds import VECTORS, semantics_declarations
from semantics import semantics_name

LICENCE = '/* SPDX-License-Identifier: BSD-3-Clause */\n'
HEADER = LICENCE + '''/* What the functions of entries.c call: each writes the steps of one operation. Generated from client/abi/api; do not edit. */
#ifndef MOTET_CLIENT_ABI_ENTRIES_H
#define MOTET_CLIENT_ABI_ENTRIES_H

#include "client/coll/op/op.h"
#include "client/coll/schedule/blocks.h"
#include "client/coll/schedule/schedule.h"

'''
SOURCE = LICENCE + '''/* Generated from client/abi/api; do not edit. */
#include "client/abi/entries.h"
#include "client/abi/semantics.h"
#include "client/coll/schedule/coll_comm.h"
#include "client/coll/schedule/coll_request.h"
'''
NOW = '''    struct schedule s;
    schedule_begin(&s, comm, coll_next_tag(comm));
    {call}
    return schedule_end(&s);
'''
LATER = '''    struct schedule *s = schedule_new(comm, coll_next_{form}_tag(comm));
    if (s)
        {call}
    return coll_request_{verb}(s, ret_request);
'''


def belongings(parameters, i):
    """The counts, displacements and types behind the buffer at place i, up to the next buffer."""
    found = {}
    for p in parameters[i + 1:]:
        if p.kind in ('buf', 'cbuf'):
            break
        if p.kind == 'counts':
            found['counts'] = p.name
        elif p.kind in VECTORS:
            found['displs'] = p.name
        elif p.kind in ('type', 'types'):
            found[p.kind] = p.name
    return found


def arguments(function):
    """[(declaration, expression)] of the entry function, without the schedule."""
    result, taken = [], {'comm', 'info', 'request'}
    for i, p in enumerate(function.parameters):
        pair = [a for a in p.args if a not in ('inplace', 'each')]
        if p.name in taken:
            continue
        if p.kind not in ('buf', 'cbuf'):
            result.append((semantics_declarations(p)[0], p.name))
            continue
        if len(pair) == 2:
            taken.update(pair)
            fields = {'type': pair[1], 'count': pair[0], 'uniform': 'true'}
        else:
            fields = belongings(function.parameters, i)
            taken.update(fields.values())
        if len(pair) == 2 and 'each' not in p.args:
            result.append((f'struct buffer {p.name}', f'buffer_of({p.name}, {pair[0]}, {pair[1]})'))
        elif 'counts' not in fields and len(pair) != 2:
            result.append((semantics_declarations(p)[0], p.name))
        else:
            inner = ', '.join(f'.{field} = {value}' for field, value in fields.items())
            result.append((f'const struct blocks *{p.name}', f'&(struct blocks){{.buf = (void *){p.name}, {inner}}}'))
    return result


def body(function, call):
    request = [p for p in function.of_kind('request') if p.direction == '>']
    if not request:
        return NOW.format(call=call.format('&s'))
    hints = function.of_kind('info')
    unused = f'    (void){hints[0].name}; /* no hints are known */\n' if hints else ''
    form, verb = ('persistent', 'persist') if hints else ('nonblocking', 'start')
    return unused + LATER.format(call=call.format('s'), form=form, verb=verb)


def write(header_path, source_path, functions):
    prototypes, source = {}, [SOURCE]
    for function in functions:
        entry = function.get('schedule')
        if not entry:
            continue
        given = arguments(function)
        prototype = wrap(f'void entry_{entry}(', ['struct schedule *s'] + [declaration for declaration, _ in given])
        if prototypes.setdefault(entry, prototype) != prototype:
            raise ValueError(f'{function.name}: its arguments are not those of the other forms of {entry}')
        call = wrap(f'entry_{entry}(', ['SCHEDULE'] + [expression for _, expression in given])
        call = call.replace('{', '{{').replace('}', '}}').replace('SCHEDULE', '{}', 1)
        parameters = [d for p in function.parameters for d in semantics_declarations(p)]
        head = wrap(f'int {semantics_name(function)}(', parameters)[:-1]
        source.append(f'\n{head}\n{{\n{body(function, call)}}}\n')
    with open(header_path, 'w', encoding='ascii') as file:
        file.writelines([HEADER] + [prototypes[entry] + '\n' for entry in sorted(prototypes)] + ['\n#endif\n'])
    with open(source_path, 'w', encoding='ascii') as file:
        file.writelines(source)
