#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The words that users and readers meet are the field's. Private words of earlier versions, British
# spellings and fragments of sentences may not return to the documentation, the manual pages, the
# headers, or any text in the sources (help, column descriptions, errors, figures, the report).
#
#   words.sh           checks the repository
#   words.sh FILE...   checks these files, as documentation
set -eu
top=$(cd "${top_srcdir:-.}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A pattern (an extended regular expression of whole words, blanks for any white space, lower case)
# and what to write in its place.
cat >"$work/words" <<'END'
laws?	distribution, probabilities
hazards?	conditional acceptance rate
likeliest|likelier	most probable, argmax
likewise	the whole statement again
end tokens?	EOS
keys and values	KV cache
learnt	trained on
so many	number of
told apart|told_apart|tells? apart	significant, significantly different
stand-ins?|stand_in	placeholder
foresees?|foresight|foreseen	prefetch
unheard	pending error
hears?|heard	receive, return
multi-round rejection	SpecInfer
what to deploy	Recommendation
what speaks against it	Caveats
what is uncertain	Limitations
the same of	the whole definition again
upper end of it|lower end of it	95 % CI of ..., upper bound
(models?|targets?|drafts?|drafters?|traces?|files?|tables?|rows?|pages?|columns?) (says?|said|knows?|knew|asks?|asked|tells?|told)	contains, needs, predicts, returns, lacks
(is|are|was|were) (told|asked) (of|by|about|what|how)	is given, receives
as it (says|said)	a statement of the fact
were acceptance i\.i\.d\.?	i.i.d. acceptance (reference)
methods at their best	Best configuration per method
when the models are at work	Draft/target timeline
(normal|initial|optim|summar|minim|maxim|serial|recogn|general|special|organ|real|util|quant|token|parallel|synchron)is(e|ed|es|ing|ation|er|ers)	American spelling: -ize
behaviours?|colours?|labell(ed|ing)|modell(ed|ing)|favours?|centred?|neighbours?|travell(ed|ing)	American spelling
--hazard|plot hazard	--acceptance-by-position
--over	a range for the option itself
told of|tells of|says nothing of	does not constrain
behind	after
beside	in addition to, next to
END

# A manual page writes a minus as \- and changes fonts by \fB; what counts is what a reader sees.
# "behind" before a fill style is the name of a layer of gnuplot.
find_words() {
    sed -e 's/ behind \(fs\|set\|"\)/ \1/g' -e 's/"behind fs/"fs/' -e 's/\\f[BIRP]//g' -e 's/\\-/-/g' \
        -e 's/\\&//g' "$1" | awk -F '\t' '
        NR == FNR {
            pattern[++n] = "(^|[^a-z_-])(" $1 ")([^a-z_]|$)"; instead[n] = $2
            all = all (n > 1 ? "|" : "") "(" $1 ")"
            next
        }
        {
            at = index($0, ": "); text = tolower(substr($0, at + 2))
            if (text !~ all)
                next
            for (i = 1; i <= n; i++)
                if (match(text, pattern[i])) {
                    word = substr(text, RSTART, RLENGTH); gsub(/^[^a-z-]+|[^a-z]+$/, "", word)
                    print substr($0, 1, at) " \"" word "\"; write: " instead[i]
                }
        }' "$work/words" -
}

# The check finds what it is there for.
printf 'a: %s\n' 'the Laws of two rows' 'it is \fBlikewise\fR so' 'normalised' 'the draft says' \
    'in a table_law' 'flaws, lawn, behindhand and unsaid things' >"$work/sample"
[ "$(find_words "$work/sample" | grep -c .)" = 4 ] || {
    echo "not ok - the check itself"
    find_words "$work/sample"
    exit 1
}

# "FILE:LINE: TEXT" of everything that is read.
number() {
    xargs awk '{ print FILENAME ":" FNR ": " $0 }'
}
if [ $# -gt 0 ]; then
    printf '%s\n' "$@" | number >"$work/texts"
else
    cd "$top"
    {
        find README.md ARCHITECTURE.md CONTRIBUTING.md NEWS.md SECURITY.md docs cli/man contrib tests \
            theory traces -name '*.md' -o -name '*.[157]' | number
        find base theory traces sim live plots cli examples \
            -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | number
        find contrib tests -name '*.sh' ! -name words.sh | number
    } >"$work/texts"
fi
find_words "$work/texts" >"$work/found"
if [ -s "$work/found" ]; then
    echo "not ok - words that nobody in the field uses: $(wc -l <"$work/found")"
    cat "$work/found"
    exit 1
fi
echo "ok - $(wc -l <"$work/texts") lines, $(wc -l <"$work/words") rules"
[ $# = 0 ] || exit 0

# Every source file opens with what it computes or does.
find base theory traces sim live plots cli examples tests -name '*.c' -o -name '*.cu' |
    while read -r file; do
        sed -n 2p "$file" | grep -qE '^(//|/\*)' || echo "$file"
    done >"$work/bare"
if [ -s "$work/bare" ]; then
    echo "not ok - files without a head comment: $(wc -l <"$work/bare")"
    cat "$work/bare"
    exit 1
fi
echo "ok - every source file opens with a comment"
