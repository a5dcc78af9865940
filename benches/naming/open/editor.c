/*
 * The buffer of a text editor: a table of pieces over an original and an append-only buffer,
 * undo and redo by swapping spans of pieces, search across pieces, and a coloured screen.
 */
#include "../heap.h"
#include <ctype.h>

#define ROWS 32
#define COLUMNS 80
#define KEYWORDS 32
#define MARKS 24

typedef struct Piece Piece;
typedef struct Change Change;
typedef struct Revision Revision;

typedef enum { ORIGINAL, ADDED } Source;

struct Piece
{
    Piece *prev, *next;
    Piece *chain;             /* all pieces ever made, newest first */
    uint32_t start, length;
    Source source;
    int generation;
};

typedef struct
{
    Piece *first, *last;      /* NULL: empty */
    size_t length;
} Span;

struct Change
{
    Change *next;
    Piece *before, *after;    /* the neighbours, which stay */
    Span removed, inserted;
    size_t position;
};

struct Revision
{
    Revision *older, *newer;
    Change *changes;
    unsigned serial;
    size_t cursor;
};

typedef struct
{
    Piece begin, end;
    char *original, *added;
    size_t originalLength, addedLength, addedCapacity;
    size_t size;
    Piece *all;
    Revision *current;
    unsigned revisions, pieces;
    struct { Piece *piece; size_t position; } cache;
} Text;

typedef struct
{
    const Text *text;
    const Piece *piece;
    const char *at, *stop;
    size_t position;
} Cursor;

typedef struct
{
    char glyph;
    unsigned char colour : 4, bold : 1, inverse : 1;
    unsigned short touched;
} Cell;

typedef struct
{
    const char *word;
    unsigned char length, colour;
    unsigned hits;
} Keyword;

typedef struct
{
    size_t top, cursor;
    Cell cells[ROWS][COLUMNS];
    struct { size_t start; unsigned short width, indent; } lines[ROWS];
    unsigned drawn, scrolled;
} Window;

typedef struct
{
    size_t position;
    char name;
    unsigned moves;
} Mark;

static Keyword keywords[KEYWORDS];
static Mark marks[MARKS];
static unsigned long seed = 12345;

static unsigned randomBelow(unsigned limit)
{
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(seed >> 33) % limit;
}

static const char *bytesOf(const Text *text, const Piece *piece)
{
    return (piece->source == ADDED ? text->added : text->original) + piece->start;
}

static Piece *newPiece(Text *text, Source source, uint32_t start, uint32_t length)
{
    Piece *piece = HEAP_MALLOC(Piece);
    piece->prev = piece->next = NULL;
    piece->chain = text->all;
    piece->source = source;
    piece->start = start;
    piece->length = length;
    piece->generation = (int)text->revisions;
    text->all = piece;
    text->pieces++;
    return piece;
}

/* The piece that holds `position`, and how far in it. */
static NOINLINE Piece *pieceAt(Text *text, size_t position, size_t *within)
{
    Piece *piece = text->cache.piece;
    size_t at = text->cache.position;

    if (!piece || position < at / 2)
    {
        piece = text->begin.next;
        at = 0;
    }
    while (position < at)
    {
        piece = piece->prev;
        at -= piece->length;
    }
    while (piece != &text->end && position > at + piece->length)
    {
        at += piece->length;
        piece = piece->next;
    }
    text->cache.piece = piece == &text->end ? NULL : piece;
    text->cache.position = at;
    *within = position - at;
    return piece;
}

static void swapSpans(Text *text, Change *change, const Span *out, const Span *in)
{
    Piece *left = change->before, *right = change->after;

    if (in->first)
    {
        left->next = in->first;
        in->first->prev = left;
        in->last->next = right;
        right->prev = in->last;
    }
    else
    {
        left->next = right;
        right->prev = left;
    }
    text->size = text->size - out->length + in->length;
    text->cache.piece = NULL;
}

