# SPDX-License-Identifier: Apache-2.0
# Makes a page of the site from the body that cmark-gfm or mandoc wrote. Variables:
#   here    path of this page on the site, as in docs/metrics.html
#   top     the way from there to the root of the site, as in ../
#   title   its title
#   folder  folder of the source files where its relative links start, as in docs/
#   man     names of the manual pages, as draftscope-sim.1, each between blanks
#   manual  1 when mandoc wrote the body
#   nav     file with the links to the pages, from the root of the site
#   wanted  file to which the paths that the page links to are written

# The anchor that GitHub gives a heading: lower case, blanks as hyphens, no punctuation.
function anchor(text, id) {
    gsub(/<[^>]*>/, "", text)
    gsub(/&[a-z]+;/, "", text)
    text = tolower(text)
    gsub(/[^a-z0-9_ -]/, "", text)
    gsub(/ /, "-", text)
    id = text
    while (id in used) id = text "-" (++again[text])
    used[id] = 1
    return id
}

# "docs/../tests/x.md" without its "..".
function normal(path, parts, n, i, out, depth) {
    n = split(path, parts, "/")
    depth = 0
    for (i = 1; i <= n; i++) {
        if (parts[i] == "." || (parts[i] == "" && i < n)) continue
        if (parts[i] == ".." && depth > 0) depth--
        else out[++depth] = parts[i]
    }
    path = ""
    for (i = 1; i <= depth; i++) path = path (i > 1 ? "/" : "") out[i]
    return path
}

# Where a relative link of the sources leads on the site.
function target(url, hash, file) {
    if (url ~ /^(https?:|mailto:|#)/) return url
    hash = ""
    if (match(url, /#/)) {
        hash = substr(url, RSTART)
        url = substr(url, 1, RSTART - 1)
    }
    file = normal(folder url)
    if (file ~ /\.md$/) sub(/\.md$/, ".html", file)
    else if (file !~ /\.[a-z]+$/) file = file "/index.html"
    print file > wanted
    return top file hash
}

function relink(line, out, url) {
    out = ""
    while (match(line, /(href|src)="[^"]*"/)) {
        url = substr(line, RSTART, RLENGTH)
        out = out substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        match(url, /="/)
        out = out substr(url, 1, RSTART + 1)
        out = out target(substr(url, RSTART + 2, length(url) - RSTART - 2)) "\""
    }
    return out line
}

# Long names in the cells of a table may be broken after an underscore.
function breakable(line, out, code) {
    out = ""
    while (match(line, /<code>[^<]*<\/code>/)) {
        code = substr(line, RSTART, RLENGTH)
        gsub(/_/, "_<wbr>", code)
        out = out substr(line, 1, RSTART - 1) code
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}

# The name of an option stays on one line: browsers break lines after its hyphens.
function whole_options(line, out, code, end) {
    gsub(/<b>--[a-z][a-z-]*<\/b>/, "\001&", line)
    gsub(/\001<b>/, "<b class=\"option\">", line)
    out = ""
    while ((end = index(line, "</code>")) && match(line, /<code>/)) {
        code = substr(line, RSTART, end - RSTART)
        gsub(/--[a-z][a-z-]*/, "<span class=\"option\">&</span>", code)
        out = out substr(line, 1, RSTART - 1) code "</code>"
        line = substr(line, end + 7)
    }
    return out line
}

# Names of manual pages in bold, as in <b>draftscope-sim</b>(1), become links.
function link_manual(line, out, name, section, file) {
    out = ""
    while (match(line, /<b>draftscope[a-z-]*<\/b>\([157]\)/)) {
        name = substr(line, RSTART + 3, RLENGTH - 10)
        section = substr(line, RSTART + RLENGTH - 2, 1)
        file = name "." section
        out = out substr(line, 1, RSTART - 1)
        if (index(man, " " file " "))
            out = out "<a href=\"" top "man/" file ".html\">" name "(" section ")</a>"
        else
            out = out substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}

BEGIN {
    print "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
    print "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    print "<title>" title "</title>"
    print "<link rel=\"stylesheet\" href=\"" top "style.css\">\n</head>\n<body>"
    print "<a class=\"pages\" href=\"#pages\">All pages</a>"
    print "<nav id=\"pages\" aria-label=\"Pages\">"
    while ((getline line < nav) > 0) {
        gsub(/href="/, "href=\"" top, line)
        if (index(line, "\"" top here "\"")) sub(/<a /, "<a aria-current=\"page\" ", line)
        print line
    }
    print "</nav>\n<main>"
    if (manual) print "<h1 class=\"page\">" title "</h1>"
}

{
    if (!manual && match($0, /^<h[1-6]>/)) {
        level = substr($0, 3, 1)
        text = substr($0, 5)
        sub(/<\/h[1-6]>.*/, "", text)
        $0 = "<h" level " id=\"" anchor(text) "\">" substr($0, 5)
    }
    if (!manual && sub(/<table/, "<div class=\"wide\"><table")) wide = 1
    if (manual) $0 = link_manual($0)
    else {
        $0 = relink($0)
        gsub(/\.md<\/a>/, "</a>")
    }
    if (wide) $0 = breakable($0)
    if (wide && sub(/<\/table>/, "</table></div>")) wide = 0
    if (/<pre/) verbatim = 1
    if (!verbatim) $0 = whole_options($0)
    if (/<\/pre>/) verbatim = 0
    print
}

END { print "</main>\n</body>\n</html>" }
