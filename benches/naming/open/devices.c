/* Objects in C: a base struct first, tables of operations, packets with flexible arrays and headers
 * in a union, descriptor rings, private data behind void pointers. */
#include "../heap.h"

#define RING 128
#define SECTORS 512

struct device;

struct operations {
    const char *name;
    int (*submit)(struct device *, const void *data, uint32_t length);
    unsigned (*poll)(struct device *, unsigned budget);
    long (*status)(const struct device *);
};

struct counters {
    uint64_t packets, bytes;
    uint32_t dropped, errors;
};

struct device {
    const struct operations *operations;
    struct device *next;
    const char *label;
    uint32_t up : 1, promiscuous : 1, speed : 10, irq : 8;
    struct counters in, out;
    void *private;
};

struct ethernet {
    uint8_t to[6], from[6];
    uint16_t type;
};
struct control {
    uint32_t command, argument;
    uint64_t token;
};

struct packet {
    struct packet *next;
    uint16_t length, protocol;
    uint32_t mark;
    union {
        struct ethernet ethernet;
        struct control control;
        uint8_t raw[16];
    } header;
    uint8_t payload[];
};

struct descriptor {
    struct packet *packet;
    uint32_t length;
    uint16_t flags, sequence;
};

struct ring {
    uint32_t head, tail;
    struct descriptor descriptors[RING];
};

struct nic {
    struct device device;
    struct ring receive, transmit;
    uint32_t hash_keys[10];
    unsigned queues_by_hash[16];
};

struct request {
    struct request *next;
    uint64_t sector;
    uint32_t count;
    uint8_t write, priority;
};

struct disk {
    struct device device;
    struct request *pending, *idle;
    uint64_t position, seeks;
    uint32_t heat[SECTORS];
};

struct filter {
    unsigned port, hits;
    struct filter *next;
};

static struct device *devices;
static struct packet *packet_pool;

static NOINLINE struct packet *take_packet(uint16_t length) {
    struct packet *packet = packet_pool;
    if (packet) packet_pool = packet->next;
    else packet = HEAP_FLEXIBLE(struct packet, sizeof *packet + 256);
    packet->length = length;
    packet->mark = 0;
    return packet;
}

static NOINLINE void drop_packet(struct packet *packet) {
    packet->next = packet_pool;
    packet_pool = packet;
}

static NOINLINE uint32_t checksum(const struct packet *packet) {
    uint32_t sum = packet->protocol;
    for (int i = 0; i < packet->length; i++) sum = (sum << 1) + packet->payload[i];
    for (int i = 0; i < 6; i++) sum ^= packet->header.ethernet.from[i] << i;
    return sum;
}

static int nic_submit(struct device *device, const void *data, uint32_t length) {
    struct nic *nic = (struct nic *)device;
    struct ring *ring = &nic->transmit;
    if (ring->head - ring->tail == RING) {
        device->out.dropped++;
        return -1;
    }
    struct packet *packet = take_packet(length);
    const uint8_t *bytes = data;
    for (uint32_t i = 0; i < length; i++) packet->payload[i] = bytes[i];
    packet->protocol = 0x800 + (length & 3);
    memcpy(packet->header.ethernet.from, &packet, 6);
    struct descriptor *d = &ring->descriptors[ring->head++ % RING];
    d->packet = packet;
    d->length = length;
    d->flags |= 1;
    d->sequence++;
    return 0;
}

static unsigned nic_poll(struct device *device, unsigned budget) {
    struct nic *nic = (struct nic *)device;
    unsigned done = 0;
    while (done < budget && nic->transmit.tail != nic->transmit.head) {
        struct descriptor *d = &nic->transmit.descriptors[nic->transmit.tail++ % RING];
        uint32_t hash = checksum(d->packet) ^ nic->hash_keys[d->sequence % 10];
        d->packet->mark = hash;
        nic->queues_by_hash[hash & 15]++;
        device->out.packets++;
        device->out.bytes += d->length;
        struct descriptor *loop = &nic->receive.descriptors[nic->receive.head++ % RING];
        if (loop->packet) drop_packet(loop->packet);
        loop->packet = d->packet;
        loop->length = d->length;
        d->flags &= ~1;
        done++;
    }
    for (struct filter *f = device->private; f; f = f->next) f->hits += f->port < done;
    return done;
}

