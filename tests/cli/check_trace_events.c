// SPDX-License-Identifier: Apache-2.0
// Checks a file of trace events against the Trace Event Format of Chrome: a JSON object with an
// array `traceEvents` of complete events (ph X: name, ts, dur, pid, tid) and metadata (ph M). On
// every track, which has a name, events come in the order of time and do not overlap once their
// ends are whole nanoseconds, as Perfetto reads them. Prints the number of events by process and
// name.
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACKS = 4096, NAMES = 16 };

typedef struct track {
    json_int_t process, thread;
    long long end; // of its last event, in nanoseconds
    size_t events;
    int named;
} track;

static track tracks[TRACKS];
static size_t track_count;
static struct {
    json_int_t process;
    const char *name;
    size_t events;
} names[NAMES];
static size_t name_count;
static json_int_t processes[NAMES]; // that have a name
static size_t process_count;

__attribute__((noreturn, format(printf, 2, 3))) static void fail(size_t event, const char *format,
                                                                 ...)
{
    va_list args;
    va_start(args, format);
    printf("event %zu: ", event);
    vprintf(format, args);
    printf("\n");
    exit(1);
}

static track *track_of(json_int_t process, json_int_t thread)
{
    size_t i = 0;
    while (i < track_count && (tracks[i].process != process || tracks[i].thread != thread))
        i++;
    if (i == TRACKS)
        fail(i, "too many tracks for this test");
    if (i == track_count)
        tracks[track_count++] = (track){.process = process, .thread = thread, .end = -1};
    return &tracks[i];
}

static void count(json_int_t process, const char *name)
{
    size_t i = 0;
    while (i < name_count && (names[i].process != process || strcmp(names[i].name, name) != 0))
        i++;
    if (i == NAMES)
        fail(i, "too many names for this test");
    if (i == name_count) {
        names[i].process = process;
        names[name_count++].name = name;
    }
    names[i].events++;
}

// A time in microseconds as whole nanoseconds.
static long long nanoseconds(size_t i, const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    const double ns = 1e3 * json_number_value(value);
    if (!json_is_number(value) || !(ns >= 0) || fabs(ns - round(ns)) > 1e-2)
        fail(i, "'%s' is no number of whole nanoseconds from 0 on", key);
    return llround(ns);
}

static void check_complete(size_t i, const json_t *event, const char *name, track *on)
{
    const long long from = nanoseconds(i, event, "ts"), lasts = nanoseconds(i, event, "dur");
    if (from < on->end)
        fail(i, "begins at %lld ns, before the event of its track that ends at %lld ns", from,
             on->end);
    on->end = from + lasts;
    on->events++;
    count(on->process, name);
}

static void check_metadata(size_t i, const json_t *event, const char *name, track *of)
{
    if (!json_is_string(json_object_get(json_object_get(event, "args"), "name")))
        fail(i, "metadata without args.name");
    if (strcmp(name, "thread_name") == 0)
        of->named = 1;
    else if (strcmp(name, "process_name") == 0 && process_count < NAMES)
        processes[process_count++] = of->process;
    else
        fail(i, "metadata '%s' is neither process_name nor thread_name", name);
}

static void check_event(size_t i, const json_t *event)
{
    const json_t *process = json_object_get(event, "pid"), *thread = json_object_get(event, "tid"),
                 *args = json_object_get(event, "args");
    const char *name = json_string_value(json_object_get(event, "name")),
               *phase = json_string_value(json_object_get(event, "ph"));
    if (!name || !phase || !json_is_integer(process) || !json_is_integer(thread) ||
        (args && !json_is_object(args)))
        fail(i, "name, ph, pid or tid is missing, or args is no object");
    track *t = track_of(json_integer_value(process), json_integer_value(thread));
    if (strcmp(phase, "X") == 0)
        check_complete(i, event, name, t);
    else if (strcmp(phase, "M") == 0)
        check_metadata(i, event, name, t);
    else
        fail(i, "phase '%s'", phase);
}

static void check_names(void)
{
    for (size_t i = 0; i < track_count; i++) {
        size_t p = 0;
        while (p < process_count && processes[p] != tracks[i].process)
            p++;
        if (tracks[i].events && (!tracks[i].named || p == process_count))
            fail(i, "process %lld, thread %lld has no name", (long long)tracks[i].process,
                 (long long)tracks[i].thread);
    }
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *root = argc == 2 ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!root)
        return argc == 2 ? fprintf(stderr, "%s:%d: %s\n", argv[1], error.line, error.text), 1 : 2;
    const char *unit = json_string_value(json_object_get(root, "displayTimeUnit"));
    const json_t *events = json_object_get(root, "traceEvents");
    if (!json_is_array(events) || (unit && strcmp(unit, "ms") != 0 && strcmp(unit, "ns") != 0))
        fail(0, "no array traceEvents, or displayTimeUnit is neither ms nor ns");
    for (size_t i = 0; i < json_array_size(events); i++)
        check_event(i, json_array_get(events, i));
    check_names();
    for (size_t i = 0; i < name_count; i++)
        printf("%lld %s: %zu\n", (long long)names[i].process, names[i].name, names[i].events);
    json_decref(root);
    return 0;
}