static NOINLINE void moveMarks(size_t position, long by)
{
    Mark *mark;

    for (mark = marks; mark < marks + MARKS; mark++)
        if (mark->position > position)
        {
            mark->position = by < 0 && mark->position < position - by ? position
                                                                      : mark->position + by;
            mark->moves++;
        }
}

static Change *newChange(Text *text, size_t position)
{
    Change *change = HEAP_CALLOC(Change, 1);
    change->position = position;
    change->next = text->current->changes;
    text->current->changes = change;
    return change;
}

static void forget(Revision *revision)
{
    while (revision)
    {
        Revision *newer = revision->newer;
        while (revision->changes)
        {
            Change *change = revision->changes;
            revision->changes = change->next;
            HEAP_FREE(change);
        }
        HEAP_FREE(revision);
        revision = newer;
    }
}

static void snapshot(Text *text, size_t cursor)
{
    Revision *revision = HEAP_CALLOC(Revision, 1);
    revision->older = text->current;
    revision->serial = text->revisions++;
    revision->cursor = cursor;
    if (text->current)
    {
        forget(text->current->newer);
        text->current->newer = revision;
    }
    text->current = revision;
}

static NOINLINE void insertText(Text *text, size_t position, const char *bytes, size_t length)
{
    size_t within, start = text->addedLength, i;
    Piece *piece, *made;
    Change *change;

    if (text->addedLength + length > text->addedCapacity)
    {
        text->addedCapacity = 2 * text->addedCapacity + length;
        text->added = HEAP_REALLOC(text->added, char, text->addedCapacity);
    }
    for (i = 0; i < length; i++) text->added[start + i] = bytes[i];
    text->addedLength += length;

    piece = pieceAt(text, position, &within);
    change = newChange(text, position);
    made = newPiece(text, ADDED, (uint32_t)start, (uint32_t)length);
    if (piece == &text->end || within == 0 || within == piece->length)
    {
        change->before = piece == &text->end || within == 0 ? piece->prev : piece;
        change->after = change->before->next;
        change->inserted = (Span){ made, made, length };
    }
    else
    {
        Piece *left = newPiece(text, piece->source, piece->start, (uint32_t)within);
        Piece *right = newPiece(text, piece->source, piece->start + (uint32_t)within,
                                piece->length - (uint32_t)within);
        left->next = made;
        made->prev = left;
        made->next = right;
        right->prev = made;
        change->before = piece->prev;
        change->after = piece->next;
        change->removed = (Span){ piece, piece, piece->length };
        change->inserted = (Span){ left, right, piece->length + length };
    }
    swapSpans(text, change, &change->removed, &change->inserted);
    moveMarks(position, (long)length);
}

static NOINLINE void deleteText(Text *text, size_t position, size_t length)
{
    size_t within, left;
    Piece *piece = pieceAt(text, position, &within), *head = NULL, *tail = NULL;
    Change *change;

    if (piece == &text->end || position + length > text->size) return;
    if (within == piece->length)
    {
        piece = piece->next;
        within = 0;
    }
    change = newChange(text, position);
    change->before = piece->prev;
    change->removed.first = piece;
    if (within) head = newPiece(text, piece->source, piece->start, (uint32_t)within);
    for (left = length + within; left > piece->length; piece = piece->next)
    {
        left -= piece->length;
        change->removed.length += piece->length;
    }
    change->removed.length += piece->length;
    change->removed.last = piece;
    change->after = piece->next;
    if (left < piece->length)
        tail = newPiece(text, piece->source, piece->start + (uint32_t)left,
                        piece->length - (uint32_t)left);
    if (head && tail)
    {
        head->next = tail;
        tail->prev = head;
    }
    change->inserted.first = head ? head : tail;
    change->inserted.last = tail ? tail : head;
    change->inserted.length = change->removed.length - length;
    swapSpans(text, change, &change->removed, &change->inserted);
    moveMarks(position, -(long)length);
}

static NOINLINE size_t undo(Text *text)
{
    Revision *revision = text->current;
    Change *change;

    if (!revision->older) return 0;
    for (change = revision->changes; change; change = change->next)
        swapSpans(text, change, &change->inserted, &change->removed);
    text->current = revision->older;
    return revision->cursor;
}

