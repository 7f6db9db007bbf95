#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The completions for fish and zsh: each offers for a line what that for bash offers (test_completion.sh
# tests that one), with a description of every name. fish completes itself; of zsh the functions of its
# completion system are replaced by ones that print, and one line is typed into a terminal.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
if ! command -v fish >/dev/null && ! command -v zsh >/dev/null || ! command -v bash >/dev/null; then
    echo "no fish and no zsh, or no bash: skipped"
    exit 77
fi
export top DRAFTSCOPE HOME="$work"
mkdir a.dst
touch m.gguf t.tsv t.jsonl in.jsonl.gz tokenizer.json t.txt p.npy p.csv p.safetensors p.txt

cat >bash.sh <<'END'
. "$top/cli/draftscope.bash"
COMP_WORDS=("$DRAFTSCOPE" "$@") COMP_CWORD=$#
_draftscope
[[ ${#COMPREPLY[@]} == 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
END
cat >fish.fish <<'END'
source $top/cli/draftscope.fish
complete -C (string join ' ' -- $DRAFTSCOPE $argv)
END
# The line is in $words. What remains of the word after compset is $rest, what it removed $before.
cat >zsh.zsh <<'END'
words=("$DRAFTSCOPE" "$@") CURRENT=$#words
rest=$words[-1] before=
compset() {
    local pattern=$@[-1] mode=${2-}
    [[ $rest == ${~pattern}* ]] || return 1
    local cut=${rest##${~pattern}}
    [[ $#@ == 3 ]] && cut=${rest#${~pattern}}
    before+=${rest%"$cut"} rest=$cut
}
_describe() { # -V tag array
    local entry
    for entry in ${(P)3}; do
        entry=${entry/\\:/$'\1'} # a colon of the name
        print -r -- "${${entry%%:*}/$'\1'/:}"$'\t'"${entry#*:}"
    done | while IFS= read -r entry; do
        [[ $entry == ${(b)rest}* ]] && print -r -- "$before$entry"
    done
}
_files() {
    setopt local_options null_glob
    local name
    case ${1-} in
    -g) for name in ${~2} *(-/); do [[ $name == ${(b)rest}* ]] && print -r -- "$before$name"; done ;;
    -/) for name in ${rest}*(-/); do print -r -- "$before$name"; done ;;
    *) for name in ${rest}*; do print -r -- "$before$name"; done ;;
    esac
}
source $top/cli/_draftscope
END

offered() { # shell, words...
    shell=$1
    shift
    case $shell in
    bash) bash bash.sh "$@" ;;
    fish) fish --no-config fish.fish "$@" ;;
    zsh) zsh -f zsh.zsh "$@" ;;
    esac </dev/null 2>&1 | LC_ALL=C sort -u >"$shell.out"
}
# The words as each shell hands them over, but for files that no ending selects.
same() { # words...
    offered bash "$@"
    for shell in fish zsh; do
        command -v $shell >/dev/null || continue
        offered $shell "$@"
        # Folders on the way to a file are offered by some of them; *.dst is the only one here.
        sed 's/\t.*//; s|/$||' $shell.out | LC_ALL=C sort -u >names
        grep -vx a.dst names >names.files
        grep -vx a.dst bash.out >bash.files
        if cmp -s names.files bash.files; then
            ok
        else
            not_ok "$shell: draftscope $*|"
            diff bash.files names.files | sed 's/^/# /'
        fi
    done
}
same ""
same s
same trace ""
same trace v
same theory p
same nonsense ""
same --version ""
same sweep a.dst -
same sim a.dst --method llma --
same sim a.dst --method pld --
same tune a.dst --method llma --semantics paper,c
same sim a.dst --method ""
same sim a.dst --method llma --references ""
same tune a.dst --method llma,p
same sweep a.dst --method ll
same tune --objective ""
same tune --engine ""
same sim a.dst --evaluate ""
same sim a.dst --cost ""
same trace export a.dst --format ""
same trace synth --target ""
same trace synth --draft m
same trace import --format ""
same sim a.dst --rule ""
same sweep a.dst --rule greedy,sp
same advise --gpu h
same advise --target-shape qwen3
same sim a.dst --method tree --tree t.t
same theory vocabulary a.dst --token-map a.
same trace import --tokenizer b
same trace import --tokenizer t
same plot heatmap t.tsv -o x --terminal s
same sim a.dst --threads ""
same serve --speculation ""
same theory accept --draft p
same theory accept --top
same theory accept ""
same sim a.dst ""
same sim -- -
same plot ""
same plot -o x ""
same plot heatmap t
same report t.tsv t
same list ""
same merge t
same trace import in
same advise in
same validate --published pe
same validate --published pearl e
if [ -x "${DRAFTSCOPE%/*}/draftscope-live" ]; then
    same live ""
    same live run --shape llama-2
    same live run --device ""
    same live run --target a
    same live run --target m
    same live run --draft m.g
