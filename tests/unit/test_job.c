/* Jobs: every entry, defaults, --set, and messages that name place, finding, expectation and nearest key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "method_named.h"
#include "tasks/histogram/entry.h"
#include "tasks/simulate/entry.h"
#include "tasks/tasks.h"

#define SERIES "\"series\":{\"files\":[\"a_*_master.h5\"]}"
#define OPTICS                                                                                                        \
    "\"optics\":{\"voltage_V\":300000,\"semiangle_mrad\":30,\"scan_step_A\":[0.4,0.5],\"detector_pitch_mrad\":[1,2]," \
    "\"detector_center_px\":[3,4]}"
#define SSB "\"methods\":{\"ssb\":{}}"
#define OUTPUT "\"output\":{\"file\":\"out.h5\"}"
#define JOB(extra) "{\"task\":\"reconstruct\"," SERIES "," OPTICS "," SSB "," OUTPUT extra "}"
#define METHODS(methods) "{\"task\":\"reconstruct\"," SERIES "," OPTICS ",\"methods\":" methods "," OUTPUT "}"
#define SIMULATE(extra)                                                                                               \
    "{\"task\":\"simulate\"," OPTICS ",\"simulate\":{\"output_master\":\"s_{frame}_master.h5\",\"scan_shape\":[8,9]," \
    "\"detector_shape\":[10,11]" extra "}}"
#define HISTOGRAM(extra) "{\"task\":\"histogram\"," SERIES "," OUTPUT ",\"histogram\":{\"bins\":10,\"range\":[0,5]" extra "}}"

static void accept_with(const char *text, const char *setting, ps_job *job) {
    ps_error error = {0};
    if (ps_job_parse(ps_task_job_kinds(), text, "/base", &setting, setting ? 1 : 0, job, &error) != PS_OK) fail_msg("%s", error.text);
}

static void accept(const char *text, ps_job *job) {
    accept_with(text, NULL, job);
}

static const ps_method_settings *method(ps_job *job, const char *name) {
    const ps_method_settings *settings = method_named(&job->methods, name);
    assert_non_null(settings);
    return settings;
}

static void assert_refused_with(const char *text, const char *setting, const char *first, const char *second) {
    ps_job job;
    ps_error error = {0};
    if (ps_job_parse(ps_task_job_kinds(), text, "/base", &setting, setting ? 1 : 0, &job, &error) != PS_E_JOB)
        fail_msg("accepted: %s", text);
    if (!strstr(error.text, first) || !strstr(error.text, second)) fail_msg("'%s' lacks '%s' or '%s'", error.text, first, second);
    assert_null(job.json);
}

static void assert_refused(const char *text, const char *first, const char *second) {
    assert_refused_with(text, NULL, first, second);
}

/* What stands in a text comes back from the JSON that provenance keeps: a backslash before "u0000" is no NUL character. */
static void texts_come_back(void **state) {
    (void)state;
    ps_job job, again;
    accept_with(JOB(""), "comment=a\\u0000b", &job);
    assert_non_null(strstr(job.effective_text, "a\\\\u0000b"));
    accept(job.effective_text, &again);
    assert_string_equal(again.effective_text, job.effective_text);
    ps_job_free(&again);
    ps_job_free(&job);
}

static void refused_bytes(const char *text, size_t bytes, const char *expected) {
    char path[] = "/tmp/ptyseries-job-XXXXXX";
    ps_job job;
    ps_error error = {0};
    int descriptor = mkstemp(path);
    assert_int_equal(write(descriptor, text, bytes), bytes);
    close(descriptor);
    if (ps_job_load(ps_task_job_kinds(), path, NULL, 0, &job, &error) != PS_E_JOB) fail_msg("accepted what is '%s'", expected);
    if (!strstr(error.text, expected)) fail_msg("'%s' lacks '%s'", error.text, expected);
    unlink(path);
}

