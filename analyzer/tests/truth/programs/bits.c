/* Bits and ciphers: long stretches of register-only work, rotations, tables of constants. */
#include <stdint.h>

static uint32_t crc_table[256];
static uint8_t message[160];
static uint32_t digest[5];

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

__attribute__((noinline)) static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i += 8) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
        crc_table[i] = value;
    }
}

__attribute__((noinline)) static uint32_t crc(const uint8_t *p, int n)
{
    uint32_t value = ~0u;
    while (n--)
        value = crc_table[(value ^ *p++) & 0xff] ^ value >> 8;
    return ~value;
}

__attribute__((noinline)) static void sha1_block(const uint8_t *p, uint32_t *h)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f, k;
        if (i < 20) { f = (b & c) | (~b & d); k = 0x5a827999; }
        else if (i < 40) { f = b ^ c ^ d; k = 0x6ed9eba1; }
        else if (i < 60) { f = (b & c) | (b & d) | (c & d); k = 0x8f1bbcdc; }
        else { f = b ^ c ^ d; k = 0xca62c1d6; }
        uint32_t t = rotate(a, 5) + f + e + k + w[i];
        e = d; d = c; c = rotate(b, 30); b = a; a = t;
    }
    h[0] += a; h[1] += b; h[2] += c; h[3] += d; h[4] += e;
}

__attribute__((noinline)) static void xtea(uint32_t v[2], const uint32_t key[4])
{
    uint32_t x = v[0], y = v[1], sum = 0;
    for (int i = 0; i < 32; i++) {
        x += ((y << 4 ^ y >> 5) + y) ^ (sum + key[sum & 3]);
        sum += 0x9e3779b9;
        y += ((x << 4 ^ x >> 5) + x) ^ (sum + key[sum >> 11 & 3]);
    }
    v[0] = x;
    v[1] = y;
}

__attribute__((noinline)) static int ones(uint64_t x)
{
    int n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

__attribute__((noinline)) static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

__attribute__((noinline)) static uint64_t power(uint64_t base, unsigned n, uint64_t modulus)
{
    unsigned __int128 value = 1, square = base;
    for (; n; n >>= 1) {
        if (n & 1)
            value = value * square % modulus;
        square = square * square % modulus;
    }
    return (uint64_t)value;
}

__attribute__((noinline)) static unsigned sieve(void)
{
    static uint32_t composite[13];
    unsigned n = 0;
    for (unsigned i = 2; i < 400; i++) {
        if (composite[i / 32] >> i % 32 & 1)
            continue;
        n++;
        for (unsigned k = i * i; k < 400; k += i)
            composite[k / 32] |= 1u << k % 32;
    }
    return n;
}

int main(void)
{
    uint32_t v[2] = { 1, 2 };
    static const uint32_t key[4] = { 0x1234, 0x9876, 0xfeed, 0xbeef };
    for (int i = 0; i < 160; i++)
        message[i] = (uint8_t)(i * i + 7);
    make_table();
    uint64_t total = crc(message, 160);
    for (int i = 0; i < 2; i++)
        sha1_block(message + 64 * i, digest);
    for (int i = 0; i < 3; i++)
        xtea(v, key);
    for (uint64_t i = 1; i < 16; i++)
        total += (uint64_t)ones(i * 0x123456789abcdefull) + gcd(i * 9699690, 30030 + i);
    total += power(3, 12345, 1000000007) + sieve() + (uint64_t)__builtin_popcountll(total);
    return (int)(total + v[0] + digest[2]) & 1;
}
