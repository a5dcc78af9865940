// A chess engine: bitboards and rays, make and unmake, a transposition table of clusters, a hash of pawn
// structures, principal variation search with quiescence, killers, history, static exchanges.
#include "../heap.h"

typedef unsigned long long U64;
typedef int16_t Value;
typedef uint16_t Move; // from, to, promotion

enum { WHITE, BLACK, BOTH };
enum { PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING, NONE };
enum { BOUND_NONE, BOUND_UPPER, BOUND_LOWER, BOUND_EXACT };
enum { N, E, NE, NW, S, W, SW, SE }; // the first four go up

#define MAX_PLY 32
#define MATE 30000
#define TT_CLUSTERS 4096
#define PAWN_ENTRIES 1024
#define FROM(m) ((m) & 63)
#define TO(m) ((m) >> 6 & 63)
#define PROMOTES(m) ((m) >> 12)
#define MOVE(from, to, promotion) ((Move)((from) | (to) << 6 | (promotion) << 12))
#define BIT(s) (1ULL << (s))
#define LSB(b) __builtin_ctzll(b)
#define MSB(b) (63 - __builtin_clzll(b))
#define COUNT(b) __builtin_popcountll(b)

typedef struct { Value mg, eg; } Score;

typedef struct {
    U64 byType[6];
    U64 byColour[3];
    U64 key, pawnKey;
    Score psq[2];
    uint8_t squares[64]; // type, and 8 for black
    uint8_t stm, castling, epSquare, rule50;
    uint8_t phase;
} Board;

typedef struct {
    U64 key, pawnKey;
    uint8_t castling, epSquare, rule50, captured;
    Move move;
} Undo;

typedef struct {
    uint16_t key16;
    Move move;
    Value value, eval;
    uint8_t depth;
    uint8_t generation : 6, bound : 2;
} TTEntry;

typedef struct {
    TTEntry entries[3];
    uint16_t padding;
} TTCluster;

typedef struct {
    U64 key;
    U64 passed[2];
    Score score;
    uint8_t semiOpen[2], kingDistance[2];
} PawnEntry;

typedef struct {
    Move move;
    int score;
} ExtMove;

typedef struct {
    ExtMove moves[128];
    int count, next;
    int stage;
    Move ttMove, killers[2], counter;
} MovePicker;

typedef struct {
    Undo undo;
    MovePicker picker;
    Move pv[MAX_PLY];
    int pvLength;
    Move killers[2];
    Value staticEval;
    uint8_t inCheck;
} Stack;

typedef struct Thread {
    struct Thread *next;
    int id;
    Board board;
    Stack *stack; // one for each ply
    int16_t history[2][64][64];
    Move counters[6][64];
    PawnEntry *pawns;
    struct { U64 nodes, qnodes, cutoffs, firstCutoffs, ttHits, pawnHits; } stats;
    Value bestValue;
    Move bestMove;
} Thread;

typedef struct {
    Score mobility[6];
    Score passed[8];
    Score bishopPair, doubled, isolated;
    Value tempo;
    Value kingAttack[6];
} EvalParams;

typedef Score (*EvalTerm)(const Board *, Thread *, int us);

static U64 Rays[8][64];
static U64 KnightAttacks[64], KingAttacks[64], PawnAttacks[2][64];
static U64 PassedMask[2][64], FileMask[8];
static U64 ZobristPieces[16][64], ZobristCastling[16], ZobristEp[64], ZobristSide;
static Score PSQT[6][64];
static uint8_t CastlingMask[64];
static uint8_t Distance[64][64];
static TTCluster *Table;
static uint8_t Generation;
static __thread struct Counters { U64 probes, stores, evals, see; } Local;
static const Value Worth[7] = {100, 320, 330, 500, 950, 0, 0};
static const uint8_t PhaseWeight[6] = {0, 1, 1, 2, 4, 0};
static EvalParams Params = {
    .mobility = {{0, 0}, {4, 4}, {4, 3}, {2, 4}, {1, 2}, {0, 0}},
    .passed = {{0, 0}, {5, 10}, {5, 15}, {10, 25}, {20, 45}, {40, 80}, {70, 130}, {0, 0}},
    .bishopPair = {25, 45}, .doubled = {-8, -18}, .isolated = {-12, -10}, .tempo = 12,
    .kingAttack = {0, 8, 8, 12, 20, 0}};

