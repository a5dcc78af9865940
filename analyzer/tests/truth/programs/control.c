/* Branches: diamonds, short circuits, nested loops with breaks, small switches, gotos. */
static int grid[10][14];
static int queue[256];
static long counts[8];

__attribute__((noinline)) static int grade(int x)
{
    if (x < 10) {
        if (x < 5)
            return x < 2 ? 0 : 1;
        return 2;
    } else if (x < 20) {
        counts[1]++;
        return 3;
    } else if (x & 1) {
        counts[2] += x;
        return 4;
    }
    counts[3]--;
    return 5;
}

__attribute__((noinline)) static int small_switch(int x)
{
    switch (x & 7) {
    case 0: return 3;
    case 1: case 2: counts[4]++; break;
    case 5: counts[5] += 2; /* fall through */
    case 6: counts[6]++; break;
    default: return 1;
    }
    return 0;
}

__attribute__((noinline)) static int flood(int x, int y)
{
    int head = 0, tail = 0, n = 0;
    queue[tail++] = y * 14 + x;
    grid[y][x] = 2;
    while (head < tail) {
        int at = queue[head++], px = at % 14, py = at / 14;
        n++;
        for (int d = 0; d < 4; d++) {
            int nx = px + (d == 0) - (d == 1), ny = py + (d == 2) - (d == 3);
            if (nx < 0 || ny < 0 || nx >= 14 || ny >= 10 || grid[ny][nx] != 0)
                continue;
            grid[ny][nx] = 2;
            queue[tail++] = ny * 14 + nx;
        }
    }
    return n;
}

__attribute__((noinline)) static int life(void)
{
    static int next[10][14];
    int alive = 0;
    for (int y = 1; y < 9; y++)
        for (int x = 1; x < 13; x++) {
            int n = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                    if ((dx || dy) && grid[y + dy][x + dx])
                        n++;
            next[y][x] = n == 3 || (n == 2 && grid[y][x]);
        }
    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 14; x++) {
            grid[y][x] = next[y][x];
            alive += next[y][x] != 0;
        }
    return alive;
}

__attribute__((noinline)) static long collatz(long n)
{
    long steps = 0;
    do {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    } while (n != 1);
    return steps;
}

__attribute__((noinline)) static int first_pair(int wanted)
{
    for (int i = 1; i < 30; i++)
        for (int k = i; k < 30; k++) {
            if (i * k == wanted)
                goto found;
            if (i * k > wanted)
                break;
        }
    return 0;
found:
    counts[7]++;
    return wanted;
}

__attribute__((noinline)) static int select(const int *p, int n)
{
    int low = 1 << 30, high = -low, near = 0;
    for (int i = 0; i < n; i++) {
        low = p[i] < low ? p[i] : low;
        high = p[i] > high ? p[i] : high;
        near += p[i] > 3 && p[i] < 40 && (p[i] % 3 == 0 || p[i] == 7);
    }
    return low + high + near;
}

int main(void)
{
    long total = 0;
    for (int i = 0; i < 60; i++)
        total += grade(i * 7 % 33) + small_switch(i);
    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 14; x++)
            grid[y][x] = (x * y + x) % 5 == 1;
    total += flood(3, 4);
    total += life();
    for (int i = 1; i < 8; i++)
        total += collatz(i) + first_pair(i * 13);
    total += select(queue, 60);
    return (int)total & 1;
}
