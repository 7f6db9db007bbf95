# SPDX-License-Identifier: Apache-2.0
# Makes calls of every function of the library from its declarations: one with sane arguments, and
# for each parameter one with each of its limits in place of its sane argument.
#
#   awk -f generate.awk feeds.tsv declarations > calls.h
#
# A line of `declarations` is one declaration with DSC_API. A line of feeds.tsv gives the arguments
# of a type: type, regular expression of function.parameter, sane expression, limits separated by
# " | " (none: those of the type; "-": none are tried). The first line that fits counts. Fails with
# the names of parameters that no line feeds. A line "skip", function, reason leaves a function out.
BEGIN {
    FS = "\t"
    calls = 0
    limits["int"] = "-1 | 0 | INT_MAX"
    limits["int32_t"] = "-1 | 0 | INT32_MAX"
    limits["int64_t"] = "-1 | 0 | INT64_MAX"
    limits["uint32_t"] = "0 | UINT32_MAX"
    limits["uint64_t"] = "0 | UINT64_MAX"
    limits["size_t"] = "0" # a length of the caller's array cannot be checked from above
    limits["double"] = "-1. | 0. | (double)NAN | (double)INFINITY"
    limits["bool"] = "-"
}
function trim(s)
{
    gsub(/^ +| +$/, "", s)
    return s
}
# "const double *draft" gives type "const double *" and name "draft".
function cut(p)
{
    p = trim(p)
    if (match(p, /\(\*[a-z_0-9]+\)/)) { # pointer to an array
        name = substr(p, RSTART + 2, RLENGTH - 3)
        type = trim(substr(p, 1, RSTART - 1)) " (*)" substr(p, RSTART + RLENGTH)
        return
    }
    array = sub(/\[[A-Z_0-9a-z]*\]$/, "", p)
    match(p, /[A-Za-z_0-9]+$/)
    name = substr(p, RSTART)
    type = trim(substr(p, 1, RSTART - 1)) (array ? " *" : "")
}
function feed(where, i)
{
    for (i = 1; i <= feeds; i++)
        if (feed_type[i] == type && where ~ "^(" feed_name[i] ")$")
            return i
    return 0
}
function emit_call(parameter, value, i, arguments)
{
    printf "case %d: {\n", calls
    for (i = 1; i <= n; i++) {
        arguments = arguments (i > 1 ? ", " : "") (i == parameter ? value : sane[i])
    }
    if (result == "void")
        printf "    %s(%s);\n", fun, arguments
    else if (result ~ /\*$/)
        printf "    used = %s(%s) != NULL;\n", fun, arguments
    else if (result ~ /^(int|bool|int32_t|int64_t|size_t|double|float)$/)
        printf "    used = %s(%s(%s));\n", fails ? "checked" : "(double)", fun, arguments
    else
        printf "    %s r = %s(%s);\n    use(&r, sizeof r);\n", result, fun, arguments
    print "    break;\n}"
    shown = parameter ? value : "sane"
    gsub(/"/, "\\\"", shown)
    what[calls] = "{\"" fun "\", \"" (parameter ? names[parameter] : "-") "\", \"" shown "\"}"
    calls++
}
FNR == NR {
    if ($1 == "skip")
        skipped[$2] = 1
    else if ($0 !~ /^#/ && NF >= 3) {
        feed_type[++feeds] = $1
        feed_name[feeds] = $2
        feed_sane[feeds] = $3
        feed_limits[feeds] = $4
    }
    next
}
/DSC_API extern/ { next }
{
    for (i in skipped)
        if (index($0, i "("))
            next
}
{
    line = $0
    sub(/.*DSC_API */, "", line)
    sub(/DSC_PRINTF.*/, "", line)
    open = index(line, "(")
    head = substr(line, 1, open - 1)
    match(head, /[a-z_0-9]+$/)
    fun = substr(head, RSTART)
    result = trim(substr(head, 1, RSTART - 1))
    body = trim(substr(line, open + 1))
    sub(/\)$/, "", body)
    body = trim(body)
    n = body == "void" ? 0 : split(body, part, ",")
    fails = 0
    if (functions++ == 0)
        print "static void call(int number)\n{\n    switch (number) {"
    bad = ""
    for (i = 1; i <= n; i++) {
        if (trim(part[i]) == "...") {
            type = "..."
            name = "arguments"
        } else
            cut(part[i])
        names[i] = name
        f = feed(fun "." name)
        if (!f)
            bad = bad fun "." name ": no line of feeds.tsv has an argument of type '" type "'\n"
        sane[i] = feed_sane[f]
        tried[i] = feed_limits[f] != "" ? feed_limits[f] : type in limits ? limits[type] : \
            type ~ /\*( const)?$|\(\*\)/ ? "NULL" : "-"
        if (type == "dsc_error *" && result == "int")
            fails = 1
    }
    if (bad != "") {
        printf "%s", bad >"/dev/stderr"
        unfed = 1
        next
    }
    emit_call(0, "")
    for (i = 1; i <= n; i++) {
        m = split(tried[i], value, / \| /)
        for (k = 1; k <= m; k++)
            if (value[k] != "-")
                emit_call(i, value[k])
    }
}
END {
    print "    }\n}\n\nstatic const struct attempt {"
    print "    const char *function, *parameter, *value;\n} attempts[] = {"
    for (i = 0; i < calls; i++)
        print "    " what[i] ","
    printf "};\nenum { FUNCTIONS = %d, ATTEMPTS = %d };\n", functions, calls
    exit unfed
}
