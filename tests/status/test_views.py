# SPDX-License-Identifier: BSD-3-Clause
"""proto/status.views and what is made of it: one more view is one more row everywhere, and what is wrong is told with its line."""
import json
import os
import sys

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path.insert(0, os.path.join(ROOT, 'proto'))
import status_views  # noqa: E402 pylint: disable=wrong-import-position

ONE = '''
view clocks: what time it is
    asked     cluster
    seen by   administrators
    takes     job limit
    not part of all
    manual    What time it is
              on each `node`.
    row clock: a clock
        node      text
        zone      text|null    "UTC" or so
        now_ms    count        since 1970
        drift?    [drift]
        state     (good bad)|null
        peer      integer|(any)

part drift: how it goes
    us_per_s  integer
'''


def test_one_view_is_told_everywhere(tmp_path):
    views = status_views.parse(ONE)
    (view,) = views.views
    assert (view.asked, view.seen_by, view.takes, view.in_all) == ('cluster', 'administrators', ['job', 'limit'], False)
    assert view.manual == 'What time it is on each `node`.'
    assert 'X(clocks)' in status_views.header(views) and 'STATUS_VIEWS_N 1' in status_views.header(views)
    assert '{"clocks", "what time it is", true, false, true, false},' in status_views.source(views)
    chapter = status_views.manual_chapter(views)
    assert '### clocks' in chapter and '| `drift` (not always) | list of [drift](#drift) |  |' in chapter
    assert '| `peer` | integer, or `any` |  |' in chapter and "root and the daemon's user" in chapter
    assert status_views.man_page_commands(views) == ''
    with open(os.path.join(ROOT, 'proto', 'status.schema.json'), encoding='utf-8') as file:
        schema = json.loads(status_views.schema(views, file.read()))
    clock = schema['$defs']['clock']
    assert clock['required'] == ['node', 'zone', 'now_ms', 'state', 'peer']
    assert clock['properties']['state'] == {'enum': ['good', 'bad', None]}
    assert clock['properties']['zone'] == {'description': '"UTC" or so', 'type': ['string', 'null']}
    assert clock['properties']['peer'] == {'oneOf': [{'type': 'integer'}, {'const': 'any'}]}
    assert schema['$defs']['get']['properties']['get']['enum'] == ['clocks', 'all']
    assert schema['$defs']['part']['properties']['subject'] == {'enum': []}
    assert 'info' not in schema['$defs'] and 'drift' in schema['$defs'] and 'code' in schema['$defs']


def test_a_view_of_everybody_has_its_command_in_the_manual():
    views = status_views.parse(ONE.replace('not part of all', 'part of all').replace('administrators', 'everybody'))
    assert status_views.man_page_commands(views) == '.It Cm clocks\nWhat time it is on each \\(oqnode\\(cq.\n'
    assert '{"clocks", "what time it is", true, true, true, true},' in status_views.source(views)


@pytest.mark.parametrize('old, new, complaint', [
    ('asked     cluster', 'asked     everywhere', '3: "asked     everywhere" is not understood'),
    ('    asked     cluster\n', '', 'view clocks: it needs asked'),
    ('    row clock: a clock\n', '    row text: a clock\n', 'text stands here twice'),
    ('        node      text\n', '        node text\n', '10: "node text": expected a column'),
    ('        node      text\n', '        zone      text\n', 'clock: no columns, or one of them twice'),
    ('(good bad)|null', '(good bad)null', 'clock.state: "(good bad)null" is no type'),
    ('[drift]', '[drifts]', 'there is no type and no part "drifts"'),
    ('    us_per_s  integer', '  us_per_s  integer', 'stands where it means nothing'),
    ('takes     job limit', 'takes     node', 'is not understood'),
    ('part drift: how it goes\n', 'part clock: how it goes\n', 'clock stands here twice'),
])
def test_what_is_wrong_is_told(old, new, complaint):
    assert old in ONE
    with pytest.raises(status_views.DescriptionError) as caught:
        status_views.parse(ONE.replace(old, new))
    assert complaint in str(caught.value)


def test_the_documents_fit():
    views = status_views.read()
    for path, text in status_views.documents(views):
        with open(os.path.join(ROOT, path), encoding='utf-8') as file:
            assert file.read() == text, path


def test_a_document_without_its_place_is_refused():
    with pytest.raises(status_views.DescriptionError):
        status_views.between('nothing', 'begin', 'end', '', 'x')


def test_json_keeps_its_meaning():
    for value in ({}, [], {'a': [1, {'b': None}]}, {'long': ['word' * 10] * 9}, {'deep': {'a': {'b': {'c': {'d': {'e': 1}}}}}}):
        assert json.loads(status_views.json_text(value)) == value
