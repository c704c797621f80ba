/* The example of docs/packs.md, word for word. */
#include "tests/packs/fixture.h"

#include <stdlib.h>
#include <string.h>

/* The first block of SQL of the page; free() it. */
static char *example(void)
{
    char *page = file_read(SOURCE_PACKS "/../../docs/packs.md", NULL);
    char *begin = strstr(page, "```sql\n");
    ck_assert_ptr_nonnull(begin);
    begin += strlen("```sql\n");
    char *text = strndup(begin, (size_t)(strstr(begin, "\n```") + 1 - begin));
    free(page);
    return text;
}

START_TEST(the_example_of_the_page_is_a_pack_of_30_lines_at_most)
{
    char *text = example();
    unsigned lines = 0;
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    ck_assert_uint_le(lines, 30);
    annal_pack *pack = NULL;
    ck_ok(annal_pack_parse("docs/packs.md", annal_slice_of(text), &pack, err));
    ck_assert_str_eq(annal_pack_name(pack), "tools_per_day");
    annal_pack_free(pack);
    free(text);
}
END_TEST

START_TEST(the_example_counts_calls_by_tool_and_day)
{
    char *text = example();
    struct memory m;
    memory_init_text(&m, "sess_1", text);
    memory_apply(&m, "tool.called", "{\"tool\":\"Bash\"}");
    memory_apply(&m, "tool.called", "{\"tool\":\"Bash\"}");
    memory_apply(&m, "tool.called", "{}");
    memory_apply(&m, "tool.returned", "{\"tool\":\"Bash\"}");
    m.ts_us += 86400ll * 1000000;
    memory_apply(&m, "tool.called", "{\"tool\":\"Bash\"}");
    ck_memory(&m, "SELECT * FROM tools_per_day",
              "2026-01-06|?|1|1\n2026-01-06|Bash|2|1\n2026-01-07|Bash|1|1\n");
    ck_assert_uint_eq(annal_state_refused(m.state), 0);
    memory_done(&m);
    free(text);
}
END_TEST

Suite *suite_user_pack(void)
{
    Suite *suite = suite_create("user_pack");
    TCase *tcase = tcase_create("user_pack");
    tcase_add_test(tcase, the_example_of_the_page_is_a_pack_of_30_lines_at_most);
    tcase_add_test(tcase, the_example_counts_calls_by_tool_and_day);
    suite_add_tcase(suite, tcase);
    return suite;
}