/* Only revisions of one change are done again here; the others would need the list turned round. */
static NOINLINE size_t redo(Text *text)
{
    Revision *revision = text->current->newer;

    if (!revision || !revision->changes || revision->changes->next) return 0;
    swapSpans(text, revision->changes, &revision->changes->removed, &revision->changes->inserted);
    text->current = revision;
    return revision->cursor;
}

static void cursorTo(Cursor *cursor, Text *text, size_t position)
{
    size_t within;

    cursor->text = text;
    cursor->piece = pieceAt(text, position, &within);
    cursor->position = position;
    cursor->at = cursor->stop = NULL;
    if (cursor->piece == &text->end) return;
    cursor->at = bytesOf(text, cursor->piece) + within;
    cursor->stop = bytesOf(text, cursor->piece) + cursor->piece->length;
}

static inline int nextByte(Cursor *cursor)
{
    while (cursor->at == cursor->stop)
    {
        if (cursor->piece == &cursor->text->end) return -1;
        cursor->piece = cursor->piece->next;
        if (cursor->piece == &cursor->text->end) return -1;
        cursor->at = bytesOf(cursor->text, cursor->piece);
        cursor->stop = cursor->at + cursor->piece->length;
    }
    cursor->position++;
    return (unsigned char)*cursor->at++;
}

static NOINLINE size_t findWord(Text *text, size_t from, const char *word)
{
    Cursor cursor;
    size_t matched = 0, length = strlen(word), tried;
    int byte;

    cursorTo(&cursor, text, from);
    for (tried = 0; tried < 600 && (byte = nextByte(&cursor)) >= 0; tried++)
    {
        if (byte == word[matched]) matched++;
        else matched = byte == word[0];
        if (matched == length) return cursor.position;
    }
    return 0;
}

static Keyword *keywordOf(const Cell *cells, unsigned length)
{
    unsigned hash = length, i, probe;

    for (i = 0; i < length; i++) hash = hash * 33 + (unsigned char)cells[i].glyph;
    for (probe = 0; probe < 4; probe++)
    {
        Keyword *keyword = &keywords[(hash + probe) % KEYWORDS];
        if (!keyword->word || keyword->length != length) continue;
        for (i = 0; i < length && keyword->word[i] == cells[i].glyph; i++);
        if (i == length) return keyword;
    }
    return NULL;
}

static NOINLINE void draw(Window *window, Text *text)
{
    Cursor cursor;
    int row, byte = 0;

    cursorTo(&cursor, text, window->top);
    for (row = 0; row < ROWS && byte >= 0; row++)
    {
        Cell *cells = window->cells[row];
        unsigned column = 0, word = 0, indent = 0, blank = 1;

        window->lines[row].start = cursor.position;
        while ((byte = nextByte(&cursor)) >= 0 && byte != '\n' && column < COLUMNS)
        {
            Cell *cell = &cells[column];
            if (cell->glyph != byte) cell->touched++;
            cell->glyph = (char)byte;
            cell->inverse = cursor.position == window->cursor;
            blank &= byte == ' ';
            indent += blank;
            if (!isalpha(byte))
            {
                Keyword *keyword = column > word ? keywordOf(cells + word, column - word) : NULL;
                for (; word < column; word++)
                {
                    cells[word].colour = keyword ? keyword->colour : 0;
                    cells[word].bold = keyword != NULL;
                }
                if (keyword) keyword->hits++;
                cell->colour = byte == '"' ? 5 : 1;
                word = column + 1;
            }
            column++;
        }
        window->lines[row].width = (unsigned short)column;
        window->lines[row].indent = (unsigned short)indent;
        for (; column < COLUMNS; column++) cells[column] = (Cell){ ' ', 0, 0, 0, 0 };
    }
    window->drawn++;
}

static NOINLINE unsigned checkSum(const Window *window)
{
    unsigned sum = 0;
    int row, column;

    for (row = 0; row < ROWS; row++)
        for (column = 0; column < window->lines[row].width; column++)
        {
            const Cell *cell = &window->cells[row][column];
            sum = sum * 3 + cell->glyph + cell->colour;
        }
    return sum;
}

