// SPDX-License-Identifier: Apache-2.0
// libdraftscope: replay of recorded LLM outputs under any speculative-decoding method, and the
// closed forms behind it. C11 and C++17; cc prog.c $(pkg-config --cflags --libs draftscope).
//
//     traces           traces/trace/trace.h   recorded prompts and outputs: open, read, write
//     methods          sim/drafter.h          drafting methods and their configurations, by name
//     rules            sim/verifier.h         verification rules
//     runs             sim/run/run.h          configurations over a trace
//     counts           sim/counts.h           counts of a run, block efficiency
//     metrics          base/metrics.h         the six acceptance metrics
//     acceptance       sim/acceptance.h       rates in the convention that they were measured in
//     time             sim/cost/price.h       speedup under a cost model
//     theory           theory/                acceptance of k-Seq, SpecInfer, optimal transport;
//     trees
//
// Functions that can fail return DSC_OK or a negative status and write one sentence into the
// caller's dsc_error (base/status.h). The library prints nothing, never exits and has no global
// state; functions may be called from several threads with different objects. docs/library.md is
// an introduction by example.
#ifndef DRAFTSCOPE_H
#define DRAFTSCOPE_H

#include "base/status.h"
#include "base/memory.h"
#include "base/option.h"
#include "traces/trace/trace.h"
#include "sim/acceptance.h"
#include "sim/counts.h"
#include "sim/drafter.h"
#include "sim/verifier.h"
#include "sim/run/run.h"
#include "sim/cost/cost.h"
#include "sim/cost/price.h"
#include "theory/acceptance.h"
#include "theory/block.h"
#include "theory/block_verify.h"
#include "theory/curve.h"
#include "theory/kseq.h"
#include "theory/otm.h"
#include "theory/probs.h"
#include "theory/single.h"
#include "theory/specinfer.h"
#include "theory/tree.h"

#endif
