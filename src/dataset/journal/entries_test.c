// SPDX-License-Identifier: Apache-2.0
#include "dataset/journal/entries.h"

#include "dataset/disk/disk_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#define HEAD 8 // of an entry, on the disk

static const char *const texts[] = {"one", "second", "the third of them"};

static td_slice slice(const char *text)
{
    return (td_slice){text, strlen(text)};
}

static void write_texts(const char *path)
{
    td_dataset_entries entries;
    ok(td_dataset_entries_new(path, &entries, &why));
    for (size_t i = 0; i < TD_COUNT_OF(texts); i++)
        ok(td_dataset_entries_add(&entries, slice("#"), slice(texts[i])));
    td_dataset_entries_done(&entries);
}

static size_t end_of(size_t count)
{
    size_t end = 0;
    for (size_t i = 0; i < count; i++)
        end += HEAD + 1 + strlen(texts[i]);
    return end;
}

// How many entries there are before the reading ends; each is the right one.
static size_t count_texts(const char *path)
{
    size_t count = 0;
    td_slice entry;
    td_dataset_entries_reader reader;
    ok(td_dataset_entries_open(path, &reader, &why));
    while (td_dataset_entries_next(&reader, &entry) == TD_OK) {
        assert_true(count < TD_COUNT_OF(texts));
        assert_int_equal(entry.size, 1 + strlen(texts[count]));
        assert_memory_equal(entry.data, "#", 1);
        assert_memory_equal((const char *)entry.data + 1, texts[count],
                            entry.size - 1);
        count++;
    }
    assert_int_equal(reader.at, end_of(count));
    td_dataset_entries_close(&reader);
    return count;
}

static void entries_come_back_in_order(void **state)
{
    (void)state;
    td_dataset_disk_path path = at_home("log");
    write_texts(path.text);
    assert_int_equal(count_texts(path.text), TD_COUNT_OF(texts));
}

static void a_cut_anywhere_leaves_every_whole_entry(void **state)
{
    (void)state;
    td_dataset_disk_path path = at_home("log");
    write_texts(path.text);
    size_t whole = TD_COUNT_OF(texts);
    for (size_t size = end_of(whole); size > 0; size--) {
        assert_int_equal(truncate(path.text, (off_t)size), 0);
        if (size < end_of(whole)) whole--;
        assert_int_equal(count_texts(path.text), whole);
    }
}

static void flip(const char *path, size_t offset)
{
    uint8_t byte = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    assert_int_equal(close(fd), 0);
}

static void a_damaged_byte_ends_the_reading_before_its_entry(void **state)
{
    (void)state;
    td_dataset_disk_path path = at_home("log");
    write_texts(path.text);
    size_t entry = 0;
    for (size_t at = 0; at < end_of(TD_COUNT_OF(texts)); at++) {
        if (at == end_of(entry + 1)) entry++;
        flip(path.text, at);
        assert_int_equal(count_texts(path.text), entry);
        flip(path.text, at);
    }
}

static void an_entry_that_did_not_go_is_overwritten(void **state)
{
    (void)state;
    td_dataset_disk_path path = at_home("log");
    td_dataset_entries entries;
    ok(td_dataset_entries_new(path.text, &entries, &why));
    int fd = entries.fd;
    entries.fd = open(path.text, O_RDONLY | O_CLOEXEC);
    assert_int_equal(
        td_dataset_entries_add(&entries, slice("#"), slice("lost")), TD_ERR_IO);
    assert_int_equal(close(entries.fd), 0);
    entries.fd = fd;
    for (size_t i = 0; i < TD_COUNT_OF(texts); i++)
        ok(td_dataset_entries_add(&entries, slice("#"), slice(texts[i])));
    td_dataset_entries_done(&entries);
    assert_int_equal(count_texts(path.text), TD_COUNT_OF(texts));
}

static void an_entry_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    td_dataset_disk_path path = at_home("log");
    td_dataset_entries entries;
    ok(td_dataset_entries_new(path.text, &entries, &why));
    td_slice huge = {"", TD_DATASET_ENTRIES_MAX_BYTES};
    assert_int_equal(td_dataset_entries_add(&entries, slice("#"), huge),
                     TD_ERR_LIMIT);
    assert_int_equal(entries.end, 0);
    td_dataset_entries_done(&entries);
}

static void a_file_that_is_there_is_not_written_over(void **state)
{
    (void)state;
    td_dataset_disk_path path = at_home("log");
    td_dataset_entries entries;
    write_texts(path.text);
    assert_int_equal(td_dataset_entries_new(path.text, &entries, &why),
                     TD_ERR_EXISTS);
}

static void a_pipe_is_refused_at_once(void **state)
{
    (void)state;
    td_dataset_disk_path path = at_home("log");
    td_dataset_entries_reader reader;
    assert_int_equal(mkfifo(path.text, 0600), 0);
    assert_int_equal(td_dataset_entries_open(path.text, &reader, &why),
                     TD_ERR_IO);
}

// It may be there the next time.
static void what_cannot_be_read_is_not_taken_as_the_end(void **state)
{
    (void)state;
    td_slice entry;
    td_dataset_disk_path path = at_home("log");
    td_dataset_entries_reader reader;
    write_texts(path.text);
    ok(td_dataset_entries_open(path.text, &reader, &why));
    assert_int_equal(close(reader.fd), 0);
    assert_int_equal(td_dataset_entries_next(&reader, &entry), TD_ERR_IO);
    reader.fd = -1;
    td_dataset_entries_close(&reader);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_home, remove_home)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_come_back_in_order),
        TEST(a_cut_anywhere_leaves_every_whole_entry),
        TEST(a_damaged_byte_ends_the_reading_before_its_entry),
        TEST(an_entry_that_did_not_go_is_overwritten),
        TEST(an_entry_beyond_the_limit_is_refused),
        TEST(a_file_that_is_there_is_not_written_over),
        TEST(a_pipe_is_refused_at_once),
        TEST(what_cannot_be_read_is_not_taken_as_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
