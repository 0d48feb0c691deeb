/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libfabric driver: reliable datagram endpoints (FI_EP_RDM) with manual progress, and plain
 * datagram endpoints (FI_EP_DGRAM) where the provider is `ofi-udp`. A provider is chosen by what it
 * can do; names only order the candidates.
 *
 * libfabric cannot take a send back, and a TCP connection whose wire was cut keeps what it was
 * given until the kernel gives up, a quarter of an hour later. So blocks to a removed peer stay
 * here until they complete; and when a peer comes back at the same address (its old connection
 * would be used again), or when too many blocks are stuck, everything is opened anew at the same
 * address. The other peers' connections break then too; their flows repair that. Everything, and
 * not the endpoint alone: libfabric 1.17 goes on to serve half-open connections of a closed
 * endpoint, from freed memory.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/net/address.h"
#include "daemon/net/block.h"
#include "daemon/net/net_ofi.h"
#include "daemon/net/ofi_load.h"

#define API_VERSION FI_VERSION(1, 17)
#define POLL_MAX    64
#define PEERS_MAX   8192u
#define PEER_NONE   UINT32_MAX
/* The TCP provider of this version of libfabric, whatever its name, and its UDP one. */
#define OFI_TCP  "ofi-tcp"
#define OFI_UDP  "ofi-udp"
#define OFI_AUTO "auto"
/* Receives posted to a network with flow control below: few, so that they stay in the cache. */
#define RECEIVES_STREAM 96u

enum slot_use { SLOT_FREE = 0, SLOT_SEND, SLOT_RECEIVE };

/* What the driver knows of a block it holds; its address is the operation's context. */
struct slot {
    struct fi_context2 context;
    uint32_t peer;
    uint8_t use; /* enum slot_use */
};

struct peer {
    fi_addr_t addr;
    bool used, removed;
    uint32_t n_out; /* sends not completed */
    uint16_t address_len;
    uint8_t address[NET_ADDRESS_BYTES];
};

struct net {
    const struct arena *arena;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    void *desc;
    size_t inject_bytes;
    uint32_t max_bytes, n_blocks;
    bool datagram, can_wait;
    struct slot *slots; /* by block */
    struct peer *peers;
    uint32_t n_peers;
    uint32_t n_stuck; /* sends to removed peers */
    /* Blocks that came back by opening anew, to be reported. */
    uint32_t *failed, n_failed;
};

/* Loaded by the first endpoint (ofi_load.h); set on the control thread before any channel thread
 * starts. */
static const struct ofi *ofi;

static struct slot *ofi_slot_of(void *context)
{
    return (struct slot *)context;
}

static uint32_t ofi_block_of(const struct net *net, const struct slot *s)
{
    return (uint32_t)(s - net->slots);
}

/* Better providers have lower numbers; -1: not wanted. */
static int ofi_rank_provider(const char *name, const char *wanted)
{
    /* `net` was merged into `tcp` in libfabric 1.18; before, `tcp` has this endpoint only below
     * ofi_rxm. */
    static const char *const tcp[] = {"net", "tcp", "net;ofi_rxm", "tcp;ofi_rxm"};
    static const char *const any[] = {"efa", "psm3", "verbs;ofi_rxm", "cxi", "opx"};

    if (strcmp(wanted, OFI_AUTO) == 0)
        for (int i = 0; i < (int)(sizeof any / sizeof *any); i++)
            if (strcmp(name, any[i]) == 0)
                return i;
    if (strcmp(wanted, OFI_TCP) == 0 || strcmp(wanted, OFI_AUTO) == 0) {
        for (int i = 0; i < (int)(sizeof tcp / sizeof *tcp); i++)
            if (strcmp(name, tcp[i]) == 0)
                return 100 + i;
        return -1;
    }
    if (strcmp(name, wanted) == 0)
        return 0;
    /* "verbs" may come as "verbs;ofi_rxm". */
    size_t n = strlen(wanted);
    return strncmp(name, wanted, n) == 0 && name[n] == ';' ? 1 : -1;
}

