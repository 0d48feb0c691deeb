# SPDX-License-Identifier: BSD-3-Clause
"""Writes mpi.h: the standard ABI's C header, valid as C89, C11, C++98 and later."""

from kinds import HANDLES, api_declaration

TOP = '''/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI 5.0 for C: the standard ABI. Generated from client/abi/api; do not edit. */
#ifndef MPI_H_ABI
#define MPI_H_ABI

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
'''
BOTTOM = '''
#ifdef __cplusplus
}
#endif

#endif
'''


def wrap(head, items, width=110):
    """`head(item, item);` over several lines, none longer than width."""
    lines, line = [], head
    for i, item in enumerate(items):
        piece = item + (', ' if i + 1 < len(items) else ');')
        if len(line.rstrip() + piece) > width and line.strip():
            lines.append(line.rstrip())
            line = '    '
        line += piece
    lines.append(line)
    return '\n'.join(lines)


def result_type(function):
    result = function.get('returns', 'int')
    return HANDLES[result[:-1]][0] if result.endswith('#') else result


def prototype(function, prefix, large=False):
    """`int MPI_Send_c(const void *buf, ...);`"""
    parameters = [api_declaration(p, large) for p in function.parameters if large or not p.large_only]
    if function.variadic:
        parameters.append('...')
    name = prefix + function.name + ('_c' if large else '')
    return wrap(f'{result_type(function)} {name}(', parameters or ['void'])


def section_text(section):
    kind, title = section.kind, section.title
    pairs = [line.split(None, 1) for line in section.lines]
    if kind == 'define':
        return '\n'.join(f'#define {name} {value}' for name, value in pairs)
    if kind == 'alias':
        return '\n'.join(f'#define {name} {value}' for name, value in pairs)
    if kind == 'cast':
        return '\n'.join(f'#define {name} (({title}){value})' for name, value in pairs)
    if kind == 'type':
        return '\n'.join(f'typedef {value} {name};' for name, value in pairs)
    if kind == 'synonym':
        return '\n'.join(f'typedef {value} {name};' for name, value in pairs)
    if kind == 'opaque':
        return '\n'.join(f'typedef struct {value} *{name};' for name, value in pairs)
    if kind == 'struct':
        return 'typedef struct {\n' + ''.join(f'    {line};\n' for line in section.lines) + f'}} {title};'
    if kind == 'handle':
        tag = title.replace('MPI_', 'MPI_ABI_')
        return f'typedef struct {tag} *{title};\n' + '\n'.join(f'#define {n} (({title}){v})' for n, v in pairs)
    if kind == 'enum':
        body = ',\n'.join(f'    {name} = {value}' for name, value in pairs)
        return (f'typedef enum {title} {{\n{body}\n}} {title};' if title else f'enum {{\n{body}\n}};')
    if kind == 'function':
        lines = []
        for line in section.lines:
            head, _, arguments = line.partition('(')
            result, name = head.rsplit(None, 1)
            lines.append(wrap(f'typedef {result} ({name})(', [a.strip() for a in arguments.rstrip(')').split(',')]))
        return '\n'.join(lines)
    raise KeyError(f'no section {kind}')


def write(path, sections, functions):
    parts = [TOP] + [section_text(section) + '\n' for section in sections]
    for prefix in ('MPI_', 'PMPI_'):
        for function in functions:
            parts.append(prototype(function, prefix))
            if function.has('large'):
                parts.append(prototype(function, prefix, large=True))
        parts.append('')
    parts.append(BOTTOM.lstrip('\n'))
    with open(path, 'w', encoding='ascii') as file:
        file.write('\n'.join(parts))
