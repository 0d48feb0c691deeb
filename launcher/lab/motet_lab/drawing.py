# SPDX-License-Identifier: BSD-3-Clause
"""The cluster drawn with letters: one column a node, one row a network.

    network     a1    a2    gw    b1
                |     |     |     |
    left     ---o-----o-----o     |      tcp, 1gbit, mtu 1500
                            |     |
    right                   o-----o---   udp, unshaped, mtu 1500

A column is drawn down to the node's last network; a cut connection is an x, a node whose daemon is dead stands in brackets.
"""


def draw(cluster, cuts=(), dead=()):
    """`cuts`: (node name, network name) that are cut; `dead`: node names without a daemon. Returns the text."""
    labels = [f'({n.name})' if n.name in dead else n.name for n in cluster.nodes]
    width = max(max(map(len, labels)) + 3, 6)
    margin = max(len(n.name) for n in cluster.networks) + 4
    columns = [margin + i * width + width // 2 for i in range(len(labels))]
    end = margin + len(labels) * width
    last = {n.name: max(map(cluster.networks.index, n.networks)) for n in cluster.nodes}

    def blank(first_row):
        """A row with nothing but the columns of the nodes that still go on to row `first_row` or below."""
        row = [' '] * end
        for node, column in zip(cluster.nodes, columns):
            if last[node.name] >= first_row:
                row[column] = '|'
        return row

    head = [' '] * end
    for label, column in zip(labels, columns):
        start = column - len(label) // 2
        head[start:start + len(label)] = label
    rows = [''.join(head)]
    for index, network in enumerate(cluster.networks):
        rows.append(''.join(blank(index)))
        row = blank(index + 1)
        on = [columns[cluster.nodes.index(n)] for n in network.nodes]
        for column in range(min(on), max(on) + 1):
            row[column] = '+' if row[column] == '|' else '-'
        for node, column in zip(network.nodes, on):
            row[column] = 'x' if (node.name, network.name) in cuts else 'o'
        # A column that merely passes a network that the node is not on: shown going through.
        for _node, column in zip(cluster.nodes, columns):
            if row[column] == '+':
                row[column] = '|'
        text = '  ' + network.name
        rows.append(text + ''.join(row)[len(text):] + '  ' + network.describe())
    return '\n'.join(line.rstrip() for line in rows)