// ---- tables ----

static void initTables(void) {
    static const int steps[8][2] = {{0, 1}, {1, 0}, {1, 1}, {-1, 1}, {0, -1}, {-1, 0}, {-1, -1}, {1, -1}};
    static const int jumps[8][2] = {{1, 2}, {2, 1}, {2, -1}, {1, -2}, {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}};
    for (int s = 0; s < 64; s++) {
        int file = s & 7, rank = s >> 3;
        FileMask[file] |= BIT(s);
        CastlingMask[s] = 15;
        for (int d = 0; d < 8; d++) {
            int f = file + steps[d][0], r = rank + steps[d][1];
            if (f >= 0 && f < 8 && r >= 0 && r < 8) KingAttacks[s] |= BIT(r * 8 + f);
            for (; f >= 0 && f < 8 && r >= 0 && r < 8; f += steps[d][0], r += steps[d][1]) Rays[d][s] |= BIT(r * 8 + f);
            f = file + jumps[d][0], r = rank + jumps[d][1];
            if (f >= 0 && f < 8 && r >= 0 && r < 8) KnightAttacks[s] |= BIT(r * 8 + f);
        }
        for (int side = 0; side < 2; side++)
            for (int f = file - 1; f <= file + 1; f += 2) {
                int r = rank + (side ? -1 : 1);
                if (f >= 0 && f < 8 && r >= 0 && r < 8) PawnAttacks[side][s] |= BIT(r * 8 + f);
            }
        for (int t = 0; t < 64; t++) {
            int df = abs(file - (t & 7)), dr = abs(rank - (t >> 3));
            Distance[s][t] = (uint8_t)(df > dr ? df : dr);
            if (df <= 1 && (t >> 3) > rank) PassedMask[WHITE][s] |= BIT(t);
            if (df <= 1 && (t >> 3) < rank) PassedMask[BLACK][s] |= BIT(t);
            ZobristEp[s] = tr_rand();
        }
        for (int p = 0; p < 16; p++) ZobristPieces[p][s] = tr_rand() * 0x9E3779B97F4A7C15ULL;
        for (int p = 0; p < 6; p++) {
            int centre = 6 - abs(2 * file - 7) / 2 - abs(2 * rank - 7) / 2;
            PSQT[p][s].mg = (Value)(Worth[p] + (p == KING ? -centre * 8 : p == PAWN ? rank * 3 + centre : centre * 4));
            PSQT[p][s].eg = (Value)(Worth[p] + (p == PAWN ? rank * 8 : centre * 5));
        }
    }
    for (int c = 0; c < 16; c++) ZobristCastling[c] = tr_rand();
    ZobristSide = tr_rand();
    CastlingMask[0] = 13, CastlingMask[7] = 14, CastlingMask[4] = 12;
    CastlingMask[56] = 7, CastlingMask[63] = 11, CastlingMask[60] = 3;
}

// ---- attacks ----

static inline U64 rayUp(int d, int s, U64 occupied) {
    U64 ray = Rays[d][s], hit = ray & occupied;
    return hit ? ray ^ Rays[d][LSB(hit)] : ray;
}
static inline U64 rayDown(int d, int s, U64 occupied) {
    U64 ray = Rays[d][s], hit = ray & occupied;
    return hit ? ray ^ Rays[d][MSB(hit)] : ray;
}
static U64 bishopAttacks(int s, U64 occ) {
    return rayUp(NE, s, occ) | rayUp(NW, s, occ) | rayDown(SW, s, occ) | rayDown(SE, s, occ);
}
static U64 rookAttacks(int s, U64 occ) {
    return rayUp(N, s, occ) | rayUp(E, s, occ) | rayDown(S, s, occ) | rayDown(W, s, occ);
}

