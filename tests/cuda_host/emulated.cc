// SPDX-License-Identifier: Apache-2.0
// The CUDA backend, compiled for the host: linked in front of the engine, it takes the place of the
// real one. See cuda_runtime.h in this folder.
#include "cuda_runtime.h"

#include <cmath>

using std::isnan;
using std::min;

size_t emulated_memory = (size_t)1 << 30;
size_t emulated_used;
int emulated_replays;

#include "live/cuda/attend.cu"
#include "live/cuda/backend_cuda.cu"
#include "live/cuda/cut.cu"
#include "live/cuda/matmul.cu"
#include "live/cuda/meet.cu"
#include "live/cuda/memory.cu"
#include "live/cuda/probe.cu"
#include "live/cuda/rotate.cu"
#include "live/cuda/rows.cu"
#include "live/cuda/select.cu"
#include "live/cuda/summarize.cu"
