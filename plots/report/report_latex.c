// SPDX-License-Identifier: Apache-2.0
// The LaTeX page type, for plain pdflatex: article with graphicx and booktabs, and a PDF per
// figure. All text of tables is escaped, so none of it reaches LaTeX as a command.
#include "plots/report/report_page.h"

#include <string.h>

enum {
    ROWS = 40,  // rows of a table that fit on a page
    CELL = 48,  // characters of a cell
    BREAK = 16, // characters after which a word may break (hashes, commands)
};

// --- text ----------------------------------------------------------------------------------------

static const struct {
    uint32_t code;
    const char *latex;
} symbol[] = {
    {'\\', "\\textbackslash{}"},
    {'{', "\\{"},
    {'}', "\\}"},
    {'$', "\\$"},
    {'&', "\\&"},
    {'#', "\\#"},
    {'%', "\\%"},
    {'_', "\\_"},
    {'^', "\\textasciicircum{}"},
    {'~', "\\textasciitilde{}"},
    {'<', "$<$"},
    {'>', "$>$"},
    {'|', "$|$"},
    {'"', "''"},
    {'\'', "'{}"},
    {'`', "\\`{}"},
    {'-', "-{}"},
    {'*', "{*}"},
    {'[', "{[}"},
    {']', "{]}"},
    {0xa0, "~"},
    {0xa7, "\\S{}"},
    {0xb0, "$^\\circ$"},
    {0xb1, "$\\pm$"},
    {0xb2, "$^2$"},
    {0xb5, "$\\mu$"},
    {0xb7, "$\\cdot$"},
    {0xd7, "$\\times$"},
    {0xdf, "\\ss{}"},
    {0xc6, "\\AE{}"},
    {0xe6, "\\ae{}"},
    {0xd8, "\\O{}"},
    {0xf8, "\\o{}"},
    {0x3b1, "$\\alpha$"},
    {0x3b3, "$\\gamma$"},
    {0x3bc, "$\\mu$"},
    {0x2013, "--"},
    {0x2014, "---"},
    {0x2018, "`{}"},
    {0x2019, "'{}"},
    {0x201c, "``"},
    {0x201d, "''"},
    {0x2026, "\\ldots{}"},
    {0x2212, "$-$"},
    {0x2248, "$\\approx$"},
    {0x2264, "$\\le$"},
    {0x2265, "$\\ge$"},
};

// Accent and base of the letters U+00C0 .. U+00FF, two characters each; blanks mark other
// characters.
static const char accents[] =
    "`A'A^A~A\"A    cC`E'E^E\"E`I'I^I\"I  ~N`O'O^O~O\"O    `U'U^U\"U'Y    "
    "`a'a^a~a\"a    cc`e'e^e\"e`i'i^i\"i  ~n`o'o^o~o\"o    `u'u^u\"u'y  \"y";

static void put_code(dsc_writer *w, uint32_t code)
{
    for (size_t i = 0; i < sizeof symbol / sizeof *symbol; i++)
        if (symbol[i].code == code) {
            dsc_put(w, "%s", symbol[i].latex);
            return;
        }
    if (code < 0x80) {
        const char c = (char)code;
        dsc_put_bytes(w, &c, 1);
    } else if (code >= 0xc0 && code <= 0xff && accents[2 * (code - 0xc0)] != ' ') {
        const char *a = accents + 2 * (code - 0xc0);
        dsc_put(w, "\\%c{%c}", a[0], a[1]);
    } else {
        dsc_put(w, "{[}U+%04X{]}", code); // pdflatex has no such letter
    }
}

// The code of the next character of *text, 0 at its end.
static uint32_t next_code(const char **text)
{
    size_t length;
    uint32_t code = 0;
    if (**text)
        dsc_next_character(text, &length, &code);
    return code;
}

static void put_text(dsc_writer *w, const char *text)
{
    size_t unbroken = 0;
    for (uint32_t code = next_code(&text), next; code; code = next) {
        next = next_code(&text);
        put_code(w, code);
        unbroken = code == ' ' ? 0 : unbroken + 1;
        bool joint = code < 0x80 && strchr("/=,;:_", (int)code) && unbroken > 3;
        if ((joint || unbroken >= BREAK) && next && next != ' ') {
            dsc_put(w, "\\allowbreak{}");
            unbroken = 0;
        }
    }
}

// --- pieces --------------------------------------------------------------------------------------

static void put_begin(dsc_writer *w, const char *title)
{
    dsc_put(w, "\\documentclass[10pt]{article}\n"
               "\\usepackage{graphicx}\n\\usepackage{booktabs}\n"
               "\\setlength{\\textwidth}{6.5in}\\setlength{\\oddsidemargin}{0in}\n"
               "\\setlength{\\textheight}{9in}\\setlength{\\topmargin}{-0.5in}\n"
               "\\setlength{\\parindent}{0pt}\\setlength{\\parskip}{4pt plus 2pt}\n"
               "\\setlength{\\emergencystretch}{3em}\\setlength{\\tabcolsep}{4pt}\n"
               "\\newsavebox{\\dscbox}\n"
               "\\newcommand{\\dscfit}[1]{\\sbox{\\dscbox}{#1}\\ifdim\\wd\\dscbox>\\linewidth\n"
               "  \\resizebox{\\linewidth}{!}{\\usebox{\\dscbox}}\\else\\usebox{\\dscbox}\\fi}\n"
               "\\raggedbottom\n\\begin{document}\n\\section*{\\LARGE ");
    put_text(w, title);
    dsc_put(w, "}\n");
}

static void put_end(dsc_writer *w)
{
    dsc_put(w, "\\end{document}\n");
}

