// SPDX-License-Identifier: Apache-2.0
// Names of result columns that more than one file writes or reads. A table is exchanged by the
// names of its columns, so a misspelled name would be a missing value; a misspelled constant does
// not compile.
#ifndef DSC_BASE_COLUMNS_H
#define DSC_BASE_COLUMNS_H

// The configuration of a row.
#define DSC_COL_METHOD "method"
#define DSC_COL_RULE "rule"
#define DSC_COL_REQUEST "request" // number of the request in the trace
#define DSC_COL_ID "id"

// Counts.
#define DSC_COL_REQUESTS "requests"
#define DSC_COL_OUTPUT_TOKENS "output_tokens"
#define DSC_COL_TARGET_CALLS "target_calls"
#define DSC_COL_NUM_DRAFTS_STARTED "num_drafts_started"
#define DSC_COL_NUM_DRAFTS "num_drafts"
#define DSC_COL_NUM_DRAFT_TOKENS "num_draft_tokens"
#define DSC_COL_NUM_ACCEPTED_TOKENS "num_accepted_tokens"
#define DSC_COL_DRAFT_CALLS "draft_calls"
#define DSC_COL_DRAFT_CALL_TOKENS "draft_call_tokens"
#define DSC_COL_TARGET_CALL_TOKENS "target_call_tokens"
#define DSC_COL_TARGET_CALL_CONTEXT "target_call_context"
#define DSC_COL_OUTPUT_CONTEXT "output_context"

// Lists of counts.
#define DSC_COL_ACCEPT_HISTOGRAM "accept_histogram"
#define DSC_COL_DRAFT_LENGTH_HISTOGRAM "draft_length_histogram"
#define DSC_COL_WIDTH_HISTOGRAM "width_histogram"
#define DSC_COL_OVERLAP_HISTOGRAM "overlap_histogram"
#define DSC_COL_CONDITIONAL_REACHED "conditional_acceptance_reached"

// Lists with an element for each request, of a live run.
#define DSC_COL_REQUEST_OUTPUT_TOKENS "request_output_tokens"
#define DSC_COL_REQUEST_TARGET_CALLS "request_target_calls"
#define DSC_COL_REQUEST_NUM_DRAFT_TOKENS "request_num_draft_tokens"
#define DSC_COL_REQUEST_NUM_ACCEPTED_TOKENS "request_num_accepted_tokens"
#define DSC_COL_REQUEST_DRAFT_CALLS "request_draft_calls"
#define DSC_COL_REQUEST_ACCEPT_HISTOGRAM "request_accept_histogram"

// The metrics of base/metrics.h.
#define DSC_COL_BLOCK_EFFICIENCY "block_efficiency"
#define DSC_COL_MEAN_ACCEPTANCE_LENGTH "mean_acceptance_length"
#define DSC_COL_DRAFT_ACCEPTANCE_RATE "draft_acceptance_rate"
#define DSC_COL_ACCEPTANCE_RATE_POS "acceptance_rate_pos"                 // a list
#define DSC_COL_CONDITIONAL_ACCEPTANCE_RATE "conditional_acceptance_rate" // a list
#define DSC_COL_ALPHA_IID "alpha_iid"

// Other results of a simulated or measured run.
#define DSC_COL_SPEEDUP "speedup"
#define DSC_COL_SPEEDUP_COST_LOW "speedup_cost_low"
#define DSC_COL_SPEEDUP_COST_HIGH "speedup_cost_high"
#define DSC_COL_IID_BLOCK_EFFICIENCY "iid_block_efficiency"
#define DSC_COL_IID_ERROR "iid_error"
#define DSC_COL_BLOCK_EFFICIENCY_LOW "block_efficiency_low"
#define DSC_COL_BLOCK_EFFICIENCY_HIGH "block_efficiency_high"
#define DSC_COL_BATCH "batch"
#define DSC_COL_TOKENS_PER_S "tokens_per_s"

#endif
