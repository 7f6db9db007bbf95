// SPDX-License-Identifier: Apache-2.0
// The timeline of a run as trace events of Chrome: "Trace Event Format", complete events (ph X) and
// names of processes and threads (ph M). Process 1 is the engine, process 2 has the requests.
//
// Events of one thread must not overlap unless one contains the other; Perfetto, which counts whole
// nanoseconds, leaves out those that do. So both ends of an event are rounded to nanoseconds, and
// its length is their difference.
#include "cli/serve/serve.h"

#include <inttypes.h>
#include <math.h>

enum { ENGINE = 1, REQUESTS = 2 };
enum { TARGET = 1, DRAFT = 2, OVERHEAD = 3 };

static void separate(cli_serve_timeline *t)
{
    fputs(t->begun ? ",\n" : "\n", t->f);
    t->begun = true;
}

static void put_text(FILE *f, const char *text)
{
    putc('"', f);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x20)
            fprintf(f, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else
            putc(c, f);
    }
    putc('"', f);
}

static void put_name(cli_serve_timeline *t, const char *what, int process, int64_t track,
                     const char *name)
{
    separate(t);
    fprintf(t->f,
            "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%" PRId64 ",\"args\":{\"name\":",
            what, process, track);
    put_text(t->f, name);
    fputs("}}", t->f);
}

// Writes nanoseconds as microseconds, the unit of the format.
static void put_microseconds(FILE *f, int64_t ns)
{
    fprintf(f, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

// Leaves the object open for the arguments.
static void put_event(cli_serve_timeline *t, const char *name, int process, int64_t track,
                      double from_s, double to_s)
{
    const int64_t from = llround(from_s * 1e9), to = llround(to_s * 1e9);
    separate(t);
    fprintf(t->f, "{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":%" PRId64 ",\"ts\":", name,
            process, track);
    put_microseconds(t->f, from);
    fputs(",\"dur\":", t->f);
    put_microseconds(t->f, to - from);
    fputs(",\"args\":{", t->f);
}

void cli_serve_timeline_begin(cli_serve_timeline *t, const char *run)
{
    fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"run\":", t->f);
    put_text(t->f, run);
    fputs("},\"traceEvents\":[", t->f);
    put_name(t, "process_name", ENGINE, 0, "engine");
    put_name(t, "process_name", REQUESTS, 0, "requests");
    put_name(t, "thread_name", ENGINE, TARGET, "target");
    put_name(t, "thread_name", ENGINE, DRAFT, "draft");
    put_name(t, "thread_name", ENGINE, OVERHEAD, "overhead");
}

void cli_serve_timeline_step(cli_serve_timeline *t, const dsc_serve_engine *e)
{
    const dsc_serve_step *s = &e->step;
    // The sums of a step's parts may differ from its ends by a rounding error.
    const double begin = fmax(e->now_s - s->seconds, t->end_s),
                 verified = fmin(begin + s->target_s, e->now_s),
                 drafts = t->overlap ? begin : verified;
    t->end_s = e->now_s;
    put_event(t, s->prefilling ? "prefill and decode" : "decode", ENGINE, TARGET, begin, verified);
    fprintf(t->f,
            "\"running\":%" PRId64 ",\"waiting\":%" PRId64 ",\"decode_tokens\":%" PRId64
            ",\"prefill_tokens\":%" PRId64 "}}",
            e->running_count, dsc_serve_waiting(e), s->decode_tokens, s->prefill_tokens);
    if (s->draft_s > 0) {
        put_event(t, "draft", ENGINE, DRAFT, drafts, fmin(drafts + s->draft_s, e->now_s));
        fprintf(t->f, "\"longest\":%" PRId32 "}}", s->longest);
    }
    if (s->overhead_s > 0) {
        put_event(t, "overhead", ENGINE, OVERHEAD, fmax(e->now_s - s->overhead_s, begin), e->now_s);
        fputs("}}", t->f);
    }
}

void cli_serve_timeline_request(cli_serve_timeline *t, const dsc_serve_sequence *s, const char *id)
{
    put_name(t, "thread_name", REQUESTS, s->number + 1, id);
    put_event(t, "time to first token", REQUESTS, s->number + 1, s->arrival_s, s->first_s);
    fprintf(t->f, "\"prompt_tokens\":%" PRId32 "}}", s->prompt);
    put_event(t, "decode", REQUESTS, s->number + 1, s->first_s, s->last_s);
    fprintf(t->f,
            "\"output_tokens\":%" PRId32 ",\"passes\":%" PRId32 ",\"preemptions\":%" PRId32 "}}",
            s->output, s->chunks, s->preemptions);
}

void cli_serve_timeline_end(cli_serve_timeline *t)
{
    fputs("\n]}\n", t->f);
}
