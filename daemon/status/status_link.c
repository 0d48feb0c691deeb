/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status_link.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "daemon/port/cmd.h"
#include "daemon/routing/topology.h"
#include "daemon/status/status_node.h"

/* "TCP port 4711", "UDP port 5000" of the channel that a node has on a network, or what it is
 * called where there are no ports. */
static void link_port(const struct topology_node *t, const char *network, char text[64])
{
    const Motet__Endpoint *e = topology_endpoint(t, network, 0);
    struct sockaddr_storage address = {0};
    uint32_t port = 0;

    if (e && e->address.len <= sizeof address && e->address.len >= sizeof(struct sockaddr_in)) {
        memcpy(&address, e->address.data, e->address.len);
        if (address.ss_family == AF_INET)
            port = ntohs(((const struct sockaddr_in *)(const void *)&address)->sin_port);
        else if (address.ss_family == AF_INET6 && e->address.len >= sizeof(struct sockaddr_in6))
            port = ntohs(((const struct sockaddr_in6 *)(const void *)&address)->sin6_port);
    }
    bool udp = e && strstr(e->provider, "udp") != NULL;
    if (port != 0)
        snprintf(text, 64, "%s port %u", udp ? "UDP" : "TCP", port);
    else
        snprintf(text, 64, "provider %.40s", e ? e->provider : "?");
}

/* "interface eth0 (MTU 1500)" of this node's channel on a network, "its interface" of another's. */
static void link_interface(const struct status_node *node, const struct topology_node *from,
                           const char *network, char text[64])
{
    struct ifreq request = {0};
    FD_AUTO fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(text, 64, "its interface");
    for (int ch = 0; from->node_id == node->id && ch < node->config->n_channels; ch++) {
        const struct config_channel *c = &node->config->channels[ch];
        if (strcmp(c->network, network) != 0)
            continue;
        snprintf(text, 64, "interface %.15s", c->resolved_interface);
        snprintf(request.ifr_name, sizeof request.ifr_name, "%.15s", c->resolved_interface);
        if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0)
            snprintf(text, 64, "interface %.15s (MTU %d)", c->resolved_interface, request.ifr_mtu);
        return;
    }
}

bool status_link_fault(const struct status_node *node, const struct topology_node *from,
                       const Motet__Adjacency *a, struct status_link_words *ret_words)
{
    const struct topology_node *t = topology_find(node->topology, a->node_id);
    const char *here = from->state->node, *there = t ? t->state->node : "?";
    char their_port[64], own_port[64], interface[64];
    char *text = ret_words->text, *advice = ret_words->advice;
    size_t n = sizeof ret_words->text;

    if (!a->has_fault || !t)
        return false;
    link_port(t, a->network, their_port);
    link_port(from, a->network, own_port);
    link_interface(node, from, a->network, interface);
    switch ((enum link_verdict)a->fault) {
    case LINK_SILENT:
        snprintf(text, n,
                 "no data comes from node %s to %s on network %s, though its control "
                 "connection lives",
                 there, here, a->network);
        snprintf(advice, n,
                 "look for a firewall before %s of %s and %s of %s, and whether motetd on %s hangs",
                 own_port, here, their_port, there, there);
        break;
    case LINK_ONE_WAY:
        snprintf(text, n,
                 "data from node %s does not arrive at %s on network %s, though data comes "
                 "the other way",
                 here, there, a->network);
        snprintf(advice, n,
                 "look for a firewall on the way from %s to %s of %s, and at the cable "
                 "and switch in that direction",
                 here, their_port, there);
        break;
    case LINK_LARGE:
        snprintf(text, n,
                 "packets of more than %u bytes from node %s do not arrive at %s on "
                 "network %s, smaller ones do",
                 a->fault_value, here, there, a->network);
        snprintf(advice, n,
                 "compare the MTU of %s with that of %s and of all switches between "
                 "(jumbo frames); or lower it: ip link set mtu",
                 interface, there);
        break;
    case LINK_BROKEN:
        snprintf(text, n, "node %s cannot send to %s on network %s: %s", here, there, a->network,
                 strerror((int)a->fault_value));
        snprintf(advice, n,
                 "look for a firewall that rejects %s of %s, and whether the network's "
                 "provider works there",
                 their_port, there);
        break;
    default:
        snprintf(text, n, "no data passes from node %s to %s on network %s", here, there,
                 a->network);
        snprintf(advice, n, "look at the daemons' logs: versions may differ");
        break;
    }
    return true;
}