static int ofi_get_info(struct net *net, const struct net_config *config)
{
    const char *provider = config->provider && config->provider[0] ? config->provider : OFI_AUTO;
    char address[INET6_ADDRSTRLEN];
    const char *node = config->address;
    struct fi_info *hints = ofi->dupinfo(NULL), *list = NULL;

    if (!hints)
        return -ENOMEM;
    if (config->port != 0) {
        log_error("provider \"%s\" chooses its ports itself: data_port needs provider tcp or udp",
                  provider);
        ofi->freeinfo(hints);
        return -EINVAL;
    }
    net->datagram = strcmp(provider, OFI_UDP) == 0;
    if (net->datagram)
        provider = "udp";
    if (!node && config->interface) {
        int rc = address_of_interface(config->interface, address, sizeof address);
        if (rc < 0) {
            log_error("interface %s has no address: %s", config->interface, strerror(-rc));
            ofi->freeinfo(hints);
            return rc;
        }
        node = address;
    }
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = net->datagram ? FI_EP_DGRAM : FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    if (strcmp(provider, OFI_AUTO) != 0 && strcmp(provider, OFI_TCP) != 0)
        hints->fabric_attr->prov_name = strdup(provider);
    int rc = ofi->getinfo(API_VERSION, node, NULL, FI_SOURCE, hints, &list);
    if (rc < 0) {
        log_error("provider \"%s\" offers no %s endpoint at %s: %s", provider,
                  net->datagram ? "datagram" : "reliable datagram", node ? node : "any address",
                  ofi->strerror(-rc));
        ofi->freeinfo(hints);
        return rc;
    }
    struct fi_info *best = NULL;
    int best_rank = -1;
    for (struct fi_info *i = list; i; i = i->next) {
        int rank = ofi_rank_provider(i->fabric_attr->prov_name, provider);
        if (rank >= 0 && (!best || rank < best_rank)) {
            best = i;
            best_rank = rank;
        }
    }
    if (best)
        net->info = ofi->dupinfo(best);
    else
        log_error("provider \"%s\" not found among those of libfabric at %s", provider,
                  node ? node : "any address");
    ofi->freeinfo(list);
    ofi->freeinfo(hints);
    return best ? (net->info ? 0 : -ENOMEM) : -ENODEV;
}

/* Closes all that open_all opened. */
static void ofi_close_all(struct net *net)
{
    struct fid *fids[] = {
        net->ep ? &net->ep->fid : NULL,         net->mr ? &net->mr->fid : NULL,
        net->cq ? &net->cq->fid : NULL,         net->av ? &net->av->fid : NULL,
        net->domain ? &net->domain->fid : NULL, net->fabric ? &net->fabric->fid : NULL};

    for (size_t i = 0; i < sizeof fids / sizeof *fids; i++)
        if (fids[i])
            fi_close(fids[i]);
    net->ep = NULL;
    net->mr = NULL;
    net->cq = NULL;
    net->av = NULL;
    net->domain = NULL;
    net->fabric = NULL;
    net->desc = NULL;
}

/* Opens everything, the endpoint at info's address. 0 or a negative error of libfabric, and the
 * step that failed. */
static int ofi_open_all(struct net *net, const char **ret_what)
{
    int rc;

    *ret_what = "fi_fabric";
    rc = ofi->fabric(net->info->fabric_attr, &net->fabric, NULL);
    if (rc != 0)
        return rc;
    *ret_what = "fi_domain";
    rc = fi_domain(net->fabric, net->info, &net->domain, NULL);
    if (rc != 0)
        return rc;
    *ret_what = "fi_av_open";
    struct fi_av_attr av_attr = {.type = net->info->domain_attr->av_type, .count = 64};
    rc = fi_av_open(net->domain, &av_attr, &net->av, NULL);
    if (rc != 0)
        return rc;
    *ret_what = "fi_cq_open";
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD, .size = 8192};
    rc = fi_cq_open(net->domain, &cq_attr, &net->cq, NULL);
    net->can_wait = rc == 0;
    if (rc != 0) {
        cq_attr.wait_obj = FI_WAIT_NONE;
        rc = fi_cq_open(net->domain, &cq_attr, &net->cq, NULL);
    }
    if (rc != 0)
        return rc;
    if (net->info->domain_attr->mr_mode & FI_MR_LOCAL) {
        *ret_what = "fi_mr_reg";
        rc = fi_mr_reg(net->domain, net->arena->base, net->arena->n_bytes, FI_SEND | FI_RECV, 0, 0,
                       0, &net->mr, NULL);
        if (rc != 0)
            return rc;
        net->desc = fi_mr_desc(net->mr);
    }
    *ret_what = "endpoint";
    rc = fi_endpoint(net->domain, net->info, &net->ep, NULL);
    if (rc == 0)
        rc = fi_ep_bind(net->ep, &net->av->fid, 0);
    if (rc == 0)
        rc = fi_ep_bind(net->ep, &net->cq->fid, FI_TRANSMIT | FI_RECV);
    if (rc == 0)
        rc = fi_enable(net->ep);
    return rc;
}

