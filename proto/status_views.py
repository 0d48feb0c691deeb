#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Everything that follows from proto/status.views, the description of what the status socket can be asked for.

    status_views.py --header FILE    the views as enum and list macro (build time)
    status_views.py --source FILE    the table of them (build time)
    status_views.py --write          brings proto/status.schema.json, doc/status.md and doc/man/motetctl.1 up to date
    status_views.py --check          fails where one of those is not
"""
import json
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
DESCRIPTION = os.path.join(HERE, 'status.views')
WIDTH = 150

SIMPLE = {
    'text': {'type': 'string'},
    'count': {'type': 'integer', 'minimum': 0},
    'positive': {'type': 'integer', 'minimum': 1},
    'integer': {'type': 'integer'},
    'share': {'type': 'number', 'minimum': 0, 'maximum': 1},
    'boolean': {'type': 'boolean'},
    'null': {'type': 'null'},
    'counts': {'type': 'object', 'additionalProperties': {'type': 'integer'}},
    'job': {'$ref': '#/$defs/job'},
    'node_id': {'$ref': '#/$defs/node_id'},
}
FILTERS = ('job', 'rank', 'limit')


class DescriptionError(Exception):
    """What is wrong with the description, with its line."""


class Kind:
    """A kind of object: a row of a view, or a part of rows."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.columns = []  # (name, always there, type, meaning)


class View:
    def __init__(self, name, text):
        self.name, self.help = name, text
        self.asked = self.seen_by = self.in_all = None
        self.takes = []
        self.manual = self.note = ''
        self.rows = []


class Views:
    """The whole description."""

    def __init__(self, views, parts):
        self.views, self.parts = views, parts

    @property
    def kinds(self):
        return [row for view in self.views for row in view.rows] + self.parts


# ---- reading ----

def view_line(view, words, line):
    """A line of a view that is no row. Returns the name of the text that deeper lines continue, or None."""
    text = line.strip().split(None, 1)[1] if len(words) > 1 else ''
    if words[0] == 'asked' and words[1:] in (['node'], ['cluster']):
        view.asked = words[1]
    elif words[:2] == ['seen', 'by'] and words[2:] in (['everybody'], ['administrators']):
        view.seen_by = words[2]
    elif words[0] == 'takes' and len(words) > 1 and set(words[1:]) <= set(FILTERS):
        view.takes = words[1:]
    elif line.strip() in ('part of all', 'not part of all'):
        view.in_all = words[0] == 'part'
    elif words[0] in ('manual', 'note') and text:
        setattr(view, words[0], text)
        return words[0]
    else:
        raise DescriptionError(f'"{line.strip()}" is not understood')
    return None


def column(line):
    fields = re.split(r'  +', line.strip(), maxsplit=2)
    name = re.fullmatch(r'([a-z][a-z0-9_]*)(\??)', fields[0])
    if not name or len(fields) < 2:
        raise DescriptionError(f'"{line.strip()}": expected a column, its type and its meaning, two spaces between them')
    return name.group(1), not name.group(2), fields[1], fields[2] if len(fields) > 2 else ''


def read(path=DESCRIPTION):
    """Reads the description. Raises DescriptionError."""
    with open(path, encoding='utf-8') as file:
        try:
            return parse(file.read())
        except DescriptionError as error:
            raise DescriptionError(f'{path}:{error}') from None


