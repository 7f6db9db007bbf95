// SPDX-License-Identifier: Apache-2.0
// UTF-8 (Unicode 15) and the character classes of Rust that the HF library uses.
#include "traces/tokenizer/tokenizer_internal.h"

#include <utf8proc.h>

// The maximal subpart is the longest beginning of a well-formed sequence (Unicode 15, section 3.9,
// U+FFFD substitution).
size_t dsc_tok_utf8_bad(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t need = s[0] < 0xC2 || s[0] > 0xF4 ? 1 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4, i = 1;
    // The range of the second byte excludes overlong forms, surrogates and code points above
    // U+10FFFF.
    unsigned char low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    for (; i < need && i < length && s[i] >= low && s[i] <= high; i++, low = 0x80, high = 0xBF)
        ;
    return i;
}

size_t dsc_tok_utf8_put(char out[4], uint32_t c)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)out);
}

uint32_t dsc_tok_last(const char *text, size_t length)
{
    const char *p = text + length - 1;
    while ((*p & 0xC0) == 0x80)
        p--;
    return dsc_tok_next(&p);
}

bool dsc_tok_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool dsc_tok_is_numeric(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

// P* of the general category, or ASCII punctuation.
bool dsc_tok_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return c > 0x20 && c < 0x7F && !(c >= '0' && c <= '9') &&
               !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    // The HF library's table is that of Unicode 8: it lacks later characters, and has two that were
    // reclassified since.
    static const uint32_t later[][2] = {
        {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},
        {0xC84, 0xC84},     {0x1B4E, 0x1B4F},   {0x1B7D, 0x1B7F},   {0x2E43, 0x2E4F},
        {0x2E52, 0x2E5D},   {0x10D6E, 0x10D6E}, {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59},
        {0x10F86, 0x10F89}, {0x113D4, 0x113D8}, {0x1144B, 0x1144F}, {0x1145A, 0x1145D},
        {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946},
        {0x119E2, 0x119E2}, {0x11A3F, 0x11A46}, {0x11A9A, 0x11AA2}, {0x11B00, 0x11B09},
        {0x11BE1, 0x11BE1}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8},
        {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16D6D, 0x16D6F},
        {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E5FF, 0x1E5FF}, {0x1E95E, 0x1E95F},
    };
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (c >= later[i][0] && c <= later[i][1])
            return false;
    utf8proc_category_t k = category(c);
    return (k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO) || c == 0x166D || c == 0x111C9;
}

bool dsc_tok_is_word(uint32_t c)
{
    utf8proc_category_t k = category(c);
    if (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) // letters, marks, Nd, Nl
        return true;
    // Pc, Join_Control, and the circled Latin letters, the only Alphabetic symbols.
    return k == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D ||
           (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

// Printable bytes stand for themselves; the 68 others, in order, become U+0100 and up
// (bytes_to_unicode of GPT-2's encoder.py).
uint32_t dsc_tok_byte_char(uint8_t byte)
{
    if ((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte <= 0xA0)
        return 0x121u + byte - 0x7F;
    return 0x143;
}

int dsc_tok_char_byte(uint32_t c)
{
    if (c < 0x100)
        return dsc_tok_byte_char((uint8_t)c) == c ? (int)c : -1;
    if (c <= 0x120)
        return (int)c - 0x100;
    if (c <= 0x142)
        return (int)c - 0x121 + 0x7F;
    return c == 0x143 ? 0xAD : -1;
}