/* Bytes behind the JOB's first quote of a comment, which starts at byte 12. */
static void refused_comment(const char *bytes, const char *expected) {
    char text[1000];
    snprintf(text, sizeof text, "{\"comment\":\"%s\",%s", bytes, JOB("") + 1);
    assert_refused(text, expected, "is not UTF-8; save it as UTF-8");
}

static void text_is_utf8(void **state) {
    (void)state;
    ps_job job;
    accept("{\"comment\":\"\xc2\xb5 \xe2\x82\xac \xf0\x9f\x94\xac \xed\x9f\xbf \xee\x80\x80 \xf4\x8f\xbf\xbf\"," SERIES "," OPTICS "," SSB
           "," OUTPUT ",\"task\":\"reconstruct\"}",
           &job);
    assert_non_null(strstr(job.effective_text, "\xed\x9f\xbf"));
    ps_job_free(&job);
    accept("\xef\xbb\xbf" JOB(""), &job); /* as editors on Windows write it */
    ps_job_free(&job);
    refused_comment("caf\xe9", "near column 16: byte 15 of the text (0xE9)");
    refused_comment("\xc0\xaf", "byte 12 of the text (0xC0)");         /* overlong */
    refused_comment("\xe0\x80\xaf", "byte 12 of the text (0xE0)");     /* overlong */
    refused_comment("\xf0\x80\x80\xaf", "byte 12 of the text (0xF0)"); /* overlong */
    refused_comment("\xed\xa0\x80", "byte 12 of the text (0xED)");     /* a surrogate */
    refused_comment("\xf4\x90\x80\x80", "byte 12 of the text (0xF4)"); /* beyond U+10FFFF */
    refused_comment("\xf8\x88\x80\x80\x80", "byte 12 of the text (0xF8)");
    refused_comment("a\x80", "byte 13 of the text (0x80)"); /* nothing that it continues */
    refused_comment("\xe2\x82", "byte 12 of the text (0xE2)");
    refused_bytes("{} \xe2", 4, "byte 3 of the text (0xE2)"); /* ends inside a character */
    refused_bytes("\xff\xfe{\0}\0", 6, "begins with the byte order mark of UTF-16; expected UTF-8");
    refused_bytes("\xfe\xff\0{\0}", 6, "begins with the byte order mark of UTF-16");
    refused_bytes("\xff\xfe\0\0{\0\0\0", 8, "begins with the byte order mark of UTF-32");
    refused_bytes("{\0}\0", 4, "a NUL character; expected JSON text in UTF-8");
    assert_refused_with(JOB(""), "comment=caf\xe9", "--set comment=caf...: byte 11 (0xE9)", "is not UTF-8");
    assert_refused_with(JOB(""), "caf\xe9=1", "--set caf...: byte 3 (0xE9)", "is not UTF-8");
}

static void override_needs_a_shape(void **state) {
    (void)state;
    ps_job job;
    accept("{\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\"],\"scan_shape\":[3,4],\"scan_shape_override\":true}," OPTICS "," SSB
           "," OUTPUT "}",
           &job);
    assert_true(job.series.scan_shape_override);
    ps_job_free(&job);
    assert_refused("{\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\"],\"scan_shape_override\":true}," OPTICS "," SSB "," OUTPUT "}",
                   "/series/scan_shape_override", "there is no scan_shape");
    assert_refused("{\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\"],\"scan_shape_override\":1}," OPTICS "," SSB "," OUTPUT "}",
                   "/series/scan_shape_override", "true or false");
}

