// SPDX-License-Identifier: Apache-2.0
// A worker thread with one job slot: IDLE, then SUBMITTED by the caller, then DONE by the worker,
// and IDLE again when the caller has joined the job.
#include "live/session/background.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef enum phase { IDLE, SUBMITTED, DONE, QUIT } phase;

struct live_background {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    phase phase;
    live_job job;
    void *user;
    int rc;
    dsc_error err;
};

static void *work(void *memory)
{
    live_background *b = memory;
    pthread_mutex_lock(&b->lock);
    while (b->phase != QUIT) {
        if (b->phase != SUBMITTED) {
            pthread_cond_wait(&b->change, &b->lock);
            continue;
        }
        pthread_mutex_unlock(&b->lock);
        b->rc = b->job(b->user, &b->err);
        pthread_mutex_lock(&b->lock);
        b->phase = DONE;
        pthread_cond_broadcast(&b->change);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

int live_background_new(live_background **out, dsc_error *err)
{
    live_background *b;
    int rc = dsc_new(&b, 1, err);
    if (rc)
        return rc;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->change, NULL);
    if (pthread_create(&b->thread, NULL, work, b)) {
        pthread_cond_destroy(&b->change);
        pthread_mutex_destroy(&b->lock);
        free(b);
        return dsc_fail(err, DSC_ENOMEM, "cannot start a background thread");
    }
    *out = b;
    return DSC_OK;
}

int live_background_start(live_background *b, live_job job, void *user, dsc_error *err)
{
    pthread_mutex_lock(&b->lock);
    const bool idle = b->phase == IDLE;
    if (idle) {
        b->job = job;
        b->user = user;
        b->phase = SUBMITTED;
        pthread_cond_broadcast(&b->change);
    }
    pthread_mutex_unlock(&b->lock);
    return idle ? DSC_OK : dsc_fail(err, DSC_ECHECK, "the previous background job was not joined");
}

int live_background_join(live_background *b, dsc_error *err)
{
    pthread_mutex_lock(&b->lock);
    while (b->phase == SUBMITTED)
        pthread_cond_wait(&b->change, &b->lock);
    const int rc = b->phase == DONE ? b->rc : DSC_OK;
    b->phase = IDLE;
    if (rc)
        *err = b->err;
    pthread_mutex_unlock(&b->lock);
    return rc;
}

void live_background_free(live_background *b)
{
    dsc_error ignored;
    if (!b)
        return;
    live_background_join(b, &ignored);
    pthread_mutex_lock(&b->lock);
    b->phase = QUIT;
    pthread_cond_broadcast(&b->change);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->change);
    pthread_mutex_destroy(&b->lock);
    free(b);
}
