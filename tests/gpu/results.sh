# SPDX-License-Identifier: Apache-2.0
# results.json and the archive of run.sh, which sources this file. Both are complete files at all
# times, because they are written under another name and renamed. run.sh sets $out, $archive, $state
# (a folder of its own) and the variables that write_results prints.
# shellcheck shell=sh disable=SC2154

# --- JSON --------------------------------------------------------------------------------------
# Bytes that a JSON string may contain.
plain() {
    LC_ALL=C tr '\011\200-\377' ' ?' | LC_ALL=C tr -d '\000-\010\013-\037\177' | cut -c 1-2000 |
        sed 's/\\/\\\\/g; s/"/\\"/g'
}
text() {
    printf '"%s"' "$(printf '%s\n' "$1" | tr '\n' ' ' | plain | sed 's/ *$//')"
}
text_or_null() {
    [ -n "$1" ] && text "$1" || printf null
}
# Prints lines as an array of strings.
array() {
    plain | sed 's/^/"/; s/$/"/; $!s/$/, /' | tr -d '\n' | sed 's/^/[/; s/$/]/' | grep . ||
        printf '[]'
}

# record CHECK OUTCOME REASON EXIT_CODE SECONDS LIMIT LOG: appends one line to $state/checks, in one
# write. Exit code and limit are "null" if there is none; the log may be "".
record() {
    record_log=${7:-/dev/null}
    {
        printf '{"check": "%s", "outcome": "%s", "reason": %s, ' "$1" "$2" "$(text "$3")"
        printf '"exit_code": %s, "seconds": %s, "limit_seconds": %s, ' "$4" "$5" "$6"
        printf '"commands": %s, ' "$(sed -n 's/^\$ //p' "$record_log" | head -n 40 | array)"
        printf '"failures": %s, ' \
            "$(grep -aE '^not ok|^\[  FAILED|^FAIL' "$record_log" | head -n 40 | array)"
        printf '"output": %s}\n' "$(grep -av '^\$ ' "$record_log" | tail -n 400 | array)"
    } >"$state/line"
    cat "$state/line" >>"$state/checks"
    took=
    [ "$5" = 0 ] || took=" ($5 s)"
    printf '%-14s %s%s%s\n' "$2" "$1" "$took" "${3:+: $3}"
}

# count OUTCOME...: prints the number of checks with one of these outcomes.
count() {
    for outcome; do
        grep -c "^{\"check\": \"[a-z0-9.-]*\", \"outcome\": \"$outcome\"," "$state/checks"
    done | awk '{ sum += $1 } END { print sum + 0 }'
}

# write_results FINISHED RUNNING: FINISHED is true or false, RUNNING the current check or "".
write_results() {
    {
        printf '{\n  "started": %s,\n  "written": %s,\n' "$(text "$started")" "$(text "$(now)")"
        printf '  "finished": %s,\n  "running": %s,\n' "$1" "$(text_or_null "$2")"
        printf '  "stopped_by": %s,\n' "$(text_or_null "$stopped_by")"
        printf '  "gpu": %s,\n  "driver": %s,\n' "$(text "$gpu")" "$(text "$driver")"
        printf '  "driver_cuda": %s,\n' "$(text "$driver_cuda")"
        printf '  "memory": %s,\n  "device": %s,\n' "$(text "$memory")" "$(text "$device")"
        printf '  "programs": %s,\n' "$(text "$programs")"
        printf '  "library_path": %s,\n' "$(text "$library_path")"
        printf '  "verdict": %s,\n' "$(text_or_null "$verdict")"
        printf '  "dry_run": %s,\n  "minutes": %s,\n' "$dry" "${minutes:-null}"
        printf '  "passed": %d,\n  "passed_earlier": %d,\n' "$(count passed)" \
            "$(count "passed earlier")"
        printf '  "failed": %d,\n  "timed_out": %d,\n' "$(count failed "timed out")" \
            "$(count "timed out")"
        printf '  "interrupted": %d,\n' "$(count interrupted)"
        printf '  "absent": %d,\n  "not_run": %d,\n' "$(count absent)" "$(count "not run")"
        printf '  "checks": [\n'
        sed 's/^/    /; $!s/$/,/' "$state/checks"
        printf '  ]\n}\n'
    } >"$out/results.json.part" && mv "$out/results.json.part" "$out/results.json"
}

# Packs results, logs, tables and answers into one file. It has no traces and no weights, so it
# stays small.
write_archive() {
    [ -n "$archive" ] || return 0
    folder=$(basename "$out")
    (cd "$out/.." && find "$folder" -maxdepth 1 -type f \
        \( -name '*.json' -o -name '*.log' -o -name '*.tsv' -o -name '*.jsonl' \) |
        sort >"$state/packed" && tar -czf "$archive.part" -T "$state/packed") &&
        mv "$archive.part" "$archive"
}

# Called before and after every check.
save() {
    write_results "$1" "$2" || not_written=results.json
    write_archive || not_written=$archive
}

# Keeps the beginning and the end of a log of more than a megabyte.
shorten() { # log
    [ "$(wc -c <"$1")" -gt 1000000 ] || return 0
    {
        head -c 300000 "$1"
        printf '\n... what was printed in between is left out here ...\n'
        tail -c 300000 "$1"
    } >"$1.part" && mv "$1.part" "$1"
}

# --- results of an earlier call ----------------------------------------------------------------
# read_earlier FILE: a results.json, its folder, or an archive. Writes "CHECK DATE" lines of the
# passed checks to $state/earlier if programs and device are the same.
read_earlier() {
    case $1 in
    *.tgz | *.tar.gz)
        tar -xzOf "$1" --wildcards '*/results.json' >"$state/earlier.json" || return
        ;;
    *)
        file=$1
        [ ! -d "$1" ] || file=$1/results.json
        cat "$file" >"$state/earlier.json" || return
        ;;
    esac
    : >"$state/earlier"
    date=$(sed -n 's/^  "started": "\(.*\)",$/\1/p' "$state/earlier.json")
    for field in programs gpu device; do
        eval "mine=\$$field"
        theirs=$(sed -n 's/^  "'$field'": "\(.*\)",$/\1/p' "$state/earlier.json")
        if [ "$mine" != "$theirs" ]; then
            echo "run.sh: note: $1 has results of another \"$field\" ($theirs), so all checks are" \
                "run again" >&2
            return 0
        fi
    done
    sed -n 's/^ *{"check": "\([a-z0-9.-]*\)", "outcome": "passed\( earlier\)*".*/\1/p' \
        "$state/earlier.json" | sed "s/\$/ $date/" >"$state/earlier"
}
# passed_earlier CHECK: prints the date.
passed_earlier() {
    sed -n "s/^$1 //p" "$state/earlier" 2>/dev/null | grep .
}