static void defaults_are_as_documented(void **state) {
    (void)state;
    ps_job job;
    accept(JOB(""), &job);
    assert_string_equal(job.kind->name, "reconstruct");
    assert_int_equal(job.series.first, 0);
    assert_int_equal(job.series.count, -1);
    assert_int_equal(job.series.stride, 1);
    assert_int_equal(job.series.scan_rows, 0);
    assert_true(job.series.mask_from_file);
    assert_null(job.series.mask_file);
    assert_true(job.series.hot_sigma == 0.0);
    assert_false(job.series.verify_whole);
    assert_int_equal(job.weights, PS_WEIGHTS_UNIFORM);
    assert_int_equal(job.upsampling, 0);
    assert_string_equal(job.backend, "auto");
    assert_int_equal(job.precision, PS_PRECISION_FAST);
    assert_true(job.memory_budget_GiB == 0.0);
    assert_int_equal(job.g_storage, PS_JOB_G_AUTO);
    assert_int_equal(job.n_threads, 0);
    assert_false(job.mirrored_probe);
    assert_int_equal(job.methods.n, 1);
    assert_string_equal(job.methods.items[0].method->name, "ssb");
    assert_int_equal(job.methods.items[0].choice, PS_SSB_WAVE);
    assert_true(isinf(job.methods.items[0].smoothness_inv_A));
    assert_string_equal(job.output_file, "/base/out.h5");
    assert_int_equal(job.optics.source, PS_OPTICS_INLINE);
    ps_job_free(&job);
}

static void every_entry_is_read(void **state) {
    (void)state;
    ps_job job;
    accept("{\"$schema\":\"x\",\"comment\":\"y\",\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\",\"b\"],\"scan_shape\":[5,6],"
           "\"first\":1,"
           "\"count\":2,\"stride\":3,\"order\":\"name\",\"verify\":\"whole\",\"bad_pixels\":{\"from_file\":false,\"hot_sigma\":8,\"mask\":"
           "\"m.npy\"}},"
           "\"optics\":{\"per_frame\":\"fits/{stem}.json\"},\"upsampling\":4,\"weights\":\"poisson\",\"probe_form\":\"published\","
           "\"methods\":{\"ssb\":{\"estimator\":\"phase\"},\"phase\":{\"strength\":[0.03,1],\"smoothness_inv_A\":1.5},"
           "\"complex\":{\"strength\":[{\"amplitude\":0.3,\"phase\":0.1},2],\"smoothness_inv_A\":null}},"
           "\"output\":{\"file\":\"/abs/out.h5\"},"
           "\"compute\":{\"backend\":\"cuda:1\",\"precision\":\"fast\",\"memory_budget_GiB\":2.5,\"threads\":3,\"g_storage\":\"compact\"}}",
           &job);
    assert_int_equal(job.series.n_files, 2);
    assert_string_equal(job.series.files[1], "b");
    assert_int_equal(job.series.scan_columns, 6);
    assert_int_equal(job.series.first, 1);
    assert_int_equal(job.series.count, 2);
    assert_int_equal(job.series.stride, 3);
    assert_false(job.series.mask_from_file);
    assert_string_equal(job.series.mask_file, "/base/m.npy");
    assert_true(job.series.hot_sigma == 8.0);
    assert_true(job.series.verify_whole);
    assert_int_equal(job.optics.source, PS_OPTICS_PER_FRAME);
    assert_string_equal(job.optics.path, "/base/fits/{stem}.json");
    assert_int_equal(job.upsampling, 4);
    assert_int_equal(job.weights, PS_WEIGHTS_POISSON);
    assert_true(job.mirrored_probe);
    assert_int_equal(method(&job, "ssb")->choice, PS_SSB_PHASE);
    assert_int_equal(method(&job, "phase")->n_strengths, 2);
    assert_true(method(&job, "phase")->strengths[0].phase == 0.03 && method(&job, "phase")->smoothness_inv_A == 1.5);
    assert_true(method(&job, "complex")->strengths[0].amplitude == 0.3 && method(&job, "complex")->strengths[0].phase == 0.1);
    assert_true(method(&job, "complex")->strengths[1].amplitude == 2.0 && method(&job, "complex")->strengths[1].phase == 2.0);
    assert_true(isinf(method(&job, "complex")->smoothness_inv_A));
    assert_string_equal(job.output_file, "/abs/out.h5");
    assert_string_equal(job.backend, "cuda:1");
    assert_true(job.memory_budget_GiB == 2.5);
    assert_int_equal(job.n_threads, 3);
    assert_int_equal(job.g_storage, PS_JOB_G_COMPACT);
    ps_plan_options options = {0};
    ps_job_plan_g(&job, false, &options);
    assert_true(options.g_storage == PS_G_COMPACT && options.keeps_g);
    ps_job_free(&job);
}

