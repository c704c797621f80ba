/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/svg.h"

#include "journal/base/json.h"
#include "tools/cli/must.h"

#include <string.h>

/* The light colours are written first, and the dark ones after them in a media query, because some
 * renderers other than browsers support neither variables nor media queries. */
static const char style[] =
    "<style>\n"
    "svg{font:12px system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}\n"
    ".paper{fill:#fff}text{fill:#1f2328}\n"
    ".title{font-size:14px;font-weight:600}.name{fill:#59636e}.axis{fill:#59636e;font-size:11px}\n"
    ".bar{fill:#2a6fdb}.part{fill:#9dc1f5}.share{fill:#e4eefc}.failed{fill:#cf222e}\n"
    ".open{fill:none;stroke:#2a6fdb}.frame{fill:#f3f5f8}\n"
    ".grid{stroke:#dfe4ea}.base{stroke:#8c959f}.cut{stroke:#8c959f;stroke-dasharray:3 3}\n"
    "@media (prefers-color-scheme:dark){\n"
    ".paper{fill:#0d1117}text{fill:#e6edf3}.name,.axis{fill:#9198a1}\n"
    ".bar{fill:#4c8df6}.part{fill:#1f4685}.share{fill:#15284a}.failed{fill:#f85149}\n"
    ".open{stroke:#4c8df6}.frame{fill:#151b23}\n"
    ".grid{stroke:#262c36}.base{stroke:#656c76}.cut{stroke:#656c76}\n"
    "}\n"
    "</style>\n";

/* Return the number of bytes of the character at text; 0 if it is not well-formed UTF-8, or not
 * allowed in XML. */
static size_t character(const unsigned char *text, size_t len)
{
    if (text[0] < 0x80)
        return text[0] >= 0x20 && text[0] != 0x7f ? 1 : 0;
    size_t bytes = annal__json_utf8_length(text, text + len);
    bool c1 = bytes == 2 && text[0] == 0xc2 && text[1] < 0xa0;
    bool none =
        bytes == 3 && text[0] == 0xef && text[1] == 0xbf && text[2] >= 0xbe; /* U+FFFE, U+FFFF */
    return c1 || none ? 0 : bytes;
}

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* Append text with escapes, for use between tags and in attributes. */
static void escape(struct buf *out, annal_slice text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = character((const unsigned char *)text.ptr + i, text.len - i);
        const char *as = len == 1 ? entity(text.ptr[i]) : NULL;
        if (len == 0)
            must_printf(out, "?");
        else if (as != NULL)
            must_printf(out, "%s", as);
        else
            must_printf(out, "%.*s", (int)len, text.ptr + i);
        i += len == 0 ? 1 : len;
        while (len == 0 && i < text.len && ((unsigned char)text.ptr[i] & 0xc0) == 0x80)
            i++; /* the next byte of this character */
    }
}

void svg_begin(struct buf *out, int width, int height, annal_slice title)
{
    must_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    must_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
                width, height, width, height);
    escape(out, title);
    must_printf(out, "</title>\n");
    text_repeat(out, style, 1);
    must_printf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

void svg_end(struct buf *out)
{
    must_printf(out, "</svg>\n");
}

void svg_text(struct buf *out, double x, double y, enum align align, const char *class,
              annal_slice text)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    must_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s", x, y, anchors[align]);
    if (class[0] != '\0')
        must_printf(out, " class=\"%s\"", class);
    must_printf(out, ">");
    escape(out, text);
    must_printf(out, "</text>\n");
}

static void end_shape(struct buf *out, const char *tag, annal_slice tooltip)
{
    if (tooltip.len == 0) {
        must_printf(out, "/>\n");
        return;
    }
    must_printf(out, "><title>");
    escape(out, tooltip);
    must_printf(out, "</title></%s>\n", tag);
}

void svg_rect(struct buf *out, double x, double y, double width, double height, const char *class,
              annal_slice tooltip)
{
    must_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"", x,
                y, width, height, class);
    end_shape(out, "rect", tooltip);
}

double svg_height(int64_t value, int64_t most, double full)
{
    if (value <= 0)
        return 0;
    double height = (double)value / (double)most * full;
    return height < 1 ? 1 : height;
}

void svg_line(struct buf *out, double x1, double y1, double x2, double y2, const char *class,
              annal_slice tooltip)
{
    must_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"", x1, y1,
                x2, y2, class);
    end_shape(out, "line", tooltip);
}
