/* The half of voted.c that is compiled without debug information. */
#include "voted.h"
#define FUNCTION __attribute__((noipa, used))

FUNCTION long plain_key(const void *at) { return ((const struct node *)at)->key; }
FUNCTION int plain_count(const void *at) { return ((const struct node *)at)->count; }
FUNCTION double plain_double(const void *at) { return *(const double *)at; }