/* Calls a function for each socket of this type that is bound to the endpoint's address. */
static void ofi_each_socket(const struct net *net, int type, void (*fn)(int fd))
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL) {
        struct sockaddr_storage own;
        socklen_t len = sizeof own, type_len = sizeof(int);
        int fd = atoi(entry->d_name), its = 0;
        if (fd < 3 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &its, &type_len) < 0 || its != type ||
            getsockname(fd, (struct sockaddr *)&own, &len) < 0 || len != net->info->src_addrlen ||
            memcmp(&own, net->info->src_addr, len) != 0)
            continue;
        fn(fd);
    }
    if (dir)
        closedir(dir);
}

/* Makes the socket buffers of a datagram endpoint large enough for a window of packets: the
 * kernel's default holds seven packets of 16 KiB, and libfabric offers no way to ask for more. */
static void ofi_enlarge_buffers(int fd)
{
    const int wanted = 8 << 20;

    /* Beyond the limit of the system only with privilege. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof wanted) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof wanted);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof wanted) < 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
}

/* libfabric 1.17 forgets connections that it accepted and that had not introduced themselves when
 * it closed. Their far ends would wait for an answer for ever, and meanwhile refuse any other
 * connection with us. */
static void ofi_close_forgotten(int fd)
{
    close(fd);
}

/* From now on the endpoint is opened at the address it got the first time. */
static int ofi_keep_address(struct net *net)
{
    size_t len = NET_ADDRESS_BYTES;
    void *address = calloc(1, len);

    if (!address)
        return -ENOMEM;
    int rc = fi_getname(&net->ep->fid, address, &len);
    if (rc != 0) {
        free(address);
        return rc;
    }
    free(net->info->src_addr);
    net->info->src_addr = address;
    net->info->src_addrlen = len;
    return 0;
}

static void ofi_close(struct net *net)
{
    if (!net)
        return;
    ofi_close_all(net);
    if (net->info)
        ofi->freeinfo(net->info);
    free(net->failed);
    free(net->peers);
    free(net->slots);
    free(net);
}

static int ofi_open(const struct net_config *config, const struct arena *arena,
                    struct net **ret_net)
{
    struct net *net = calloc(1, sizeof *net);
    const char *what = "memory";

    if (!net)
        return -ENOMEM;
    ofi = ofi_load();
    if (!ofi) {
        free(net);
        return -ELIBACC;
    }
    net->arena = arena;
    net->max_bytes = config->max_bytes;
    net->n_blocks = config->n_blocks;
    net->slots = calloc(arena->n_blocks, sizeof *net->slots);
    net->peers = calloc(PEERS_MAX, sizeof *net->peers);
    net->failed = calloc(arena->n_blocks, sizeof *net->failed);
    int rc = -ENOMEM;
    if (!net->slots || !net->peers || !net->failed)
        goto fail;
    rc = ofi_get_info(net, config);
    if (rc < 0) {
        ofi_close(net);
        return rc;
    }

    rc = ofi_open_all(net, &what);
    if (rc != 0)
        goto fail;
    what = "fi_getname";
    rc = ofi_keep_address(net);
    if (rc != 0)
        goto fail;
    if (net->datagram)
        ofi_each_socket(net, SOCK_DGRAM, ofi_enlarge_buffers);
    net->inject_bytes = net->info->tx_attr->inject_size;
    *ret_net = net;
    return 0;

fail:
    log_error("libfabric provider %s: %s: %s", net->info ? net->info->fabric_attr->prov_name : "?",
              what, ofi->strerror(-rc));
    ofi_close(net);
    return rc;
}

static void ofi_info(const struct net *net, struct net_info *ret_info)
{
    size_t max = net->info->ep_attr->max_msg_size;
    size_t n_receives = net->info->rx_attr->size;

    *ret_info = (struct net_info){
        .caps = (net->can_wait ? NET_CAP_WAIT : 0u) | (net->datagram ? NET_CAP_DATAGRAM : 0u),
        .max_datagram = max < net->max_bytes ? (uint32_t)max : net->max_bytes,
        .n_receives = n_receives < 65536 ? (uint32_t)n_receives : 65536,
        .driver = "ofi",
    };
    if (!net->datagram && ret_info->n_receives > RECEIVES_STREAM)
        ret_info->n_receives = RECEIVES_STREAM;
    snprintf(ret_info->provider, sizeof ret_info->provider, "%s",
             net->info->fabric_attr->prov_name);
}

static int ofi_address(struct net *net, void *buf, size_t *len)
{
    if (*len < net->info->src_addrlen)
        return -ENOSPC;
    memcpy(buf, net->info->src_addr, net->info->src_addrlen);
    *len = net->info->src_addrlen;
    return 0;
}

static int ofi_post_block(struct net *net, uint32_t block)
{
    struct slot *s = &net->slots[block];
    ssize_t rc = fi_recv(net->ep, arena_at(net->arena, block), net->max_bytes, net->desc,
                         FI_ADDR_UNSPEC, &s->context);

    if (rc == 0)
        s->use = SLOT_RECEIVE;
    return rc == -FI_EAGAIN ? -EAGAIN : (int)rc;
}

static void ofi_send_over(struct net *net, struct slot *s)
{
    struct peer *p = &net->peers[s->peer];

    s->use = SLOT_FREE;
    p->n_out--;
    if (p->removed)
        net->n_stuck--;
}

/* Opens everything anew. Sends that were under way count as failed, receives are posted and peers
 * inserted again. */
static int ofi_reopen(struct net *net)
{
    const char *what;

    ofi_close_all(net);
    ofi_each_socket(net, SOCK_STREAM, ofi_close_forgotten);
    int rc = ofi_open_all(net, &what);
    for (uint32_t i = 0; i < net->n_peers; i++) {
        struct peer *p = &net->peers[i];
        if (rc == 0 && p->used && !p->removed) {
            what = "fi_av_insert";
            if (fi_av_insert(net->av, p->address, 1, &p->addr, 0, NULL) != 1)
                rc = -FI_EADDRNOTAVAIL;
        }
    }
    for (uint32_t block = 0; block < net->arena->n_blocks; block++) {
        struct slot *s = &net->slots[block];
        if (s->use == SLOT_SEND) {
            ofi_send_over(net, s);
            net->failed[net->n_failed++] = block;
        } else if (s->use == SLOT_RECEIVE && rc == 0) {
            what = "fi_recv";
            rc = ofi_post_block(net, block);
        }
    }
    for (uint32_t i = 0; i < net->n_peers; i++)
        if (net->peers[i].removed)
            net->peers[i].used = net->peers[i].removed = false;
    if (rc != 0) {
        log_error("libfabric provider %s: cannot open again: %s: %s",
                  net->info->fabric_attr->prov_name, what, ofi->strerror(-rc));
        ofi_close_all(net);
    }
    return rc;
}

static int ofi_peer_add(struct net *net, const void *address, size_t len, struct seal *seal,
                        uint32_t *ret_peer)
{
    uint32_t idx = PEER_NONE;
    bool known = false;

    (void)seal;

    if (len > NET_ADDRESS_BYTES)
        return -EINVAL;
    if (!net->ep)
        return -ENETDOWN;
    for (uint32_t i = 0; i < net->n_peers; i++) {
        struct peer *p = &net->peers[i];
        if (p->removed && p->address_len == len && memcmp(p->address, address, len) == 0)
            known = true;
    }
    if (known && !net->datagram) {
        int rc = ofi_reopen(net);
        if (rc < 0)
            return rc;
    }
    for (uint32_t i = 0; i < net->n_peers && idx == PEER_NONE; i++)
        if (!net->peers[i].used ||
            (net->datagram && net->peers[i].removed && net->peers[i].n_out == 0))
            idx = i;
    if (idx == PEER_NONE) {
        if (net->n_peers == PEERS_MAX)
            return -ENOSPC;
        idx = net->n_peers++;
    }
    struct peer *p = &net->peers[idx];
    fi_addr_t addr;
    int n = fi_av_insert(net->av, address, 1, &addr, 0, NULL);
    if (n != 1)
        return n < 0 ? n : -EADDRNOTAVAIL;
    *p = (struct peer){.addr = addr, .used = true, .address_len = (uint16_t)len};
    memcpy(p->address, address, len);
    *ret_peer = idx;
    return 0;
}

static void ofi_peer_remove(struct net *net, uint32_t peer)
{
    struct peer *p = &net->peers[peer];

    if (!p->used || p->removed)
        return;
    p->removed = true;
    net->n_stuck += p->n_out;
    if (!net->ep)
        return;
    fi_av_remove(net->av, &p->addr, 1, 0);
    if (net->n_stuck > net->n_blocks / 8)
        ofi_reopen(net);
}

static int ofi_send(struct net *net, uint32_t peer, uint32_t block, uint32_t len)
{
    struct peer *p = &net->peers[peer];
    void *data = arena_at(net->arena, block);
    ssize_t rc;

    if (!net->ep)
        return -ENETDOWN;
    if (len <= net->inject_bytes) {
        rc = fi_inject(net->ep, data, len, p->addr);
        if (rc == 0)
            return NET_E_DONE;
        return rc == -FI_EAGAIN ? -EAGAIN : (int)rc;
    }
    struct slot *s = &net->slots[block];
    rc = fi_send(net->ep, data, len, net->desc, p->addr, &s->context);
    if (rc != 0)
        return rc == -FI_EAGAIN ? -EAGAIN : (int)rc;
    s->use = SLOT_SEND;
    s->peer = peer;
    p->n_out++;
    return 0;
}

static int ofi_post(struct net *net, uint32_t block)
{
    if (!net->ep)
        return -ENETDOWN;
    return ofi_post_block(net, block);
}

/* Takes one error off the queue. True if it makes an event. */
static bool ofi_take_error(struct net *net, struct net_event *ret_event)
{
    struct fi_cq_err_entry err = {0};

    if (fi_cq_readerr(net->cq, &err, 0) <= 0 || !err.op_context)
        return false;
    struct slot *s = ofi_slot_of(err.op_context);
    uint32_t block = ofi_block_of(net, s);
    if (s->use == SLOT_RECEIVE) {
        s->use = SLOT_FREE;
        /* A packet that did not arrive whole; the place is as good as before. */
        if (ofi_post_block(net, block) == 0)
            return false;
        *ret_event = (struct net_event){.kind = NET_RECEIVED, .block = block, .len = 0};
        return true;
    }
    if (s->use != SLOT_SEND)
        return false;
    *ret_event = (struct net_event){.kind = NET_FAILED,
                                    .block = block,
                                    .peer = s->peer,
                                    .error = err.err > 0 ? -err.err : -EIO};
    ofi_send_over(net, s);
    return true;
}

static int ofi_poll(struct net *net, struct net_event *events, int max)
{
    struct fi_cq_msg_entry entries[POLL_MAX];
    int n_out = 0;

    if (!net->ep)
        return -ENETDOWN;
    while (net->n_failed > 0 && n_out < max)
        events[n_out++] = (struct net_event){
            .kind = NET_FAILED, .block = net->failed[--net->n_failed], .error = -ECONNRESET};
    if (n_out == max)
        return n_out;
    ssize_t n =
        fi_cq_read(net->cq, entries, (size_t)(max - n_out < POLL_MAX ? max - n_out : POLL_MAX));
    if (n == -FI_EAGAIN)
        return n_out;
    if (n == -FI_EAVAIL) {
        if (ofi_take_error(net, &events[n_out]))
            n_out++;
        return n_out;
    }
    if (n < 0) {
        log_error("libfabric provider %s: fi_cq_read: %s", net->info->fabric_attr->prov_name,
                  ofi->strerror((int)-n));
        return (int)n;
    }
    for (ssize_t i = 0; i < n; i++) {
        struct slot *s = ofi_slot_of(entries[i].op_context);
        uint32_t block = ofi_block_of(net, s);
        if (s->use == SLOT_SEND) {
            events[n_out++] = (struct net_event){.kind = NET_SENT, .block = block, .peer = s->peer};
            ofi_send_over(net, s);
        } else if (s->use == SLOT_RECEIVE) {
            s->use = SLOT_FREE;
            events[n_out++] = (struct net_event){
                .kind = NET_RECEIVED, .block = block, .len = (uint32_t)entries[i].len};
        }
    }
    return n_out;
}

static int ofi_wait_fd(struct net *net)
{
    int fd = -1;

    if (!net->cq || fi_control(&net->cq->fid, FI_GETWAIT, &fd) != 0)
        return -1;
    return fd;
}

static int ofi_wait_ready(struct net *net)
{
    struct fid *fids[1] = {&net->cq->fid};

    if (net->n_failed > 0 || !net->ep)
        return -EAGAIN;
    return fi_trywait(net->fabric, fids, 1) == 0 ? 0 : -EAGAIN;
}

const struct net_driver net_ofi = {
    .name = "ofi",
    .open = ofi_open,
    .close = ofi_close,
    .info = ofi_info,
    .address = ofi_address,
    .peer_add = ofi_peer_add,
    .peer_remove = ofi_peer_remove,
    .send = ofi_send,
    .post = ofi_post,
    .poll = ofi_poll,
    .wait_fd = ofi_wait_fd,
    .wait_ready = ofi_wait_ready,
};
