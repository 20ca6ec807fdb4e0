/* Merlin MIB: counter depths, quads and their gap, regions, the .hdr file, damage; real single and quad recordings. */
#include "input/formats/mib_header.h"
#include "input/open.h"
#include "input/scan_shape.h"
#include "recordings.h"

enum { HEADER = 384 };

static const long long *frame_numbers; /* of the frames that are written; NULL: 1, 2, 3 ... */

static void write_frames(const char *path, int64_t n, int64_t rows, int64_t columns, ps_dtype dtype, const char *type, const char *layout,
                         int bits) {
    FILE *file = fopen(path, "wb");
    size_t size = ps_dtype_bytes(dtype);
    assert_non_null(file);
    for (int64_t p = 0; p < n; p++) {
        char header[HEADER + 1] = "";
        snprintf(header, sizeof header,
                 "MQ1,%06lld,00384,01,%04lld,%04lld,%s,   %s,01,2021-05-07 "
                 "18:51:10.905800,0.100000,0,0,0,4.0E+1,3RX,MQ1A,2021-05-07T16:51:10.905800928Z,100000000ns,%d,",
                 frame_numbers ? frame_numbers[p] : (long long)p + 1, (long long)columns, (long long)rows, type, layout, bits);
        fwrite(header, 1, HEADER, file);
        for (int64_t i = 0; i < rows * columns; i++) {
            uint64_t value = (uint64_t)count_at(p, i / columns, i % columns);
            for (size_t b = size; b-- > 0;) fputc((int)(value >> 8 * b & 0xff), file);
        }
    }
    fclose(file);
}

static void test_depths(void **unused) {
    (void)unused;
    static const struct {
        ps_dtype dtype;
        const char *type;
        int bits;
        double saturation;
    } depths[] = {{PS_U8, "U08", 6, 63}, {PS_U16, "U16", 12, 4095}, {PS_U32, "U32", 24, 16777215}};
    for (int i = 0; i < 3; i++) {
        write_frames(in_folder("d.mib"), 7, 12, 20, depths[i].dtype, depths[i].type, "1x1", depths[i].bits);
        expect_recording(in_folder("d.mib"), 7, 12, 20, depths[i].dtype);
        ps_reader *reader = open_good(in_folder("d.mib"));
        assert_true(reader->info.saturation == depths[i].saturation);
        assert_string_equal(reader->info.acquisition_time, "2021-05-07T18:51:10.905800");
        ps_reader_close(reader);
    }
    write_frames(in_folder("d.mib"), 2, 12, 20, PS_U16, "U16", "1x1", 99); /* no depth that fits: that of the type */
    ps_reader *usual = open_good(in_folder("d.mib"));
    assert_true(usual->info.saturation == 4095);
    ps_reader_close(usual);
    write_frames(in_folder("d.mib"), 2, 12, 20, PS_U8, "U08", "1x1", 1);
    ps_reader *reader = open_good(in_folder("d.mib"));
    assert_string_equal(reader->info.format, "Merlin MIB (1x1, 1-bit)");
    assert_false(reader->info.saturation > 0); /* one count is what a one-bit counter is for */
    ps_reader_close(reader);
}

static void test_gap_of_a_quad(void **unused) {
    (void)unused;
    enum { SIDE = 514 };
    uint8_t *bad = malloc(SIDE * SIDE);
    bool present = false;
    write_frames(in_folder("q.mib"), 1, SIDE, SIDE, PS_U8, "U08", "2x2G", 6);
    ps_reader *reader = open_good(in_folder("q.mib"));
    assert_int_equal(ps_reader_mask(reader, bad, &present, NULL), PS_OK);
    assert_true(present);
    for (int i = 0; i < SIDE * SIDE; i++) {
        int u = i / SIDE, v = i % SIDE;
        assert_int_equal(bad[i], u == 256 || u == 257 || v == 256 || v == 257);
    }
    ps_reader_close(reader);
    free(bad);
}

/* The scan that is taken with these options; refusal: what is said instead, at opening or then; NULL: nothing is. */
static void expect_shape(const char *name, ps_reader_options options, int64_t rows, int64_t columns, const char *refusal) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    int64_t found_rows = 0, found_columns = 0;
    ps_code code = ps_reader_open(in_folder(name), &options, &reader, &error);
    if (code == PS_OK) code = ps_reader_scan_shape(reader, &options, &found_rows, &found_columns, &error);
    ps_reader_close(reader);
    if (refusal) {
        assert_int_equal(code, PS_E_INPUT);
        expect_text(&error, refusal);
        return;
    }
    if (code != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(found_rows, rows);
    assert_int_equal(found_columns, columns);
}