static void strengths_come_in_three_forms(void **state) {
    (void)state;
    ps_job job;
    accept(METHODS("{\"phase\":{\"strength\":0.1},\"complex\":{\"strength\":\"auto\"}}"), &job);
    assert_int_equal(method(&job, "phase")->n_strengths, 1);
    assert_false(method(&job, "phase")->automatic);
    assert_true(method(&job, "complex")->automatic);
    assert_int_equal(method(&job, "complex")->n_strengths, 1);
    ps_job_free(&job);
    assert_refused(METHODS("{\"phase\":{\"strength\":0}}"), "/methods/phase/strength: found 0", "above 0");
    assert_refused(METHODS("{\"phase\":{\"strength\":[0.1,-1]}}"), "/methods/phase/strength/1: found -1", "above 0");
    assert_refused(METHODS("{\"phase\":{\"strength\":[]}}"), "/methods/phase/strength", "1 to");
    assert_refused(METHODS("{\"phase\":{\"strength\":\"automatic\"}}"), "/methods/phase/strength: found \"automatic\"", "\"auto\"");
    assert_refused(METHODS("{\"phase\":{\"strength\":{\"amplitude\":1,\"phase\":1}}}"), "/methods/phase/strength", "a number above 0");
    assert_refused(METHODS("{\"complex\":{\"strength\":{\"amplitude\":1}}}"), "/methods/complex/strength/phase", "required");
    assert_refused(METHODS("{\"phase\":{}}"), "/methods/phase/strength", "required");
    assert_refused(METHODS("{}"), "/methods", "at least one");
}