/* Writes the text out in one piece and forgets its history. */
static NOINLINE void save(Text *text)
{
    char *whole = HEAP_CALLOC(char, 1 << 14);
    size_t at = 0;
    Piece *piece;

    for (piece = text->begin.next; piece != &text->end; piece = piece->next)
    {
        const char *bytes = bytesOf(text, piece);
        uint32_t i;
        for (i = 0; i < piece->length && at < 1 << 14; i++) whole[at++] = bytes[i];
    }
    while ((piece = text->all))
    {
        text->all = piece->chain;
        HEAP_FREE(piece);
    }
    while (text->current->older) text->current = text->current->older;
    forget(text->current);
    text->current = NULL;
    HEAP_FREE(text->original);
    text->original = whole;
    text->originalLength = text->size = at;
    text->addedLength = text->pieces = 0;
    text->cache.piece = NULL;
    text->begin.next = &text->end;
    text->end.prev = &text->begin;
    piece = newPiece(text, ORIGINAL, 0, (uint32_t)at);
    piece->prev = &text->begin;
    piece->next = &text->end;
    text->begin.next = text->end.prev = piece;
    snapshot(text, 0);
}

int main(int argc, char **argv)
{
    static const char *const words[] = { "int", "return", "while", "struct", "static", "void" };
    static const char *const pastes[] = { "x = y;\n", "while (n) ", "    return 0;\n", "struct a ",
                                          "\"text\"", "\n", "the quick brown fox " };
    Text *text;
    Window *window;
    unsigned i, sum = 0;

    tr_init(argc, argv);
    TR_GLOBAL(keywords, "Keyword []");
    TR_GLOBAL(marks, "Mark []");
    TR_GLOBAL(seed, "unsigned long");
    TR_CHECK(Piece, source);
    TR_CHECK(Window, lines);
    TR_CHECK(Text, cache);
    text = HEAP_CALLOC(Text, 1);
    window = HEAP_CALLOC(Window, 1);
    for (i = 0; i < sizeof words / sizeof *words; i++)
    {
        unsigned hash = (unsigned)strlen(words[i]), k;
        for (k = 0; words[i][k]; k++) hash = hash * 33 + (unsigned char)words[i][k];
        while (keywords[hash % KEYWORDS].word) hash++;
        keywords[hash % KEYWORDS] = (Keyword){ words[i], (unsigned char)k, (unsigned char)(2 + i), 0 };
    }
    text->original = HEAP_CALLOC(char, 1 << 14);
    text->added = HEAP_CALLOC(char, text->addedCapacity = 1 << 12);
    text->begin.next = &text->end;
    text->end.prev = &text->begin;
    snapshot(text, 0);
    for (i = 0; i < 500; i++)
    {
        const char *paste = pastes[randomBelow(7)];
        insertText(text, randomBelow((unsigned)text->size + 1), paste, strlen(paste));
    }
    save(text);
    for (i = 0; i < MARKS; i++) marks[i] = (Mark){ randomBelow((unsigned)text->size), 'a' + (char)i, 0 };

    while (tr_more())
    {
        size_t found;
        for (i = 0; i < 20; i++)
        {
            const char *paste = pastes[randomBelow(7)];
            snapshot(text, window->cursor);
            window->cursor = randomBelow((unsigned)text->size + 1);
            insertText(text, window->cursor, paste, strlen(paste));
            if (i % 3 && text->size > 6000) deleteText(text, randomBelow((unsigned)text->size - 40), 1 + randomBelow(30));
            if (i % 5 == 0) undo(text);
            if (i % 10 == 0) redo(text);
        }
        found = findWord(text, randomBelow((unsigned)text->size), words[randomBelow(6)]);
        if (found) window->cursor = found;
        window->top = randomBelow((unsigned)text->size + 1);
        window->scrolled++;
        draw(window, text);
        sum += checkSum(window) + text->pieces;
        if (text->pieces > 500) save(text);
    }
    tr_sink = sum;
    return 0;
}
