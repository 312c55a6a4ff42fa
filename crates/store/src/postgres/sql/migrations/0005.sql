-- Format 5: bodies of inbox messages carry a seal. No table changes: the number keeps older releases, which would take a
-- sealed body for a damaged one, from opening the store.

SELECT 1;