static U64 pieceAttacks(int type, int s, U64 occ) {
    switch (type) {
    case KNIGHT: return KnightAttacks[s];
    case BISHOP: return bishopAttacks(s, occ);
    case ROOK: return rookAttacks(s, occ);
    case QUEEN: return bishopAttacks(s, occ) | rookAttacks(s, occ);
    default: return KingAttacks[s];
    }
}

static NOINLINE int attacked(const Board *b, int s, int by) {
    U64 them = b->byColour[by];
    return (PawnAttacks[!by][s] & b->byType[PAWN] & them) || (KnightAttacks[s] & b->byType[KNIGHT] & them) ||
           (KingAttacks[s] & b->byType[KING] & them) ||
           (bishopAttacks(s, b->byColour[BOTH]) & (b->byType[BISHOP] | b->byType[QUEEN]) & them) ||
           (rookAttacks(s, b->byColour[BOTH]) & (b->byType[ROOK] | b->byType[QUEEN]) & them);
}
static int kingSquare(const Board *b, int side) { return LSB(b->byType[KING] & b->byColour[side]); }

// ---- the board ----

static void put(Board *b, int type, int side, int s) {
    int piece = type | side << 3, view = side ? s ^ 56 : s;
    b->byType[type] ^= BIT(s);
    b->byColour[side] ^= BIT(s);
    b->byColour[BOTH] ^= BIT(s);
    b->squares[s] = (uint8_t)piece;
    b->key ^= ZobristPieces[piece][s];
    if (type == PAWN || type == KING) b->pawnKey ^= ZobristPieces[piece][s];
    b->psq[side].mg += PSQT[type][view].mg;
    b->psq[side].eg += PSQT[type][view].eg;
    b->phase += PhaseWeight[type];
}

static void lift(Board *b, int s) {
    int piece = b->squares[s], type = piece & 7, side = piece >> 3, view = side ? s ^ 56 : s;
    b->byType[type] ^= BIT(s);
    b->byColour[side] ^= BIT(s);
    b->byColour[BOTH] ^= BIT(s);
    b->squares[s] = NONE;
    b->key ^= ZobristPieces[piece][s];
    if (type == PAWN || type == KING) b->pawnKey ^= ZobristPieces[piece][s];
    b->psq[side].mg -= PSQT[type][view].mg;
    b->psq[side].eg -= PSQT[type][view].eg;
    b->phase -= PhaseWeight[type];
}

static NOINLINE void unmake(Board *b, const Undo *u) {
    int from = FROM(u->move), to = TO(u->move), us = b->stm ^= 1, type = b->squares[to] & 7;
    lift(b, to);
    put(b, PROMOTES(u->move) ? PAWN : type, us, from);
    if (type == PAWN && to == u->epSquare && to) put(b, PAWN, !us, to ^ 8);
    else if (u->captured != NONE) put(b, u->captured & 7, !us, to);
    if (type == KING && abs(from - to) == 2) {
        int rook = to > from ? to - 1 : to + 1;
        lift(b, rook);
        put(b, ROOK, us, to > from ? to + 1 : to - 2);
    }
    b->key = u->key;
    b->pawnKey = u->pawnKey;
    b->castling = u->castling;
    b->epSquare = u->epSquare;
    b->rule50 = u->rule50;
}