static void write_companion(const char *path, int frames, int per_trigger) {
    char text[200];
    int n = snprintf(text, sizeof text, "HDR,\t\nFrames in Acquisition (Number):\t%d\nFrames per Trigger (Number):\t%d\nEnd\t", frames,
                     per_trigger);
    write_file(path, text, (size_t)n);
}

static void test_companion(void **unused) {
    (void)unused;
    write_frames(in_folder("c.mib"), 12, 4, 4, PS_U8, "U08", "1x1", 6);
    write_companion(in_folder("c.hdr"), 12, 4);
    ps_reader *reader = open_good(in_folder("c.mib"));
    assert_int_equal(reader->info.scan_rows, 3);
    assert_int_equal(reader->info.scan_columns, 4);
    ps_reader_close(reader);
    write_companion(in_folder("c.hdr"), 12, 1); /* one trigger a frame says nothing of rows */
    reader = open_good(in_folder("c.mib"));
    assert_int_equal(reader->info.scan_rows, 0);
    ps_reader_close(reader);
    write_companion(in_folder("c.hdr"), 16, 4); /* ended early: what is there is no scan of its own */
    expect_shape("c.mib", (ps_reader_options){0}, 0, 0, "the file says a scan of 4 x 4 = 16 positions, but the recording has 12");
    reader = open_good(in_folder("c.mib"));
    assert_true(strstr(ps_reader_notes(reader), "says 16 frames in the acquisition, the recording holds 12") != NULL);
    ps_reader_close(reader);
    expect_shape("c.mib", (ps_reader_options){.scan_rows = 3, .scan_columns = 4}, 3, 4, NULL); /* the rows that are there */
    expect_shape("c.mib", (ps_reader_options){.scan_rows = 4, .scan_columns = 3}, 0, 0, "but the file says a scan of 4 x 4");
    write_frames(in_folder("c.mib"), 9, 4, 4, PS_U8, "U08", "1x1", 6);
    write_companion(in_folder("c.hdr"), 12, 1); /* nine of twelve are no square */
    expect_shape("c.mib", (ps_reader_options){0}, 0, 0, "the file says a scan of 1 x 12 = 12 positions, but the recording has 9");
    expect_shape("c.mib", (ps_reader_options){.scan_rows = 3, .scan_columns = 3}, 3, 3, NULL);
}

/* hdr: lines behind the first one. */
static void write_hdr(const char *name, const char *lines) {
    char text[400];
    int n = snprintf(text, sizeof text, "HDR,\t\nTime and Date Stamp (day, mnth, yr, hr, min, s):\t07/05/2021 18:50:41\n%sEnd\t", lines);
    write_file(in_folder(name), text, (size_t)n);
}

static void test_scan_in_the_header_file(void **unused) {
    (void)unused;
    static const char *const spellings[] = {
        "ScanX:\t4\nScanY:\t3\n",
        "Scan X (px):\t4\r\nScan Y (px):\t3\r\n",
        "scan_x = 4\nscan_y = 3\n",
        "Scan Size X:\t4\nScan Size Y:\t3\n",
        "ScanX:\t4\nScanY:\t3\nFrames in Acquisition (Number):\t12\nFrames per Trigger (Number):\t1\n",
        "Frames in Acquisition (Number):\t12\nFrames per Trigger (Number):\t4\nScanX:\t4\nScanY:\t3\n",
    };
    write_frames(in_folder("s.mib"), 12, 4, 4, PS_U8, "U08", "1x1", 6);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        write_hdr("s.hdr", spellings[i]);
        expect_shape("s.mib", (ps_reader_options){0}, 3, 4, NULL);
        expect_shape("s.mib", (ps_reader_options){.scan_rows = 4, .scan_columns = 3}, 0, 0,
                     "but the file says a scan of 3 x 4 = 12 positions (ScanY and ScanX");
    }
    expect_shape("s.mib", (ps_reader_options){.scan_rows = 4, .scan_columns = 3, .shape_override = true}, 4, 3, NULL);
    write_hdr("s.hdr", "ScanX:\t3\nScanY:\t3\n");
    expect_shape("s.mib", (ps_reader_options){0}, 0, 0, "the file says a scan of 3 x 3 = 9 positions, but the recording has 12");
    expect_shape("s.mib", (ps_reader_options){.scan_rows = 3, .scan_columns = 3, .flyback = 1}, 3, 3, NULL);
    write_hdr("s.hdr", "ScanX:\t4\nScanY:\t3\nFrames in Acquisition (Number):\t12\nFrames per Trigger (Number):\t3\n");
    ps_reader *reader = open_good(in_folder("s.mib"));
    assert_true(strstr(ps_reader_notes(reader), "says a scan of 3 x 4, but 3 frames per trigger") != NULL);
    ps_reader_close(reader);
    write_hdr("s.hdr", "ScanX:\t\nScanY:\tthree\nScanX\n:\n\n");
    reader = open_good(in_folder("s.mib"));
    assert_int_equal(reader->info.scan_rows, 0);
    ps_reader_close(reader);
}