static void mistakes_are_named_with_the_nearest_key(void **state) {
    (void)state;
    assert_refused(JOB(",\"upsamplng\":2"), "/upsamplng: unknown key", "\"upsampling\"");
    assert_refused(METHODS("{\"phase\":{\"strength\":1,\"smoothness\":1}}"), "/methods/phase/smoothness: unknown key",
                   "\"smoothness_inv_A\"");
    assert_refused(METHODS("{\"fase\":{\"strength\":1}}"), "/methods/fase: unknown key", "\"phase\"");
    assert_refused(JOB(",\"upsampling\":\"2\""), "/upsampling: found \"2\"", "whole number");
    assert_refused(JOB(",\"upsampling\":1.5"), "/upsampling: found 1.5", "whole number from 1 to 64");
    assert_refused(JOB(",\"upsampling\":0"), "/upsampling: found 0", "from 1");
    assert_refused(JOB(",\"weights\":\"poison\""), "/weights: found \"poison\"", "did you mean \"poisson\"");
    assert_refused(JOB(",\"compute\":{\"backend\":\"gpu\"}"), "/compute/backend: found \"gpu\"", "cuda");
    assert_refused(JOB(",\"compute\":{\"backend\":\"cuda\",\"precision\":\"reference\"}"), "/compute/precision", "CPU");
    assert_refused(JOB(",\"compute\":{\"g_storage\":\"packed\"}"), "/compute/g_storage: found \"packed\"", "compact");
    assert_refused(JOB(",\"compute\":{\"precision\":\"reference\",\"g_storage\":\"exact\"}"), "/compute/g_storage", "holds none");
    assert_refused(JOB(",\"compute\":{\"memory_budget_GiB\":0}"), "/compute/memory_budget_GiB: found 0", "0.001");
    assert_refused(JOB(",\"histogram\":{}"), "/histogram", "a reconstruct job has no such entry");
    assert_refused("{\"task\":\"fit\"}", "/series", "required");
#define JOB_WITH_OPTICS(optics)                                                                              \
    "{\"task\":\"reconstruct\",\"series\":{\"files\":\"a\"},\"optics\":" optics ",\"methods\":{\"ssb\":{}}," \
    "\"output\":{\"file\":\"o.h5\"}}"
#define FIT_JOB(fit) "{\"task\":\"fit\",\"series\":{\"files\":\"a\"},\"optics\":\"o\",\"output\":{\"file\":\"o.h5\"},\"fit\":" fit "}"
    assert_refused(FIT_JOB("{\"free\":[\"C10\",\"C11\"]}"), "/fit/free/1: found \"C11\"", "C12");
    assert_refused(FIT_JOB("{\"free\":[\"C10\",\"C10\"]}"), "/fit/free/1", "already");
    assert_refused(FIT_JOB("{\"free\":[\"detector_transpose\"]}"), "/fit/free", "at least one quantity");
    assert_refused(FIT_JOB("{\"free\":[\"C10\"],\"bounds\":{\"C30\":[0,1]}}"), "/fit/bounds/C30", "not free");
    assert_refused(FIT_JOB("{\"bounds\":{\"C12\":[5,9]}}"), "/fit/bounds/C12", "has an angle");
    assert_refused(FIT_JOB("{\"bounds\":{\"C10\":[9,5]}}"), "/fit/bounds/C10", "lowest below the highest");
    assert_refused(FIT_JOB("{\"bounds\":{\"detector_center_px\":[1,2]}}"), "/fit/bounds/detector_center_px", "3 pixels");
    assert_refused(JOB_WITH_OPTICS("{\"fit\":{\"free\":[\"C11\"]}}"), "/optics/fit/free/0: found \"C11\"", "C12");
    assert_refused(JOB_WITH_OPTICS("{\"fit\":{\"optics_file\":\"x\"}}"), "/optics/fit/optics_file", "a fit job writes");
    assert_refused(JOB_WITH_OPTICS("{\"fit\":3}"), "/optics/fit: found 3", "an object");
    assert_refused(JOB_WITH_OPTICS("{\"fit\":{},\"voltage_kv\":1}"), "/optics/voltage_kv", "voltage_kV");
    assert_refused("{\"task\":\"fit\",\"series\":{\"files\":\"a\"},\"optics\":{\"fit\":{}},\"output\":{\"file\":\"o\"}}",
                   "/optics/fit: unknown key", "");
    assert_refused(FIT_JOB("{\"frequency\":1}"), "/fit/frequency: unknown key", "\"frequencies\"");
    assert_refused("{\"task\":\"reconstruckt\"}", "/task", "did you mean \"reconstruct\"");
    assert_refused("{}", "/task", "required");
    assert_refused("[]", "found []", "an object");
    assert_refused("{\"task\":\"reconstruct\"}", "/series", "required");
    assert_refused(JOB(",\"task\":\"simulate\""), "/task", "twice");
    assert_refused(JOB("") " x", "after the end", "");
    assert_refused("{\"task\":\"recon\\u0000struct\"}", "line 1, near column 15", "not allowed");
    assert_refused("{\"task\":\"reconstruct\", // go\n\"x\":1}", "line 1", "no comments");
    assert_refused("{\"task\":\"reconstruct\",\"series\":{\"files\":[]}}", "/series/files: found []", "a list of file names");
    assert_refused("{\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\"],\"scan_shape\":[5]}}", "/series/scan_shape: found [5]",
                   "[rows, columns]");
    assert_refused("{\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\"],\"scan_shape\":[5,0]}}", "/series/scan_shape/1: found 0",
                   "from 1");
    assert_refused("{\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\"],\"count\":0}}", "/series/count: found 0", "from 1");
    assert_refused("{\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\"],\"order\":\"size\"}}", "/series/order", "name");
    assert_refused("{\"task\":\"reconstruct\"," SERIES ",\"optics\":{\"per_frame\":\"a.json\"}}", "/optics/per_frame", "{stem}");
    assert_refused("{\"task\":\"reconstruct\"," SERIES ",\"optics\":{\"voltage_V\":300}}", "job: /optics/voltage_V: found 300", "300 kV");
    assert_refused("{\"task\":\"reconstruct\"," SERIES ",\"optics\":3}", "/optics: found 3", "per_frame");
}

