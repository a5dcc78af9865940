// RocksDB at work: puts, overwrites, gets, scans, merges of levels. Arguments: a folder for the
// database, and how many thousand operations to do.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/options.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"

static uint64_t seed = 88172645463325252ull;

static uint64_t draw() {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static std::string key(uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "key%012lu", static_cast<unsigned long>(number));
    return text;
}

static void check(const rocksdb::Status& status) {
    if (!status.ok() && !status.IsNotFound()) {
        fprintf(stderr, "%s\n", status.ToString().c_str());
        exit(1);
    }
}

int main(int argc, char** argv) {
    const std::string folder = argc > 1 ? argv[1] : "/tmp/rocksdb";
    const uint64_t operations = argc > 2 ? 1000 * strtoul(argv[2], nullptr, 10) : 1000000;
    const uint64_t keys = 400000;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 8 << 20;
    options.target_file_size_base = 4 << 20;
    options.max_bytes_for_level_base = 16 << 20;
    options.compression = rocksdb::kNoCompression;
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(32 << 20);
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    check(rocksdb::DestroyDB(folder, options));
    rocksdb::DB* opened = nullptr;
    check(rocksdb::DB::Open(options, folder, &opened));
    std::unique_ptr<rocksdb::DB> db(opened);

    rocksdb::WriteOptions write;
    write.disableWAL = true;
    std::string value(100, 'v');
    uint64_t found = 0, bytes = 0;
    for (uint64_t i = 0; i < operations; i++) {
        const uint64_t kind = i < keys ? 0 : draw() % 10;
        if (kind < 3) {
            value.replace(0, 8, std::to_string(draw()).substr(0, 8));
            check(db->Put(write, key(draw() % keys), value));
        } else if (kind < 4) {
            rocksdb::WriteBatch batch;
            for (int j = 0; j < 8; j++) {
                batch.Put(key(draw() % keys), value);
            }
            batch.Delete(key(draw() % keys));
            check(db->Write(write, &batch));
        } else if (kind < 9) {
            std::string read;
            const rocksdb::Status status =
                db->Get(rocksdb::ReadOptions(), key(draw() % keys), &read);
            check(status);
            found += status.ok();
            bytes += read.size();
        } else {
            std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(rocksdb::ReadOptions()));
            int steps = 0;
            for (iterator->Seek(key(draw() % keys)); iterator->Valid() && steps < 50; steps++) {
                bytes += iterator->value().size();
                iterator->Next();
            }
        }
    }
    check(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
    printf("%lu found, %lu bytes\n", static_cast<unsigned long>(found),
           static_cast<unsigned long>(bytes));
    return 0;
}