static NOINLINE int make(Board *b, Move m, Undo *u) {
    int from = FROM(m), to = TO(m), us = b->stm, type = b->squares[from] & 7;
    u->key = b->key;
    u->pawnKey = b->pawnKey;
    u->castling = b->castling;
    u->epSquare = b->epSquare;
    u->rule50 = b->rule50;
    u->captured = b->squares[to];
    u->move = m;
    b->rule50++;
    if (u->captured != NONE) lift(b, to), b->rule50 = 0;
    else if (type == PAWN && to == b->epSquare && to) lift(b, to ^ 8);
    lift(b, from);
    put(b, PROMOTES(m) ? PROMOTES(m) : type, us, to);
    if (type == KING && abs(from - to) == 2) {
        lift(b, to > from ? to + 1 : to - 2);
        put(b, ROOK, us, to > from ? to - 1 : to + 1);
    }
    if (b->epSquare) b->key ^= ZobristEp[b->epSquare];
    b->epSquare = 0;
    if (type == PAWN) {
        b->rule50 = 0;
        if (abs(from - to) == 16) b->epSquare = (uint8_t)((from + to) / 2), b->key ^= ZobristEp[b->epSquare];
    }
    b->key ^= ZobristCastling[b->castling];
    b->castling &= CastlingMask[from] & CastlingMask[to];
    b->key ^= ZobristCastling[b->castling] ^ ZobristSide;
    b->stm ^= 1;
    if (attacked(b, kingSquare(b, us), !us)) {
        unmake(b, u);
        return 0;
    }
    return 1;
}

static void setup(Board *b, const char *fen) {
    int s = 56;
    memset(b, 0, sizeof *b);
    memset(b->squares, NONE, 64);
    for (; *fen != ' '; fen++) {
        static const char names[] = "PNBRQKpnbrqk";
        if (*fen == '/') s -= 16;
        else if (*fen >= '1' && *fen <= '8') s += *fen - '0';
        else {
            int at = (int)(strchr(names, *fen) - names);
            put(b, at % 6, at / 6, s++);
        }
    }
    b->stm = *++fen == 'b';
    for (fen += 2; *fen && *fen != ' '; fen++)
        b->castling |= *fen == 'K' ? 1 : *fen == 'Q' ? 2 : *fen == 'k' ? 4 : *fen == 'q' ? 8 : 0;
    b->key ^= ZobristCastling[b->castling] ^ (b->stm ? ZobristSide : 0);
}

// ---- moves ----

static void addMoves(MovePicker *mp, int from, U64 to) {
    for (; to; to &= to - 1) mp->moves[mp->count++].move = MOVE(from, LSB(to), 0);
}

static void addPawn(MovePicker *mp, int from, int to) {
    if (to < 8 || to >= 56) mp->moves[mp->count++].move = MOVE(from, to, KNIGHT);
    mp->moves[mp->count++].move = MOVE(from, to, to < 8 || to >= 56 ? QUEEN : 0);
}

static NOINLINE void generate(const Board *b, MovePicker *mp, int quiets) {
    int us = b->stm, up = us ? -8 : 8;
    U64 occ = b->byColour[BOTH], target = b->byColour[!us] | (quiets ? ~occ : 0), ep = b->epSquare ? BIT(b->epSquare) : 0;
    for (U64 pawns = b->byType[PAWN] & b->byColour[us]; pawns; pawns &= pawns - 1) {
        int s = LSB(pawns), rank = s >> 3;
        for (U64 to = PawnAttacks[us][s] & (b->byColour[!us] | ep); to; to &= to - 1) addPawn(mp, s, LSB(to));
        if (occ & BIT(s + up)) continue;
        if (quiets || rank == (us ? 1 : 6)) addPawn(mp, s, s + up);
        if (quiets && rank == (us ? 6 : 1) && !(occ & BIT(s + 2 * up))) addPawn(mp, s, s + 2 * up);
    }
    for (int type = KNIGHT; type <= KING; type++)
        for (U64 pieces = b->byType[type] & b->byColour[us]; pieces; pieces &= pieces - 1)
            addMoves(mp, LSB(pieces), pieceAttacks(type, LSB(pieces), occ) & target);
    if (quiets) {
        int king = us ? 60 : 4;
        if (b->castling & (us ? 4 : 1) && !(occ & BIT(king + 1)) && !(occ & BIT(king + 2)) && !attacked(b, king, !us) && !attacked(b, king + 1, !us))
            mp->moves[mp->count++].move = MOVE(king, king + 2, 0);
        if (b->castling & (us ? 8 : 2) && !(occ & BIT(king - 1)) && !(occ & BIT(king - 2)) && !(occ & BIT(king - 3)) && !attacked(b, king, !us) && !attacked(b, king - 1, !us))
            mp->moves[mp->count++].move = MOVE(king, king - 2, 0);
    }
}

