#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The report page of the demo: its structure, size and escaping; and in Chromium, where there is one,
# its script, its colors in dark mode, its figures at the pointer and its print. The browser is a tool
# of development only.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
LC_ALL=C
export LC_ALL
command -v gnuplot >/dev/null || {
    echo "no gnuplot: a report has figures"
    exit 77
}
check "the demo runs" sh "$top/contrib/demo.sh" "$draftscope" "$top" "$work/demo"
page=demo/report.html advice=demo/advice.html

# --- without a browser ---------------------------------------------------------------------------

count() { # file, text: the number of occurrences
    grep -oF -e "$2" "$1" | wc -l
}
equal() { # description, found, expected
    if [ "$2" = "$3" ]; then ok; else not_ok "$1: $2, not $3"; fi
}
before() { # file, text, other text: the first stands before the second
    first=$(grep -nF -e "$2" "$1" | head -n 1 | cut -d: -f1)
    second=$(grep -nF -e "$3" "$1" | head -n 1 | cut -d: -f1)
    if [ "${first:-999999}" -lt "${second:-0}" ]; then ok; else not_ok "$1: '$2' is not before '$3'"; fi
}

size=$(wc -c <$page)
if [ "$size" -lt 1000000 ]; then ok; else not_ok "the demo's page has $size bytes, not under 1 MB"; fi
for file in $page $advice; do
    equal "$file: scripts" "$(count $file '<script')" 1
    equal "$file: a policy" "$(count $file "default-src 'none'")" 1
    equal "$file: addresses elsewhere" "$(grep -cE 'https?://|src=|@import|url\(' $file)" 0
    equal "$file: figures that are drawn twice" "$(count $file '<svg')" "$(count $file '<figure ')"
    before $file '<nav ' '<section id="summary">'
    before $file '<figure id="figure-1"' '<section id="workload">'
    before $file '<section id="columns">' '<section id="provenance">'
    grep -o 'href="#[a-z][a-z0-9-]*"' $file | cut -d'"' -f2 | tr -d '#' | sort -u | while read -r id; do
        grep -qF "id=\"$id\"" $file || echo "$id"
    done >nowhere
    equal "$file: links that lead nowhere" "$(cat nowhere)" ""
done
grep '^# verdict_batch_4: ' demo/advice.tsv | sed 's/.*(95 %: \([0-9.]*\) to \([0-9.]*\)).*/\1 \2/' >interval
range=$(awk '{ printf "%.2f to %.2f", $1, $2 }' interval)
before $advice "<td class=\"text\">batch size 4</td>" '<section id="workload">'
before $advice "<td class=\"text\">$range</td>" '<section id="workload">'
before $advice '<pre># best of all methods' '<section id="workload">'

# Text of users is text, in tables, figures and what the script reads.
evil='</script><img src=x onerror=alert(1)>"'"'"'&'
{
    printf 'method\tnum_speculative_tokens\tblock_efficiency\tspeedup\n'
    for k in 1 2 3; do
        printf '%s\t%d\t%d\t1.%d\n' "$evil" $k $k $k other $k $k $k
    done
} >evil.tsv
good report evil.tsv -o evil.html --title "$evil" --force
equal "tags in text" "$(count evil.html '<img')" 0
equal "ends of the script" "$(count evil.html '</script>')" 1
if grep -qF 'data-marks="=&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;' evil.html; then
    ok
else
    not_ok "the values for the script are not the escaped names"
fi

# A report never ranks across traces or cost models.
for name in a b; do
    for cost in linear:1 unit; do
        {
            printf '# trace_hash: %s\n# cost: %s\n' $name $cost
            printf 'method\tnum_speculative_tokens\tblock_efficiency\tspeedup\n'
            printf 'ngram\t2\t1.5\t1.2\nngram\t4\t1.7\t1.4\n'
        } >$name-$cost.tsv
    done
done
good report a-linear:1.tsv a-unit.tsv b-linear:1.tsv -o ranks.html
equal "a recommendation across results" "$(count ranks.html 'No configuration is recommended')" 1
equal "figures across results" "$(count ranks.html ' together</h3>')" 0
equal "speedups at unit costs" "$(count ranks.html '1.40×</td>')" 2

# --- in a browser --------------------------------------------------------------------------------

if ! command -v chromium >/dev/null; then
    skip "the page in a browser" "there is no chromium"
    summary
    exit
fi
browse() { # arguments...
    timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$work/profile" "$@"
}

# The page as it is: its policy lets its script run, and nothing is reported to the console.
browse --enable-logging=stderr --dump-dom "file://$work/$page" >dom 2>log
equal "messages on the console" "$(grep -c 'CONSOLE' log)" 0
if [ "$(count dom '<button type="button">')" -gt 20 ]; then ok; else not_ok "tables cannot be sorted"; fi