/* Writes frames whose counts are those of their place in the file. */
static void write_numbered(const char *name, int64_t n, const long long *numbers) {
    frame_numbers = numbers;
    write_frames(in_folder(name), n, 4, 4, PS_U8, "U08", "1x1", 6);
    frame_numbers = NULL;
}

/* stored: [positions] the frame of the file that each position gets. */
static void expect_frames(const char *name, int64_t positions, const int *stored, int64_t n_missing, const char *note) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    ps_reader_options options = {.allow_partial = true};
    uint8_t counts[16], all[64 * 16];
    if (ps_reader_open(in_folder(name), &options, &reader, &error) != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(reader->info.n_positions, positions);
    assert_int_equal(reader->info.n_missing, n_missing);
    if (!strstr(ps_reader_notes(reader), note)) fail_msg("notes: %s", ps_reader_notes(reader));
    assert_int_equal(ps_reader_read(reader, 0, positions, all, NULL), PS_OK);
    for (int64_t p = 0; p < positions; p++) {
        assert_int_equal(ps_reader_read(reader, p, 1, counts, NULL), PS_OK);
        assert_memory_equal(counts, all + p * 16, 16);
        for (int i = 0; i < 16; i++) assert_int_equal(counts[i], count_at(stored[p], i / 4, i % 4));
    }
    ps_reader_close(reader);
}

static void test_lost_frames(void **unused) {
    (void)unused;
    write_numbered("l.mib", 6, (const long long[]){1, 2, 5, 6, 7, 9});
    expect_refusal(in_folder("l.mib"), "3 of 9 patterns were lost, the first at position 2");
    expect_frames("l.mib", 9, (const int[]){0, 1, 1, 1, 2, 3, 4, 4, 5}, 3, "warning: 3 patterns were lost, the first at position 2");
    write_numbered("l.mib", 4, (const long long[]){0, 1, 2, 4}); /* from 0 */
    expect_frames("l.mib", 5, (const int[]){0, 1, 2, 2, 3}, 1, "warning: 1 patterns were lost");
    write_numbered("l.mib", 4, (const long long[]){193, 194, 195, 196}); /* a part of a longer acquisition */
    expect_frames("l.mib", 4, (const int[]){0, 1, 2, 3}, 0, "warning: the first pattern has the number 193: 192 patterns before it");
    write_numbered("l.mib", 4, (const long long[]){3, 4, 5, 6}); /* the whole acquisition is expected here */
    write_hdr("l.hdr", "Frames in Acquisition (Number):\t6\n");
    expect_refusal(in_folder("l.mib"), "2 of 6 patterns were lost, the first at position 0");
    expect_frames("l.mib", 6, (const int[]){0, 0, 0, 1, 2, 3}, 2, "warning: 2 patterns were lost");
    unlink(in_folder("l.hdr"));
    ps_reader_options job = {.scan_rows = 2, .scan_columns = 3};
    ps_reader *reader = NULL;
    ps_error error = {0};
    assert_int_equal(ps_reader_open(in_folder("l.mib"), &job, &reader, &error), PS_E_INPUT);
    expect_text(&error, "2 of 6 patterns were lost");
    write_numbered("l.mib", 3, (const long long[]){7, 7, 7}); /* programs that write one header again and again */
    expect_frames("l.mib", 3, (const int[]){0, 1, 2}, 0, "do not number the patterns: lost patterns cannot be seen");
}

