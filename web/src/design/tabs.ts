/** A tab is a link to the same page with other search parameters, so it is active only if all of them are equal. */
export const TAB_MATCH = { exact: true, includeSearch: true };