def parse(text):
    result = Views([], [])
    view = kind = continued = None
    for number, line in enumerate(text.split('\n'), 1):
        words = line.split()
        depth = len(line) - len(line.lstrip())
        if not words or words[0].startswith('#'):
            continue
        head = re.fullmatch(r' *(view|part|row) ([a-z][a-z_]*): (.+)', line)
        try:
            if head and depth == (4 if head.group(1) == 'row' else 0):
                continued = None
                if head.group(1) == 'view':
                    view, kind = View(head.group(2), head.group(3)), None
                    result.views.append(view)
                else:
                    kind = Kind(head.group(2), head.group(3))
                    (view.rows if head.group(1) == 'row' else result.parts).append(kind)
                    view = view if head.group(1) == 'row' else None
            elif view and depth == 4:
                kind, continued = None, view_line(view, words, line)
            elif kind and depth == (8 if view else 4):
                kind.columns.append(column(line))
            elif continued and depth > 4:
                setattr(view, continued, getattr(view, continued) + ' ' + line.strip())
            else:
                raise DescriptionError(f'"{line.strip()}" stands where it means nothing')
        except DescriptionError as error:
            raise DescriptionError(f'{number}: {error}') from None
    check(result)
    return result


def check(views):
    """What a line alone does not tell."""
    names = [kind.name for kind in views.kinds]
    for name in [n for n in set(names) if names.count(n) > 1 or n in SIMPLE]:
        raise DescriptionError(f' {name} stands here twice')
    for view in views.views:
        if view.asked is None or view.seen_by is None or view.in_all is None or not view.manual or not view.rows:
            raise DescriptionError(f' view {view.name}: it needs asked, seen by, [not] part of all, manual, and a row')
    for kind in views.kinds:
        columns = [c[0] for c in kind.columns]
        if len(columns) != len(set(columns)) or not columns:
            raise DescriptionError(f' {kind.name}: no columns, or one of them twice')
        for name, _, type_, _ in kind.columns:
            schema_of(type_, [part.name for part in views.parts], f'{kind.name}.{name}')


# ---- the schema ----

def schema_of(type_, parts, where):
    """The JSON Schema of a type."""
    choices = re.findall(r'\([^()]+\)|\[[^\[\]]+\]|[a-z_]+', type_)
    if '|'.join(choices) != type_:
        raise DescriptionError(f' {where}: "{type_}" is no type')
    made = []
    for choice in choices:
        if choice[0] == '(':
            words = choice[1:-1].split()
            made.append({'const': words[0]} if len(words) == 1 else {'enum': words})
        elif choice[0] == '[':
            made.append({'type': 'array', 'items': schema_of(choice[1:-1], parts, where)})
        elif choice in SIMPLE:
            made.append(SIMPLE[choice])
        elif choice in parts:
            made.append({'$ref': f'#/$defs/{choice}'})
        else:
            raise DescriptionError(f' {where}: there is no type and no part "{choice}"')
    if len(made) == 1:
        return dict(made[0])
    if len(made) == 2 and made[1] == SIMPLE['null'] and set(made[0]) == {'type'}:
        return {'type': [made[0]['type'], 'null']}
    if len(made) == 2 and made[1] == SIMPLE['null'] and set(made[0]) == {'enum'}:
        return {'enum': made[0]['enum'] + [None]}
    return {'oneOf': made}


def schema_of_kind(kind, parts):
    properties = {}
    for name, _, type_, meaning in kind.columns:
        properties[name] = ({'description': meaning} if meaning else {}) | schema_of(type_, parts, kind.name)
    return {'description': kind.text, 'type': 'object', 'required': [c[0] for c in kind.columns if c[1]], 'properties': properties}