static void test_numbers_that_begin_again(void **unused) {
    (void)unused;
    write_numbered("b.mib", 7, (const long long[]){1, 2, 3, 1, 2, 3, 1});
    expect_frames("b.mib", 7, (const int[]){0, 1, 2, 3, 4, 5, 6}, 0, "begin again every 3 patterns");
    write_numbered("b.mib", 8, (const long long[]){1, 2, 3, 1, 3, 1, 2, 3}); /* one lost inside a round */
    expect_frames("b.mib", 9, (const int[]){0, 1, 2, 3, 3, 4, 5, 6, 7}, 1, "1 patterns were lost, the first at position 4");
    write_numbered("b.mib", 8, (const long long[]){1, 2, 3, 1, 2, 1, 2, 3}); /* at the end of one? */
    expect_refusal(in_folder("b.mib"), "begin again at pattern 3, and not at regular distances: nothing tells whether patterns were lost");
    write_hdr("b.hdr", "Frames in Acquisition (Number):\t9\nFrames per Trigger (Number):\t3\n");
    expect_refusal(in_folder("b.mib"), "1 of 9 patterns were lost, the first at position 5");
    expect_frames("b.mib", 9, (const int[]){0, 1, 2, 3, 4, 4, 5, 6, 7}, 1, "1 patterns were lost, the first at position 5");
    unlink(in_folder("b.hdr"));
    expect_shape("b.mib", (ps_reader_options){.scan_rows = 2, .scan_columns = 4}, 2, 4, NULL);
    write_numbered("b.mib", 5, (const long long[]){999997, 999998, 999999, 0, 1}); /* six digits are full */
    expect_frames("b.mib", 5, (const int[]){0, 1, 2, 3, 4}, 0, "");
    write_numbered("b.mib", 5, (const long long[]){999997, 999998, 999999, 1000000, 1000001});
    expect_frames("b.mib", 5, (const int[]){0, 1, 2, 3, 4}, 0, "");
}

static void test_numbers_in_disorder(void **unused) {
    (void)unused;
    write_numbered("x.mib", 5, (const long long[]){1, 2, 2, 3, 4});
    expect_refusal(in_folder("x.mib"), "pattern 2 has the number 2 in its header, the one before it 2");
    write_numbered("x.mib", 5, (const long long[]){1, 2, 2, 4, 5}); /* one twice, one lost: the ends fit */
    expect_refusal(in_folder("x.mib"), "pattern 2 has the number 2");
    write_numbered("x.mib", 5, (const long long[]){1, 3, 2, 4, 5});
    expect_refusal(in_folder("x.mib"), "pattern 2 has the number 2 in its header, the one before it 3");
    write_numbered("x.mib", 5, (const long long[]){5, 4, 3, 2, 1});
    expect_refusal(in_folder("x.mib"), "pattern 1 has the number 4");
}

/* Too many frames to look at each of them when the file is opened. */
static void test_long_recording(void **unused) {
    (void)unused;
    enum { N = 5000 };
    long long *numbers = malloc(N * sizeof *numbers);
    for (int i = 0; i < N; i++) numbers[i] = i + 1 + (i >= 1234 ? 2 : 0) + (i >= 4999 ? 1 : 0);
    write_numbered("n.mib", N, numbers);
    expect_refusal(in_folder("n.mib"), "3 of 5003 patterns were lost, the first at position 1234");
    for (int i = 0; i < N; i++) numbers[i] = i + 1;
    numbers[1000] = 1002, numbers[1001] = 1001; /* two changed places: the ends tell nothing */
    write_numbered("n.mib", N, numbers);
    free(numbers);
    expect_damage(in_folder("n.mib"), "pattern 1000 has the number 1002 in its header, expected 1001");
}

static void refuse_header(const char *header, const char *text) {
    char file[2000] = "";
    memcpy(file, header, strlen(header));
    write_file(in_folder("bad.mib"), file, sizeof file);
    expect_refusal(in_folder("bad.mib"), text);
}

static void test_bad_headers(void **unused) {
    (void)unused;
    refuse_header("MQ1,000001,00384,01,0256,0256,R64,   2x2,01,", "raw mode (R64), which is not read");
    refuse_header("MQ1,000001,00384,01,0256,0256,U64,   2x2,01,", "pixels of type 'U64'");
    refuse_header("MQ1,000001,00000,01,0256,0256,U08,   1x1,01,", "does not say its length");
    refuse_header("MQ1,000001,99999,01,0256,0256,U08,   1x1,01,", "does not say its length");
    refuse_header("MQ1,000001,03000,01,0256,0256,U08,   1x1,01,", "ends inside the MIB header");
    refuse_header("MQ1,000001,00384,01,-256,0256,U08,   1x1,01,", "how many chips, columns and rows");
    refuse_header("MQ1,000001,00384,01,0256,9999999999999999999,U08,   1x1,01,", "how many chips, columns and rows");
    refuse_header("MQ1,", "does not say its length");
    refuse_header("MQ1,000001,00384,01,0256,0256,U08,   1x1,01,", "ends inside pattern 0");
}