static void put_merit(dsc_writer *w, const char *label, const char *value)
{
    dsc_put(w, "\\textbf{");
    put_text(w, value);
    dsc_put(w, "} ");
    put_text(w, label);
    dsc_put(w, "\\quad ");
}

static void put_cell(dsc_page *p, const dsc_cell *cell)
{
    char line[8 * CELL];
    size_t cursor = 0;
    dsc_writer *plain = dsc_say_begin(p);
    dsc_put_reading(plain, cell);
    p->w.rc = plain->rc;
    if (p->w.rc || !plain->to->length ||
        !dsc_text_wrap(plain->to->data, &cursor, CELL, line, sizeof line))
        return;
    put_text(&p->w, line);
    if (plain->to->data[cursor])
        dsc_put(&p->w, "\\ldots{}");
}

// Whether a column is shown; lists are too wide.
static bool is_shown(const dsc_table *t, size_t column)
{
    return t->column[column].type != DSC_CELL_LIST;
}

static void put_table(dsc_page *p, const dsc_page_table *x)
{
    dsc_writer *w = &p->w;
    const dsc_table *t = x->table;
    size_t rows = x->rows < ROWS ? x->rows : ROWS, columns = 0;
    for (size_t c = 0; c < x->columns; c++)
        columns += is_shown(t, x->column[c]);
    if (!columns)
        return;
    dsc_put(w, "\n\\begin{minipage}{\\linewidth}\\centering\\small ");
    put_text(w, x->caption);
    if (rows < x->rows)
        dsc_put(w, " (first %zu)", rows);
    dsc_put(w, "\\\\[2pt]\n\\dscfit{\\footnotesize\\begin{tabular}{");
    for (size_t c = 0; c < x->columns; c++)
        if (is_shown(t, x->column[c]))
            dsc_put(w, t->column[x->column[c]].type == DSC_CELL_TEXT ? "l" : "r");
    dsc_put(w, "}\n\\toprule\n");
    for (size_t r = 0; r <= rows; r++) { // 0 is the header
        const char *separator = "";
        for (size_t c = 0; c < x->columns; c++) {
            if (!is_shown(t, x->column[c]))
                continue;
            dsc_put(w, "%s", separator);
            separator = " & ";
            if (r)
                put_cell(p, dsc_table_at(t, x->row[r - 1], x->column[c]));
            else
                put_text(w, t->column[x->column[c]].name);
        }
        dsc_put(w, " \\\\\n%s", r ? "" : "\\midrule\n");
    }
    dsc_put(w, "\\bottomrule\n\\end{tabular}}\n\\end{minipage}\\par\\medskip\n");
}

static void put_figure(dsc_page *p, dsc_drawing *d)
{
    if (!p->w.rc)
        p->w.rc = dsc_resize(&p->picture, &p->pictures, p->figures, p->w.err);
    if (p->w.rc) {
        p->figures--; // it has no picture
        return;
    }
    p->picture[p->figures - 1] = d->picture;
    d->picture = (dsc_buffer){0};
    dsc_put(&p->w,
            "\n\\begin{minipage}{\\linewidth}\\centering\n\\includegraphics[width=0.82\\linewidth,"
            "height=0.75\\textheight,keepaspectratio]{");
    dsc_put_picture_name(&p->w, p, p->figures);
    dsc_put(&p->w, "}\n\n\\raggedright\\small Figure %zu. ", p->figures);
    put_text(&p->w, d->finding.data);
    dsc_put(&p->w, "\n\\end{minipage}\\par\\bigskip\n");
}

const dsc_page_type dsc_page_latex = {
    .open =
        {
            [DSC_CHAPTER] = "\n\\section*{",
            [DSC_HEADING] = "\n\\subsection*{",
            [DSC_SUBHEADING] = "\n\\subsubsection*{",
            [DSC_PARAGRAPH] = "\n",
            [DSC_SOFT] = "\n{\\small ",
            [DSC_STRONG] = "\\textbf{",
            [DSC_BOX] = "\n\\begin{quote}\n",
            [DSC_LIST] = "\n\\begin{itemize}\\setlength{\\itemsep}{0pt}\n",
            [DSC_ITEM] = "\\item ",
            [DSC_PAIRS] =
                "\n{\\small\\raggedright\\begin{description}\\setlength{\\itemsep}{0pt}\n",
            [DSC_KEY] = "\\item[{",
            [DSC_VALUE] = "",
            [DSC_CODE] = "\\texttt{",
            [DSC_MERITS] = "\n",
            [DSC_FIRST] = "",
            [DSC_PART] = "",
            [DSC_LINES] = "\n{\\small\\raggedright\\ttfamily ",
            [DSC_FIGURES] = "",
        },
    .close =
        {
            [DSC_CHAPTER] = "}\n",
            [DSC_HEADING] = "}\n",
            [DSC_SUBHEADING] = "}\n",
            [DSC_PARAGRAPH] = "\n\n",
            [DSC_SOFT] = "\\par}\n\n",
            [DSC_STRONG] = "}",
            [DSC_BOX] = "\\end{quote}\n",
            [DSC_LIST] = "\\end{itemize}\n",
            [DSC_ITEM] = "\n",
            [DSC_PAIRS] = "\\end{description}}\n",
            [DSC_KEY] = "}] ",
            [DSC_VALUE] = "\n",
            [DSC_CODE] = "}\n",
            [DSC_MERITS] = "\n\n",
            [DSC_FIRST] = "",
            [DSC_PART] = "",
            [DSC_LINES] = "}\n",
            [DSC_FIGURES] = "",
        },
    .line_end = "\\par\n",
    .terminal = "pdf",
    .width = 720, // makes text 7 points high
    .begin = put_begin,
    .end = put_end,
    .text = put_text,
    .merit = put_merit,
    .table = put_table,
    .figure = put_figure,
};
