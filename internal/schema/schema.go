// Package schema validates documents against JSON schemas, and tells where: every complaint has
// its place in the data and the place in the schema that makes it.
//
// Its rules: a schema is of draft 4, 6, 7, 2019-09 or 2020-12, as its "$schema" says, and of
// 2020-12 without one; nothing is fetched, other files come from a function that the caller
// gives; formats are asserted in all drafts, and a format that is not known says nothing;
// patterns are RE2. Schemas and data may be hostile: depth and steps are bounded.
package schema