static void test_damage(void **unused) {
    (void)unused;
    write_frames(in_folder("x.mib"), 5, 8, 8, PS_U8, "U08", "1x1", 6);
    FILE *file = fopen(in_folder("x.mib"), "r+b");
    fseek(file, 3 * (HEADER + 64), SEEK_SET);
    fputc('X', file);
    fclose(file);
    expect_refusal(in_folder("x.mib"), "pattern 3 at byte 1344: no MIB header");
    write_frames(in_folder("x.mib"), 1, 8, 8, PS_U8, "U08", "1x1", 6);
    file = fopen(in_folder("x.mib"), "ab");
    fclose(file);
    assert_int_equal(truncate(in_folder("x.mib"), HEADER + 60), 0);
    expect_refusal(in_folder("x.mib"), "ends inside pattern 0 (444 bytes, patterns of 448 bytes: 4 are missing)");
}

/* Headers that change in mid-file: another shape of the same size. */
static void test_changing_frames(void **unused) {
    (void)unused;
    char *bytes = malloc(2 * (HEADER + 64));
    write_frames(in_folder("a.mib"), 1, 8, 8, PS_U8, "U08", "1x1", 6);
    write_frames(in_folder("b.mib"), 1, 4, 16, PS_U8, "U08", "1x1", 6);
    FILE *a = fopen(in_folder("a.mib"), "rb"), *b = fopen(in_folder("b.mib"), "rb");
    assert_int_equal(fread(bytes, 1, HEADER + 64, a) + fread(bytes + HEADER + 64, 1, HEADER + 64, b), 2 * (HEADER + 64));
    fclose(a), fclose(b);
    write_file(in_folder("ab.mib"), bytes, 2 * (HEADER + 64));
    free(bytes);
    expect_damage(in_folder("ab.mib"), "pattern 1 at byte 448: 4 x 16 uint8, but the first pattern is 8 x 8 uint8");
}

static void test_ended_early(void **unused) {
    (void)unused;
    write_frames(in_folder("e.mib"), 5, 8, 8, PS_U8, "U08", "1x1", 6);
    assert_int_equal(truncate(in_folder("e.mib"), 4 * (HEADER + 64) + 10), 0);
    ps_reader *reader = NULL;
    ps_reader_options options = {.allow_partial = true, .scan_rows = 2, .scan_columns = 3};
    uint8_t counts[6 * 64], late[64];
    assert_int_equal(ps_reader_open(in_folder("e.mib"), &options, &reader, NULL), PS_OK);
    assert_int_equal(reader->info.n_positions, 6);
    assert_int_equal(reader->info.n_missing, 2);
    assert_int_equal(ps_reader_read(reader, 0, 6, counts, NULL), PS_OK);
    assert_memory_equal(counts + 5 * 64, counts + 3 * 64, 64);
    assert_int_equal(ps_reader_read(reader, 5, 1, late, NULL), PS_OK);
    assert_memory_equal(late, counts + 3 * 64, 64);
    ps_reader_close(reader);
}

static void test_real_files(void **unused) {
    (void)unused;
    skip_without(FORMATS "/mib");
    expect_sums(FORMATS "/mib/001_4x2_6bit.mib", 8, 3623664, 1825840806);
    expect_sums(FORMATS "/mib/002_4x2_6bit_roi128.mib", 8, 3263829, 1643161816);
    expect_sums(FORMATS "/mib/Quad_1_Frame_CounterDepth_6_Rows_256.mib", 1, 115263, 57443638);
    expect_sums(FORMATS "/mib/Single_9_Frame_CounterDepth_12_Rows_256.mib", 9, 260753, 122880027);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depths),
        cmocka_unit_test(test_gap_of_a_quad),
        cmocka_unit_test(test_companion),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_changing_frames),
        cmocka_unit_test(test_ended_early),
        cmocka_unit_test(test_real_files),
        cmocka_unit_test(test_scan_in_the_header_file),
        cmocka_unit_test(test_lost_frames),
        cmocka_unit_test(test_numbers_that_begin_again),
        cmocka_unit_test(test_numbers_in_disorder),
        cmocka_unit_test(test_long_recording),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
