/* The JSON schema of jobs and the program must agree: full jobs are mutated in every place, the program's verdicts are written down, and
 * check_schema.py compares them with the schema's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/job.h"
#include "optics/optics_json.h"
#include "tasks/tasks.h"

#define OPTICS                                                                                                                             \
    "{\"comment\":\"c\",\"voltage_V\":300000,\"semiangle_mrad\":20,\"scan_step_A\":[0.4,0.5],\"detector_pitch_mrad\":[1,2],"               \
    "\"detector_center_px\":[3,4],\"rotation_deg\":5,\"detector_transpose\":true,\"detector_flip\":[true,false],"                          \
    "\"aberrations\":{\"C10_A\":-80,\"C12_nm\":3,\"phi12_deg\":4,\"C30_A\":1e7,\"phi56_rad\":0.5},\"tilt_mrad\":[1,2],\"thickness_nm\":3," \
    "\"vacuum_probe\":null}"
#define THIN_OPTICS \
    "{\"voltage_kV\":300,\"semiangle_mrad\":20,\"scan_step_nm\":[0.4,0.5],\"detector_pitch_mrad\":[1,2],\"detector_center_px\":[3,4]}"
#define FIT                                                                                                                         \
    "{\"schema\":2,\"git\":null,\"result\":{\"aberrations\":{\"C10\":-12.5,\"C12\":3,\"phi12\":0.25},\"rotation_angle_deg\":165.5," \
    "\"com_reversed\":true,\"voltage_kV\":300,\"semiangle_mrad\":21.4,\"scan_sampling_A\":[0.25,0.5],\"bf_center\":[31.5,32.5],"    \
    "\"bf_radius\":20,\"detected_bf_radius\":10.7,\"tilt_mrad\":[1,2],\"depth_spread_nm\":8,\"upsample\":2}}"

static const char *const full_jobs[] = {
    "{\"$schema\":\"x\",\"comment\":\"y\",\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\",\"b\"],\"scan_shape\":[5,6],\"first\":1,"
    "\"scan_shape_override\":true,"
    "\"count\":2,\"stride\":3,\"order\":\"time\",\"flyback\":1,\"repeats\":2,\"serpentine\":true,\"skip_leading\":3,\"skip_trailing\":4,"
    "\"channel\":2,"
    "\"saturation\":5000,\"allow_partial\":true,\"verify\":\"whole\",\"bad_pixels\":{\"from_file\":false,\"hot_sigma\":8,\"mask\":\"m."
    "npy\"}},"
    "\"optics\":" OPTICS ",\"upsampling\":4,\"weights\":\"poisson\",\"probe_form\":\"published\","
    "\"methods\":{\"ssb\":{\"estimator\":\"phase\"},\"phase\":{\"strength\":[0.03,1],\"smoothness_inv_A\":1.5},"
    "\"complex\":{\"strength\":[{\"amplitude\":0.3,\"phase\":0.1},2],\"smoothness_inv_A\":null},\"mf\":{}},\"output\":{\"file\":\"/abs/"
    "out.h5\"},"
    "\"compute\":{\"backend\":\"cuda:1\",\"precision\":\"fast\",\"memory_budget_GiB\":2.5,\"threads\":3,\"g_storage\":\"exact\"}}",
    "{\"task\":\"reconstruct\",\"series\":{\"files\":\"a\"},\"optics\":{\"per_frame\":\"f/"
    "{stem}.json\",\"round\":{\"aberrations_rad\":0.1,\"rotation_deg\":0.5}},"
    "\"methods\":{\"complex\":{\"strength\":\"auto\"}},\"output\":{\"file\":\"o.h5\",\"drift\":true,\"align\":true},\"compute\":{"
    "\"precision\":\"reference\",\"g_"
    "storage\":\"none\"}}",
    "{\"task\":\"reconstruct\",\"series\":{\"files\":[\"a\"]},\"optics\":" FIT ",\"methods\":{\"ssb\":{}},\"output\":{\"file\":\"o.h5\"}}",
    "{\"task\":\"simulate\",\"optics\":" THIN_OPTICS ",\"simulate\":{\"output_master\":\"s_master.h5\",\"scan_shape\":[8,9],"
    "\"detector_shape\":[10,11]}}",
    "{\"task\":\"histogram\",\"series\":{\"files\":[\"a\"]},\"output\":{\"file\":\"o.h5\"},"
    "\"histogram\":{\"bins\":10,\"range\":[0,5],\"centre\":\"median\",\"region\":{\"rows\":[0,9],\"columns\":[3,7]},\"stride\":2,"
    "\"sample\":50,\"saturation\":4000,\"masks\":{\"hot_sigma\":6,\"dead_fraction\":0.1,\"noisy_ratio\":3,\"saturated_fraction\":0.01}}}",
    "{\"task\":\"fit\",\"series\":{\"files\":[\"a\"]},\"optics\":" THIN_OPTICS ",\"output\":{\"file\":\"o.h5\"},"
    "\"compute\":{\"threads\":2},\"fit\":{\"free\":[\"rotation_deg\",\"C10\",\"C12\",\"C21\",\"thickness_A\",\"detector_transpose\"],"
    "\"bounds\":{\"rotation_deg\":[10,50],\"C10\":[-500,0],\"C12\":[0,90],\"thickness_A\":[0,300]},\"frequencies\":300,"
    "\"strength\":0.02,\"upsampling\":2,\"phase_sign\":\"negative\",\"frame\":1,\"optics_file\":\"f/{stem}.json\"}}",
    "{\"task\":\"reconstruct\",\"series\":{\"files\":\"a\"},\"optics\":{\"voltage_kV\":300,\"fit\":{\"free\":[\"C10\"],\"phase_sign\":"
    "\"auto\","
    "\"bounds\":{\"C10\":[0,9]}}},\"methods\":{\"ssb\":{}},\"output\":{\"file\":\"o.h5\"}}",
    "{\"task\":\"fit\",\"series\":{\"files\":\"a\"},\"optics\":\"o.json\",\"output\":{\"file\":\"o.h5\"},"
    "\"fit\":{\"per_frame\":true,\"optics_file\":\"{stem}.json\",\"free\":\"auto\",\"bounds\":{\"C30\":[-1,1],\"semiangle_mrad\":[20,30]},"
    "\"frequencies\":\"auto\",\"phase_sign\":\"auto\"}}",
    "{\"task\":\"simulate\",\"optics\":\"optics.json\",\"simulate\":{\"output_master\":\"s_{frame}_master.h5\",\"scan_shape\":[8,9],"
    "\"detector_shape\":[10,11],\"seed\":7,\"frames\":3,\"object\":\"random\",\"object_upsampling\":\"auto\",\"lattice_A\":4,"
    "\"lattice_rotation_deg\":3,\"atom_sigma_A\":0.5,\"vacancies\":2,\"phase_rad\":0.2,\"log_amplitude\":0.01,\"dose_per_position\":500,"
    "\"drift_A\":[1,-1],\"defocus_step_A\":20,\"moving_defect\":true,\"dtype\":\"uint8\",\"positions_per_file\":100}}"};

/* What any value is replaced with. */
static const char *const replacements[] = {"null",  "true",  "0",         "-1",           "1",        "2",     "0.5",
                                           "1e-13", "5000",  "1e15",      "\"\"",         "\"auto\"", "\"x\"", "\"cuda\"",
                                           "[]",    "[1,2]", "[0.5,0.5]", "[true,false]", "[1,2,3]",  "{}",    "{\"x\":1}"};