static NOINLINE int see(const Board *b, Move m) {
    int gain[24], depth = 0, from = FROM(m), to = TO(m), side = b->stm, type = b->squares[from] & 7;
    U64 occ = b->byColour[BOTH];
    Local.see++;
    gain[0] = Worth[b->squares[to] & 7];
    for (;;) {
        U64 mine, attackers;
        occ &= ~BIT(from);
        side ^= 1;
        attackers = (PawnAttacks[!side][to] & b->byType[PAWN]) | (KnightAttacks[to] & b->byType[KNIGHT]) |
                    (KingAttacks[to] & b->byType[KING]) | (bishopAttacks(to, occ) & (b->byType[BISHOP] | b->byType[QUEEN])) |
                    (rookAttacks(to, occ) & (b->byType[ROOK] | b->byType[QUEEN]));
        mine = attackers & occ & b->byColour[side];
        if (!mine || depth == 22) break;
        depth++;
        gain[depth] = Worth[type] - gain[depth - 1];
        for (type = PAWN; !(mine & b->byType[type]); type++)
            ;
        from = LSB(mine & b->byType[type]);
    }
    for (; depth; depth--)
        if (-gain[depth] < gain[depth - 1]) gain[depth - 1] = -gain[depth];
    return gain[0];
}

static NOINLINE void scoreMoves(Thread *t, MovePicker *mp) {
    const Board *b = &t->board;
    for (ExtMove *m = mp->moves; m < mp->moves + mp->count; m++) {
        int captured = b->squares[TO(m->move)] & 7;
        if (m->move == mp->ttMove) m->score = 1 << 30;
        else if (captured != NONE) m->score = (1 << 20) + Worth[captured] * 16 - (b->squares[FROM(m->move)] & 7);
        else if (m->move == mp->killers[0]) m->score = (1 << 19) + 2;
        else if (m->move == mp->killers[1]) m->score = (1 << 19) + 1;
        else if (m->move == mp->counter) m->score = 1 << 19;
        else m->score = t->history[b->stm][FROM(m->move)][TO(m->move)];
    }
}

static NOINLINE Move nextMove(MovePicker *mp) {
    int best = mp->next;
    ExtMove picked;
    if (mp->next == mp->count) return 0;
    for (int i = mp->next + 1; i < mp->count; i++)
        if (mp->moves[i].score > mp->moves[best].score) best = i;
    picked = mp->moves[best];
    mp->moves[best] = mp->moves[mp->next];
    mp->moves[mp->next++] = picked;
    return picked.move;
}

// ---- evaluation ----

static NOINLINE PawnEntry *probePawns(Thread *t) {
    const Board *b = &t->board;
    PawnEntry *e = &t->pawns[b->pawnKey % PAWN_ENTRIES];
    if (e->key == b->pawnKey) {
        t->stats.pawnHits++;
        return e;
    }
    memset(e, 0, sizeof *e);
    e->key = b->pawnKey;
    for (int us = 0; us < 2; us++) {
        U64 mine = b->byType[PAWN] & b->byColour[us], theirs = b->byType[PAWN] & b->byColour[!us];
        int sign = us ? -1 : 1;
        for (U64 p = mine; p; p &= p - 1) {
            int s = LSB(p), file = s & 7;
            if (!(PassedMask[us][s] & theirs)) e->passed[us] |= BIT(s);
            if (PassedMask[us][s] & FileMask[file] & mine) e->score.mg += sign * Params.doubled.mg, e->score.eg += sign * Params.doubled.eg;
            if (!((file ? FileMask[file - 1] : 0) & mine) && !((file < 7 ? FileMask[file + 1] : 0) & mine))
                e->score.mg += sign * Params.isolated.mg, e->score.eg += sign * Params.isolated.eg;
        }
        for (int f = 0; f < 8; f++)
            if (!(mine & FileMask[f])) e->semiOpen[us] |= 1 << f;
    }
    return e;
}

