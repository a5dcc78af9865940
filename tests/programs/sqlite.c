/* SQLite at work: inserts, and selects over an index, in a database in memory. With an argument it
 * does so many statements and ends; without, it goes on. */
#include "sqlite3.h"
#include <stdio.h>
#include <stdlib.h>

#define FILL 200000

static sqlite3 *database;

static void run(const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(database));
        exit(1);
    }
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        exit(1);
    return statement;
}

int main(int argc, char **argv)
{
    long limit = argc > 1 ? FILL + atol(argv[1]) : -1;
    unsigned long seed = 88172645463325252ul;
    char name[32];
    if (sqlite3_open(":memory:", &database) != SQLITE_OK)
        return 1;
    run("create table people(id integer primary key, name text, age int)");
    run("create index by_name on people(name)");
    run("create index by_age on people(age)");
    sqlite3_stmt *insert = prepare("insert into people(name, age) values(?, ?)");
    sqlite3_stmt *select =
        prepare("select count(*), max(id) from people where age between ? and ? and name > ?");
    run("begin");
    for (long i = 0; i != limit; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        int age = seed >> 40 & 0xffff;
        snprintf(name, sizeof name, "name%lu", seed % 1000000);
        if (i < FILL || (i < 4 * FILL && i % 10 == 0)) {
            sqlite3_bind_text(insert, 1, name, -1, SQLITE_TRANSIENT);
            sqlite3_bind_int(insert, 2, age);
            sqlite3_step(insert);
            sqlite3_reset(insert);
        } else {
            sqlite3_bind_int(select, 1, age);
            sqlite3_bind_int(select, 2, age + 3);
            sqlite3_bind_text(select, 3, name, -1, SQLITE_TRANSIENT);
            while (sqlite3_step(select) == SQLITE_ROW)
                ;
            sqlite3_reset(select);
        }
        if (i == FILL) {
            puts("ready");
            fflush(stdout);
        }
    }
    return 0;
}
