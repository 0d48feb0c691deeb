# SPDX-License-Identifier: BSD-3-Clause
"""What the status socket says, against proto/status.schema.json: not only that replies fit it, but that nothing is in them that it does not
describe."""
import json
import os
import sys

import jsonschema

PROTO = os.path.join(os.path.dirname(__file__), '..', '..', 'proto')
sys.path.insert(0, PROTO)
import status_views  # noqa: E402 pylint: disable=wrong-import-position

PATH = os.path.join(PROTO, 'status.schema.json')
with open(PATH, encoding='utf-8') as _file:
    SCHEMA = json.load(_file)

# The kinds of rows of each view; those of orders are told by their keys.
ROWS = {view.name: [row.name for row in view.rows] for view in status_views.read().views} | {'all': ['part'], 'set': ['changed', 'ending']}


def _fits(value, kind):
    validator = jsonschema.Draft202012Validator({'$defs': SCHEMA['$defs'], '$ref': f'#/$defs/{kind}'})
    return [f'{kind}: {error.json_path}: {error.message}' for error in validator.iter_errors(value)]


def check_row(row, subject):
    """Complaints about one row of a subject."""
    kinds = {kind: _fits(row, kind) for kind in ROWS[subject]}
    fitting = [kind for kind, complaints in kinds.items() if not complaints]
    if not fitting:
        return [complaint for complaints in kinds.values() for complaint in complaints] + [f'in {row}']
    unknown = set(row) - set(SCHEMA['$defs'][fitting[0]]['properties'])
    complaints = [f'{fitting[0]}: {key} is not in the schema' for key in sorted(unknown)]
    if subject == 'all':
        for inner in row['rows']:
            complaints += check_row(inner, row['subject'])
    return complaints


def check(request, reply):
    """Asserts that a reply fits the schema, and that a request that was not refused does."""
    complaints = _fits(reply, 'reply')
    if reply.get('ok') is True:
        complaints += _fits(request, 'request')
        subject = request.get('get', 'set')
        for row in reply['data']:
            complaints += check_row(row, subject)
    assert not complaints, '\n'.join(complaints)