static Score mobilityTerm(const Board *b, Thread *t, int us) {
    Score s = {0, 0};
    U64 ring = KingAttacks[kingSquare(b, !us)];
    (void)t;
    for (int type = KNIGHT; type <= QUEEN; type++)
        for (U64 pieces = b->byType[type] & b->byColour[us]; pieces; pieces &= pieces - 1) {
            U64 a = pieceAttacks(type, LSB(pieces), b->byColour[BOTH]);
            int n = COUNT(a & ~b->byColour[us]), near = COUNT(a & ring);
            s.mg += n * Params.mobility[type].mg + near * Params.kingAttack[type];
            s.eg += n * Params.mobility[type].eg;
        }
    return s;
}

static Score passedTerm(const Board *b, Thread *t, int us) {
    PawnEntry *e = probePawns(t);
    Score s = {0, 0};
    int king = kingSquare(b, us), enemy = kingSquare(b, !us);
    for (U64 p = e->passed[us]; p; p &= p - 1) {
        int at = LSB(p), rank = us ? 7 - (at >> 3) : at >> 3;
        s.mg += Params.passed[rank].mg;
        s.eg += Params.passed[rank].eg + 5 * (Distance[enemy][at] - Distance[king][at]);
    }
    if (us == WHITE) s.mg += e->score.mg, s.eg += e->score.eg;
    return s;
}

static Score pieceTerm(const Board *b, Thread *t, int us) {
    Score s = {0, 0};
    const PawnEntry *e = probePawns(t);
    if (COUNT(b->byType[BISHOP] & b->byColour[us]) > 1) s = Params.bishopPair;
    for (U64 p = b->byType[ROOK] & b->byColour[us]; p; p &= p - 1)
        if (e->semiOpen[us] >> (LSB(p) & 7) & 1) s.mg += 15, s.eg += 8;
    return s;
}

static EvalTerm Terms[] = {mobilityTerm, passedTerm, pieceTerm};

static NOINLINE Value evaluate(Thread *t) {
    const Board *b = &t->board;
    int mg = b->psq[WHITE].mg - b->psq[BLACK].mg, eg = b->psq[WHITE].eg - b->psq[BLACK].eg, phase = b->phase > 24 ? 24 : b->phase, v;
    Local.evals++;
    for (unsigned i = 0; i < sizeof Terms / sizeof *Terms; i++) {
        Score white = Terms[i](b, t, WHITE), black = Terms[i](b, t, BLACK);
        mg += white.mg - black.mg;
        eg += white.eg - black.eg;
    }
    v = (mg * phase + eg * (24 - phase)) / 24;
    return (Value)((b->stm ? -v : v) + Params.tempo);
}

// ---- the table ----

static NOINLINE TTEntry *probe(U64 key, int *found) {
    TTCluster *c = &Table[key % TT_CLUSTERS];
    TTEntry *replace = c->entries;
    Local.probes++;
    for (int i = 0; i < 3; i++) {
        TTEntry *e = &c->entries[i];
        if (e->key16 == (uint16_t)(key >> 48) && e->bound != BOUND_NONE) {
            e->generation = Generation;
            *found = 1;
            return e;
        }
        if (e->depth - 8 * ((Generation - e->generation) & 63) < replace->depth - 8 * ((Generation - replace->generation) & 63)) replace = e;
    }
    *found = 0;
    return replace;
}

static void store(TTEntry *e, U64 key, Move m, int value, int eval, int depth, int bound) {
    if (m || e->key16 != (uint16_t)(key >> 48)) e->move = m;
    e->key16 = (uint16_t)(key >> 48);
    e->value = (Value)value;
    e->eval = (Value)eval;
    e->depth = (uint8_t)depth;
    e->generation = Generation;
    e->bound = bound;
    Local.stores++;
}

// ---- the search ----