/* Members added to any object. */
static const char *const additions[] = {"\"x\":1",           "\"comment\":\"z\"", "\"per_frame\":\"{stem}\"",
                                        "\"defocus_A\":5",   "\"C10_nm\":5",      "\"voltage_kV\":300",
                                        "\"phi12_rad\":0.1", "\"thickness_A\":9", "\"defocus_nm\":1"};

enum { N_JOBS = sizeof full_jobs / sizeof *full_jobs, N_REPLACEMENTS = sizeof replacements / sizeof *replacements };
enum { N_ADDITIONS = sizeof additions / sizeof *additions };

/* Writes the program's verdict on the document; a comma before all but the first. */
static void judge(const cJSON *document, FILE *verdicts) {
    char *text = cJSON_PrintUnformatted(document);
    ps_job job;
    ps_error error = {0};
    ps_code code = ps_job_parse(ps_task_job_kinds(), text, "/base", NULL, 0, &job, &error);
    assert_true(code == PS_OK || code == PS_E_JOB);
    cJSON *message = code == PS_OK ? cJSON_CreateNull() : cJSON_CreateString(error.text);
    char *refused = cJSON_PrintUnformatted(message);
    fprintf(verdicts, "%s{\"job\":%s,\"refused\":%s}\n", ftell(verdicts) > 1 ? "," : "", text, refused);
    cJSON_free(refused);
    cJSON_Delete(message);
    cJSON_free(text);
    if (code == PS_OK) ps_job_free(&job);
}

/* Takes the parsed document apart at `node`, which is one of its nodes, in every way. */
static void mutate(cJSON *document, cJSON *node, FILE *verdicts);

