-- SPDX-License-Identifier: Apache-2.0
-- The list prices of public models, in dollars for a million tokens, for logs that report tokens
-- and no cost. The makers published them at these places, as of 2026-10:
--   anthropic   platform.claude.com/docs/en/about-claude/pricing; writing to a cache for five
--               minutes
--   openai      platform.openai.com/docs/pricing; gpt-5.3 and later as others quote that page
--   google      ai.google.dev/gemini-api/docs/pricing; gemini-3.5-flash as others quote that page
-- since is the day from which a price is valid, or a day before the model was used. A price.set
-- event overrides this list: docs/packs/core.md, Costs. Two values may follow the source: the
-- number of tokens above which a prompt has this price, and the tier of service. Writing to a cache
-- for an hour costs twice the input at anthropic, a thousand web searches 10 dollars at anthropic and
-- openai; batches cost
-- half at all three, as flex does at openai; inference in the United States costs a tenth more at
-- anthropic (tier us). Tiers that are not listed have no price.
-- One JSON text, because SQLite parses every view whenever it opens a database.
CREATE VIEW list_prices AS
    SELECT p.value->>0 AS model, p.value->>1 AS since,
           iif(t.value->>1 = '', coalesce(p.value->>8, ''), t.value->>1) AS tier,
           coalesce(p.value->>7, 0) AS above,
           (t.value->>2) * (p.value->>2) AS input, (t.value->>2) * (p.value->>3) AS output,
           (t.value->>2) * (p.value->>4) AS cache_read, (t.value->>2) * (p.value->>5) AS cache_write,
           CASE p.value->>6 WHEN 'anthropic' THEN 2 * (t.value->>2) * (p.value->>2) END
               AS cache_write_1h,
           CASE WHEN p.value->>6 IN ('anthropic', 'openai') THEN 10 END AS web_search, p.value->>6 AS source
    FROM json_each('[["", "", 1], ["anthropic", "batch", 0.5], ["openai", "batch", 0.5],
                     ["openai", "flex", 0.5], ["google", "batch", 0.5],
                     ["anthropic", "us", 1.1], ["anthropic", "batch us", 0.55]]') t
    CROSS JOIN json_each('[
    ["claude-3-haiku-*", "2024-03-07", 0.25, 1.25, 0.03, 0.3, "anthropic"],
    ["claude-3-opus-*", "2024-02-29", 15, 75, 1.5, 18.75, "anthropic"],
    ["claude-3-5-sonnet-*", "2024-06-20", 3, 15, 0.3, 3.75, "anthropic"],
    ["claude-3-5-haiku-*", "2024-10-22", 0.8, 4, 0.08, 1, "anthropic"],
    ["claude-3-7-sonnet-*", "2025-02-19", 3, 15, 0.3, 3.75, "anthropic"],
    ["claude-sonnet-4-20250514", "2025-05-14", 3, 15, 0.3, 3.75, "anthropic"],
    ["claude-sonnet-4-0", "2025-05-14", 3, 15, 0.3, 3.75, "anthropic"],
    ["claude-opus-4-20250514", "2025-05-14", 15, 75, 1.5, 18.75, "anthropic"],
    ["claude-opus-4-0", "2025-05-14", 15, 75, 1.5, 18.75, "anthropic"],
    ["claude-opus-4[-.]1*", "2025-08-05", 15, 75, 1.5, 18.75, "anthropic"],
    ["claude-sonnet-4[-.]5*", "2025-09-29", 3, 15, 0.3, 3.75, "anthropic"],
    ["claude-sonnet-4-20250514", "2025-08-12", 6, 22.5, 0.6, 7.5, "anthropic", 200000],
    ["claude-sonnet-4[-.]5*", "2025-09-29", 6, 22.5, 0.6, 7.5, "anthropic", 200000],
    ["claude-haiku-4[-.]5*", "2025-10-01", 1, 5, 0.1, 1.25, "anthropic"],
    ["claude-opus-4[-.]5*", "2025-11-01", 5, 25, 0.5, 6.25, "anthropic"],
    ["claude-opus-4[-.]6*", "2026-02-01", 5, 25, 0.5, 6.25, "anthropic"],
    ["claude-sonnet-4[-.]6*", "2026-02-01", 3, 15, 0.3, 3.75, "anthropic"],
    ["claude-opus-4[-.]6*", "2026-02-01", 10, 37.5, 1, 12.5, "anthropic", 200000],
    ["claude-sonnet-4[-.]6*", "2026-02-01", 6, 22.5, 0.6, 7.5, "anthropic", 200000],
    ["claude-opus-4[-.]6*", "2026-03-13", 5, 25, 0.5, 6.25, "anthropic", 200000],
    ["claude-sonnet-4[-.]6*", "2026-03-13", 3, 15, 0.3, 3.75, "anthropic", 200000],
    ["claude-opus-4[-.]6*", "2026-02-01", 30, 150, 3, 37.5, "anthropic", 0, "fast"],
    ["claude-opus-4[-.]7*", "2026-03-01", 30, 150, 3, 37.5, "anthropic", 0, "fast"],
    ["claude-opus-4[-.]7*", "2026-03-01", 5, 25, 0.5, 6.25, "anthropic"],
    ["claude-opus-4[-.]8*", "2026-05-28", 5, 25, 0.5, 6.25, "anthropic"],
    ["claude-fable-5", "2026-06-09", 10, 50, 1, 12.5, "anthropic"],
    ["claude-sonnet-5", "2026-06-01", 2, 10, 0.2, 2.5, "anthropic"],
    ["claude-opus-5", "2026-07-24", 5, 25, 0.5, 6.25, "anthropic"],
    ["claude-fable-5[-.]1*", "2026-09-01", 10, 50, 0.25, 12.5, "anthropic"],
    ["claude-opus-5[-.]5*", "2026-09-01", 4, 20, 0.2, 5, "anthropic"],
    ["claude-sonnet-5[-.]5*", "2026-09-01", 2, 10, 0.2, 2.5, "anthropic"],
    ["gpt-4o", "2024-10-01", 2.5, 10, 1.25, null, "openai"],
    ["gpt-4o-20??-??-??", "2024-10-01", 2.5, 10, 1.25, null, "openai"],
    ["gpt-4o-mini", "2024-10-01", 0.15, 0.6, 0.075, null, "openai"],
    ["gpt-4o-mini-20??-??-??", "2024-10-01", 0.15, 0.6, 0.075, null, "openai"],
    ["o1", "2024-12-17", 15, 60, 7.5, null, "openai"],
    ["o1-20??-??-??", "2024-12-17", 15, 60, 7.5, null, "openai"],
    ["o3-mini", "2025-01-31", 1.1, 4.4, 0.55, null, "openai"],
    ["o3-mini-20??-??-??", "2025-01-31", 1.1, 4.4, 0.55, null, "openai"],
    ["gpt-4.1", "2025-04-14", 2, 8, 0.5, null, "openai"],
    ["gpt-4.1-20??-??-??", "2025-04-14", 2, 8, 0.5, null, "openai"],
    ["gpt-4.1-mini", "2025-04-14", 0.4, 1.6, 0.1, null, "openai"],
    ["gpt-4.1-mini-20??-??-??", "2025-04-14", 0.4, 1.6, 0.1, null, "openai"],
    ["gpt-4.1-nano", "2025-04-14", 0.1, 0.4, 0.025, null, "openai"],
    ["gpt-4.1-nano-20??-??-??", "2025-04-14", 0.1, 0.4, 0.025, null, "openai"],
    ["o3", "2025-04-16", 10, 40, 2.5, null, "openai"],
    ["o3-20??-??-??", "2025-04-16", 10, 40, 2.5, null, "openai"],
    ["o3", "2025-06-10", 2, 8, 0.5, null, "openai"],
    ["o3-20??-??-??", "2025-06-10", 2, 8, 0.5, null, "openai"],
    ["o4-mini", "2025-04-16", 1.1, 4.4, 0.275, null, "openai"],
    ["o4-mini-20??-??-??", "2025-04-16", 1.1, 4.4, 0.275, null, "openai"],
    ["codex-mini-latest", "2025-05-16", 1.5, 6, 0.375, null, "openai"],
    ["gpt-5", "2025-08-07", 1.25, 10, 0.125, null, "openai"],
    ["gpt-5-20??-??-??", "2025-08-07", 1.25, 10, 0.125, null, "openai"],
    ["gpt-5-mini", "2025-08-07", 0.25, 2, 0.025, null, "openai"],
    ["gpt-5-mini-20??-??-??", "2025-08-07", 0.25, 2, 0.025, null, "openai"],
    ["gpt-5-nano", "2025-08-07", 0.05, 0.4, 0.005, null, "openai"],
    ["gpt-5-nano-20??-??-??", "2025-08-07", 0.05, 0.4, 0.005, null, "openai"],
    ["gpt-5-codex", "2025-09-15", 1.25, 10, 0.125, null, "openai"],
    ["gpt-5.1", "2025-11-12", 1.25, 10, 0.125, null, "openai"],
    ["gpt-5.1-20??-??-??", "2025-11-12", 1.25, 10, 0.125, null, "openai"],
    ["gpt-5.1-codex", "2025-11-12", 1.25, 10, 0.125, null, "openai"],
    ["gpt-5.1-codex-mini", "2025-11-12", 0.25, 2, 0.025, null, "openai"],
    ["gpt-5.2", "2025-12-11", 1.75, 14, 0.175, null, "openai"],
    ["gpt-5.2-20??-??-??", "2025-12-11", 1.75, 14, 0.175, null, "openai"],
    ["gpt-5.2-codex", "2025-12-18", 1.75, 14, 0.175, null, "openai"],
    ["gpt-5.3-codex", "2026-02-01", 1.75, 14, 0.175, null, "openai"],
    ["gpt-5.4", "2026-03-01", 2.5, 15, 0.25, null, "openai"],
    ["gpt-5.4", "2026-03-01", 5, 22.5, 0.5, null, "openai", 272000],
    ["gpt-5.4-mini", "2026-03-01", 0.75, 4.5, 0.075, null, "openai"],
    ["gpt-5.4-nano", "2026-03-01", 0.2, 1.25, 0.02, null, "openai"],
    ["gpt-5.5", "2026-04-01", 5, 30, 0.5, null, "openai"],
    ["gpt-5.5", "2026-04-01", 10, 45, 1, null, "openai", 272000],
    ["gemini-2.0-flash", "2025-02-05", 0.1, 0.4, 0.025, null, "google"],
    ["gemini-2.0-flash-001", "2025-02-05", 0.1, 0.4, 0.025, null, "google"],
    ["gemini-2.5-flash", "2025-06-17", 0.3, 2.5, 0.03, null, "google"],
    ["gemini-2.5-flash-lite", "2025-07-22", 0.1, 0.4, 0.01, null, "google"],
    ["gemini-2.5-pro", "2025-06-17", 1.25, 10, 0.125, null, "google"],
    ["gemini-2.5-pro", "2025-06-17", 2.5, 15, 0.25, null, "google", 200000],
    ["gemini-3-pro-preview", "2025-11-18", 4, 18, 0.4, null, "google", 200000],
    ["gemini-3-pro-preview", "2025-11-18", 2, 12, 0.2, null, "google"],
    ["gemini-3-flash-preview", "2025-12-17", 0.5, 3, 0.05, null, "google"],
    ["gemini-3.5-flash", "2026-05-19", 1.5, 9, 0.15, null, "google"]]') p
    WHERE t.value->>0 IN ('', p.value->>6) AND (t.value->>1 = '' OR p.value->>8 IS NULL);
