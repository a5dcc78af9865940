/* SQLite at work, in memory: inserts, updates, joins over indices, grouping, sorting, text functions.
 * The argument is how many hundred statements to do. */
#include "sqlite3.h"
#include <stdio.h>
#include <stdlib.h>

#define PEOPLE 100000
#define ORDERS 200000

static sqlite3 *database;
static unsigned long seed = 88172645463325252ul;

static unsigned long draw(unsigned long below)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed % below;
}

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
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(database));
        exit(1);
    }
    return statement;
}

static long step_all(sqlite3_stmt *statement)
{
    long rows = 0;
    while (sqlite3_step(statement) == SQLITE_ROW)
        rows++;
    sqlite3_reset(statement);
    return rows;
}

static void fill(void)
{
    char name[32];
    sqlite3_stmt *person = prepare("insert into people(name, age, town) values(?, ?, ?)");
    sqlite3_stmt *order = prepare("insert into orders(person, amount, note) values(?, ?, ?)");
    run("begin");
    for (int i = 0; i < PEOPLE; i++) {
        snprintf(name, sizeof name, "name%lu", draw(1000000));
        sqlite3_bind_text(person, 1, name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int(person, 2, (int)draw(100));
        sqlite3_bind_int(person, 3, (int)draw(500));
        step_all(person);
    }
    for (int i = 0; i < ORDERS; i++) {
        snprintf(name, sizeof name, "note %lu of %d", draw(1000), i);
        sqlite3_bind_int64(order, 1, 1 + (long)draw(PEOPLE));
        sqlite3_bind_double(order, 2, (double)draw(100000) / 100);
        sqlite3_bind_text(order, 3, name, -1, SQLITE_TRANSIENT);
        step_all(order);
    }
    run("commit");
    sqlite3_finalize(person);
    sqlite3_finalize(order);
}

int main(int argc, char **argv)
{
    long limit = argc > 1 ? 100 * atol(argv[1]) : 10000, rows = 0;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK)
        return 1;
    run("create table people(id integer primary key, name text, age int, town int)");
    run("create table orders(id integer primary key, person int, amount real, note text)");
    run("create index by_name on people(name)");
    run("create index by_town on people(town, age)");
    run("create index by_person on orders(person)");
    fill();
    sqlite3_stmt *statements[] = {
        prepare("select p.name, sum(o.amount) from people p join orders o on o.person = p.id"
                " where p.town = ? group by p.id order by 2 desc limit 10"),
        prepare("select count(*), max(id) from people where town = ? and age between 20 and 40"),
        prepare("select upper(name), length(name), substr(name, 3) from people where town = ?"
                " order by name"),
        prepare("update people set age = age + 1 where town = ? and age < 60"),
        prepare("select count(*) from people where town in (?, 7, 11) and name like '%99%'"),
        prepare("select avg(amount), count(distinct note) from orders where person between ? and ?1 + 50"),
    };
    for (long i = 0; i < limit; i++) {
        sqlite3_stmt *statement = statements[i % 6];
        sqlite3_bind_int(statement, 1, (int)draw(500));
        rows += step_all(statement);
    }
    printf("%ld rows\n", rows);
    return 0;
}