def json_text(value, indent=0, before=0):
    """JSON as people write it: on one line what fits there. `before`: what stands in the line already."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or (indent > 0 and before + len(flat) <= WIDTH and flat.count('{') <= 4):
        return flat
    inner = ' ' * (indent + 2)
    if isinstance(value, list):
        items = [inner + json_text(item, indent + 2, indent + 2) for item in value]
    else:
        items = [f'{inner}{json.dumps(key)}: ' + json_text(item, indent + 2, indent + 6 + len(key)) for key, item in value.items()]
    return ('[{}]' if isinstance(value, list) else '{{{}}}').format('\n' + ',\n'.join(items) + '\n' + ' ' * indent)


def names_taking(views, filter_):
    return ', '.join(view.name for view in views.views if filter_ in view.takes)


def schema(views, old):
    """The schema with the rows of the description; the envelope of requests and replies is what `old` has."""
    new = json.loads(old)
    defs = new['$defs']
    kinds = {kind.name: schema_of_kind(kind, [part.name for part in views.parts]) for kind in views.kinds}
    rows = [row.name for view in views.views for row in view.rows]
    orders = ['changed', 'ending']
    get = defs['get']['properties']
    get['get']['enum'] = [view.name for view in views.views] + ['all']
    get['job']['description'] = f'rows of this job only ({names_taking(views, "job")})'
    get['rank']['description'] = f'rows of this world rank only ({names_taking(views, "rank")}); -1: of all'
    get['limit']['description'] = f'most rows of a node ({names_taking(views, "limit")}); more are told by truncated'
    defs['row'] = {'anyOf': [{'$ref': f'#/$defs/{name}'} for name in rows + orders + ['part']]}
    defs['part']['properties']['subject'] = {'enum': [view.name for view in views.views if view.in_all]}
    within = [row.name for view in views.views for row in view.rows if view.in_all]
    defs['part']['properties']['rows']['items'] = {'anyOf': [{'$ref': f'#/$defs/{name}'} for name in within]}
    # Behind the envelope, in the order of the description; what is not described any more goes.
    envelope = ['request', 'get', 'set', 'reply', 'answer', 'refusal', 'row']
    kept = orders + ['part', 'code', 'job', 'node_id']
    new['$defs'] = {name: defs[name] for name in envelope} | kinds | {name: defs[name] for name in kept}
    return json_text(new) + '\n'


# ---- documents ----

def between(text, begin, end, fresh, path):
    """The text with what stands between two lines replaced."""
    if text.count(begin) != 1 or text.count(end) != 1:
        raise DescriptionError(f'{path}: expected the lines "{begin}" and "{end}" once')
    head, rest = text.split(begin)
    return head + begin + '\n' + fresh + end + rest.split(end)[1]


def words(names):
    return ', '.join(f'`{name}`' for name in names)


def type_words(type_, parts):
    """A type for people."""
    if type_[0] == '(' and type_.count('(') == 1 and type_.endswith(')'):
        return words(type_[1:-1].split())
    text = type_.replace('|null', ', or null').replace('|', ', or ')
    text = re.sub(r'\[(\w+)\]', r'list of \1', text)
    text = re.sub(r'\(([^)]*)\)', lambda m: words(m.group(1).split()), text)
    return re.sub(r'\b(' + '|'.join(parts or ['-']) + r')\b', r'[\1](#\1)', text).replace('node_id', 'text').replace('job', 'text')


def markdown_table(kind, parts):
    lines = ['| key | value | meaning |', '| --- | --- | --- |']
    for name, always, type_, meaning in kind.columns:
        lines.append(f'| `{name}`{"" if always else " (not always)"} | {type_words(type_, parts)} | {meaning} |')
    return '\n'.join(lines) + '\n'


def paragraph(text):
    return textwrap.fill(text, WIDTH, break_on_hyphens=False) + '\n'


def manual_chapter(views):
    """What doc/status.md says about every view."""
    parts = [part.name for part in views.parts]
    text = ''
    for view in views.views:
        facts = ['All nodes are asked.' if view.asked == 'cluster' else 'Answered from what the node knows.']
        if view.seen_by == 'administrators':
            facts.append("For root and the daemon's user.")
        if view.takes:
            facts.append(f'Takes {words(view.takes)}.')
        if not view.in_all:
            facts.append('Not part of `all`.')
        text += f'\n### {view.name}\n\n' + paragraph(f'{view.manual} {" ".join(facts)}')
        for row in view.rows:
            text += f'\n{row.text[0].upper() + row.text[1:]}:\n\n' + markdown_table(row, parts)
        if view.note:
            text += '\n' + paragraph(view.note)
    for part in views.parts:
        text += f'\n### {part.name}\n\nWithin rows: {part.text}.\n\n' + markdown_table(part, parts)
    return text + '\n'


def man_page_commands(views):
    """The commands of motetctl that show a view, as an mdoc list."""
    text = ''
    for view in views.views:
        if view.in_all:
            sentence = re.sub(r'`(\w+)`', r'\\(oq\1\\(cq', view.manual)
            text += f'.It Cm {view.name}\n' + textwrap.fill(sentence, WIDTH, break_on_hyphens=False) + '\n'
    return text


def documents(views):
    """Path and contents of all that is kept up to date in the tree."""
    def now(path):
        with open(os.path.join(ROOT, path), encoding='utf-8') as file:
            return file.read()
    path = 'doc/status.md'
    yield path, between(now(path), '<!-- views: written by proto/status_views.py -->', '<!-- end of views -->', manual_chapter(views), path)
    path = 'doc/man/motetctl.1'
    yield path, between(now(path), '.\\" views: written by proto/status_views.py', '.\\" end of views', man_page_commands(views), path)
    path = 'proto/status.schema.json'
    yield path, schema(views, now(path))


# ---- C ----

def c_text(text):
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'


def header(views):
    lines = ['/* Generated by proto/status_views.py from proto/status.views. */', '#pragma once', '#include <stdbool.h>', '#include <stddef.h>', '',
             '/* A view of the status socket. */', 'struct status_view {', '    const char *name, *help;',
             '    bool of_cluster;       /* all nodes are asked */',
             '    bool for_everybody;    /* of jobs, their own; else root and the daemon\'s user only */',
             '    bool limited;          /* takes the limit of the request */',
             '    bool in_all;           /* part of "all" */', '};', '',
             f'#define STATUS_VIEWS_N {len(views.views)}', 'extern const struct status_view status_views[STATUS_VIEWS_N];', '',
             '/* X(name) for each, in the order of the table. */',
             '#define STATUS_VIEWS(X) ' + ' '.join(f'X({view.name})' for view in views.views), '',
             '/* The view of this name; NULL: there is none. */',
             'const struct status_view *status_views_find(const char *name);', '']
    return '\n'.join(lines)


def source(views):
    rows = []
    for view in views.views:
        flags = [view.asked == 'cluster', view.seen_by == 'everybody', 'limit' in view.takes, view.in_all]
        rows.append(f'    {{{c_text(view.name)}, {c_text(view.help)}, {", ".join(str(flag).lower() for flag in flags)}}},')
    return '\n'.join(['/* Generated by proto/status_views.py from proto/status.views. */', '#include "proto/status_views.h"', '',
                      '#include <string.h>', '', 'const struct status_view status_views[STATUS_VIEWS_N] = {', *rows, '};', '',
                      'const struct status_view *status_views_find(const char *name)', '{',
                      '    for (size_t i = 0; i < STATUS_VIEWS_N; i++)', '        if (strcmp(status_views[i].name, name) == 0)',
                      '            return &status_views[i];', '    return NULL;', '}', ''])


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def main(arguments):
    try:
        views = read()
        if arguments[:1] in (['--header'], ['--source']) and len(arguments) == 2:
            write(arguments[1], (header if arguments[0] == '--header' else source)(views))
            return 0
        if arguments not in (['--write'], ['--check']):
            print(__doc__)
            return 2
        stale = []
        for path, text in documents(views):
            with open(os.path.join(ROOT, path), encoding='utf-8') as file:
                if file.read() == text:
                    continue
            stale.append(path)
            if arguments == ['--write']:
                write(os.path.join(ROOT, path), text)
    except DescriptionError as error:
        print(error)
        return 1
    for path in stale:
        print(f'{path}: written' if arguments == ['--write'] else f'{path} does not fit proto/status.views: run proto/status_views.py --write')
    return 1 if stale and arguments == ['--check'] else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
