/* Structures in arrays and arrays in structures, unions, bit-fields, packed members, copies. */
#include <stdint.h>
#include <string.h>

struct vector { float x, y, z; };
struct particle { struct vector at, speed; unsigned alive : 1, kind : 3, age : 12; char tag[5]; };
struct columns { float x[48], y[48]; int kind[48]; uint8_t alive[48]; };
struct __attribute__((packed)) packet { uint8_t type; uint32_t length; uint16_t port; uint64_t id; };
union word { uint64_t whole; uint32_t half[2]; uint8_t byte[8]; double real; };
struct date { int year; short month, day; };
struct order { long id; struct date due; struct { int n; long price; } line[3]; const struct order *next; };

static struct particle particles[48];
static struct columns columns;
static struct packet packets[16];
static union word words[20];
static struct order orders[12];

__attribute__((noinline)) static void move(struct particle *p, int n, float dt)
{
    for (int i = 0; i < n; i++, p++) {
        if (!p->alive)
            continue;
        p->at.x += p->speed.x * dt;
        p->at.y += p->speed.y * dt;
        p->at.z += p->speed.z * dt;
        if (++p->age > 3 && p->kind == 2)
            p->alive = 0;
    }
}

__attribute__((noinline)) static float column_sum(const struct columns *c)
{
    float sum = 0;
    for (int i = 0; i < 48; i++)
        sum += c->alive[i] ? c->x[i] * c->y[i] : (float)c->kind[i];
    return sum;
}

__attribute__((noinline)) static void to_columns(void)
{
    for (int i = 0; i < 48; i++) {
        columns.x[i] = particles[i].at.x;
        columns.y[i] = particles[i].at.y;
        columns.kind[i] = particles[i].kind;
        columns.alive[i] = particles[i].alive;
    }
}

__attribute__((noinline)) static uint64_t checksum(const struct packet *p, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum = sum * 31 + p[i].type + p[i].length * p[i].port + p[i].id;
    return sum;
}

__attribute__((noinline)) static long price(const struct order *order)
{
    long sum = 0;
    for (; order; order = order->next)
        for (int i = 0; i < 3; i++)
            if (order->due.month != 2)
                sum += order->line[i].n * order->line[i].price;
    return sum;
}

__attribute__((noinline)) static struct order later(struct order order, int days)
{
    order.due.day = (short)(order.due.day + days);
    while (order.due.day > 30) {
        order.due.day -= 30;
        if (++order.due.month > 12) {
            order.due.month = 1;
            order.due.year++;
        }
    }
    return order;
}

int main(void)
{
    for (int i = 0; i < 48; i++) {
        struct particle *p = &particles[i];
        p->alive = i % 5 != 0;
        p->kind = (unsigned)i % 4;
        p->speed = (struct vector){ (float)i, 1.5f, -0.5f * (float)i };
        memcpy(p->tag, "abcd", 5);
    }
    for (int i = 0; i < 5; i++)
        move(particles, 48, 0.125f);
    to_columns();
    for (int i = 0; i < 16; i++)
        packets[i] = (struct packet){ (uint8_t)i, (uint32_t)i * 1000, (uint16_t)(i + 80), ~(uint64_t)i };
    uint64_t total = checksum(packets, 16);
    for (int i = 0; i < 20; i++) {
        words[i].real = i * 1.75;
        total += words[i].half[1] ^ words[i].byte[6];
        words[i].byte[i & 7] ^= 0x55;
        total += words[i].whole >> 40;
    }
    for (int i = 0; i < 12; i++) {
        orders[i].id = i;
        orders[i].due = (struct date){ 2000 + i, (short)(i + 1), 1 };
        for (int k = 0; k < 3; k++) {
            orders[i].line[k].n = i + k;
            orders[i].line[k].price = 10 * k + 1;
        }
        orders[i].next = i ? &orders[i - 1] : 0;
    }
    for (int i = 0; i < 12; i++)
        orders[i] = later(orders[i], 25 * i);
    total += (uint64_t)price(&orders[11]) + (uint64_t)column_sum(&columns);
    return (int)total & 1;
}
