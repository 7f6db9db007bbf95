// SPDX-License-Identifier: Apache-2.0
// The timeline of a run as trace events of Chrome: "Trace Event Format", complete events (ph X) and
// names of processes and threads (ph M). Process 1 is the engine, process 2 has the requests.
#include "base/number.h"
#include "cli/serve/serve.h"

#include <inttypes.h>

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

// Leaves the object open for the arguments.
static void put_event(cli_serve_timeline *t, const char *name, int process, int64_t track,
                      double from_s, double seconds)
{
    char at[DSC_NUMBER_TEXT], lasts[DSC_NUMBER_TEXT];
    dsc_real_text(at, sizeof at, 15, from_s * 1e6);
    dsc_real_text(lasts, sizeof lasts, 15, seconds * 1e6);
    separate(t);
    fprintf(t->f,
            "{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":%" PRId64 ",\"ts\":%s,\"dur\":%s,"
            "\"args\":{",
            name, process, track, at, lasts);
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
    const double begin = e->now_s - s->seconds, drafts = begin + (t->overlap ? 0 : s->target_s);
    put_event(t, s->prefilling ? "prefill and decode" : "decode", ENGINE, TARGET, begin,
              s->target_s);
    fprintf(t->f,
            "\"running\":%" PRId64 ",\"waiting\":%" PRId64 ",\"decode_tokens\":%" PRId64
            ",\"prefill_tokens\":%" PRId64 "}}",
            e->running_count, dsc_serve_waiting(e), s->decode_tokens, s->prefill_tokens);
    if (s->draft_s > 0) {
        put_event(t, "draft", ENGINE, DRAFT, drafts, s->draft_s);
        fprintf(t->f, "\"longest\":%" PRId32 "}}", s->longest);
    }
    if (s->overhead_s > 0) {
        put_event(t, "overhead", ENGINE, OVERHEAD, e->now_s - s->overhead_s, s->overhead_s);
        fputs("}}", t->f);
    }
}

void cli_serve_timeline_request(cli_serve_timeline *t, const dsc_serve_sequence *s, const char *id)
{
    put_name(t, "thread_name", REQUESTS, s->number + 1, id);
    put_event(t, "time to first token", REQUESTS, s->number + 1, s->arrival_s,
              s->first_s - s->arrival_s);
    fprintf(t->f, "\"prompt_tokens\":%" PRId32 "}}", s->prompt);
    put_event(t, "decode", REQUESTS, s->number + 1, s->first_s, s->last_s - s->first_s);
    fprintf(t->f,
            "\"output_tokens\":%" PRId32 ",\"passes\":%" PRId32 ",\"preemptions\":%" PRId32 "}}",
            s->output, s->chunks, s->preemptions);
}

void cli_serve_timeline_end(cli_serve_timeline *t)
{
    fputs("\n]}\n", t->f);
}