static void startPicker(Thread *t, Stack *ss, Move ttMove, int ply, int quiets) {
    MovePicker *mp = &ss->picker;
    mp->count = mp->next = 0;
    mp->ttMove = ttMove;
    mp->killers[0] = ss->killers[0];
    mp->killers[1] = ss->killers[1];
    mp->counter = 0;
    if (ply) {
        Move before = ss[-1].undo.move;
        mp->counter = t->counters[t->board.squares[TO(before)] & 7 ? (t->board.squares[TO(before)] & 7) % 6 : 0][TO(before)];
    }
    generate(&t->board, mp, quiets);
    scoreMoves(t, mp);
}

static int quiesce(Thread *t, int alpha, int beta, int ply) {
    Stack *ss = &t->stack[ply];
    int best = evaluate(t);
    Move m;
    t->stats.qnodes++;
    if (best >= beta || ply >= MAX_PLY - 1) return best;
    if (best > alpha) alpha = best;
    startPicker(t, ss, 0, 0, 0);
    while ((m = nextMove(&ss->picker))) {
        int value;
        if (see(&t->board, m) < 0 || !make(&t->board, m, &ss->undo)) continue;
        value = -quiesce(t, -beta, -alpha, ply + 1);
        unmake(&t->board, &ss->undo);
        if (value > best) best = value;
        if (value > alpha) alpha = value;
        if (alpha >= beta) break;
    }
    return best;
}

static NOINLINE void reward(Thread *t, Stack *ss, Move m, int depth, int ply) {
    const Board *b = &t->board;
    const MovePicker *mp = &ss->picker;
    if (m != ss->killers[0]) ss->killers[1] = ss->killers[0], ss->killers[0] = m;
    if (ply) t->counters[(b->squares[TO(ss[-1].undo.move)] & 7) % 6][TO(ss[-1].undo.move)] = m;
    for (int i = 0; i < mp->next; i++) {
        Move other = mp->moves[i].move;
        int16_t *h = &t->history[b->stm][FROM(other)][TO(other)];
        int bonus = other == m ? depth * depth * 8 : -depth * depth * 4;
        *h = (int16_t)(*h + bonus - *h * abs(bonus) / 8192);
    }
}

static int search(Thread *t, int alpha, int beta, int depth, int ply) {
    Stack *ss = &t->stack[ply];
    Board *b = &t->board;
    int found, best = -MATE, played = 0, was = alpha;
    TTEntry *e;
    Move m, bestMove = 0, ttMove;
    ss->pvLength = 0;
    if (depth <= 0) return quiesce(t, alpha, beta, ply);
    if (b->rule50 > 98) return 0;
    t->stats.nodes++;
    e = probe(b->key, &found);
    ttMove = found ? e->move : 0;
    if (found) {
        t->stats.ttHits++;
        if (ply && e->depth >= depth && (e->bound == BOUND_EXACT || (e->bound == BOUND_LOWER ? e->value >= beta : e->value <= alpha))) return e->value;
    }
    ss->inCheck = (uint8_t)attacked(b, kingSquare(b, b->stm), !b->stm);
    ss->staticEval = found ? e->eval : evaluate(t);
    if (!ss->inCheck && ply && depth <= 2 && ss->staticEval - 120 * depth >= beta) return ss->staticEval;
    startPicker(t, ss, ttMove, ply, 1);
    while ((m = nextMove(&ss->picker))) {
        int quiet = b->squares[TO(m)] == NONE, value, reduce;
        if (!make(b, m, &ss->undo)) continue;
        reduce = depth >= 3 && played > 3 && quiet && !ss->inCheck;
        played++;
        if (played == 1) value = -search(t, -beta, -alpha, depth - 1, ply + 1);
        else {
            value = -search(t, -alpha - 1, -alpha, depth - 1 - reduce, ply + 1);
            if (value > alpha && (reduce || value < beta)) value = -search(t, -beta, -alpha, depth - 1, ply + 1);
        }
        unmake(b, &ss->undo);
        if (value <= best) continue;
        best = value;
        if (value <= alpha) continue;
        alpha = value;
        bestMove = m;
        ss->pv[0] = m;
        memcpy(ss->pv + 1, ss[1].pv, (size_t)ss[1].pvLength * sizeof(Move));
        ss->pvLength = ss[1].pvLength + 1;
        if (alpha < beta) continue;
        t->stats.cutoffs++;
        if (played == 1) t->stats.firstCutoffs++;
        if (quiet) reward(t, ss, m, depth, ply);
        break;
    }
    if (!played) return ss->inCheck ? ply - MATE : 0;
    store(e, b->key, bestMove, best, ss->staticEval, depth, best >= beta ? BOUND_LOWER : best > was ? BOUND_EXACT : BOUND_UPPER);
    return best;
}

