/* What both halves of the program know. */
struct node { struct node *next; long key; int kind, count; };
long plain_key(const void *at);
int plain_count(const void *at);
double plain_double(const void *at);