# A copy without the policy, with a script that does what a reader does and prints what it sees.
cat >reader.js <<'END'
addEventListener('load', () => {
  const said = [];
  const say = (name, text) => said.push(name + ': ' + text);
  const table = [...document.querySelectorAll('details table')][0];
  table.closest('details').open = true;
  const texts = c => [...table.tBodies[0].rows].map(r => parseFloat(r.cells[c].textContent));
  const heads = [...table.tHead.rows[0].cells];
  const speedup = heads.findIndex(h => h.textContent === 'speedup');
  const rises = v => v.every((x, i) => !i || v[i - 1] <= x);
  say('sorted before', rises(texts(speedup)));
  heads[speedup].querySelector('button').click();
  say('rises', rises(texts(speedup)) + ' ' + heads[speedup].getAttribute('aria-sort'));
  heads[speedup].querySelector('button').click();
  say('falls', rises(texts(speedup).reverse()) + ' ' + heads[speedup].getAttribute('aria-sort'));
  const input = document.querySelector('details input');
  const shown = () => [...table.tBodies[0].rows].filter(r => !r.hidden).length;
  input.value = table.tBodies[0].rows[0].cells[speedup].textContent;
  input.dispatchEvent(new Event('input'));
  say('filtered', shown() > 0 && shown() < table.tBodies[0].rows.length);
  input.value = '';
  input.dispatchEvent(new Event('input'));
  say('unfiltered', shown() === table.tBodies[0].rows.length);
  const svg = document.querySelector('#figure-1 svg'), box = svg.getBoundingClientRect();
  const mark = document.querySelector('#figure-1').dataset.marks.split('\n')[3].split(' ');
  const scale = box.width / svg.viewBox.baseVal.width;
  svg.dispatchEvent(new PointerEvent('pointermove',
    {clientX: box.left + mark[0] * scale, clientY: box.top + mark[1] * scale}));
  const tip = document.querySelector('#figure-1 .tip');
  say('value', !tip.hidden && tip.textContent.endsWith(mark.slice(2).join(' ')));
  svg.dispatchEvent(new Event('pointerleave'));
  say('left', tip.hidden);
  svg.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
  say('key', !tip.hidden);
  say('copy buttons', document.querySelectorAll('#provenance .copy').length > 5);
  const first = document.querySelector('#figure-1').getBoundingClientRect();
  say('first screen', first.top > 0 && first.top < 200 && scrollY === 0);
  say('page', getComputedStyle(document.body).backgroundColor);
  say('ink', getComputedStyle(svg).color);
  say('wide', document.documentElement.scrollWidth <= innerWidth);
  const t = performance.getEntriesByType('navigation')[0];
  say('ready after ms', Math.round(t.domContentLoadedEventEnd));
  document.body.textContent = said.join('\n');
});
END
sed 's/Content-Security-Policy/X-Policy/' $page | sed '/^<\/body>/,$d' >read.html
{
    echo '<script>'
    cat reader.js
    printf '</script>\n</body>\n</html>\n'
} >>read.html
expect() { # line...
    for line; do
        if grep -qF -e "$line" dom; then ok; else not_ok "a reader does not find '$line'"; fi
    done
}
browse --dump-dom "file://$work/read.html" --window-size=1400,900 >dom 2>/dev/null
expect 'sorted before: false' 'rises: true ascending' 'falls: true descending' 'filtered: true' \
    'unfiltered: true' 'value: true' 'left: true' 'key: true' 'copy buttons: true' \
    'first screen: true' 'page: rgb(245, 245, 243)' 'ink: rgb(26, 26, 26)' 'wide: true'
grep 'ready after ms' dom | sed 's/^/# /'
browse --blink-settings=preferredColorScheme=0 --dump-dom "file://$work/read.html" >dom 2>/dev/null
expect 'page: rgb(20, 22, 26)' 'ink: rgb(232, 232, 230)'

# On paper no word of a heading is broken, and every column of a table is there.
browse --print-to-pdf="$work/page.pdf" "file://$work/$page" >/dev/null 2>&1
if [ -s page.pdf ]; then ok; else not_ok "the page cannot be printed"; fi
if command -v pdftotext >/dev/null; then
    pdftotext -raw page.pdf page.txt
    # upright headings are read in any order, but letter by letter only if they were broken
    for word in mean_acceptance_length draft_acceptance_rate block_efficiency optimistically \
        num_accepted_tokens target_calls; do
        if grep -qF $word page.txt; then ok; else not_ok "on paper '$word' is broken or cut"; fi
    done
else
    skip "words on paper" "there is no pdftotext"
fi
summary