static Thread *newThread(int id, Thread *next) {
    Thread *t = HEAP_CALLOC(Thread, 1);
    t->id = id;
    t->stack = HEAP_CALLOC(Stack, MAX_PLY + 1);
    t->pawns = HEAP_CALLOC(PawnEntry, PAWN_ENTRIES);
    t->next = next;
    return t;
}

int main(int argc, char **argv) {
    static const char *const games[] = {
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq",
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w -",
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w -",
        "4k3/pp3ppp/2n5/3P4/8/2N1B3/PPP2PPP/4K3 b -"};
    Thread *threads = NULL;
    U64 sum = 0;
    tr_init(argc, argv);
    initTables();
    TR_GLOBAL(Rays, "U64 [][]");
    TR_GLOBAL(KnightAttacks, "U64 []");
    TR_GLOBAL(KingAttacks, "U64 []");
    TR_GLOBAL(PawnAttacks, "U64 [][]");
    TR_GLOBAL(PassedMask, "U64 [][]");
    TR_GLOBAL(FileMask, "U64 []");
    TR_GLOBAL(ZobristPieces, "U64 [][]");
    TR_GLOBAL(ZobristCastling, "U64 []");
    TR_GLOBAL(ZobristEp, "U64 []");
    TR_GLOBAL(ZobristSide, "U64");
    TR_GLOBAL(PSQT, "Score [][]");
    TR_GLOBAL(CastlingMask, "uint8_t []");
    TR_GLOBAL(Distance, "uint8_t [][]");
    TR_GLOBAL(Table, "TTCluster *");
    TR_GLOBAL(Generation, "uint8_t");
    TR_GLOBAL(Worth, "Value []");
    TR_GLOBAL(PhaseWeight, "uint8_t []");
    TR_GLOBAL(Params, "EvalParams");
    TR_GLOBAL(Terms, "EvalTerm []");
    TR_TLS(Local, "struct Counters");
    TR_CHECK(Board, phase);
    TR_CHECK(Stack, inCheck);
    TR_CHECK(Thread, bestMove);
    Table = HEAP_CALLOC(TTCluster, TT_CLUSTERS);
    for (int i = 0; i < 5; i++) {
        threads = newThread(i, threads);
        setup(&threads->board, games[i]);
    }
    while (tr_more())
        for (Thread *t = threads; t; t = t->next) {
            Undo *undo = &t->stack[MAX_PLY].undo;
            Generation = (Generation + 1) & 63;
            for (int depth = 1; depth <= 3; depth++) t->bestValue = (Value)search(t, -MATE, MATE, depth, 0);
            t->bestMove = t->stack[0].pvLength ? t->stack[0].pv[0] : 0;
            if (!t->bestMove || abs(t->bestValue) > 3000 || !make(&t->board, t->bestMove, undo)) setup(&t->board, games[t->id]);
            sum += t->stats.nodes + t->stats.qnodes;
        }
    if (getenv("VERBOSE"))
        for (Thread *t = threads; t; t = t->next) printf("%d: %llu nodes %llu quiet %llu hits best %d\n", t->id, t->stats.nodes, t->stats.qnodes, t->stats.ttHits, t->bestValue);
    tr_sink = sum;
    return 0;
}