static void settings_override(void **state) {
    (void)state;
    ps_job job;
    accept_with(JOB(""), "methods.phase.strength=[0.1,0.2]", &job);
    assert_int_equal(method(&job, "phase")->n_strengths, 2);
    assert_non_null(strstr(job.effective_text, "[0.1,0.2]"));
    assert_null(strstr(job.text, "[0.1,0.2]"));
    ps_job_free(&job);
    accept_with(JOB(""), "output.file=other.h5", &job);
    assert_string_equal(job.output_file, "/base/other.h5");
    ps_job_free(&job);
    accept_with(JOB(""), "series.files.0=b.h5", &job);
    assert_string_equal(job.series.files[0], "b.h5");
    ps_job_free(&job);
    accept_with(JOB(",\"compute\":{\"backend\":\"cpu\"}"), "compute.precision=reference", &job);
    assert_int_equal(job.precision, PS_PRECISION_REFERENCE);
    assert_string_equal(job.backend, "cpu");
    ps_job_free(&job);
    accept_with(JOB(""), "comment=a=b", &job);
    assert_non_null(strstr(job.effective_text, "\"a=b\""));
    ps_job_free(&job);
    assert_refused_with(JOB(""), "methods.fase.strength=1", "/methods/fase", "\"phase\"");
    assert_refused_with(JOB(""), "upsampling", "--set upsampling", "path.to.key=value");
    assert_refused_with(JOB(""), "task.kind=1", "--set task.kind=1", "neither an object");
    assert_refused_with(JOB(""), "series.files.7=b", "--set series.files.7=b", "list");
    assert_refused_with(JOB(""), "series..files=b", "--set series..files=b", "empty");
    assert_refused_with(JOB(""), "upsampling=1e999", "/upsampling: found \"1e999\"", "whole number");
}

static void simulate_jobs_are_read(void **state) {
    (void)state;
    ps_job job;
    accept(SIMULATE(""), &job);
    assert_int_equal(ps_simulate_entry(&job)->n_frames, 1);
    assert_int_equal(ps_simulate_entry(&job)->seed, 1);
    assert_int_equal(ps_simulate_entry(&job)->detector_columns, 11);
    assert_string_equal(ps_simulate_entry(&job)->object, "crystal");
    assert_int_equal(ps_simulate_entry(&job)->dtype, PS_U16);
    assert_true(ps_simulate_entry(&job)->lattice_A == 3.9 && ps_simulate_entry(&job)->dose_per_position == 0.0);
    assert_string_equal(ps_simulate_entry(&job)->output_master, "/base/s_{frame}_master.h5");
    ps_job_free(&job);
    accept(SIMULATE(",\"seed\":7,\"frames\":3,\"object\":\"random\",\"object_upsampling\":2,\"lattice_A\":4,\"lattice_rotation_deg\":3,"
                    "\"atom_sigma_A\":0.5,\"vacancies\":2,\"phase_rad\":0.2,\"log_amplitude\":0.01,\"dose_per_position\":500,"
                    "\"drift_A\":[1,-1],\"defocus_step_A\":20,\"moving_defect\":true,\"dtype\":\"uint8\",\"positions_per_file\":100"),
           &job);
    const ps_job_simulate *simulate = ps_simulate_entry(&job);
    assert_true(simulate->seed == 7 && simulate->n_frames == 3 && simulate->object_upsampling == 2 && simulate->n_vacancies == 2);
    assert_true(simulate->drift_A[1] == -1 && simulate->defocus_step_A == 20 && simulate->moving_defect && simulate->dtype == PS_U8);
    assert_true(simulate->phase_rad == 0.2 && simulate->log_amplitude == 0.01 && simulate->frames_per_file == 100);
    ps_job_free(&job);
    assert_refused(SIMULATE(",\"frame\":2"), "/simulate/frame: unknown key", "\"frames\"");
    assert_refused(SIMULATE(",\"dtype\":\"float32\""), "/simulate/dtype", "uint8, uint16, uint32");
    assert_refused("{\"task\":\"simulate\"," OPTICS ",\"simulate\":{\"frames\":2,\"output_master\":\"s_master.h5\"}}",
                   "/simulate/output_master", "{frame}");
    assert_refused("{\"task\":\"simulate\",\"optics\":{\"per_frame\":\"{stem}\"}}", "/optics/per_frame", "one optics");
}

