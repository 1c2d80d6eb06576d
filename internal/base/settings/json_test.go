package settings

import (
	"testing"
)

// TestTableAsJSON: a table is the same after it was JSON, and what settings cannot be is refused.
func TestTableAsJSON(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"a":1,"b":-9223372036854775808,"c":"x","d":true}`, `{"a":1.5,"b":2.0,"c":1e+300}`, `{"list":[1,"two",[3.0],{"four":4}],"t":{"u":{"v":[]}}}`,
		`{"é \u0001":"\u003c\n"}`,
	} {
		table, err := FromJSON([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := table.JSON(); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
	if got := (*Table)(nil).JSON(); got != "{}" {
		t.Errorf("no table is %s", got)
	}
	for _, bad := range []string{``, `null`, `[]`, `1`, `{"a":null}`, `{"a":[null]}`, `{"a":{"b":null}}`, `{} {}`, `{"a":1e999}`, `{"a"`} {
		if table, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("%s is read as %s", bad, table.JSON())
		}
	}
}
