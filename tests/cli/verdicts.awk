# SPDX-License-Identifier: Apache-2.0
# Checks every verdict of a table of draftscope serve against its rows, from columns alone: the row
# that it names is the best one that may run, its gain is the ratio of the rows' own numbers, and the
# interval, or the queues, give the advice. Prints what is wrong, and exits with 1 if anything is;
# with -v show=1 the number of verdicts of each kind.
function utility(r, at) { # of a row without a queue
    worth = .1 + .9 * (slo ? x[r, "goodput"] / x[r, "requests_per_s"] : 1)
    return worth * (at ~ /^closed/ ? x[r, "tokens_per_s"] : 1 / x[r, "e2e_mean_s"])
}
function wrong(text) {
    print at ": " text ": " verdict[at]
    bad = 1
}
function near(a, b, share) {
    return a <= b * (1 + share) && a >= b * (1 - share)
}
BEGIN { FS = "\t" }
/^# slo: / { slo = 1 }
/^# engine: / { engine = 1 } # which may lack the best row
/^# load_verdict_[0-9]*: / {
    at = $0
    sub(/^# load_verdict_[0-9]*: /, "", at)
    said = at
    sub(/: .*/, "", at)
    sub(/^[^ ]*: /, "", said)
    verdict[at] = said
}
/^#/ { next }
!columns { for (columns = 1; columns <= NF; columns++) name[columns] = $columns; next }
{
    rows++
    for (c = 1; c < columns; c++)
        x[rows, name[c]] = $c
    if ($1 == "none")
        none[x[rows, "arrivals"]] = rows
    if (x[rows, "advice"] != "" && $1 != "none")
        judged[x[rows, "arrivals"]] = rows
    if (x[rows, "advice"] == "run")
        runs[x[rows, "arrivals"]]++
}
END {
    for (at in verdict) {
        n = none[at]
        verdicts++
        kind = verdict[at] ~ /^run / ? "on" : verdict[at] ~ /^leave / ? "off" : "no verdict"
        kinds[kind]++
        if (runs[at] != (kind != "no verdict"))
            wrong(runs[at] + 0 " rows to run")
        for (r = 1; r <= rows; r++) {
            if (x[r, "arrivals"] != at || x[r, "saturated"] == "unknown" || x[n, "saturated"] == "unknown")
                continue
            queues = x[r, "saturated"] == "yes" || x[n, "saturated"] == "yes"
            gain = queues ? x[r, "tokens_per_s"] / x[n, "tokens_per_s"] : utility(r, at) / utility(n, at)
            if (!near(x[r, "gain"], gain, 1e-9))
                wrong("row " r " has gain " x[r, "gain"] " for " gain)
            if (x[r, "saturated"] == x[n, "saturated"] && !(x[r, "gain_low"] <= gain * (1 + 1e-9) && gain <= x[r, "gain_high"] * (1 + 1e-9)))
                wrong("row " r " is outside its interval")
        }
        r = judged[at]
        if (!r) {
            if (verdict[at] ~ / times /)
                wrong("no row is marked")
            continue
        }
        said = verdict[at]
        sub(/ times .*/, "", said)
        sub(/.* /, "", said)
        if (!near(said + 0, x[r, "gain"], 5.1e-5 / x[r, "gain"]))
            wrong("the verdict says " said " and row " r " " x[r, "gain"])
        if (index(verdict[at], x[r, "method"]) == 0 || (x[r, "num_speculative_tokens"] != "" && x[r, "speculation"] !~ /^schedule/ && index(verdict[at], "tokens=" x[r, "num_speculative_tokens"]) == 0))
            wrong("row " r " is another one")
        alone = x[n, "saturated"] == "yes" && x[r, "saturated"] == "no"
        if ((kind == "on") != (alone || x[r, "gain_low"] != "nan" && x[r, "gain_low"] > 1))
            wrong("row " r " has " x[r, "gain"] ", from " x[r, "gain_low"])
        for (q = 1; q <= rows && !engine; q++)
            if (x[q, "arrivals"] == at && x[q, "method"] != "none" && x[q, "method"] !~ /oracle/ && x[q, "speculation"] !~ /oracle/ &&
                ((x[q, "saturated"] == "no" && x[r, "saturated"] == "yes") ||
                 (x[q, "saturated"] == "no" && utility(q, at) > utility(r, at) * (1 + 1e-9))))
                wrong("row " q " is better than row " r)
    }
    if (!verdicts)
        bad = 1
    if (show)
        printf "%d %d %d\n", kinds["on"], kinds["off"], kinds["no verdict"]
    exit bad
}