static long nic_status(const struct device *device) {
    const struct nic *nic = (const struct nic *)device;
    long status = device->out.packets - device->in.packets;
    for (int i = 0; i < 16; i++) status += nic->queues_by_hash[i];
    return status + nic->receive.head;
}

static int disk_submit(struct device *device, const void *data, uint32_t length) {
    struct disk *disk = (struct disk *)device;
    struct request *request = disk->idle;
    if (request) disk->idle = request->next;
    else request = HEAP_MALLOC(struct request);
    request->sector = (*(const uint32_t *)data * 2654435761u) % SECTORS;
    request->count = length / 16;
    request->write = length & 1;
    request->priority = length % 3;
    struct request **link = &disk->pending;
    while (*link && (*link)->sector < request->sector) link = &(*link)->next;
    request->next = *link;
    *link = request;
    return 0;
}

static unsigned disk_poll(struct device *device, unsigned budget) {
    struct disk *disk = (struct disk *)device;
    unsigned done = 0;
    struct request *request;
    while (done++ < budget && (request = disk->pending)) {
        disk->pending = request->next;
        disk->seeks += request->sector != disk->position;
        for (uint32_t i = 0; i < request->count; i++)
            disk->heat[(request->sector + i) % SECTORS] += request->priority;
        disk->position = request->sector + request->count;
        if (request->write) device->out.bytes += request->count;
        else device->in.bytes += request->count;
        request->next = disk->idle;
        disk->idle = request;
    }
    return done;
}

static long disk_status(const struct device *device) {
    const struct disk *disk = (const struct disk *)device;
    long hot = 0;
    for (int i = 0; i < SECTORS; i += 8) hot += disk->heat[i];
    return hot + (long)disk->seeks + device->in.bytes;
}

static const struct operations nic_operations = {"nic", nic_submit, nic_poll, nic_status};
static const struct operations disk_operations = {"disk", disk_submit, disk_poll, disk_status};

static NOINLINE void add_device(struct device *device, const struct operations *operations) {
    device->operations = operations;
    device->label = operations->name;
    device->speed = 1000;
    device->next = devices;
    devices = device;
}

static NOINLINE long serve(const uint8_t *data, unsigned round) {
    long done = 0;
    for (struct device *d = devices; d; d = d->next) {
        if (!d->up && round % 7 == 0) d->up = 1;
        for (unsigned i = 0; i < 24; i++)
            done += d->operations->submit(d, data + 8 * i, 32 + (round * 13 + i) % 96);
        done += d->operations->poll(d, 28 + d->speed % 8);
        d->irq++;
        d->in.packets += d->up;
    }
    return done;
}

static NOINLINE long status(void) {
    long sum = 0;
    for (const struct device *d = devices; d; d = d->next)
        sum += d->operations->status(d) + d->label[0];
    return sum;
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBAL(devices, "struct device *");
    TR_GLOBAL(packet_pool, "struct packet *");
    TR_GLOBAL(nic_operations, "struct operations");
    TR_GLOBAL(disk_operations, "struct operations");
    TR_CHECK(struct nic, transmit);
    TR_CHECK(struct device, private);
    TR_CHECK(struct disk, heat);
    uint8_t *data = HEAP_CALLOC(uint8_t, 4096);
    for (int i = 0; i < 4096; i++) data[i] = tr_rand();
    for (int i = 0; i < 6; i++) {
        struct nic *nic = HEAP_CALLOC(struct nic, 1);
        add_device(&nic->device, &nic_operations);
        for (int k = 0; k < 10; k++) nic->hash_keys[k] = tr_rand();
        for (int k = 0; k < 12; k++) {
            struct filter *filter = HEAP_CALLOC(struct filter, 1);
            filter->port = k;
            filter->next = nic->device.private;
            nic->device.private = filter;
        }
        add_device(&HEAP_CALLOC(struct disk, 1)->device, &disk_operations);
    }
    long sum = 0;
    for (unsigned round = 0; tr_more(); round++) {
        sum += serve(data + round * 8 % 3000, round);
        if (round % 4 == 0) sum += status();
    }
    tr_sink = sum;
    return 0;
}