static void histogram_jobs_are_read(void **state) {
    (void)state;
    ps_job job;
    accept(HISTOGRAM(",\"centre\":\"median\""), &job);
    assert_int_equal(ps_histogram_entry(&job)->n_bins, 10);
    assert_true(!ps_histogram_entry(&job)->automatic_range && ps_histogram_entry(&job)->range[1] == 5);
    assert_int_equal(ps_histogram_entry(&job)->centre, PS_CENTRE_MEDIAN);
    ps_job_free(&job);
    accept_with(HISTOGRAM(",\"centre\":\"p.npy\""), "histogram.range=auto", &job);
    assert_true(ps_histogram_entry(&job)->automatic_range);
    assert_int_equal(ps_histogram_entry(&job)->centre, PS_CENTRE_FILE);
    assert_string_equal(ps_histogram_entry(&job)->centre_file, "/base/p.npy");
    ps_job_free(&job);
    accept(HISTOGRAM(",\"region\":{\"rows\":[2,8],\"columns\":[0,5]},\"saturation\":99,\"masks\":{\"noisy_ratio\":3}"), &job);
    assert_true(ps_histogram_entry(&job)->rows[0] == 2 && ps_histogram_entry(&job)->rows[1] == 8 &&
                ps_histogram_entry(&job)->columns[1] == 5);
    assert_true(ps_histogram_entry(&job)->saturation == 99 && ps_histogram_entry(&job)->noisy_ratio == 3 &&
                ps_histogram_entry(&job)->hot_sigma == 8);
    assert_true(ps_histogram_entry(&job)->stride == 1 && ps_histogram_entry(&job)->sample == 256);
    ps_job_free(&job);
    assert_refused_with(HISTOGRAM(""), "histogram.region={\"rows\":[3,3],\"columns\":[0,1]}", "/histogram/region/rows", "first below end");
    assert_refused_with(HISTOGRAM(""), "histogram.masks={\"hot\":1}", "/histogram/masks/hot", "hot_sigma");
    assert_refused_with(HISTOGRAM(""), "histogram.range=[5,5]", "/histogram/range: found [5,5]", "below the highest");
    assert_refused_with(HISTOGRAM(""), "histogram.bins=0", "/histogram/bins: found 0", "from 1");
    assert_refused_with(HISTOGRAM(""), "methods={}", "/methods", "a histogram job has no such entry");
}

static void files_are_read_and_missing_ones_named(void **state) {
    (void)state;
    char path[] = "/tmp/ptyseries_job_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, JOB(""), sizeof JOB("") - 1), (ssize_t)sizeof JOB("") - 1);
    close(file);
    ps_job job;
    ps_error error = {0};
    assert_int_equal(ps_job_load(ps_task_job_kinds(), path, NULL, 0, &job, &error), PS_OK);
    assert_string_equal(job.path, path);
    assert_string_equal(job.base_directory, "/tmp");
    assert_string_equal(job.output_file, "/tmp/out.h5");
    ps_job_free(&job);
    unlink(path);
    assert_int_equal(ps_job_load(ps_task_job_kinds(), path, NULL, 0, &job, &error), PS_E_JOB);
    assert_non_null(strstr(error.text, path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(text_is_utf8),
        cmocka_unit_test(override_needs_a_shape),
        cmocka_unit_test(defaults_are_as_documented),
        cmocka_unit_test(every_entry_is_read),
        cmocka_unit_test(strengths_come_in_three_forms),
        cmocka_unit_test(mistakes_are_named_with_the_nearest_key),
        cmocka_unit_test(settings_override),
        cmocka_unit_test(simulate_jobs_are_read),
        cmocka_unit_test(histogram_jobs_are_read),
        cmocka_unit_test(files_are_read_and_missing_ones_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