fi

# bash breaks words at "="; the two others complete the whole word.
equals() { # WANTED line...
    printf '%s\n' "$1" | sed '/^$/d' >wanted
    shift
    for shell in fish zsh; do
        command -v $shell >/dev/null || continue
        offered $shell "$@"
        sed 's/\t.*//' $shell.out >got
        if cmp -s wanted got; then ok; else not_ok "$shell: draftscope $*|: $(cat got)"; fi
    done
}
equals --method=llma sweep a.dst --method=ll
equals --draft=p.npy theory accept --draft=p.n
equals --method=llma,pearl tune --method=llma,pe
equals "" sim a.dst --json=

# Every command, option and method has a description, those with long placeholders, too.
for shell in fish zsh; do
    command -v $shell >/dev/null || continue
    for line in "" "sim a.dst --method llma --" "sim --method "; do
        set -- $line
        [ -n "$line" ] && [ "${line% }" = "$line" ] || set -- "$@" ""
        offered $shell "$@"
        if [ "$(wc -l <$shell.out)" -gt 12 ] && ! grep -v "	[A-Za-z(]." $shell.out >bare; then
            ok
        else
            not_ok "$shell: without a description: draftscope $line|: $(cat bare)"
        fi
    done
    offered $shell sim --cos
    if grep -q '^--cost	cost model of forward passes' $shell.out; then ok; else not_ok "$shell: --cost"; fi
done

# A program that is not there offers nothing and prints nothing.
DRAFTSCOPE=$work/nothing
for shell in fish zsh; do
    command -v $shell >/dev/null || continue
    for line in "sim --method" "plot heatmap"; do
        # shellcheck disable=SC2086
        offered $shell $line nothing-of-this-name
        if [ ! -s $shell.out ]; then ok; else not_ok "$shell, no program: $(cat $shell.out)"; fi
    done
done
DRAFTSCOPE=$draftscope

# A terminal of zsh with its own completion system: what is typed is completed.
if command -v zsh >/dev/null; then
    mkdir functions bin
    cp "$top/cli/_draftscope" functions/
    cat >bin/draftscope <<'END'
#!/bin/sh
case "$*" in
*--help | list*) exec "$DRAFTSCOPE" "$@" ;;
*) echo "[$*]" ;;
esac
END
    chmod +x bin/draftscope
    PATH=$work/bin:$PATH
    cat >terminal.zsh <<'END'
zmodload zsh/zpty || exit 0
zpty z 'TERM=dumb zsh -f -i'
zpty -w z "PROMPT=; fpath=(\$work/functions \$fpath); autoload -Uz compinit; compinit -u -d \$work/dump"
# The terminal echoes what is typed before zsh reads it: only what zsh prints has these words.
zpty -w z 'print -r -- REA""DY'
zpty -r -m z text '*READY*'
zpty -w z $'draftscope sim a.d\t --method suff\t--prog\tjs\t'
zpty -w z 'print -r -- DO""NE'
zpty -r -m z text '*DONE*'
print -r -- "$text"
zpty -d z
END
    export work
    timeout 60 zsh -f terminal.zsh >typed 2>&1 </dev/null
    if grep -qF '[sim a.dst --method suffix --progress json]' typed; then ok; else not_ok "terminal: $(cat typed)"; fi
fi
summary
