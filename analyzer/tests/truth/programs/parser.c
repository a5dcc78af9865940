/* A calculator and a JSON reader by recursive descent, printing into memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, STRING, ARRAY, OBJECT, LITERAL };
struct value { enum kind kind; union { double number; char *string; struct value *first; }; struct value *next; };
static const char *at;
static int n_values;

static void blanks(void)
{
    while (*at == ' ' || *at == '\n')
        at++;
}

__attribute__((noinline)) static struct value *new_value(enum kind kind)
{
    struct value *value = calloc(1, sizeof *value);
    value->kind = kind;
    n_values++;
    return value;
}

static struct value *read_value(void);

__attribute__((noinline)) static struct value *read_string(void)
{
    const char *start = ++at;
    while (*at != '"')
        at += *at == '\\' ? 2 : 1;
    struct value *value = new_value(STRING);
    value->string = malloc((size_t)(at - start) + 1);
    memcpy(value->string, start, (size_t)(at - start));
    value->string[at++ - start] = 0;
    return value;
}

__attribute__((noinline)) static struct value *read_list(enum kind kind, char end)
{
    struct value *value = new_value(kind), **link = &value->first;
    at++;
    for (blanks(); *at != end; blanks()) {
        *link = read_value();
        link = &(*link)->next;
        blanks();
        if (*at == ',' || *at == ':')
            at++;
    }
    at++;
    return value;
}

__attribute__((noinline)) static struct value *read_value(void)
{
    blanks();
    switch (*at) {
    case '"': return read_string();
    case '[': return read_list(ARRAY, ']');
    case '{': return read_list(OBJECT, '}');
    case 't': at += 4; return new_value(LITERAL);
    case 'f': at += 5; return new_value(LITERAL);
    default: {
        struct value *value = new_value(NUMBER);
        char *end;
        value->number = strtod(at, &end);
        at = end;
        return value;
    }
    }
}

__attribute__((noinline)) static int print(char *to, const struct value *value)
{
    int n = 0;
    switch (value->kind) {
    case NUMBER: return sprintf(to, "%g", value->number);
    case STRING: return sprintf(to, "'%s'", value->string);
    case LITERAL: to[0] = 't'; return 1;
    case ARRAY:
    case OBJECT:
        to[n++] = '(';
        for (const struct value *child = value->first; child; child = child->next)
            n += print(to + n, child);
        to[n++] = ')';
    }
    return n;
}

__attribute__((noinline)) static void release(struct value *value)
{
    while (value) {
        struct value *next = value->next;
        if (value->kind == ARRAY || value->kind == OBJECT)
            release(value->first);
        else if (value->kind == STRING)
            free(value->string);
        free(value);
        value = next;
    }
}

static long expression(void);
static long factor(void)
{
    long value = 0;
    if (*at == '(') {
        at++;
        value = expression();
        at++;
        return value;
    }
    while (*at >= '0' && *at <= '9')
        value = value * 10 + (*at++ - '0');
    return value;
}
static long term(void)
{
    long value = factor();
    while (*at == '*' || *at == '/') {
        char sign = *at++;
        long right = factor();
        value = sign == '*' ? value * right : right ? value / right : 0;
    }
    return value;
}
static long expression(void)
{
    long value = term();
    while (*at == '+' || *at == '-')
        value = *at++ == '+' ? value + term() : value - term();
    return value;
}

int main(void)
{
    static char out[512];
    long total = 0;
    for (int i = 0; i < 1; i++) {
        at = "{\"name\": \"a \\\"b\", \"list\": [1, 2.5, [true, \"x\"]], \"deep\": {\"k\": -3e2}}";
        struct value *value = read_value();
        out[print(out, value)] = 0;
        total += (long)strlen(out) + out[20];
        release(value);
        at = "12*(3+4)-18/(2+1)*((7-2)*(1+1))+100000";
        total += expression();
    }
    return (int)(total + n_values) & 1;
}