static void replace_and_judge(cJSON *document, cJSON *parent, cJSON *child, const char *value, FILE *verdicts) {
    cJSON *other = cJSON_Parse(value), *kept = cJSON_Duplicate(child, true);
    char *key = child->string ? strdup(child->string) : NULL;
    if (key) other->string = strdup(key);
    assert_true(cJSON_ReplaceItemViaPointer(parent, child, other));
    judge(document, verdicts);
    if (key) kept->string = kept->string ? kept->string : strdup(key);
    assert_true(cJSON_ReplaceItemViaPointer(parent, other, kept));
    free(key);
}

static cJSON *child_at(const cJSON *parent, int index) {
    cJSON *child = parent->child;
    while (child && index-- > 0) child = child->next;
    return child;
}

static void mutate_child(cJSON *document, cJSON *parent, int index, FILE *verdicts) {
    for (int i = 0; i < N_REPLACEMENTS; i++) replace_and_judge(document, parent, child_at(parent, index), replacements[i], verdicts);
    mutate(document, child_at(parent, index), verdicts);
}

static void remove_and_judge(const cJSON *document, cJSON *parent, int index, FILE *verdicts) {
    cJSON *removed = cJSON_DetachItemViaPointer(parent, child_at(parent, index));
    judge(document, verdicts);
    if (removed->string) {
        char *key = strdup(removed->string);
        assert_true(cJSON_AddItemToObject(parent, key, removed));
        free(key);
    } else {
        assert_true(cJSON_AddItemToArray(parent, removed));
    }
}

static void add_and_judge(cJSON *document, cJSON *object, const char *member, FILE *verdicts) {
    char text[128];
    snprintf(text, sizeof text, "{%s}", member);
    cJSON *parsed = cJSON_Parse(text), *added = cJSON_DetachItemViaPointer(parsed, parsed->child);
    cJSON_Delete(parsed);
    char *key = strdup(added->string);
    if (!cJSON_GetObjectItemCaseSensitive(object, key)) {
        assert_true(cJSON_AddItemToObject(object, key, added));
        judge(document, verdicts);
        cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    } else {
        cJSON_Delete(added);
    }
    free(key);
}

static void mutate(cJSON *document, cJSON *node, FILE *verdicts) {
    int n = cJSON_GetArraySize(node);
    for (int i = 0; i < n; i++) mutate_child(document, node, i, verdicts);
    for (int i = 0; i < n; i++) remove_and_judge(document, node, 0, verdicts); /* the removed goes to the end */
    for (int i = 0; cJSON_IsObject(node) && i < N_ADDITIONS; i++) add_and_judge(document, node, additions[i], verdicts);
}

static void schema_and_program_agree(void **state) {
    (void)state;
    char path[] = "/tmp/ptyseries_verdicts_XXXXXX", command[1024];
    FILE *verdicts = fdopen(mkstemp(path), "w");
    assert_non_null(verdicts);
    fputs("[", verdicts);
    for (int i = 0; i < N_JOBS; i++) {
        cJSON *document = cJSON_Parse(full_jobs[i]);
        assert_non_null(document);
        judge(document, verdicts);
        mutate(document, document, verdicts);
        cJSON_Delete(document);
    }
    fputs("]", verdicts);
    assert_int_equal(fclose(verdicts), 0);
    snprintf(command, sizeof command, "python3 '%s/tests/unit/check_schema.py' '%s/configs' %s", PS_SOURCE_DIR, PS_SOURCE_DIR, path);
    int status = system(command);
    unlink(path);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void full_jobs_are_valid(void **state) {
    (void)state;
    for (int i = 0; i < N_JOBS; i++) {
        ps_job job;
        ps_error error = {0};
        if (ps_job_parse(ps_task_job_kinds(), full_jobs[i], "/base", NULL, 0, &job, &error) != PS_OK) fail_msg("%s", error.text);
        ps_job_free(&job);
    }
}

static void shipped_optics_are_valid(void **state) {
    (void)state;
    glob_t found;
    assert_int_equal(glob(PS_SOURCE_DIR "/configs/optics/*.json", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        ps_optics optics;
        ps_error error = {0};
        if (ps_optics_load(found.gl_pathv[i], &optics, NULL, &error) != PS_OK) fail_msg("%s", error.text);
    }
    globfree(&found);
}

static void shipped_jobs_are_valid(void **state) {
    (void)state;
    glob_t found;
    if (glob(PS_SOURCE_DIR "/jobs/*.json", 0, NULL, &found) != 0) skip();
    for (size_t i = 0; i < found.gl_pathc; i++) {
        ps_job job;
        ps_error error = {0};
        if (ps_job_load(ps_task_job_kinds(), found.gl_pathv[i], NULL, 0, &job, &error) != PS_OK) fail_msg("%s", error.text);
        ps_job_free(&job);
    }
    globfree(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(full_jobs_are_valid), cmocka_unit_test(schema_and_program_agree),
                                       cmocka_unit_test(shipped_optics_are_valid), cmocka_unit_test(shipped_jobs_are_valid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
